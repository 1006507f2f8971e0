/* The Reduce operators: each output element from a group of input elements along some axes. */
#include <math.h>
#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/move.h"
#include "ops/reduce.h"
#include "ops/versions.h"

/* ---- Functions of a group -------------------------------------------------------------------- */

typedef double group_f64(const double *x, int64_t n);
typedef int64_t group_i64(const int64_t *x, int64_t n, bool is_unsigned);

#define FOLD(name, START, STEP, RESULT)                                                            \
    static double name(const double *x, int64_t n)                                                 \
    {                                                                                              \
        double a = START;                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            a = STEP;                                                                              \
        return RESULT;                                                                             \
    }

FOLD(sum_f64, 0, a + x[i], a)
FOLD(mean_f64, 0, a + x[i], a / (double)n)
FOLD(product_f64, 1, a *x[i], a)
FOLD(max_f64, -(double)INFINITY, x[i] > a || isnan(x[i]) ? x[i] : a, a)
FOLD(min_f64, (double)INFINITY, x[i] < a || isnan(x[i]) ? x[i] : a, a)
FOLD(l1_f64, 0, a + fabs(x[i]), a)
FOLD(square_f64, 0, a + x[i] * x[i], a)
FOLD(l2_f64, 0, a + x[i] * x[i], sqrt(a))
FOLD(log_sum_f64, 0, a + x[i], log(a))

/* log(sum(e^x)) = max + log(sum(e^(x - max))), which does not overflow. */
static double log_sum_exp_f64(const double *x, int64_t n)
{
    const double max = max_f64(x, n);
    double sum = 0;
    if (!isfinite(max))
        return max;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - max);
    return max + log(sum);
}

/* Integers wrap around in 64 bits, and again when they are stored. */
static int64_t sum_i64(const int64_t *x, int64_t n, bool is_unsigned)
{
    uint64_t sum = 0;
    (void)is_unsigned;
    for (int64_t i = 0; i < n; i++)
        sum += (uint64_t)x[i];
    return (int64_t)sum;
}

static int64_t product_i64(const int64_t *x, int64_t n, bool is_unsigned)
{
    uint64_t product = 1;
    (void)is_unsigned;
    for (int64_t i = 0; i < n; i++)
        product *= (uint64_t)x[i];
    return (int64_t)product;
}

static int64_t square_i64(const int64_t *x, int64_t n, bool is_unsigned)
{
    uint64_t sum = 0;
    (void)is_unsigned;
    for (int64_t i = 0; i < n; i++)
        sum += (uint64_t)x[i] * (uint64_t)x[i];
    return (int64_t)sum;
}

static int64_t l1_i64(const int64_t *x, int64_t n, bool is_unsigned)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += !is_unsigned && x[i] < 0 ? 0 - (uint64_t)x[i] : (uint64_t)x[i];
    return (int64_t)sum;
}

static int64_t max_i64(const int64_t *x, int64_t n, bool is_unsigned)
{
    int64_t max = x[0];
    for (int64_t i = 1; i < n; i++)
        max = (is_unsigned ? (uint64_t)x[i] > (uint64_t)max : x[i] > max) ? x[i] : max;
    return max;
}

static int64_t min_i64(const int64_t *x, int64_t n, bool is_unsigned)
{
    int64_t min = x[0];
    for (int64_t i = 1; i < n; i++)
        min = (is_unsigned ? (uint64_t)x[i] < (uint64_t)min : x[i] < min) ? x[i] : min;
    return min;
}

/* ---- Axes ------------------------------------------------------------------------------------ */

bool qn_axes_mark(bool *marked, int32_t rank, qn_ints axes)
{
    for (int32_t d = 0; d < rank; d++)
        marked[d] = false;
    for (size_t i = 0; i < axes.count; i++) {
        const int64_t axis = axes.at[i] < 0 ? axes.at[i] + rank : axes.at[i];
        if (axis < 0 || axis >= rank || marked[axis])
            return false;
        marked[axis] = true;
    }
    return true;
}

bool qn_reduce_mark(bool *marked, const qn_reduce_attrs *a, int32_t rank, qn_ints axes)
{
    if (axes.count)
        return qn_axes_mark(marked, rank, axes);
    for (int32_t d = 0; d < rank; d++)
        marked[d] = !a->noop_with_empty_axes;
    return true;
}

