/* Concat, Split and Transpose. */
#include "ops/infer.h"
#include "ops/move.h"
#include "ops/tensor_attrs.h"
#include "ops/versions.h"

static const qn_port any_out[] = {{"output", 'T', QN_SET_TENSOR, 0}};

/* ---- Concat ---------------------------------------------------------------------------------- */

/* Before opset 4 the axis could be left out and was 1 then. */
static const qn_attr_spec concat_specs[] = {QN_INT_ATTR(qn_concat_attrs, axis, 1, .required = 4)};
static const qn_type_rule concat_types[] = {{4, QN_SET_TENSOR & ~QN_SET_FLOAT}};
static const qn_port concat_in[] = {{"inputs", 'T', QN_SET_TENSOR, QN_VARIADIC}};

/* Shapes put together by the graph: the elements of all parts, where each part is known. */
static qn_status concat_elements(qn_infer *self)
{
    qn_dim all[QN_MAX_RANK];
    size_t total = 0;
    for (int32_t i = 0; i < self->n_in; i++) {
        size_t count;
        if (!qn_infer_elements(self, i, all + total, QN_MAX_RANK - total, &count))
            return QN_OK;
        total += count;
    }
    return qn_infer_set_elements(self, 0, all, total);
}

static qn_status concat_infer(qn_infer *self)
{
    const qn_type *first = self->in[0];
    int64_t axis = ((const qn_concat_attrs *)self->attrs)->axis;
    qn_dim dims[QN_MAX_RANK];
    qn_infer_set_dtype(self, 0, first->dtype);
    for (int32_t i = 0; i < self->n_in; i++) {
        if (!qn_infer_has(self, i))
            return qn_infer_fail(self, "input %d is missing", i);
        if (self->in[i]->rank < 0)
            return QN_OK;
        if (self->in[i]->rank != first->rank)
            return qn_infer_fail(self, "input %d has %d dimensions, input 0 has %d", i,
                                 self->in[i]->rank, first->rank);
    }
    QN_TRY(qn_infer_axis(self, &axis, first->rank, "axis"));
    for (int32_t d = 0; d < first->rank; d++) {
        dims[d] = first->dims[d];
        for (int32_t i = 1; i < self->n_in; i++) {
            const qn_dim dim = self->in[i]->dims[d];
            if (d == axis)
                dims[d] = qn_dim_add(dims[d], dim);
            else if (!qn_dim_merge(&dims[d], dims[d], dim))
                return qn_infer_fail(self, "dimension %d of input %d is %lld, others have %lld", d,
                                     i, (long long)dim.value, (long long)dims[d].value);
        }
    }
    qn_infer_set(self, 0, first->dtype, first->rank, dims);
    return first->rank == 1 && qn_dtype_is_integer(first->dtype) ? concat_elements(self) : QN_OK;
}

static qn_status concat_eval(qn_eval *self)
{
    qn_tensor *out = self->out[0];
    int64_t axis = ((const qn_concat_attrs *)self->attrs)->axis, strides[QN_MAX_RANK], start = 0;
    axis += axis < 0 ? out->rank : 0;
    qn_dims_strides(strides, out->rank, out->dims);
    for (int32_t i = 0; i < self->n_in; i++) {
        qn_move_to(out, self->in[i], start, strides);
        start += self->in[i]->dims[axis] * strides[axis];
    }
    return QN_OK;
}

const qn_op qn_op_Concat = {.name = "Concat",
                            .domain = "",
                            .since = 1,
                            QN_PORTS(in, concat_in),
                            QN_PORTS(out, any_out),
                            QN_ATTRS(concat_specs, qn_concat_attrs),
                            QN_TYPE_RULES(concat_types),
                            .quant = QN_QUANT_PASS,
                            .infer = concat_infer,
                            .eval = concat_eval,
                            .brief = "tensors one behind the other along an axis"};

/* ---- Split ----------------------------------------------------------------------------------- */

static const qn_attr_spec split_specs[] = {QN_INT_ATTR(qn_split_attrs, axis, 0),
                                           QN_INT_ATTR(qn_split_attrs, num_outputs, QN_ABSENT),
                                           QN_ATTR(qn_split_attrs, split, INTS, .until = 13)};
static const qn_type_rule split_types[] = {{2, QN_SET_TENSOR & ~QN_SET_FLOAT}};
static const qn_port split_in[] = {{"input", 'T', QN_SET_TENSOR, 0},
                                   {"split", 0, QN_SET(QN_INT64), QN_OPTIONAL}};
