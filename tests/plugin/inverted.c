/* A backend as a plug-in, for tests: its "device" is ordinary memory in which every byte is
 * inverted, so that who reads it as the host's, or the host's as its own, gets nonsense. Its
 * arithmetic is that of the reference kernels. Work that is put into a stream is done when somebody
 * waits for it, and no earlier: what forgets to wait reads old bytes.
 *
 *   QUENCH_INVERTED_DEVICES=2  two devices, the second one for activations
 *   QUENCH_INVERTED_FAIL=WHERE fails there: open, alloc, claim, prepare, bind, run */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "quench/backend.h"

enum { MOST_DEVICES = 2, MOST_INPUTS = 16, MOST_NODES = 2 };

typedef struct block {
    struct block *next;
    char *at;
    size_t size;
} block;

typedef struct device {
    const qn_backend_api *api;
    qn_space space;
    /* Where it is to fail; "": nowhere. */
    const char *failing;
    bool is_one_of_two;
    /* It guards `blocks`. */
    pthread_mutex_t lock;
    block *blocks;
} device;

typedef struct plugin {
    qn_context *ctx;
    device devices[MOST_DEVICES];
    qn_backend backends[MOST_DEVICES];
} plugin;

static device *device_of(const qn_space *space)
{
    return space->user;
}

static bool fails_at(const device *d, const char *where)
{
    return strcmp(d->failing, where) == 0;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void *space_alloc(const qn_space *self, qn_context *ctx, size_t size)
{
    device *d = device_of(self);
    block *b = fails_at(d, "alloc") ? NULL : malloc(sizeof *b);
    if (!b)
        return NULL;
    *b = (block){.at = d->api->alloc(ctx, size ? size : 1), .size = size};
    if (!b->at) {
        free(b);
        return NULL;
    }
    memset(b->at, 0x5a, size);
    pthread_mutex_lock(&d->lock);
    b->next = d->blocks;
    d->blocks = b;
    pthread_mutex_unlock(&d->lock);
    return b->at;
}

static void space_free(const qn_space *self, qn_context *ctx, void *memory)
{
    device *d = device_of(self);
    if (!memory)
        return;
    pthread_mutex_lock(&d->lock);
    block **at = &d->blocks;
    while ((*at)->at != memory)
        at = &(*at)->next;
    block *gone = *at;
    *at = gone->next;
    pthread_mutex_unlock(&d->lock);
    d->api->free(ctx, memory);
    free(gone);
}

static bool space_owns(const qn_space *self, const void *data)
{
    device *d = device_of(self);
    bool found = false;
    pthread_mutex_lock(&d->lock);
    for (const block *b = d->blocks; b && !found; b = b->next)
        found = (const char *)data >= b->at && (const char *)data < b->at + b->size;
    pthread_mutex_unlock(&d->lock);
    return found;
}

static void invert(void *to, const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)to)[i] = (unsigned char)~((const unsigned char *)from)[i];
}

/* ---- Streams --------------------------------------------------------------------------------- */

typedef struct state state;
static qn_status run_nodes(const state *s, const qn_step_io *io);

/* A kernel, or a copy; a copy from the host has its bytes along. */
typedef struct job {
    struct job *next;
    const state *kernel;
    const qn_step_io *io;
    qn_copy copy;
    unsigned char taken[];
} job;

typedef struct stream {
    const device *device;
    job *first, **end;
} stream;

static qn_status stream_open(const qn_space *self, qn_context *ctx, void **out)
{
    stream *s = malloc(sizeof *s);
    if (!s)
        return device_of(self)->api->fail(ctx, QN_E_NOMEM, "no memory for a stream");
    *s = (stream){.device = device_of(self)};
    s->end = &s->first;
    *out = s;
    return QN_OK;
}

static void drop_jobs(stream *s)
{
    while (s->first) {
        job *next = s->first->next;
        free(s->first);
        s->first = next;
    }
    s->end = &s->first;
}

