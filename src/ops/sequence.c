/* Sequences of tensors. */
#include <string.h>

#include "ops/infer.h"
#include "ops/move.h"

static const qn_port sequence_in[] = {{"input_sequence", 0, QN_SET_SEQUENCE, 0}};
static const qn_port sequence_out[] = {{"output_sequence", 0, QN_SET_SEQUENCE, 0}};
static const qn_port tensor_out[] = {{"tensor", 0, QN_SET_TENSOR, 0}};
static const qn_port int64_out[] = {{"length", 0, QN_SET(QN_INT64), 0}};

/* Sets output o to a sequence of `element` (NULL: not known). */
static qn_status set_sequence(qn_infer *self, int32_t o, const qn_type *element)
{
    if (!qn_infer_wants(self, o))
        return QN_OK;
    qn_type *copy = NULL;
    if (element) {
        copy = qn_arena_copy(self->arena, element, sizeof *element);
        QN_TRY_ALLOC(self->ctx, copy);
        copy->elements = NULL;
    }
    *self->out[o] = (qn_type){.kind = QN_TYPE_SEQUENCE, .rank = -1, .element = copy};
    return QN_OK;
}

/* Only the element type is sure: tensors of a sequence may differ in shape. */
static qn_type loose(const qn_type *tensor)
{
    return (qn_type){.kind = QN_TYPE_TENSOR, .dtype = tensor->dtype, .rank = -1};
}

static qn_status infer_same_sequence(qn_infer *self)
{
    qn_infer_copy(self, 0, 0);
    return QN_OK;
}

/* Position among `count`, `count` itself allowed where `end`. */
static qn_status position(int64_t *out, const qn_eval *self, const qn_tensor *given, int64_t count,
                          bool end)
{
    *out = 0;
    if (qn_tensor_count(given) != 1)
        return qn_eval_fail(self, "the position must be one number");
    const int64_t at = qn_tensor_i64(given, 0), last = end ? count : count - 1;
    if (at < -count || at > last)
        return qn_eval_fail(self, "position %lld is outside a sequence of %lld", (long long)at,
                            (long long)count);
    *out = at < 0 ? at + count : at;
    return QN_OK;
}

/* ---- SequenceEmpty, SequenceConstruct -------------------------------------------------------- */

typedef struct empty_attrs {
    int64_t dtype;
} empty_attrs;
static const qn_attr_spec empty_specs[] = {QN_INT_ATTR(empty_attrs, dtype, QN_FLOAT32)};

static qn_status empty_infer(qn_infer *self)
{
    const int64_t dtype = ((const empty_attrs *)self->attrs)->dtype;
    if (dtype <= 0 || dtype >= QN_SEQUENCE)
        return qn_infer_fail(self, "dtype %lld is no element type", (long long)dtype);
    const qn_type element = {.kind = QN_TYPE_TENSOR, .dtype = (qn_dtype)dtype, .rank = -1};
    return set_sequence(self, 0, &element);
}

static qn_status empty_eval(qn_eval *self)
{
    return qn_eval_output_sequence(self, 0, 0);
}

const qn_op qn_op_SequenceEmpty = {.name = "SequenceEmpty",
                                   .domain = "",
                                   .since = 11,
                                   QN_PORTS(out, sequence_out),
                                   QN_ATTRS(empty_specs, empty_attrs),
                                   .flags = QN_OP_ALLOCATES,
                                   .quant = QN_QUANT_SHAPE,
                                   .infer = empty_infer,
                                   .eval = empty_eval,
                                   .brief = "a sequence without elements"};

static const qn_port construct_in[] = {{"inputs", 'T', QN_SET_TENSOR, QN_VARIADIC}};

static qn_status construct_infer(qn_infer *self)
{
    const qn_type element = loose(self->in[0]);
    return set_sequence(self, 0, &element);
}

static qn_status construct_eval(qn_eval *self)
{
    QN_TRY(qn_eval_output_sequence(self, 0, self->n_in));
    qn_sequence *out = self->out[0]->data;
    for (int32_t i = 0; i < self->n_in; i++)
        QN_TRY(qn_eval_copy(self, &out->items[i], self->in[i]));
    return QN_OK;
}

