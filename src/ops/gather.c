/* Gather, GatherElements and GatherND: elements picked by indices. */
#include "ops/index.h"
#include "ops/infer.h"
#include "ops/move.h"

static const qn_port gather_in[] = {{"data", 'T', QN_SET_TENSOR, 0},
                                    {"indices", 0, QN_SET_INDEX, 0}};
static const qn_port any_out[] = {{"output", 'T', QN_SET_TENSOR, 0}};

typedef struct axis_attrs {
    int64_t axis;
} axis_attrs;

int64_t qn_gather_axis(const qn_node *node, int32_t rank)
{
    const int64_t axis = ((const axis_attrs *)node->attrs)->axis;
    return axis < 0 ? axis + rank : axis;
}

static const qn_attr_spec axis_specs[] = {QN_INT_ATTR(axis_attrs, axis, 0)};

/* ---- Gather ---------------------------------------------------------------------------------- */

static qn_status gather_elements_known(qn_infer *self)
{
    qn_dim from[QN_MAX_RANK], to[QN_MAX_RANK];
    int64_t indices[QN_MAX_RANK];
    size_t n_from, count;
    if (self->in[0]->rank != 1 || !qn_dtype_is_integer(self->in[0]->dtype) ||
        self->in[1]->rank > 1 || !qn_infer_elements(self, 0, from, QN_MAX_RANK, &n_from) ||
        !qn_infer_ints(self, 1, indices, QN_MAX_RANK, &count))
        return QN_OK;
    for (size_t i = 0; i < count; i++) {
        const int64_t n = (int64_t)n_from, at = indices[i] < 0 ? indices[i] + n : indices[i];
        if (at < 0 || at >= n)
            return qn_infer_fail(self, "index %lld is outside %zu elements", (long long)indices[i],
                                 n_from);
        to[i] = from[at];
    }
    return qn_infer_set_elements(self, 0, to, count);
}

/* data [.., D, ..], indices [i..] -> [.., i.., ..] */
static qn_status gather_infer(qn_infer *self)
{
    const qn_type *in = self->in[0], *indices = self->in[1];
    int64_t axis = ((const axis_attrs *)self->attrs)->axis;
    qn_dim dims[2 * QN_MAX_RANK];
    qn_infer_set_dtype(self, 0, in->dtype);
    if (in->rank < 0)
        return QN_OK;
    QN_TRY(qn_infer_axis(self, &axis, in->rank, "axis"));
    if (indices->rank < 0)
        return QN_OK;
    const int32_t rank = in->rank - 1 + indices->rank;
    if (rank > QN_MAX_RANK)
        return qn_infer_fail(self, "more than %d dimensions", QN_MAX_RANK);
    int32_t at = 0;
    for (int32_t d = 0; d < axis; d++)
        dims[at++] = in->dims[d];
    for (int32_t d = 0; d < indices->rank; d++)
        dims[at++] = indices->dims[d];
    for (int32_t d = (int32_t)axis + 1; d < in->rank; d++)
        dims[at++] = in->dims[d];
    qn_infer_set(self, 0, in->dtype, rank, dims);
    return gather_elements_known(self);
}

static qn_status gather_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0], *indices = self->in[1];
    int64_t axis = ((const axis_attrs *)self->attrs)->axis;
    axis += axis < 0 ? in->rank : 0;
    const int64_t outer = qn_dims_product(in->dims, 0, (int32_t)axis), dim = in->dims[axis];
    const int64_t inner = qn_dims_product(in->dims, (int32_t)axis + 1, in->rank);
    const int64_t count = qn_tensor_count(indices);
    const size_t row = (size_t)inner * qn_dtype_size(in->dtype);
    char *to = self->out[0]->data;
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < count; i++, to += row) {
            int64_t at;
            QN_TRY(qn_index_get(&at, self, indices, i, dim));
            qn_move_bytes(to, (const char *)in->data + (size_t)(o * dim + at) * row, row);
        }
    }
    return QN_OK;
}

const qn_op qn_op_Gather = {.name = "Gather",
                            .domain = "",
                            .since = 1,
                            QN_PORTS(in, gather_in),
                            QN_PORTS(out, any_out),
                            QN_ATTRS(axis_specs, axis_attrs),
                            .flags = QN_OP_MOVES,
                            .quant = QN_QUANT_PASS,
                            .infer = gather_infer,
                            .eval = gather_eval,
                            .brief = "slices along an axis picked by indices"};

/* ---- GatherElements -------------------------------------------------------------------------- */

static qn_status gather_along_infer(qn_infer *self)
{
    const qn_type *in = self->in[0], *indices = self->in[1];
    int64_t axis = ((const axis_attrs *)self->attrs)->axis;
    qn_infer_copy_dims(self, 0, 1, in->dtype);
    if (in->rank >= 0)
        QN_TRY(qn_infer_axis(self, &axis, in->rank, "axis"));
    return qn_index_check_shape(self, in, indices, axis);
}

