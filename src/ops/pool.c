/* AveragePool, LpPool, MaxPool: one number for each window. */
#include <math.h>
#include <string.h>

#include "ops/quantize.h"
#include "ops/versions.h"
#include "ops/window.h"

/* ---- Inference ------------------------------------------------------------------------------- */

static qn_status pool_infer(qn_infer *self)
{
    const qn_type *x = self->in[0];
    qn_dim dims[QN_MAX_RANK];
    qn_window window;
    qn_infer_set_dtype(self, 0, x->dtype);
    qn_infer_set_dtype(self, 1, QN_INT64);
    if (x->rank < 0)
        return QN_OK;
    if (x->rank < 3)
        return qn_infer_fail(self, "the input has %d dimensions, 3 are the least", x->rank);
    if (!qn_window_resolve(&window, self->attrs, x->rank - 2, x->dims + 2, NULL))
        return qn_infer_fail(self, "%s", window.problem);
    memcpy(dims, x->dims, 2 * sizeof *dims);
    memcpy(dims + 2, window.out, (size_t)window.rank * sizeof *dims);
    qn_infer_set(self, 0, x->dtype, x->rank, dims);
    qn_infer_set(self, 1, QN_INT64, x->rank, dims);
    return QN_OK;
}

/* ---- Kernels --------------------------------------------------------------------------------- */

typedef struct pool {
    qn_window window;
    const qn_window_attrs *attrs;
    /* N * C */
    int64_t planes;
    int64_t *positions, *elements;
    double *x;
} pool;

static qn_status pool_make(pool *p, qn_eval *self)
{
    const qn_tensor *x = self->in[0];
    qn_dim in[QN_MAX_RANK];
    void *positions, *elements;
    for (int32_t d = 0; d < x->rank; d++)
        in[d] = qn_dim_of(x->dims[d]);
    p->attrs = self->attrs;
    p->planes = x->dims[0] * x->dims[1];
    if (!qn_window_resolve(&p->window, p->attrs, x->rank - 2, in + 2, NULL))
        return qn_eval_fail(self, "%s", p->window.problem);
    const int64_t most = qn_window_most_taps(&p->window);
    QN_TRY(qn_eval_scratch(self, &positions, most, sizeof(int64_t)));
    QN_TRY(qn_eval_scratch(self, &elements, most, sizeof(int64_t)));
    p->positions = positions;
    p->elements = elements;
    return qn_eval_doubles(self, &p->x, x);
}

/* One number from the taps of a window in one plane. */
typedef double reduce_fn(const pool *p, const double *plane, int64_t taps, int64_t at);

static qn_status eval_windows(qn_eval *self, reduce_fn *reduce)
{
    const qn_tensor *out = self->out[0];
    pool p;
    QN_TRY(pool_make(&p, self));
    const int64_t area = qn_window_out_size(&p.window), plane = qn_window_in_size(&p.window);
    for (int64_t at = 0; at < area; at++) {
        QN_TRY(qn_check_cancel(self->ctx));
        const int64_t taps = qn_window_taps(&p.window, at, p.positions, p.elements);
        for (int64_t i = 0; i < p.planes; i++) {
            const double y = reduce(&p, p.x + i * plane, taps, at);
            qn_store_f64(out->data, out->dtype, i * area + at, &y, 1);
        }
    }
    return QN_OK;
}

static double average(const pool *p, const double *plane, int64_t taps, int64_t at)
{
    const int64_t divisor =
        p->attrs->count_include_pad ? qn_window_padded_taps(&p->window, at) : taps;
    double sum = 0;
    for (int64_t t = 0; t < taps; t++)
        sum += plane[p->positions[t]];
    return divisor ? sum / (double)divisor : 0;
}

static double lp(const pool *p, const double *plane, int64_t taps, int64_t at)
{
    const double power = (double)p->attrs->p;
    double sum = 0;
    (void)at;
    for (int64_t t = 0; t < taps; t++)
        sum += pow(fabs(plane[p->positions[t]]), power);
    return pow(sum, 1 / power);
}