/* The axes are not known: with keepdims the rank is, without it perhaps from their number. */
static void infer_unknown(qn_infer *self)
{
    const qn_reduce_attrs *a = self->attrs;
    const qn_type *x = self->in[0], *axes = self->in[1];
    qn_dim dims[QN_MAX_RANK];
    const int64_t count = axes->rank == 1 ? axes->dims[0].value : -1;
    int64_t rank = a->keepdims ? x->rank : count > 0 ? x->rank - count : -1;
    if (x->rank < 0 || rank < 0)
        return;
    for (int64_t d = 0; d < rank; d++)
        dims[d] = qn_dim_unknown();
    qn_infer_set(self, 0, x->dtype, (int32_t)rank, dims);
}

/* Elements of a shape multiplied or added up by the graph itself. */
static qn_status reduce_elements(qn_infer *self, group_i64 *g)
{
    int64_t x[QN_MAX_RANK];
    size_t count;
    const qn_type *out = qn_infer_wants(self, 0) ? self->out[0] : NULL;
    if (!g || !out || self->in[0]->rank != 1 || self->in[0]->dtype != QN_INT64 ||
        !(out->rank == 0 || (out->rank == 1 && out->dims[0].value == 1)) ||
        !qn_infer_ints(self, 0, x, QN_MAX_RANK, &count) || count == 0)
        return QN_OK;
    const qn_dim result = {g(x, (int64_t)count, false), NULL};
    return qn_infer_set_elements(self, 0, &result, 1);
}

static qn_status infer_reduced(qn_infer *self, group_i64 *g)
{
    const qn_reduce_attrs *a = self->attrs;
    const qn_type *x = self->in[0];
    int64_t axes[QN_MAX_RANK];
    size_t count = 0;
    bool reduced[QN_MAX_RANK];
    qn_dim dims[QN_MAX_RANK];
    int32_t rank = 0;
    qn_infer_set_dtype(self, 0, x->dtype);
    if (qn_infer_has(self, 1) && !qn_infer_ints(self, 1, axes, QN_MAX_RANK, &count)) {
        if (self->data[1])
            return qn_infer_fail(self, "there are more than %d axes", QN_MAX_RANK);
        infer_unknown(self);
        return QN_OK;
    }
    if (x->rank < 0)
        return QN_OK;
    if (!qn_reduce_mark(reduced, a, x->rank, (qn_ints){axes, count}))
        return qn_infer_fail(self, "an axis is outside [-%d, %d) or stands there twice", x->rank,
                             x->rank);
    for (int32_t d = 0; d < x->rank; d++) {
        if (!reduced[d] || a->keepdims)
            dims[rank++] = reduced[d] ? qn_dim_of(1) : x->dims[d];
    }
    qn_infer_set(self, 0, x->dtype, rank, dims);
    return rank <= 1 && x->rank == 1 && reduced[0] ? reduce_elements(self, g) : QN_OK;
}

/* ---- Kernel ---------------------------------------------------------------------------------- */

typedef struct groups {
    /* The number of the dims kept */
    int32_t rank;
    /* Kept */
    int64_t dims[QN_MAX_RANK];
    int64_t strides[QN_MAX_RANK];
    /* Elements of a group */
    int64_t size;
    /* The place of each, from the first */
    int64_t *offsets;
} groups;

static qn_status groups_make(groups *g, qn_eval *self)
{
    const qn_tensor *x = self->in[0], *axes = qn_eval_in(self, 1);
    int64_t list[QN_MAX_RANK], strides[QN_MAX_RANK];
    bool reduced[QN_MAX_RANK];
    void *block;
    const int64_t count = axes ? qn_tensor_count(axes) : 0;
    if (count > QN_MAX_RANK)
        return qn_eval_fail(self, "there are more than %d axes", QN_MAX_RANK);
    if (count)
        qn_load_i64(list, axes->dtype, axes->data, 0, count);
    if (!qn_reduce_mark(reduced, self->attrs, x->rank, (qn_ints){list, (size_t)count}))
        return qn_eval_fail(self, "an axis is wrong or stands there twice");
    qn_dims_strides(strides, x->rank, x->dims);
    *g = (groups){.size = 1};
    for (int32_t d = 0; d < x->rank; d++)
        g->size *= reduced[d] ? x->dims[d] : 1;
    QN_TRY(qn_eval_scratch(self, &block, QN_MAX(g->size, 1), sizeof(int64_t)));
    g->offsets = block;
    g->offsets[0] = 0;
    int64_t filled = 1;
    for (int32_t d = x->rank - 1; d >= 0; d--) {
        if (!reduced[d]) {
            g->dims[g->rank] = x->dims[d]; /* innermost first */
            g->strides[g->rank++] = strides[d];
            continue;
        }
        for (int64_t i = 1; i < x->dims[d]; i++) {
            for (int64_t j = 0; g->size && j < filled; j++)
                g->offsets[i * filled + j] = g->offsets[j] + i * strides[d];
        }
        filled *= QN_MAX(x->dims[d], 1);
    }
    return QN_OK;
}