static const qn_port split_out[] = {{"outputs", 'T', QN_SET_TENSOR, QN_VARIADIC}};

/* Opset 13: the lengths became an input. (Opset 1 had them as an optional input, too: kept.) */
static qn_status split_upgrade(qn_node **node)
{
    qn_split_attrs *a = (*node)->attrs;
    return a->split.at ? qn_upgrade_ints(*node, &a->split, 1) : QN_OK;
}

static qn_status split_downgrade(qn_node **node)
{
    if ((*node)->n_in < 2 || !(*node)->in[1])
        return qn_node_resize_inputs(*node, 1);
    return qn_downgrade_ints(*node, &((qn_split_attrs *)(*node)->attrs)->split, 1);
}

/* Opset 18: without lengths, num_outputs must say how many parts there are. */
static qn_status split_upgrade_count(qn_node **node)
{
    qn_split_attrs *a = (*node)->attrs;
    if ((*node)->n_in < 2 || !(*node)->in[1])
        a->num_outputs = (*node)->n_out;
    return QN_OK;
}

/* Older forms cannot say that the last part is shorter. */
static qn_status split_downgrade_count(qn_node **node)
{
    qn_split_attrs *a = (*node)->attrs;
    const qn_type *type = &(*node)->in[0]->type;
    const int64_t axis = a->axis < 0 && type->rank >= 0 ? a->axis + type->rank : a->axis;
    if (a->num_outputs != QN_ABSENT) {
        const bool even = axis >= 0 && axis < type->rank && type->dims[axis].value >= 0 &&
                          type->dims[axis].value % (*node)->n_out == 0;
        if (!even)
            return qn_node_fail(*node, QN_E_UNSUPPORTED, "uneven parts need opset 18");
    }
    a->num_outputs = QN_ABSENT;
    return QN_OK;
}

static const qn_version_rule split_versions[] = {{13, split_upgrade, split_downgrade},
                                                 {18, split_upgrade_count, split_downgrade_count}};

/* Length of part o; false when not known. Parts without given lengths are even, the last may be
 * shorter. */
static bool split_length(int64_t *out, int64_t whole, int32_t parts, int32_t o,
                         const int64_t *given)
{
    if (given) {
        *out = given[o];
        return true;
    }
    if (whole < 0)
        return false;
    const int64_t each = (whole + parts - 1) / parts, start = QN_MIN(whole, each * o);
    *out = QN_MIN(each, whole - start);
    return true;
}

static qn_status split_check(qn_infer *self, const int64_t *lengths, size_t count, int64_t whole)
{
    int64_t sum = 0;
    if (count != (size_t)self->n_out)
        return qn_infer_fail(self, "%zu lengths for %d outputs", count, self->n_out);
    for (size_t i = 0; i < count; i++) {
        if (lengths[i] < 0 || !qn_add_int64(&sum, sum, lengths[i]))
            return qn_infer_fail(self, "length %zu is negative or too large", i);
    }
    if (whole >= 0 && sum != whole)
        return qn_infer_fail(self, "the lengths add up to %lld, the dimension is %lld",
                             (long long)sum, (long long)whole);
    return QN_OK;
}

static qn_status split_set(qn_infer *self, int64_t axis, const int64_t *lengths, bool open)
{
    const qn_type *in = self->in[0];
    for (int32_t o = 0; o < self->n_out; o++) {
        int64_t length;
        qn_type part = *in;
        const bool known =
            !open && split_length(&length, in->dims[axis].value, self->n_out, o, lengths);
        part.dims[axis] = known ? qn_dim_of(length) : qn_dim_unknown();
        qn_infer_set(self, o, in->dtype, in->rank, part.dims);
    }
    return QN_OK;
}