static void stream_close(const qn_space *self, qn_context *ctx, void *opaque)
{
    (void)self;
    (void)ctx;
    drop_jobs(opaque);
    free(opaque);
}

static qn_status copy_now(const device *d, qn_context *ctx, const qn_copy *copy)
{
    if ((copy->to_space && !copy->to_space->owns(copy->to_space, copy->to)) ||
        (copy->from_space && !copy->from_space->owns(copy->from_space, copy->from)))
        return d->api->fail(ctx, QN_E_INVALID, "a copy is not of this device's memory");
    if (copy->to_space && copy->from_space)
        memcpy(copy->to, copy->from, copy->bytes);
    else
        invert(copy->to, copy->from, copy->bytes);
    return QN_OK;
}

static qn_status stream_wait(const qn_space *self, qn_context *ctx, void *opaque)
{
    stream *s = opaque;
    qn_status status = QN_OK;
    for (const job *j = s->first; j && status == QN_OK; j = j->next) {
        if (j->kernel)
            status = run_nodes(j->kernel, j->io);
        else if (j->copy.from_space)
            status = copy_now(device_of(self), ctx, &j->copy);
        else
            invert(j->copy.to, j->taken, j->copy.bytes);
    }
    drop_jobs(s);
    return status;
}

static qn_status put(stream *s, qn_context *ctx, const job *like, size_t taken)
{
    job *j = malloc(sizeof *j + taken);
    if (!j)
        return s->device->api->fail(ctx, QN_E_NOMEM, "no memory for a job");
    memcpy(j, like, sizeof *j);
    if (taken)
        memcpy(j->taken, like->copy.from, taken);
    *s->end = j;
    s->end = &j->next;
    return QN_OK;
}

static qn_status space_copy(const qn_space *self, qn_context *ctx, const qn_copy *copy)
{
    const job j = {.copy = *copy};
    if (!copy->stream)
        return copy_now(device_of(self), ctx, copy);
    return put(copy->stream, ctx, &j, copy->from_space ? 0 : copy->bytes);
}

static bool space_reaches(const qn_space *self, const qn_space *from)
{
    return strcmp(self->name, from->name) == 0;
}

/* An event has come when all before it is done. */
static qn_status stream_follow(const qn_space *self, qn_context *ctx, void *opaque, void *other)
{
    (void)opaque;
    return stream_wait(self, ctx, other);
}

/* ---- Kernels --------------------------------------------------------------------------------- */

struct state {
    const device *device;
    const qn_node *nodes[MOST_NODES];
    int32_t n_nodes;
    /* For the first node, which of io.in an input is, or -1 for packed ones and those left out. */
    int32_t place[MOST_INPUTS];
    /* Shapes and addresses of packed inputs. */
    qn_tensor packed[MOST_INPUTS];
};

/* One tensor brought from the device to the host; its data is to be freed. */
static qn_status fetch(qn_tensor *out, const state *s, qn_context *ctx, const qn_tensor *from)
{
    const qn_backend_api *api = s->device->api;
    const size_t bytes = api->tensor_bytes(from);
    *out = *from;
    out->data = api->alloc(ctx, bytes ? bytes : 1);
    if (!out->data)
        return api->fail_node(ctx, s->nodes[0], QN_E_NOMEM, "no memory to compute in");
    if (bytes && !space_owns(&s->device->space, from->data))
        return api->fail_node(ctx, s->nodes[0], QN_E_INVALID, "an input is not on the device");
    invert(out->data, from->data, bytes);
    return QN_OK;
}

typedef struct work {
    qn_tensor in[MOST_INPUTS], out[MOST_INPUTS];
    const qn_tensor *from[MOST_INPUTS];
    qn_tensor *to[MOST_INPUTS];
} work;

