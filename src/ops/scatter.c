/* ScatterElements (once Scatter) and ScatterND: updates written or combined at indices. */
#include "ops/index.h"
#include "ops/infer.h"
#include "ops/move.h"

static const qn_port scatter_in[] = {{"data", 'T', QN_SET_TENSOR, 0},
                                     {"indices", 0, QN_SET_INDEX, 0},
                                     {"updates", 'T', QN_SET_TENSOR, 0}};
static const qn_port any_out[] = {{"output", 'T', QN_SET_TENSOR, 0}};

typedef enum reduction { REDUCE_NONE, REDUCE_ADD, REDUCE_MUL, REDUCE_MAX, REDUCE_MIN } reduction;
static const char *const reduction_words[] = {"none", "add", "mul", "max", "min", NULL};

typedef struct scatter_attrs {
    int64_t axis, reduction;
} scatter_attrs;

static const qn_attr_spec scatter_specs[] = {
    QN_INT_ATTR(scatter_attrs, axis, 0),
    QN_ENUM_ATTR(scatter_attrs, reduction, REDUCE_NONE, reduction_words, .since = 16)};
static const qn_attr_spec scatter_nd_specs[] = {
    QN_ENUM_ATTR(scatter_attrs, reduction, REDUCE_NONE, reduction_words, .since = 16)};

/* ---- Combining ------------------------------------------------------------------------------- */

static double combine_f64(reduction how, double a, double b)
{
    switch (how) {
    case REDUCE_ADD: return a + b;
    case REDUCE_MUL: return a * b;
    case REDUCE_MAX: return a > b || a != a ? a : b;
    case REDUCE_MIN: return a < b || a != a ? a : b;
    case REDUCE_NONE: break;
    }
    return b;
}

static int64_t combine_i64(reduction how, int64_t a, int64_t b, bool is_unsigned)
{
    const bool less = is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
    switch (how) {
    case REDUCE_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case REDUCE_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
    case REDUCE_MAX: return less ? b : a;
    case REDUCE_MIN: return less ? a : b;
    case REDUCE_NONE: break;
    }
    return b;
}

/* out[to] = how(out[to], updates[from]) */
static void combine(const qn_tensor *out, int64_t to, const qn_tensor *updates, int64_t from,
                    reduction how)
{
    if (out->dtype == QN_FLOAT32) {
        float *at = (float *)out->data + to;
        *at = (float)combine_f64(how, (double)*at, qn_tensor_f64(updates, from));
    } else if (qn_dtype_is_float(out->dtype)) {
        const double x = combine_f64(how, qn_tensor_f64(out, to), qn_tensor_f64(updates, from));
        qn_store_f64(out->data, out->dtype, to, &x, 1);
    } else {
        const bool is_unsigned = qn_dtype_get(out->dtype)->kind != QN_KIND_INT;
        const int64_t x =
            combine_i64(how, qn_tensor_i64(out, to), qn_tensor_i64(updates, from), is_unsigned);
        qn_store_i64(out->data, out->dtype, to, &x, 1);
    }
}

/* `count` elements in a row. */
static void scatter_row(const qn_tensor *out, int64_t to, const qn_tensor *updates, int64_t from,
                        int64_t count, reduction how)
{
    const size_t size = qn_dtype_size(out->dtype);
    for (int64_t k = 0; how != REDUCE_NONE && k < count; k++)
        combine(out, to + k, updates, from + k, how);
    if (how == REDUCE_NONE)
        qn_move_bytes((char *)out->data + (size_t)to * size,
                      (const char *)updates->data + (size_t)from * size, (size_t)count * size);
}

static qn_status check_reduction(qn_infer *self)
{
    const uint32_t numbers = QN_SET_NUMBER | QN_SET_BOOL | QN_SET_FLOAT8 | QN_SET_SMALL_INT;
    const qn_dtype dtype = self->in[0]->dtype;
    if (((const scatter_attrs *)self->attrs)->reduction != REDUCE_NONE && dtype &&
        !(QN_SET(dtype) & numbers))
        return qn_infer_fail(self, "%s cannot be reduced", qn_dtype_name(dtype));
    return QN_OK;
}

/* Opset 18 added max and min. */
static qn_status downgrade_extremes(qn_node **node)
{
    if (((const scatter_attrs *)(*node)->attrs)->reduction > REDUCE_MUL)
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "reductions max and min need opset 18");
    return QN_OK;
}

static const qn_version_rule scatter_versions[] = {{18, NULL, downgrade_extremes}};

/* ---- ScatterElements ------------------------------------------------------------------------- */

static qn_status scatter_infer(qn_infer *self)
{
    const qn_type *in = self->in[0], *indices = self->in[1], *updates = self->in[2];
    int64_t axis = ((const scatter_attrs *)self->attrs)->axis;
    qn_infer_copy(self, 0, 0);
    QN_TRY(check_reduction(self));
    if (in->rank >= 0)
        QN_TRY(qn_infer_axis(self, &axis, in->rank, "axis"));
    QN_TRY(qn_index_check_shape(self, in, indices, axis));
    if (indices->rank < 0 || updates->rank < 0)
        return QN_OK;
    if (indices->rank != updates->rank)
        return qn_infer_fail(self, "indices and updates differ in shape");
    for (int32_t d = 0; d < indices->rank; d++) {
        qn_dim same;
        if (!qn_dim_merge(&same, indices->dims[d], updates->dims[d]))
            return qn_infer_fail(self, "indices and updates differ in dimension %d", d);
    }
    return QN_OK;
}