static qn_status split_infer(qn_infer *self)
{
    const qn_split_attrs *a = self->attrs;
    const qn_type *in = self->in[0];
    int64_t axis = a->axis, *lengths = NULL;
    size_t count = 0;
    for (int32_t o = 0; o < self->n_out; o++)
        qn_infer_set_dtype(self, o, in->dtype);
    if (a->num_outputs != QN_ABSENT && a->num_outputs != self->n_out)
        return qn_infer_fail(self, "num_outputs is %lld, the node has %d",
                             (long long)a->num_outputs, self->n_out);
    if (in->rank < 0)
        return QN_OK;
    QN_TRY(qn_infer_axis(self, &axis, in->rank, "axis"));
    if (!qn_infer_has(self, 1))
        return split_set(self, axis, NULL, false);
    const size_t most = (size_t)self->n_out + 1;
    lengths = qn_arena_array(self->arena, most, sizeof *lengths);
    QN_TRY_ALLOC(self->ctx, lengths);
    if (!qn_infer_ints(self, 1, lengths, most, &count)) {
        if (self->data[1])
            return qn_infer_fail(self, "there are more lengths than the %d outputs", self->n_out);
        return split_set(self, axis, NULL, true);
    }
    QN_TRY(split_check(self, lengths, count, in->dims[axis].value));
    return split_set(self, axis, lengths, false);
}

static qn_status split_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0];
    const qn_tensor *given = qn_eval_in(self, 1);
    int64_t axis = ((const qn_split_attrs *)self->attrs)->axis, strides[QN_MAX_RANK], start = 0;
    axis += axis < 0 ? in->rank : 0;
    qn_dims_strides(strides, in->rank, in->dims);
    for (int32_t o = 0; o < self->n_out; o++) {
        int64_t length = 0;
        if (given)
            length = qn_tensor_i64(given, o);
        else
            split_length(&length, in->dims[axis], self->n_out, o, NULL);
        if (self->out[o])
            qn_move_from(self->out[o], in, start, strides);
        start += length * strides[axis];
    }
    return QN_OK;
}

const qn_op qn_op_Split = {.name = "Split",
                           .domain = "",
                           .since = 1,
                           QN_PORTS(in, split_in),
                           QN_PORTS(out, split_out),
                           QN_ATTRS(split_specs, qn_split_attrs),
                           QN_VERSIONS(split_versions),
                           QN_TYPE_RULES(split_types),
                           .flags = QN_OP_MOVES,
                           .quant = QN_QUANT_PASS,
                           .infer = split_infer,
                           .eval = split_eval,
                           .brief = "parts of a tensor along an axis"};

/* ---- Transpose ------------------------------------------------------------------------------- */

static const qn_attr_spec transpose_specs[] = {QN_ATTR(qn_transpose_attrs, perm, INTS)};
static const qn_port transpose_in[] = {{"data", 'T', QN_SET_TENSOR, 0}};

/* Without perm the dimensions are reversed. */
static int64_t axis_from(const qn_transpose_attrs *a, int32_t rank, int32_t d)
{
    return a->perm.at ? a->perm.at[d] : rank - 1 - d;
}

static qn_status transpose_infer(qn_infer *self)
{
    const qn_transpose_attrs *a = self->attrs;
    const qn_type *in = self->in[0];
    qn_dim dims[QN_MAX_RANK];
    bool used[QN_MAX_RANK] = {false};
    qn_infer_set_dtype(self, 0, in->dtype);
    if (in->rank < 0)
        return QN_OK;
    if (a->perm.at && a->perm.count != (size_t)in->rank)
        return qn_infer_fail(self, "perm has %zu entries, the input %d dimensions", a->perm.count,
                             in->rank);
    for (int32_t d = 0; d < in->rank; d++) {
        const int64_t from = axis_from(a, in->rank, d);
        if (from < 0 || from >= in->rank || used[from])
            return qn_infer_fail(self, "perm is no permutation");
        used[from] = true;
        dims[d] = in->dims[from];
    }
    qn_infer_set(self, 0, in->dtype, in->rank, dims);
    return QN_OK;
}

static qn_status transpose_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0];
    int64_t from[QN_MAX_RANK], strides[QN_MAX_RANK];
    qn_dims_strides(from, in->rank, in->dims);
    for (int32_t d = 0; d < in->rank; d++)
        strides[d] = from[axis_from(self->attrs, in->rank, d)];
    qn_move_from(self->out[0], in, 0, strides);
    return QN_OK;
}

const qn_op qn_op_Transpose = {.name = "Transpose",
                               .domain = "",
                               .since = 1,
                               QN_PORTS(in, transpose_in),
                               QN_PORTS(out, any_out),
                               QN_ATTRS(transpose_specs, qn_transpose_attrs),
                               QN_TYPE_RULES(qn_float8_21),
                               .flags = QN_OP_MOVES,
                               .quant = QN_QUANT_PASS,
                               .infer = transpose_infer,
                               .eval = transpose_eval,
                               .brief = "dimensions in another order"};