const qn_op qn_op_SequenceConstruct = {.name = "SequenceConstruct",
                                       .domain = "",
                                       .since = 11,
                                       QN_PORTS(in, construct_in),
                                       QN_PORTS(out, sequence_out),
                                       .flags = QN_OP_ALLOCATES,
                                       .quant = QN_QUANT_SHAPE,
                                       .infer = construct_infer,
                                       .eval = construct_eval,
                                       .brief = "a sequence of the inputs"};

/* ---- SequenceInsert, SequenceErase, SequenceAt, SequenceLength ------------------------------- */

static const qn_port insert_in[] = {{"input_sequence", 0, QN_SET_SEQUENCE, 0},
                                    {"tensor", 0, QN_SET_TENSOR, 0},
                                    {"position", 0, QN_SET_INDEX, QN_OPTIONAL}};

static qn_status insert_eval(qn_eval *self)
{
    const qn_sequence *in = self->in[0]->data;
    const qn_tensor *given = qn_eval_in(self, 2);
    int64_t at = in->count;
    if (given)
        QN_TRY(position(&at, self, given, in->count, true));
    QN_TRY(qn_eval_output_sequence(self, 0, in->count + 1));
    qn_sequence *out = self->out[0]->data;
    for (int64_t i = 0; i < out->count; i++) {
        const qn_tensor *item = i == at ? self->in[1] : &in->items[i < at ? i : i - 1];
        QN_TRY(qn_eval_copy(self, &out->items[i], item));
    }
    return QN_OK;
}

const qn_op qn_op_SequenceInsert = {.name = "SequenceInsert",
                                    .domain = "",
                                    .since = 11,
                                    QN_PORTS(in, insert_in),
                                    QN_PORTS(out, sequence_out),
                                    .flags = QN_OP_ALLOCATES,
                                    .quant = QN_QUANT_SHAPE,
                                    .infer = infer_same_sequence,
                                    .eval = insert_eval,
                                    .brief = "a sequence with one more tensor"};

static const qn_port erase_in[] = {{"input_sequence", 0, QN_SET_SEQUENCE, 0},
                                   {"position", 0, QN_SET_INDEX, QN_OPTIONAL}};

static qn_status erase_eval(qn_eval *self)
{
    const qn_sequence *in = self->in[0]->data;
    const qn_tensor *given = qn_eval_in(self, 1);
    int64_t at = in->count - 1;
    if (in->count == 0)
        return qn_eval_fail(self, "the sequence is empty");
    if (given)
        QN_TRY(position(&at, self, given, in->count, false));
    QN_TRY(qn_eval_output_sequence(self, 0, in->count - 1));
    qn_sequence *out = self->out[0]->data;
    for (int64_t i = 0; i < out->count; i++)
        QN_TRY(qn_eval_copy(self, &out->items[i], &in->items[i < at ? i : i + 1]));
    return QN_OK;
}

const qn_op qn_op_SequenceErase = {.name = "SequenceErase",
                                   .domain = "",
                                   .since = 11,
                                   QN_PORTS(in, erase_in),
                                   QN_PORTS(out, sequence_out),
                                   .flags = QN_OP_ALLOCATES,
                                   .quant = QN_QUANT_SHAPE,
                                   .infer = infer_same_sequence,
                                   .eval = erase_eval,
                                   .brief = "a sequence without one of its tensors"};

static const qn_port at_in[] = {{"input_sequence", 0, QN_SET_SEQUENCE, 0},
                                {"position", 0, QN_SET_INDEX, 0}};

/* What a sequence or an optional holds. */
static qn_status infer_element(qn_infer *self)
{
    if (qn_infer_wants(self, 0) && self->in[0]->element)
        *self->out[0] = *self->in[0]->element;
    return QN_OK;
}

static qn_status at_eval(qn_eval *self)
{
    const qn_sequence *in = self->in[0]->data;
    int64_t at;
    QN_TRY(position(&at, self, self->in[1], in->count, false));
    return qn_eval_output_copy(self, 0, &in->items[at]);
}

const qn_op qn_op_SequenceAt = {.name = "SequenceAt",
                                .domain = "",
                                .since = 11,
                                QN_PORTS(in, at_in),
                                QN_PORTS(out, tensor_out),
                                .flags = QN_OP_ALLOCATES,
                                .quant = QN_QUANT_SHAPE,
                                .infer = infer_element,
                                .eval = at_eval,
                                .brief = "one tensor of a sequence"};