static qn_status average_eval(qn_eval *self)
{
    return eval_windows(self, average);
}

static qn_status lp_eval(qn_eval *self)
{
    return eval_windows(self, lp);
}

/* ---- MaxPool: also where the largest element was --------------------------------------------- */

/* Index of a position in its plane when the first dimension runs fastest. */
static int64_t column_major(const qn_window *w, int64_t position)
{
    int64_t index[QN_MAX_SPATIAL], result = 0;
    for (int32_t d = w->rank - 1; d >= 0; d--) {
        index[d] = position % w->in[d].value;
        position /= w->in[d].value;
    }
    for (int32_t d = w->rank - 1; d >= 0; d--)
        result = result * w->in[d].value + index[d];
    return result;
}

static int64_t largest(const pool *p, const double *plane, int64_t taps)
{
    int64_t best = 0;
    for (int64_t t = 1; t < taps; t++) {
        const double x = plane[p->positions[t]];
        if (x > plane[p->positions[best]] || (isnan(x) && !isnan(plane[p->positions[best]])))
            best = t;
    }
    return best;
}

/* A window that holds pads only gives the least number and index -1. */
static double least(qn_dtype dtype)
{
    return dtype == QN_UINT8 ? 0 : dtype == QN_INT8 ? -128 : -(double)INFINITY;
}

static qn_status max_eval(qn_eval *self)
{
    const qn_tensor *out = qn_eval_out(self, 0), *indices = qn_eval_out(self, 1);
    pool p;
    QN_TRY(pool_make(&p, self));
    const int64_t area = qn_window_out_size(&p.window), plane = qn_window_in_size(&p.window);
    for (int64_t at = 0; at < area; at++) {
        QN_TRY(qn_check_cancel(self->ctx));
        const int64_t taps = qn_window_taps(&p.window, at, p.positions, p.elements);
        for (int64_t i = 0; i < p.planes; i++) {
            const double *x = p.x + i * plane;
            const int64_t best = taps ? p.positions[largest(&p, x, taps)] : -1;
            const double y = taps ? x[best] : least(self->in[0]->dtype);
            if (out)
                qn_store_f64(out->data, out->dtype, i * area + at, &y, 1);
            if (indices && taps)
                ((int64_t *)indices->data)[i * area + at] =
                    i * plane + (p.attrs->storage_order ? column_major(&p.window, best) : best);
            else if (indices)
                ((int64_t *)indices->data)[i * area + at] = -1;
        }
    }
    return QN_OK;
}

/* ---- Operators ------------------------------------------------------------------------------- */

static const qn_type_rule max_types[] = {{12, QN_SET(QN_INT8) | QN_SET(QN_UINT8)},
                                         {22, QN_SET(QN_BFLOAT16)},
                                         {QN_NO_OPSET, QN_SET_QUANTIZED_WIDE}};
#define MAX_SET (QN_SET_FLOAT | QN_SET_QUANTIZED)
static const qn_port float_in[] = {{"X", 'T', QN_SET_FLOAT, 0}};
static const qn_port float_out[] = {{"Y", 'T', QN_SET_FLOAT, 0}};
static const qn_port max_in[] = {{"X", 'T', MAX_SET, 0}};
static const qn_port max_out[] = {{"Y", 'T', MAX_SET, 0},
                                  {"Indices", '\0', QN_SET(QN_INT64), QN_OPTIONAL}};

/* The attributes of every pool, with the opsets that brought the last two. */
#define POOL_ATTRS(ceil, dilated)                                                                  \
    QN_KERNEL_SHAPE_ATTR(.required = true), QN_WINDOW_ATTRS,                                       \
        QN_INT_ATTR(qn_window_attrs, ceil_mode, 0, .since = (ceil)),                               \
        QN_ATTR(qn_window_attrs, dilations, INTS, .since = (dilated))
static const qn_attr_spec average_specs[] = {
    POOL_ATTRS(10, 19), QN_INT_ATTR(qn_window_attrs, count_include_pad, 0, .since = 7)};
static const qn_attr_spec max_specs[] = {
    POOL_ATTRS(10, 10), QN_INT_ATTR(qn_window_attrs, storage_order, 0, .since = 8)};