static qn_status gather_along_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0];
    const size_t size = qn_dtype_size(in->dtype);
    char *to = self->out[0]->data;
    qn_index_walk w;
    qn_index_walk_begin(&w, in, self->in[1], ((const axis_attrs *)self->attrs)->axis);
    for (; w.left > 0; to += (size_t)w.count * size) {
        QN_TRY(qn_index_walk_next(&w, self));
        qn_index_gather(to, in->data, &w, size);
    }
    return QN_OK;
}

const qn_op qn_op_GatherElements = {.name = "GatherElements",
                                    .domain = "",
                                    .since = 11,
                                    QN_PORTS(in, gather_in),
                                    QN_PORTS(out, any_out),
                                    QN_ATTRS(axis_specs, axis_attrs),
                                    .flags = QN_OP_MOVES,
                                    .quant = QN_QUANT_PASS,
                                    .infer = gather_along_infer,
                                    .eval = gather_along_eval,
                                    .brief = "one element per index, along an axis"};

/* ---- GatherND -------------------------------------------------------------------------------- */

typedef struct batch_attrs {
    int64_t batch_dims;
} batch_attrs;
static const qn_attr_spec batch_specs[] = {QN_INT_ATTR(batch_attrs, batch_dims, 0, .since = 12)};
static const qn_port gather_nd_in[] = {{"data", 'T', QN_SET_TENSOR, 0},
                                       {"indices", 0, QN_SET(QN_INT64), 0}};

/* data [b.., d1..dk, rest..], indices [b.., i.., k] -> [b.., i.., rest..] */
static qn_status gather_nd_infer(qn_infer *self)
{
    const qn_type *in = self->in[0], *indices = self->in[1];
    const int64_t batch = ((const batch_attrs *)self->attrs)->batch_dims;
    qn_dim dims[2 * QN_MAX_RANK];
    qn_infer_set_dtype(self, 0, in->dtype);
    if (in->rank < 0 || indices->rank < 0)
        return QN_OK;
    if (in->rank < 1 || indices->rank < 1 || batch < 0 || batch >= QN_MIN(in->rank, indices->rank))
        return qn_infer_fail(self, "batch_dims %lld does not fit", (long long)batch);
    for (int32_t d = 0; d < batch; d++) {
        qn_dim merged;
        if (!qn_dim_merge(&merged, in->dims[d], indices->dims[d]))
            return qn_infer_fail(self, "batch dimension %d differs between data and indices", d);
    }
    const int64_t depth = indices->dims[indices->rank - 1].value;
    if (depth < 0)
        return QN_OK;
    if (depth < 1 || depth > in->rank - batch)
        return qn_infer_fail(self, "indices of %lld numbers for %d dimensions", (long long)depth,
                             in->rank);
    int32_t rank = 0;
    for (int32_t d = 0; d < indices->rank - 1; d++)
        dims[rank++] = indices->dims[d];
    for (int64_t d = batch + depth; d < in->rank; d++)
        dims[rank++] = in->dims[d];
    if (rank > QN_MAX_RANK)
        return qn_infer_fail(self, "more than %d dimensions", QN_MAX_RANK);
    qn_infer_set(self, 0, in->dtype, rank, dims);
    return QN_OK;
}

static qn_status gather_nd_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0], *indices = self->in[1];
    const int32_t batch = (int32_t)((const batch_attrs *)self->attrs)->batch_dims;
    const int64_t depth = indices->dims[indices->rank - 1];
    int64_t strides[QN_MAX_RANK];
    qn_dims_strides(strides, in->rank, in->dims);
    const qn_index_space space = {indices, depth, batch, in->dims, strides};
    const int64_t batches = qn_dims_product(indices->dims, 0, batch);
    const int64_t each = qn_dims_product(indices->dims, batch, indices->rank - 1);
    const int64_t inner = qn_dims_product(in->dims, batch + (int32_t)depth, in->rank);
    const int64_t in_batch = qn_dims_product(in->dims, batch, in->rank);
    const size_t row = (size_t)inner * qn_dtype_size(in->dtype);
    const size_t size = qn_dtype_size(in->dtype);
    char *to = self->out[0]->data;
    for (int64_t i = 0; i < batches * each; i++, to += row) {
        int64_t from;
        QN_TRY(qn_index_tuple(&from, self, &space, i));
        from += i / each * in_batch;
        qn_move_bytes(to, (const char *)in->data + (size_t)from * size, row);
    }
    return QN_OK;
}

const qn_op qn_op_GatherND = {.name = "GatherND",
                              .domain = "",
                              .since = 11,
                              QN_PORTS(in, gather_nd_in),
                              QN_PORTS(out, any_out),
                              QN_ATTRS(batch_specs, batch_attrs),
                              .flags = QN_OP_MOVES,
                              .quant = QN_QUANT_PASS,
                              .infer = gather_nd_infer,
                              .eval = gather_nd_eval,
                              .brief = "slices picked by tuples of indices"};