static qn_status fetch_inputs(work *w, const state *s, const qn_step_io *io)
{
    const int32_t count = s->device->api->graph.node_inputs(s->nodes[0]);
    for (int32_t i = 0; i < count; i++) {
        const qn_tensor *at = s->place[i] >= 0 ? io->in[s->place[i]] : &s->packed[i];
        if (!at || at->dtype == QN_UNDEFINED)
            continue;
        const qn_status status = fetch(&w->in[i], s, io->ctx, at);
        if (status != QN_OK)
            return status;
        w->from[i] = &w->in[i];
    }
    return QN_OK;
}

static qn_status make_outputs(work *w, const state *s, const qn_step_io *io)
{
    const qn_backend_api *api = s->device->api;
    const int32_t count = api->graph.node_outputs(s->nodes[s->n_nodes - 1]);
    for (int32_t o = 0; o < count; o++) {
        if (!io->out[o])
            continue;
        w->out[o] = *io->out[o];
        w->out[o].data = api->alloc(io->ctx, api->tensor_bytes(io->out[o]) + 1);
        if (!w->out[o].data)
            return api->fail_node(io->ctx, s->nodes[0], QN_E_NOMEM, "no memory to compute in");
        w->to[o] = &w->out[o];
    }
    return QN_OK;
}

/* A second node reads nothing but what the first made, and writes to the same place. */
static qn_status compute(work *w, const state *s, const qn_step_io *io)
{
    const qn_backend_api *api = s->device->api;
    qn_status status = api->graph.node_eval(io->ctx, s->nodes[0], w->from, w->to);
    if (status != QN_OK || s->n_nodes < 2)
        return status;
    const qn_tensor first = w->out[0], *from[] = {&first};
    w->out[0].data = api->alloc(io->ctx, api->tensor_bytes(&first) + 1);
    status = w->out[0].data
                 ? api->graph.node_eval(io->ctx, s->nodes[1], from, w->to)
                 : api->fail_node(io->ctx, s->nodes[1], QN_E_NOMEM, "no memory to compute in");
    api->free(io->ctx, first.data);
    return status;
}

static qn_status run_nodes(const state *s, const qn_step_io *io)
{
    const qn_backend_api *api = s->device->api;
    work w;
    memset(&w, 0, sizeof w);
    memset(io->scratch, 0xa5, 64);
    qn_status status =
        fails_at(s->device, "run")
            ? api->fail_node(io->ctx, s->nodes[0], QN_E_UNSUPPORTED, "the device fell off the bus")
            : fetch_inputs(&w, s, io);
    if (status == QN_OK)
        status = make_outputs(&w, s, io);
    if (status == QN_OK)
        status = compute(&w, s, io);
    for (int32_t i = 0; i < MOST_INPUTS; i++) {
        if (status == QN_OK && w.to[i])
            invert(io->out[i]->data, w.out[i].data, api->tensor_bytes(&w.out[i]));
        api->free(io->ctx, w.in[i].data);
        api->free(io->ctx, w.out[i].data);
    }
    return status;
}

static qn_status kernel_prepare(qn_claim *claim)
{
    state *s = claim->state;
    const qn_backend_api *api = s->device->api;
    if (fails_at(s->device, "prepare"))
        return api->fail_node(api->plan.context(claim->builder), s->nodes[0], QN_E_UNSUPPORTED,
                              "weights do not fit the device");
    for (int32_t i = 0; i < MOST_INPUTS; i++) {
        if (s->packed[i].dtype == QN_UNDEFINED)
            continue;
        const qn_tensor *data = api->graph.value_data(api->graph.node_input(s->nodes[0], i));
        const qn_status status = api->plan.upload(&s->packed[i].data, claim->builder, data->data,
                                                  api->tensor_bytes(data));
        if (status != QN_OK)
            return status;
    }
    return QN_OK;
}

static qn_status kernel_bind(void **bound, const void *opaque, const qn_step_io *io)
{
    const state *s = opaque;
    *bound = NULL;
    return fails_at(s->device, "bind")
               ? s->device->api->fail_node(io->ctx, s->nodes[0], QN_E_UNSUPPORTED,
                                           "the device is busy")
               : QN_OK;
}