static const qn_attr_spec lp_specs[] = {POOL_ATTRS(18, 18), QN_LP_ATTRS};

/* Rounding up would add a window that begins behind the input, which is left out since opset 22. */
static bool is_left_out(const qn_window *w, int32_t d)
{
    const int64_t extent = (w->kernel[d] - 1) * w->dilation[d] + 1;
    const int64_t room = w->in[d].value + w->pad_begin[d] + w->pad_end[d] - extent;
    return room > 0 && room % w->stride[d] && w->out[d].value == room / w->stride[d] + 1;
}

/* Older opsets can leave it out along all axes, by rounding down, or along none. */
static qn_status pool_downgrade_22(qn_node **node)
{
    qn_window_attrs *a = (*node)->attrs;
    const qn_type *x = &(*node)->in[0]->type;
    bool less = false;
    qn_window w;
    if (!a->ceil_mode || x->rank < 3 || !qn_window_resolve(&w, a, x->rank - 2, x->dims + 2, NULL))
        return QN_OK;
    const qn_window rounded_up = w;
    for (int32_t d = 0; d < x->rank - 2; d++)
        less |= a->auto_pad == QN_AUTO_PAD_NOTSET && w.in[d].value >= 0 && is_left_out(&w, d);
    if (!less)
        return QN_OK;
    a->ceil_mode = 0;
    bool same = qn_window_resolve(&w, a, x->rank - 2, x->dims + 2, NULL);
    for (int32_t d = 0; d < x->rank - 2; d++)
        same = same && w.in[d].value >= 0 && w.out[d].value == rounded_up.out[d].value;
    if (!same)
        return qn_node_fail(*node, QN_E_UNSUPPORTED,
                            "before opset 22 ceil_mode adds windows that begin behind the input");
    return QN_OK;
}

static qn_status max_downgrade_8(qn_node **node)
{
    if ((*node)->n_out > 1 && (*node)->out[1])
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "indices came with opset 8");
    return QN_OK;
}

static const qn_version_rule max_versions[] = {{8, NULL, max_downgrade_8},
                                               {22, NULL, pool_downgrade_22}};
static const qn_version_rule lp_versions[] = {{2, qn_lp_upgrade, qn_lp_downgrade},
                                              {22, NULL, pool_downgrade_22}};
static const qn_version_rule average_versions[] = {{22, NULL, pool_downgrade_22}};

const qn_op qn_op_AveragePool = {.name = "AveragePool",
                                 .domain = "",
                                 .since = 1,
                                 QN_PORTS(in, float_in),
                                 QN_PORTS(out, float_out),
                                 QN_ATTRS(average_specs, qn_window_attrs),
                                 QN_VERSIONS(average_versions),
                                 QN_TYPE_RULES(qn_bfloat16_22),
                                 .quant = QN_QUANT_ELEMENT,
                                 .infer = pool_infer,
                                 .eval = average_eval,
                                 .brief = "the mean of each window"};

const qn_op qn_op_LpPool = {.name = "LpPool",
                            .domain = "",
                            .since = 1,
                            QN_PORTS(in, float_in),
                            QN_PORTS(out, float_out),
                            QN_ATTRS(lp_specs, qn_window_attrs),
                            QN_VERSIONS(lp_versions),
                            QN_TYPE_RULES(qn_bfloat16_22),
                            .quant = QN_QUANT_FLOAT,
                            .infer = pool_infer,
                            .eval = lp_eval,
                            .brief = "the p-norm of each window"};

const qn_op qn_op_MaxPool = {.name = "MaxPool",
                             .domain = "",
                             .since = 1,
                             QN_PORTS(in, max_in),
                             QN_PORTS(out, max_out),
                             QN_ATTRS(max_specs, qn_window_attrs),
                             QN_VERSIONS(max_versions),
                             QN_TYPE_RULES(max_types),
                             .quant = QN_QUANT_PASS,
                             .infer = pool_infer,
                             .eval = max_eval,
                             .brief = "the largest element of each window, and where it was"};
