/* ArgMax, ArgMin, CumProd, CumSum: along one axis. */
#include <math.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/nn_attrs.h"

/* A tensor as [outer, count, inner] around the axis. */
typedef struct lines {
    int64_t outer, count, inner;
} lines;

static lines lines_of(const qn_tensor *x, int64_t axis)
{
    lines l = {1, 1, 1};
    axis += axis < 0 ? x->rank : 0;
    for (int32_t d = 0; d < x->rank; d++) {
        int64_t *part = d < axis ? &l.outer : d == axis ? &l.count : &l.inner;
        *part *= x->dims[d];
    }
    return l;
}

/* ---- ArgMax, ArgMin -------------------------------------------------------------------------- */

static const qn_attr_spec arg_specs[] = {
    QN_INT_ATTR(qn_arg_attrs, axis, 0), QN_INT_ATTR(qn_arg_attrs, keepdims, 1),
    QN_INT_ATTR(qn_arg_attrs, select_last_index, 0, .since = 12)};
static const qn_port arg_in[] = {{"data", 'T', QN_SET_NUMBER, 0}};
static const qn_port arg_out[] = {{"reduced", '\0', QN_SET(QN_INT64), 0}};

static qn_status arg_infer(qn_infer *self)
{
    const qn_arg_attrs *a = self->attrs;
    const qn_type *x = self->in[0];
    int64_t axis = a->axis;
    qn_dim dims[QN_MAX_RANK];
    int32_t rank = 0;
    qn_infer_set_dtype(self, 0, QN_INT64);
    if (x->rank < 0)
        return QN_OK;
    if (x->rank == 0) { /* a scalar counts as one element */
        qn_infer_set(self, 0, QN_INT64, 0, NULL);
        return QN_OK;
    }
    QN_TRY(qn_infer_axis(self, &axis, x->rank, "axis"));
    if (x->dims[axis].value == 0)
        return qn_infer_fail(self, "axis %lld has no element to choose", (long long)axis);
    for (int32_t d = 0; d < x->rank; d++) {
        if (d != axis || a->keepdims)
            dims[rank++] = d == axis ? qn_dim_of(1) : x->dims[d];
    }
    qn_infer_set(self, 0, QN_INT64, rank, dims);
    return QN_OK;
}

/* Element i is better than element j: larger (or smaller), or NaN where j is none. */
static bool better(const qn_tensor *x, int64_t i, int64_t j, bool max)
{
    const qn_dtype_kind kind = qn_dtype_get(x->dtype)->kind;
    if (kind == QN_KIND_FLOAT) {
        const double a = qn_tensor_f64(x, i), b = qn_tensor_f64(x, j);
        return isnan(a) ? !isnan(b) : max ? a > b : a < b;
    }
    const int64_t a = qn_tensor_i64(x, i), b = qn_tensor_i64(x, j);
    if (kind == QN_KIND_UINT)
        return max ? (uint64_t)a > (uint64_t)b : (uint64_t)a < (uint64_t)b;
    return max ? a > b : a < b;
}

static qn_status eval_arg(qn_eval *self, bool max)
{
    const qn_arg_attrs *a = self->attrs;
    const qn_tensor *x = self->in[0];
    const lines l = lines_of(x, a->axis);
    int64_t *out = self->out[0]->data;
    for (int64_t at = 0; at < l.outer * l.inner; at++) {
        const int64_t start = at / l.inner * l.count * l.inner + at % l.inner;
        int64_t best = 0;
        for (int64_t i = 1; i < l.count; i++) {
            const int64_t here = start + i * l.inner, there = start + best * l.inner;
            const bool wins =
                a->select_last_index ? !better(x, there, here, max) : better(x, here, there, max);
            best = wins ? i : best;
        }
        out[at] = best;
    }
    return QN_OK;
}

#define ARG(Name, MAX, BRIEF)                                                                      \
    static qn_status Name##_eval(qn_eval *self)                                                    \
    {                                                                                              \
        return eval_arg(self, MAX);                                                                \
    }                                                                                              \
    const qn_op qn_op_##Name = {.name = #Name,                                                     \
                                .domain = "",                                                      \
                                .since = 1,                                                        \
                                QN_PORTS(in, arg_in),                                              \
                                QN_PORTS(out, arg_out),                                            \
                                QN_ATTRS(arg_specs, qn_arg_attrs),                                 \
                                .quant = QN_QUANT_SHAPE,                                           \
                                .infer = arg_infer,                                                \
                                .eval = Name##_eval,                                               \
                                .brief = BRIEF};

ARG(ArgMax, true, "index of the largest element")
ARG(ArgMin, false, "index of the smallest element")