static qn_status scatter_eval(qn_eval *self)
{
    const scatter_attrs *a = self->attrs;
    const qn_tensor *out = self->out[0], *updates = self->in[2];
    const size_t size = qn_dtype_size(out->dtype);
    qn_index_walk w;
    QN_TRY(qn_eval_move_all(self));
    qn_index_walk_begin(&w, out, self->in[1], a->axis);
    for (int64_t from = 0; w.left > 0; from += w.count) {
        QN_TRY(qn_index_walk_next(&w, self));
        if (a->reduction == REDUCE_NONE)
            qn_index_scatter(out->data, (const char *)updates->data + (size_t)from * size, &w,
                             size);
        for (int64_t k = 0; a->reduction != REDUCE_NONE && k < w.count; k++)
            combine(out, w.at[k], updates, from + k, (reduction)a->reduction);
    }
    return QN_OK;
}

const qn_op qn_op_ScatterElements = {.name = "ScatterElements",
                                     .domain = "",
                                     .since = 11,
                                     QN_PORTS(in, scatter_in),
                                     QN_PORTS(out, any_out),
                                     QN_ATTRS(scatter_specs, scatter_attrs),
                                     QN_VERSIONS(scatter_versions),
                                     .quant = QN_QUANT_FLOAT,
                                     .infer = scatter_infer,
                                     .eval = scatter_eval,
                                     .brief = "writes elements at indices along an axis"};

/* Opset 11 gave Scatter its present name. */
static qn_status scatter_rename(qn_node **node)
{
    (*node)->op = &qn_op_ScatterElements;
    return QN_OK;
}

static const qn_version_rule old_scatter_versions[] = {{11, scatter_rename, NULL}};

const qn_op qn_op_Scatter = {.name = "Scatter",
                             .domain = "",
                             .since = 9,
                             .until = 11,
                             QN_PORTS(in, scatter_in),
                             QN_PORTS(out, any_out),
                             QN_ATTRS(scatter_specs, scatter_attrs),
                             QN_VERSIONS(old_scatter_versions),
                             .quant = QN_QUANT_FLOAT,
                             .infer = scatter_infer,
                             .eval = scatter_eval,
                             .brief = "old name of ScatterElements"};

/* ---- ScatterND ------------------------------------------------------------------------------- */

/* data [d1..dk, rest..], indices [i.., k], updates [i.., rest..] */
static qn_status scatter_nd_infer(qn_infer *self)
{
    const qn_type *in = self->in[0], *indices = self->in[1], *updates = self->in[2];
    qn_infer_copy(self, 0, 0);
    QN_TRY(check_reduction(self));
    if (in->rank < 0 || indices->rank < 0)
        return QN_OK;
    if (indices->rank < 1)
        return qn_infer_fail(self, "indices need a dimension");
    const int64_t depth = indices->dims[indices->rank - 1].value;
    if (depth < 0 || updates->rank < 0)
        return QN_OK;
    if (depth < 1 || depth > in->rank)
        return qn_infer_fail(self, "indices of %lld numbers for %d dimensions", (long long)depth,
                             in->rank);
    const int32_t lead = indices->rank - 1, rank = lead + in->rank - (int32_t)depth;
    if (updates->rank != rank)
        return qn_infer_fail(self, "updates need %d dimensions, have %d", rank, updates->rank);
    for (int32_t d = 0; d < rank; d++) {
        qn_dim same;
        const qn_dim wanted = d < lead ? indices->dims[d] : in->dims[d - lead + depth];
        if (!qn_dim_merge(&same, wanted, updates->dims[d]))
            return qn_infer_fail(self, "dimension %d of the updates is %lld, not %lld", d,
                                 (long long)updates->dims[d].value, (long long)wanted.value);
    }
    return QN_OK;
}

static qn_status scatter_nd_eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0], *indices = self->in[1];
    const int64_t depth = indices->dims[indices->rank - 1];
    const int64_t tuples = qn_dims_product(indices->dims, 0, indices->rank - 1);
    const int64_t inner = qn_dims_product(out->dims, (int32_t)depth, out->rank);
    const reduction how = (reduction)((const scatter_attrs *)self->attrs)->reduction;
    int64_t strides[QN_MAX_RANK];
    qn_dims_strides(strides, out->rank, out->dims);
    const qn_index_space space = {indices, depth, 0, out->dims, strides};
    QN_TRY(qn_eval_move_all(self));
    for (int64_t i = 0; i < tuples; i++) {
        int64_t to;
        QN_TRY(qn_index_tuple(&to, self, &space, i));
        scatter_row(out, to, self->in[2], i * inner, inner, how);
    }
    return QN_OK;
}

const qn_op qn_op_ScatterND = {.name = "ScatterND",
                               .domain = "",
                               .since = 11,
                               QN_PORTS(in, scatter_in),
                               QN_PORTS(out, any_out),
                               QN_ATTRS(scatter_nd_specs, scatter_attrs),
                               QN_VERSIONS(scatter_versions),
                               .quant = QN_QUANT_FLOAT,
                               .infer = scatter_nd_infer,
                               .eval = scatter_nd_eval,
                               .brief = "writes slices at tuples of indices"};
