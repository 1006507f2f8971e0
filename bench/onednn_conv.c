/* onednn_conv LAYERS [SECONDS]: milliseconds that oneDNN's own int8 convolution primitives take for
 * a list of layers, one after another: what a whole network can be compared with. Measured as
 * `quench bench` does it: the median and the fastest of the rounds of that time, after a tenth of
 * it as warm-up. Nothing stands behind the primitives (uint8 maps channels last, int8 weights in
 * oneDNN's form, int32 bias, uint8 results), and weights come from where a network has them, since
 * a round walks through all layers. OMP_NUM_THREADS says how many threads. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/dnnl/onednn.h"

enum { NUMBERS = 15, MOST = 512, FEWEST_ROUNDS = 5, MOST_ROUNDS = 1 << 16 };

typedef struct layer {
    dnnl_dim_t channels, size[2], filters, out[2], kernel[2], stride[2], pads[4], groups;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[4];
} layer;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static dnnl_status_t describe(qn_md *out, int rank, const dnnl_dim_t *dims, dnnl_data_type_t type,
                              dnnl_format_tag_t tag)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_memory_desc_create_with_tag(&out->desc, rank, dims, type, tag);
#else
    return dnnl_memory_desc_init_by_tag(&out->desc, rank, dims, type, tag);
#endif
}

/* One line of numbers; false at the end and for anything else. */
static bool read_layer(layer *l, const char *line)
{
    dnnl_dim_t *const to[NUMBERS] = {&l->channels,  &l->size[0],   &l->size[1],   &l->filters,
                                     &l->out[0],    &l->out[1],    &l->kernel[0], &l->kernel[1],
                                     &l->stride[0], &l->stride[1], &l->pads[0],   &l->pads[1],
                                     &l->pads[2],   &l->pads[3],   &l->groups};
    char *end = NULL;
    for (int i = 0; i < NUMBERS; i++, line = end) {
        *to[i] = strtol(line, &end, 10);
        if (end == line || *to[i] < 0)
            return false;
    }
    return l->groups > 0;
}

static dnnl_status_t tensors_of(qn_onednn_tensors *t, const layer *l)
{
    const dnnl_dims_t src = {1, l->channels, l->size[0], l->size[1]};
    const dnnl_dims_t dst = {1, l->filters, l->out[0], l->out[1]};
    const dnnl_dims_t grouped = {l->groups, l->filters / l->groups, l->channels / l->groups,
                                 l->kernel[0], l->kernel[1]};
    const dnnl_dims_t filters = {l->filters};
    const dnnl_dims_t plain = {l->filters, l->channels, l->kernel[0], l->kernel[1]};
    const bool one = l->groups == 1;
    dnnl_status_t status = describe(&t->src, 4, src, dnnl_u8, dnnl_nhwc);
    if (status == dnnl_success)
        status = describe(&t->dst, 4, dst, dnnl_u8, dnnl_nhwc);
    if (status == dnnl_success)
        status = describe(&t->bias, 1, filters, dnnl_s32, dnnl_a);
    if (status == dnnl_success)
        status =
            describe(&t->weights, one ? 4 : 5, one ? plain : grouped, dnnl_s8, dnnl_format_tag_any);
    return status;
}

static dnnl_status_t prepare(layer *l, dnnl_engine_t engine)
{
    static const dnnl_query_t queries[] = {dnnl_query_src_md, dnnl_query_weights_md,
                                           dnnl_query_weights_md, dnnl_query_dst_md};
    static const int which[] = {0, 0, 1, 0};
    static const int names[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST};
    qn_onednn_tensors t;
    qn_onednn_window w = {0};
    dnnl_primitive_desc_t desc;
    dnnl_status_t status = tensors_of(&t, l);
    for (int d = 0; d < 2; d++) {
        w.kernel[d] = l->kernel[d];
        w.stride[d] = l->stride[d];
        w.pad_begin[d] = l->pads[d];
        w.pad_end[d] = l->pads[2 + d];
    }
    if (status == dnnl_success)
        status = qn_onednn_conv(&desc, engine, &t, &w, NULL);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&l->primitive, desc);
    for (int i = 0; i < 4 && status == dnnl_success; i++) {
        l->args[i].arg = names[i];
        status = dnnl_memory_create(&l->args[i].memory,
                                    dnnl_primitive_desc_query_md(desc, queries[i], which[i]),
                                    engine, DNNL_MEMORY_ALLOCATE);
    }
    return status; /* all is kept until the program ends */
}

/* One round, in milliseconds. */
static dnnl_status_t run_all(double *ms, const layer *layers, int count, dnnl_stream_t stream)
{
    dnnl_status_t status = dnnl_success;
    const double start = now();
    for (int i = 0; i < count && status == dnnl_success; i++)
        status = dnnl_primitive_execute(layers[i].primitive, stream, 4, layers[i].args);
    if (status == dnnl_success)
        status = dnnl_stream_wait(stream);
    *ms = now() - start;
    return status;
}

static int read_layers(layer *layers, const char *path)
{
    char line[256];
    int count = 0;
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    while (count < MOST && fgets(line, sizeof line, file)) {
        if (line[0] != '#' && !read_layer(&layers[count++], line)) {
            fprintf(stderr, "onednn_conv: %s: '%s' is not a layer\n", path, line);
            count = 0;
            break;
        }
    }
    fclose(file);
    return count;
}

typedef struct network {
    layer layers[MOST];
    int count;
    dnnl_stream_t stream;
} network;

static dnnl_status_t prepare_all(network *n)
{
    dnnl_engine_t engine;
    dnnl_status_t status = dnnl_engine_create(&engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = dnnl_stream_create(&n->stream, engine, dnnl_stream_default_flags);
    for (int i = 0; i < n->count && status == dnnl_success; i++)
        status = prepare(&n->layers[i], engine);
    return status;
}

/* The times of the rounds that fit into `seconds`. */
static dnnl_status_t measure(int *rounds, double *times, const network *n, double seconds)
{
    const double until = now() + 1e3 * seconds;
    dnnl_status_t status = dnnl_success;
    *rounds = 0;
    while (status == dnnl_success && *rounds < MOST_ROUNDS &&
           (*rounds < FEWEST_ROUNDS || now() < until))
        status = run_all(&times[(*rounds)++], n->layers, n->count, n->stream);
    return status;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static network n;
    static double times[MOST_ROUNDS];
    const double seconds = argc > 2 ? atof(argv[2]) : 0.5;
    int rounds = 0;
    n.count = argc > 1 ? read_layers(n.layers, argv[1]) : 0;
    if (n.count == 0) {
        fprintf(stderr, "usage: onednn_conv LAYERS [SECONDS]\n");
        return 2;
    }
    dnnl_status_t status = prepare_all(&n);
    if (status == dnnl_success)
        status = measure(&rounds, times, &n, seconds / 10);
    if (status == dnnl_success)
        status = measure(&rounds, times, &n, seconds);
    if (status != dnnl_success) {
        fprintf(stderr, "onednn_conv: oneDNN answers %d\n", (int)status);
        return 1;
    }
    qsort(times, (size_t)rounds, sizeof *times, by_size);
    printf("{\"median_ms\": %.3f, \"min_ms\": %.3f}\n", times[rounds / 2], times[0]);
    return 0;
}