/* ---- CumProd, CumSum ------------------------------------------------------------------------- */

typedef struct running_attrs {
    int64_t exclusive, reverse;
} running_attrs;
static const qn_attr_spec running_specs[] = {QN_INT_ATTR(running_attrs, exclusive, 0),
                                             QN_INT_ATTR(running_attrs, reverse, 0)};
#define RUNNING_SET                                                                                \
    (QN_SET_FLOAT | QN_SET(QN_INT32) | QN_SET(QN_INT64) | QN_SET(QN_UINT32) | QN_SET(QN_UINT64))
static const qn_type_rule running_types[] = {{14, QN_SET(QN_FLOAT16) | QN_SET(QN_BFLOAT16)}};
static const qn_port running_in[] = {{"x", 'T', RUNNING_SET, 0}, {"axis", '\0', QN_SET_INDEX, 0}};
static const qn_port running_out[] = {{"y", 'T', RUNNING_SET, 0}};

static qn_status running_infer(qn_infer *self)
{
    int64_t axis[1];
    size_t count;
    const int32_t rank = self->in[0]->rank;
    if (rank >= 0 && qn_infer_ints(self, 1, axis, 1, &count) && count == 1)
        QN_TRY(qn_infer_axis(self, axis, rank, "axis"));
    qn_infer_copy(self, 0, 0);
    return QN_OK;
}

/* The sum or product so far, in both wide types: one of them is stored. */
typedef struct total {
    double real;
    uint64_t whole;
} total;

static void add_to(total *t, const qn_tensor *x, int64_t i, bool product)
{
    if (qn_dtype_is_float(x->dtype)) {
        const double value = qn_tensor_f64(x, i);
        t->real = product ? t->real * value : t->real + value;
    } else {
        const uint64_t value = (uint64_t)qn_tensor_i64(x, i);
        t->whole = product ? t->whole * value : t->whole + value;
    }
}

static void put(const qn_tensor *out, int64_t i, const total *t)
{
    const int64_t whole = (int64_t)t->whole;
    if (qn_dtype_is_float(out->dtype))
        qn_store_f64(out->data, out->dtype, i, &t->real, 1);
    else
        qn_store_i64(out->data, out->dtype, i, &whole, 1);
}

static qn_status run_line(qn_eval *self, int64_t start, const lines *l, bool product)
{
    const running_attrs *a = self->attrs;
    total t = {product, product};
    for (int64_t i = 0; i < l->count; i++) {
        QN_TRY(qn_check_cancel(self->ctx));
        const int64_t at = start + (a->reverse ? l->count - 1 - i : i) * l->inner;
        if (a->exclusive)
            put(self->out[0], at, &t);
        add_to(&t, self->in[0], at, product);
        if (!a->exclusive)
            put(self->out[0], at, &t);
    }
    return QN_OK;
}

static qn_status eval_running(qn_eval *self, bool product)
{
    const qn_tensor *x = self->in[0], *axis = self->in[1];
    if (qn_tensor_count(axis) != 1)
        return qn_eval_fail(self, "the axis must be a single number");
    const int64_t along = qn_tensor_i64(axis, 0);
    if (along < -(int64_t)x->rank || along >= x->rank)
        return qn_eval_fail(self, "axis %lld is outside [-%d, %d)", (long long)along, x->rank,
                            x->rank);
    const lines l = lines_of(x, along);
    if (qn_tensor_count(x) == 0)
        return QN_OK;
    for (int64_t at = 0; at < l.outer * l.inner; at++)
        QN_TRY(run_line(self, at / l.inner * l.count * l.inner + at % l.inner, &l, product));
    return QN_OK;
}

#define RUNNING(Name, SINCE, PRODUCT, RULES, BRIEF)                                                \
    static qn_status Name##_eval(qn_eval *self)                                                    \
    {                                                                                              \
        return eval_running(self, PRODUCT);                                                        \
    }                                                                                              \
    const qn_op qn_op_##Name = {.name = #Name,                                                     \
                                .domain = "",                                                      \
                                .since = SINCE,                                                    \
                                QN_PORTS(in, running_in),                                          \
                                QN_PORTS(out, running_out),                                        \
                                QN_ATTRS(running_specs, running_attrs),                            \
                                RULES,                                                             \
                                .quant = QN_QUANT_FLOAT,                                           \
                                .infer = running_infer,                                            \
                                .eval = Name##_eval,                                               \
                                .brief = BRIEF};

RUNNING(CumProd, 26, true, .n_type_rules = 0, "running product along an axis")
RUNNING(CumSum, 11, false, QN_TYPE_RULES(running_types), "running sum along an axis")