static qn_status kernel_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const job j = {.kernel = opaque, .io = io};
    (void)bound;
    return put(io->stream, io->ctx, &j, 0);
}

static const qn_kernel kernel = {
    .name = "inverted", .prepare = kernel_prepare, .bind = kernel_bind, .run = kernel_run};

/* ---- Claiming -------------------------------------------------------------------------------- */

enum {
    /* Constant inputs from the second on are packed */
    PACKS = 1,
    /* The bytes of the first input */
    VIEWS = 2,
    /* The second device takes these, where there is one */
    ACTIVATION = 4,
    /* A Relu behind it, too */
    FUSES = 8
};

static const struct row {
    const char *op;
    int flags;
} rows[] = {
    {"Add", 0},
    {"AveragePool", 0},
    {"BatchNormalization", PACKS},
    {"Clip", ACTIVATION},
    {"Concat", 0},
    {"Conv", PACKS | FUSES},
    {"ConvIntegerToFloat", PACKS},
    {"DequantizeLinear", 0},
    {"Div", 0},
    {"Flatten", VIEWS},
    {"Gemm", PACKS | FUSES},
    {"GlobalAveragePool", 0},
    {"MatMul", PACKS},
    {"MaxPool", 0},
    {"Mul", ACTIVATION},
    {"QFunction", PACKS},
    {"QLinearAdd", PACKS},
    {"QLinearConcat", 0},
    {"QLinearConv", PACKS},
    {"QLinearGlobalAveragePool", PACKS},
    {"QMatMul", PACKS},
    {"QTable", PACKS},
    {"QuantizeLinear", 0},
    {"Relu", ACTIVATION},
    {"Requantize", PACKS},
    {"Reshape", VIEWS},
    {"Resize", 0},
    {"Sigmoid", ACTIVATION},
    {"Slice", 0},
    {"Softmax", 0},
    {"Split", 0},
    {"Sub", 0},
    {"Transpose", 0},
    {"Unsqueeze", VIEWS},
};

static const struct row *row_of(const device *d, const qn_node *node)
{
    const char *op = d->api->graph.node_op(node);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int number = d->is_one_of_two && rows[i].flags & ACTIVATION;
        if (strcmp(rows[i].op, op) == 0)
            return d->space.device == number ? &rows[i] : NULL;
    }
    return NULL;
}

static void claim_inputs(state *s, qn_claim *claim, const struct row *row)
{
    const qn_backend_api *api = s->device->api;
    const qn_layout rows_layout = {QN_LAYOUT_ROWS, 0};
    for (int32_t i = 0; i < api->graph.node_inputs(claim->node); i++) {
        qn_value *value = api->graph.node_input(claim->node, i);
        const qn_tensor *data = value ? api->graph.value_data(value) : NULL;
        s->place[i] = -1;
        if (value && data && i > 0 && row->flags & PACKS) {
            s->packed[i] = *data;
        } else if (value && (i == 0 || !(row->flags & VIEWS))) {
            s->place[i] = claim->n_in;
            api->plan.claim_in(claim, value, rows_layout);
        }
    }
}

/* A Relu that alone reads what the node makes. */
static void grow(state *s, qn_claim *claim)
{
    const qn_backend_api *api = s->device->api;
    qn_node *next = api->plan.fusible(claim->builder, api->graph.node_output(claim->node, 0));
    if (!next || strcmp(api->graph.node_op(next), "Relu") != 0)
        return;
    api->plan.claim_add(claim, next);
    s->nodes[s->n_nodes++] = next;
}

static void claim_outputs(state *s, qn_claim *claim)
{
    const qn_backend_api *api = s->device->api;
    const qn_node *last = s->nodes[s->n_nodes - 1];
    for (int32_t o = 0; o < api->graph.node_outputs(last); o++)
        api->plan.claim_out(claim, api->graph.node_output(last, o), (qn_layout){QN_LAYOUT_ROWS, 0});
}

