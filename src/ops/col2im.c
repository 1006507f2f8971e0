/* Col2Im: adds blocks, each a column, back into the image they were taken from. */
#include <string.h>

#include "ops/window.h"

static const qn_attr_spec specs[] = {QN_ATTR(qn_window_attrs, strides, INTS),
                                     QN_ATTR(qn_window_attrs, pads, INTS),
                                     QN_ATTR(qn_window_attrs, dilations, INTS)};
#define SET (QN_SET_NUMBER | QN_SET_BOOL)
static const qn_port ports_in[] = {{"input", 'T', SET, 0},
                                   {"image_shape", '\0', QN_SET(QN_INT64), 0},
                                   {"block_shape", '\0', QN_SET(QN_INT64), 0}};
static const qn_port ports_out[] = {{"output", 'T', SET, 0}};

/* The window of block_shape over image_shape; its output positions are the columns. */
static bool columns(qn_window *w, const qn_window_attrs *attrs, const int64_t *image,
                    const int64_t *block, int32_t rank)
{
    qn_dim in[QN_MAX_SPATIAL];
    for (int32_t d = 0; d < rank && d < QN_MAX_SPATIAL; d++)
        in[d] = image[d] < 0 ? qn_dim_of(0) : qn_dim_of(image[d]);
    return qn_window_resolve(w, attrs, rank, in, block);
}

/* X is [N, C * block size, columns]. */
static qn_status check_input(const qn_infer *self, const qn_window *w, qn_dim *channels)
{
    const qn_type *x = self->in[0];
    const int64_t size = qn_window_kernel_size(w);
    qn_dim merged;
    *channels = qn_dim_unknown();
    if (x->rank < 0)
        return QN_OK;
    if (!qn_dim_merge(&merged, x->dims[2], qn_dim_of(qn_window_out_size(w))))
        return qn_infer_fail(self, "there are %lld columns where %lld blocks fit",
                             (long long)x->dims[2].value, (long long)qn_window_out_size(w));
    if (x->dims[1].value >= 0 && x->dims[1].value % size)
        return qn_infer_fail(self, "columns of %lld elements do not hold blocks of %lld",
                             (long long)x->dims[1].value, (long long)size);
    if (x->dims[1].value >= 0)
        *channels = qn_dim_of(x->dims[1].value / size);
    return QN_OK;
}

static qn_status infer(qn_infer *self)
{
    const qn_type *x = self->in[0];
    int64_t image[QN_MAX_SPATIAL], block[QN_MAX_SPATIAL];
    size_t n_image, n_block;
    qn_dim dims[QN_MAX_RANK];
    qn_window window;
    qn_infer_set_dtype(self, 0, x->dtype);
    if (x->rank >= 0 && x->rank != 3)
        return qn_infer_fail(self, "the input has %d dimensions instead of 3", x->rank);
    if (!qn_infer_ints(self, 1, image, QN_MAX_SPATIAL, &n_image) ||
        !qn_infer_ints(self, 2, block, QN_MAX_SPATIAL, &n_block))
        return QN_OK;
    if (n_image != n_block)
        return qn_infer_fail(self, "image and block have %zu and %zu dimensions", n_image, n_block);
    if (!columns(&window, self->attrs, image, block, (int32_t)n_image))
        return qn_infer_fail(self, "%s", window.problem);
    QN_TRY(check_input(self, &window, &dims[1]));
    dims[0] = x->rank == 3 ? x->dims[0] : qn_dim_unknown();
    memcpy(dims + 2, window.in, n_image * sizeof *dims);
    qn_infer_set(self, 0, x->dtype, (int32_t)n_image + 2, dims);
    return QN_OK;
}

/* Sums of either wide type. */
typedef struct sums {
    double *real;
    uint64_t *whole;
} sums;

static qn_status sums_make(sums *s, qn_eval *self, int64_t count)
{
    void *block;
    QN_TRY(qn_eval_scratch(self, &block, count, sizeof(double)));
    memset(block, 0, (size_t)count * sizeof(double));
    const bool is_float = qn_dtype_is_float(self->out[0]->dtype);
    *s = (sums){is_float ? block : NULL, is_float ? NULL : block};
    return QN_OK;
}

static qn_status eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const int64_t count = qn_tensor_count(out), planes = out->dims[0] * out->dims[1];
    void *positions, *elements;
    qn_window w;
    sums s;
    if (!columns(&w, self->attrs, self->in[1]->data, self->in[2]->data, out->rank - 2))
        return qn_eval_fail(self, "%s", w.problem);
    const int64_t size = qn_window_kernel_size(&w), blocks = in->dims[2];
    const int64_t area = qn_window_in_size(&w), most = qn_window_most_taps(&w);
    QN_TRY(qn_eval_scratch(self, &positions, most, sizeof(int64_t)));
    QN_TRY(qn_eval_scratch(self, &elements, most, sizeof(int64_t)));
    QN_TRY(sums_make(&s, self, count));
    for (int64_t at = 0; at < blocks; at++) {
        const int64_t taps = qn_window_taps(&w, at, positions, elements);
        for (int64_t i = 0; i < planes * taps; i++) {
            const int64_t plane = i / taps, t = i % taps;
            const int64_t from = (plane * size + ((int64_t *)elements)[t]) * blocks + at;
            const int64_t to = plane * area + ((int64_t *)positions)[t];
            if (s.real)
                s.real[to] += qn_tensor_f64(in, from);
            else
                s.whole[to] += (uint64_t)qn_tensor_i64(in, from);
        }
    }
    if (s.real)
        qn_store_f64(out->data, out->dtype, 0, s.real, count);
    else
        qn_store_i64(out->data, out->dtype, 0, (const int64_t *)s.whole, count);
    return QN_OK;
}

const qn_op qn_op_Col2Im = {.name = "Col2Im",
                            .domain = "",
                            .since = 18,
                            QN_PORTS(in, ports_in),
                            QN_PORTS(out, ports_out),
                            QN_ATTRS(specs, qn_window_attrs),
                            .quant = QN_QUANT_FLOAT,
                            .infer = infer,
                            .eval = eval,
                            .brief = "adds blocks back into the image they came from"};