static qn_status length_infer(qn_infer *self)
{
    qn_infer_set(self, 0, QN_INT64, 0, NULL);
    return QN_OK;
}

static qn_status length_eval(qn_eval *self)
{
    *(int64_t *)self->out[0]->data = ((const qn_sequence *)self->in[0]->data)->count;
    return QN_OK;
}

const qn_op qn_op_SequenceLength = {.name = "SequenceLength",
                                    .domain = "",
                                    .since = 11,
                                    QN_PORTS(in, sequence_in),
                                    QN_PORTS(out, int64_out),
                                    .quant = QN_QUANT_SHAPE,
                                    .infer = length_infer,
                                    .eval = length_eval,
                                    .brief = "number of tensors in a sequence"};

/* ---- SplitToSequence, ConcatFromSequence ----------------------------------------------------- */

typedef struct split_attrs {
    int64_t axis, keepdims;
} split_attrs;
static const qn_attr_spec split_specs[] = {QN_INT_ATTR(split_attrs, axis, 0),
                                           QN_INT_ATTR(split_attrs, keepdims, 1)};
static const qn_port split_in[] = {{"input", 0, QN_SET_TENSOR, 0},
                                   {"split", 0, QN_SET_INDEX, QN_OPTIONAL}};

static qn_status split_infer(qn_infer *self)
{
    int64_t axis = ((const split_attrs *)self->attrs)->axis;
    const qn_type element = loose(self->in[0]);
    if (self->in[0]->rank >= 0)
        QN_TRY(qn_infer_axis(self, &axis, self->in[0]->rank, "axis"));
    return set_sequence(self, 0, &element);
}

/* Length of each part: 1 without `split`, one number for all (the last may be shorter), or a
 * list. */
static qn_status split_count(int64_t *out, const qn_eval *self, int64_t dim)
{
    const qn_tensor *given = qn_eval_in(self, 1);
    *out = dim;
    if (!given)
        return QN_OK;
    int64_t sum = 0, n = qn_tensor_count(given);
    if (given->rank == 0) {
        const int64_t each = qn_tensor_i64(given, 0);
        *out = each > 0 ? dim / each + (dim % each != 0) : 0;
        return each > 0 ? QN_OK : qn_eval_fail(self, "split %lld is not positive", (long long)each);
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t length = qn_tensor_i64(given, i);
        if (length < 0 || !qn_add_int64(&sum, sum, length))
            return qn_eval_fail(self, "a length is negative or too large");
    }
    *out = n;
    return sum == dim ? QN_OK
                      : qn_eval_fail(self, "the lengths add up to %lld, the dimension is %lld",
                                     (long long)sum, (long long)dim);
}

static int64_t split_length(const qn_eval *self, int64_t i, int64_t rest)
{
    const qn_tensor *given = qn_eval_in(self, 1);
    if (!given)
        return 1;
    return given->rank == 0 ? QN_MIN(qn_tensor_i64(given, 0), rest) : qn_tensor_i64(given, i);
}

static qn_status split_eval(qn_eval *self)
{
    const split_attrs *a = self->attrs;
    const qn_tensor *in = self->in[0];
    const int64_t axis = a->axis < 0 ? a->axis + in->rank : a->axis;
    int64_t count, start = 0, strides[QN_MAX_RANK];
    if (axis < 0 || axis >= in->rank)
        return qn_eval_fail(self, "axis %lld is no dimension", (long long)a->axis);
    QN_TRY(split_count(&count, self, in->dims[axis]));
    QN_TRY(qn_eval_output_sequence(self, 0, count));
    qn_dims_strides(strides, in->rank, in->dims);
    qn_sequence *out = self->out[0]->data;
    for (int64_t i = 0; i < count; i++) {
        qn_tensor *part = &out->items[i];
        *part = *in;
        part->dims[axis] = split_length(self, i, in->dims[axis] - start);
        part->data = self->keep(self, (size_t)qn_tensor_count(part) * qn_dtype_size(part->dtype));
        QN_TRY_ALLOC(self->ctx, part->data);
        qn_move_from(part, in, start * strides[axis], strides);
        start += part->dims[axis];
        if (!qn_eval_in(self, 1) && !a->keepdims) {
            const size_t behind = (size_t)(in->rank - 1 - axis) * sizeof *part->dims;
            memmove(&part->dims[axis], &part->dims[axis + 1], behind);
            part->rank--;
        }
    }
    return QN_OK;
}