static qn_status eval_f64(qn_eval *self, group_f64 *f)
{
    const qn_tensor *out = self->out[0];
    const int64_t count = qn_tensor_count(out);
    groups g;
    double *x;
    void *block;
    QN_TRY(groups_make(&g, self));
    QN_TRY(qn_eval_doubles(self, &x, self->in[0]));
    QN_TRY(qn_eval_scratch(self, &block, g.size, sizeof(double)));
    double *group = block;
    for (int64_t i = 0; i < count; i++) {
        const int64_t start = qn_dims_offset(i, g.rank, g.dims, g.strides);
        for (int64_t j = 0; j < g.size; j++)
            group[j] = x[start + g.offsets[j]];
        const double y = f(group, g.size);
        qn_store_f64(out->data, out->dtype, i, &y, 1);
    }
    return QN_OK;
}

static qn_status eval_i64(qn_eval *self, group_i64 *f)
{
    const qn_tensor *out = self->out[0];
    const int64_t count = qn_tensor_count(out);
    const bool is_unsigned = qn_dtype_get(out->dtype)->kind == QN_KIND_UINT;
    groups g;
    int64_t *x;
    void *block;
    QN_TRY(groups_make(&g, self));
    QN_TRY(qn_eval_ints(self, &x, self->in[0]));
    QN_TRY(qn_eval_scratch(self, &block, g.size, sizeof(int64_t)));
    int64_t *group = block;
    for (int64_t i = 0; i < count; i++) {
        const int64_t start = qn_dims_offset(i, g.rank, g.dims, g.strides);
        for (int64_t j = 0; j < g.size; j++)
            group[j] = x[start + g.offsets[j]];
        const int64_t y = f(group, g.size, is_unsigned);
        qn_store_i64(out->data, out->dtype, i, &y, 1);
    }
    return QN_OK;
}

/* Extremes of no integers: the identity of the fold, in the type's own range. */
static bool fill_empty(qn_eval *self, bool max)
{
    const qn_tensor *x = self->in[0], *out = self->out[0];
    const qn_dtype_info *info = qn_dtype_get(out->dtype);
    const int64_t count = qn_tensor_count(out);
    if (qn_tensor_count(x) != 0 || info->kind == QN_KIND_FLOAT)
        return false;
    const uint64_t top = UINT64_MAX >> (64 - info->bits + (info->kind == QN_KIND_INT));
    const uint64_t bottom = info->kind == QN_KIND_INT ? ~top : 0;
    const int64_t y = (int64_t)(max ? bottom : top);
    for (int64_t i = 0; i < count; i++)
        qn_store_i64(out->data, out->dtype, i, &y, 1);
    return true;
}

static qn_status eval_max(qn_eval *self)
{
    if (fill_empty(self, true))
        return QN_OK;
    return qn_dtype_is_float(self->out[0]->dtype) ? eval_f64(self, max_f64)
                                                  : eval_i64(self, max_i64);
}

static qn_status eval_min(qn_eval *self)
{
    if (fill_empty(self, false))
        return QN_OK;
    return qn_dtype_is_float(self->out[0]->dtype) ? eval_f64(self, min_f64)
                                                  : eval_i64(self, min_i64);
}

static qn_status eval_either(qn_eval *self, group_f64 *f, group_i64 *g)
{
    return qn_dtype_is_float(self->out[0]->dtype) || !g ? eval_f64(self, f) : eval_i64(self, g);
}

/* ---- Operators ------------------------------------------------------------------------------- */

static qn_status axes_upgrade(qn_node **node)
{
    return qn_upgrade_ints(*node, &((qn_reduce_attrs *)(*node)->attrs)->axes, 1);
}

static qn_status axes_downgrade(qn_node **node)
{
    qn_reduce_attrs *a = (*node)->attrs;
    QN_TRY(qn_downgrade_ints(*node, &a->axes, 1));
    if (a->axes.count)
        a->noop_with_empty_axes = 0; /* says nothing where there are axes */
    return QN_OK;
}