static qn_status fill(qn_claim *claim, const device *d, const struct row *row)
{
    const qn_backend_api *api = d->api;
    state *s = api->plan.alloc(claim->builder, sizeof *s);
    if (!s)
        return api->fail_node(api->plan.context(claim->builder), claim->node, QN_E_NOMEM,
                              "out of memory");
    s->device = d;
    s->nodes[s->n_nodes++] = claim->node;
    claim_inputs(s, claim, row);
    if (row->flags & FUSES)
        grow(s, claim);
    claim_outputs(s, claim);
    claim->state = s;
    if (row->flags & VIEWS) {
        claim->out[0].view_of = 0;
        return QN_OK;
    }
    claim->kernel = &kernel;
    claim->scratch = 64;
    claim->in_place = claim->n_in > 0 ? 0 : -1;
    return QN_OK;
}

static qn_status claim_node(bool *taken, qn_claim *claim)
{
    const device *d = claim->backend->user;
    const qn_backend_api *api = d->api;
    const struct row *row = row_of(d, claim->node);
    bool possible = false;
    if (!row || api->graph.node_inputs(claim->node) > MOST_INPUTS ||
        api->graph.node_outputs(claim->node) > MOST_INPUTS)
        return QN_OK;
    if (fails_at(d, "claim"))
        return api->fail_node(api->plan.context(claim->builder), claim->node, QN_E_UNSUPPORTED,
                              "the device does not answer");
    const qn_status status = api->graph.node_is_static(&possible, claim->node);
    if (status != QN_OK || !possible)
        return status;
    *taken = true;
    return fill(claim, d, row);
}

/* ---- The plug-in ----------------------------------------------------------------------------- */

static void device_init(device *d, int number, const qn_backend_api *api)
{
    const char *failing = getenv("QUENCH_INVERTED_FAIL");
    d->api = api;
    d->failing = failing ? failing : "";
    pthread_mutex_init(&d->lock, NULL);
    d->space = (qn_space){.name = "inverted memory",
                          .device = number,
                          .user = d,
                          .alloc = space_alloc,
                          .free = space_free,
                          .copy = space_copy,
                          .reaches = space_reaches,
                          .stream_open = stream_open,
                          .stream_close = stream_close,
                          .wait = stream_wait,
                          .follow = stream_follow,
                          .owns = space_owns};
}

static qn_status plugin_open(qn_plugin_set *out, qn_context *ctx, const qn_backend_api *api)
{
    const char *count = getenv("QUENCH_INVERTED_DEVICES");
    plugin *p = calloc(1, sizeof *p);
    if (!p)
        return api->fail(ctx, QN_E_NOMEM, "out of memory");
    out->count = count && strcmp(count, "2") == 0 ? 2 : 1;
    for (size_t i = 0; i < out->count; i++) {
        device_init(&p->devices[i], (int)i, api);
        p->devices[i].is_one_of_two = out->count == 2;
        p->backends[i] = (qn_backend){.name = "inverted",
                                      .claim = claim_node,
                                      .space = &p->devices[i].space,
                                      .user = &p->devices[i]};
    }
    *out = (qn_plugin_set){.backends = p->backends, .count = out->count, .user = p};
    if (!fails_at(&p->devices[0], "open"))
        return QN_OK;
    free(p);
    return api->fail(ctx, QN_E_UNSUPPORTED, "there is no such device here");
}

static void plugin_close(qn_plugin_set *set, qn_context *ctx)
{
    plugin *p = set->user;
    (void)ctx;
    for (size_t i = 0; i < set->count; i++)
        pthread_mutex_destroy(&p->devices[i].lock);
    free(p);
}

QN_API const qn_plugin qn_plugin_main = {.version = QN_BACKEND_VERSION,
                                         .size = sizeof(qn_plugin),
                                         .name = "inverted",
                                         .release_name = "1.0",
                                         .open = plugin_open,
                                         .close = plugin_close};