static const qn_type_rule split_types[] = {{24, QN_SET(QN_BFLOAT16)}};

const qn_op qn_op_SplitToSequence = {.name = "SplitToSequence",
                                     .domain = "",
                                     .since = 11,
                                     QN_PORTS(in, split_in),
                                     QN_PORTS(out, sequence_out),
                                     QN_ATTRS(split_specs, split_attrs),
                                     QN_TYPE_RULES(split_types),
                                     .flags = QN_OP_ALLOCATES,
                                     .quant = QN_QUANT_SHAPE,
                                     .infer = split_infer,
                                     .eval = split_eval,
                                     .brief = "parts of a tensor as a sequence"};

typedef struct join_attrs {
    int64_t axis, new_axis;
} join_attrs;
static const qn_attr_spec join_specs[] = {
    QN_INT_ATTR(join_attrs, axis, QN_ABSENT, .required = true),
    QN_INT_ATTR(join_attrs, new_axis, 0)};

static qn_status join_infer(qn_infer *self)
{
    if (self->in[0]->element)
        qn_infer_set_dtype(self, 0, self->in[0]->element->dtype);
    return QN_OK;
}

/* The parts must agree in type and in every dimension but `axis`; *out gets the joined shape. */
static qn_status join_shape(qn_tensor *out, const qn_eval *self, int64_t *axis)
{
    const join_attrs *a = self->attrs;
    const qn_sequence *in = self->in[0]->data;
    if (in->count == 0)
        return qn_eval_fail(self, "the sequence is empty");
    *out = in->items[0];
    const int32_t rank = out->rank + (a->new_axis ? 1 : 0);
    *axis = a->axis < 0 ? a->axis + rank : a->axis;
    if (*axis < 0 || *axis >= rank || rank > QN_MAX_RANK)
        return qn_eval_fail(self, "axis %lld is no dimension", (long long)a->axis);
    for (int64_t i = 1; i < in->count; i++) {
        const qn_tensor *item = &in->items[i];
        bool fits = item->dtype == out->dtype && item->rank == out->rank;
        for (int32_t d = 0; fits && d < item->rank; d++)
            fits = item->dims[d] == in->items[0].dims[d] || (d == *axis && !a->new_axis);
        if (!fits)
            return qn_eval_fail(self, "tensor %lld does not fit the first", (long long)i);
        if (!a->new_axis)
            out->dims[*axis] += item->dims[*axis];
    }
    if (a->new_axis) {
        const size_t behind = (size_t)(out->rank - *axis) * sizeof *out->dims;
        memmove(&out->dims[*axis + 1], &out->dims[*axis], behind);
        out->dims[*axis] = in->count;
        out->rank = rank;
    }
    return QN_OK;
}

static qn_status join_eval(qn_eval *self)
{
    const qn_sequence *in = self->in[0]->data;
    qn_tensor shape;
    int64_t axis = 0, strides[QN_MAX_RANK], start = 0;
    QN_TRY(join_shape(&shape, self, &axis));
    QN_TRY(qn_eval_output(self, 0, shape.dtype, shape.rank, shape.dims));
    qn_dims_strides(strides, shape.rank, shape.dims);
    for (int64_t i = 0; i < in->count; i++) {
        qn_tensor part = in->items[i];
        if (((const join_attrs *)self->attrs)->new_axis) {
            memcpy(part.dims, shape.dims, sizeof part.dims);
            part.dims[axis] = 1;
            part.rank = shape.rank;
        }
        qn_move_to(self->out[0], &part, start, strides);
        start += part.dims[axis] * strides[axis];
    }
    return QN_OK;
}

const qn_op qn_op_ConcatFromSequence = {.name = "ConcatFromSequence",
                                        .domain = "",
                                        .since = 11,
                                        QN_PORTS(in, sequence_in),
                                        QN_PORTS(out, tensor_out),
                                        QN_ATTRS(join_specs, join_attrs),
                                        .flags = QN_OP_ALLOCATES,
                                        .quant = QN_QUANT_SHAPE,
                                        .infer = join_infer,
                                        .eval = join_eval,
                                        .brief = "a sequence put together along an axis"};