static const qn_version_rule versions_18[] = {{18, axes_upgrade, axes_downgrade}};
static const qn_version_rule versions_13[] = {{13, axes_upgrade, axes_downgrade}};
#define SPECS(opset)                                                                               \
    QN_INT_ATTR(qn_reduce_attrs, keepdims, 1),                                                     \
        QN_INT_ATTR(qn_reduce_attrs, noop_with_empty_axes, 0, .since = (opset)),                   \
        QN_ATTR(qn_reduce_attrs, axes, INTS, .until = (opset))
static const qn_attr_spec specs_18[] = {SPECS(18)};
static const qn_attr_spec specs_13[] = {SPECS(13)};

#define INTEGERS (QN_SET(QN_INT32) | QN_SET(QN_INT64) | QN_SET(QN_UINT32) | QN_SET(QN_UINT64))
#define EXTREMES (QN_SET_FLOAT | INTEGERS | QN_SET(QN_INT8) | QN_SET(QN_UINT8) | QN_SET_BOOL)
static const qn_type_rule reduce_types[] = {{12, QN_SET(QN_INT8) | QN_SET(QN_UINT8)},
                                            {20, QN_SET_BOOL}};
static const qn_port sum_in[] = {{"data", 'T', QN_SET_FLOAT | INTEGERS, 0},
                                 {"axes", '\0', QN_SET(QN_INT64), QN_OPTIONAL}};
static const qn_port sum_out[] = {{"reduced", 'T', QN_SET_FLOAT | INTEGERS, 0}};
static const qn_port extreme_in[] = {{"data", 'T', EXTREMES, 0},
                                     {"axes", '\0', QN_SET(QN_INT64), QN_OPTIONAL}};
static const qn_port extreme_out[] = {{"reduced", 'T', EXTREMES, 0}};

#define REDUCE(Name, PORTS, OPSET, QUANT, G, EVAL, BRIEF)                                          \
    static qn_status Name##_infer(qn_infer *self)                                                  \
    {                                                                                              \
        return infer_reduced(self, G);                                                             \
    }                                                                                              \
    static qn_status Name##_eval(qn_eval *self)                                                    \
    {                                                                                              \
        return EVAL;                                                                               \
    }                                                                                              \
    const qn_op qn_op_##Name = {.name = #Name,                                                     \
                                .domain = "",                                                      \
                                .since = 1,                                                        \
                                QN_PORTS(in, PORTS##_in),                                          \
                                QN_PORTS(out, PORTS##_out),                                        \
                                QN_ATTRS(specs_##OPSET, qn_reduce_attrs),                          \
                                QN_VERSIONS(versions_##OPSET),                                     \
                                QN_TYPE_RULES(reduce_types),                                       \
                                .quant = QUANT,                                                    \
                                .infer = Name##_infer,                                             \
                                .eval = Name##_eval,                                               \
                                .brief = BRIEF};

REDUCE(ReduceL1, sum, 18, QN_QUANT_FLOAT, NULL, eval_either(self, l1_f64, l1_i64), "sum of |x|")
REDUCE(ReduceL2, sum, 18, QN_QUANT_FLOAT, NULL, eval_either(self, l2_f64, NULL),
       "square root of the sum of squares")
REDUCE(ReduceLogSum, sum, 18, QN_QUANT_FLOAT, NULL, eval_either(self, log_sum_f64, NULL),
       "logarithm of the sum")
REDUCE(ReduceLogSumExp, sum, 18, QN_QUANT_FLOAT, NULL, eval_either(self, log_sum_exp_f64, NULL),
       "logarithm of the sum of e^x")
REDUCE(ReduceMax, extreme, 18, QN_QUANT_PASS, max_i64, eval_max(self), "the largest element")
REDUCE(ReduceMean, sum, 18, QN_QUANT_ELEMENT, NULL, eval_either(self, mean_f64, NULL), "the mean")
REDUCE(ReduceMin, extreme, 18, QN_QUANT_PASS, min_i64, eval_min(self), "the smallest element")
REDUCE(ReduceProd, sum, 18, QN_QUANT_FLOAT, product_i64,
       eval_either(self, product_f64, product_i64), "the product")
REDUCE(ReduceSum, sum, 13, QN_QUANT_FLOAT, sum_i64, eval_either(self, sum_f64, sum_i64), "the sum")
REDUCE(ReduceSumSquare, sum, 18, QN_QUANT_FLOAT, NULL, eval_either(self, square_f64, square_i64),
       "the sum of squares")
