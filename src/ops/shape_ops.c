/* Operators that give or change a shape and leave the elements in their order. */
#include <string.h>

#include "ops/infer.h"
#include "ops/move.h"
#include "ops/versions.h"

static const qn_port any_in[] = {{"data", 'T', QN_SET_TENSOR, 0}};
static const qn_port any_out[] = {{"output", 'T', QN_SET_TENSOR, 0}};
static const qn_port int64_out[] = {{"output", 0, QN_SET(QN_INT64), 0}};

/* ---- Shape and Size -------------------------------------------------------------------------- */

typedef struct shape_attrs {
    int64_t start, end;
} shape_attrs;

static const qn_attr_spec shape_specs[] = {QN_INT_ATTR(shape_attrs, start, 0, .since = 15),
                                           QN_INT_ATTR(shape_attrs, end, QN_ABSENT, .since = 15)};

/* Bounds as Python's slices have them: negative counts from the end, then clamped. */
static void shape_range(const shape_attrs *a, int32_t rank, int32_t *start, int32_t *end)
{
    const int64_t last = a->end == QN_ABSENT ? rank : a->end;
    const int64_t from = a->start < 0 ? a->start + rank : a->start;
    const int64_t to = last < 0 ? last + rank : last;
    *start = (int32_t)QN_MIN(QN_MAX(from, 0), rank);
    *end = (int32_t)QN_MAX(QN_MIN(QN_MAX(to, 0), rank), *start);
}

static qn_status shape_infer(qn_infer *self)
{
    const qn_type *in = self->in[0];
    qn_dim count = qn_dim_unknown(), elements[QN_MAX_RANK];
    if (in->rank < 0) {
        qn_infer_set(self, 0, QN_INT64, 1, &count);
        return QN_OK;
    }
    int32_t start, end;
    shape_range(self->attrs, in->rank, &start, &end);
    count = qn_dim_of(end - start);
    for (int32_t d = start; d < end; d++)
        elements[d - start] = qn_element_of_dim(in->dims[d]);
    qn_infer_set(self, 0, QN_INT64, 1, &count);
    return qn_infer_set_elements(self, 0, elements, (size_t)(end - start));
}

static qn_status shape_eval(qn_eval *self)
{
    int32_t start, end;
    shape_range(self->attrs, self->in[0]->rank, &start, &end);
    for (int32_t d = start; d < end; d++)
        ((int64_t *)self->out[0]->data)[d - start] = self->in[0]->dims[d];
    return QN_OK;
}

const qn_op qn_op_Shape = {.name = "Shape",
                           .domain = "",
                           .since = 1,
                           QN_PORTS(in, any_in),
                           QN_PORTS(out, int64_out),
                           QN_ATTRS(shape_specs, shape_attrs),
                           .quant = QN_QUANT_SHAPE,
                           .infer = shape_infer,
                           .eval = shape_eval,
                           .brief = "dimensions of a tensor"};

static qn_status size_infer(qn_infer *self)
{
    qn_dim total = qn_dim_of(1);
    for (int32_t d = 0; d < self->in[0]->rank; d++)
        total = qn_dim_mul(total, self->in[0]->dims[d]);
    if (self->in[0]->rank < 0)
        total = qn_dim_unknown();
    const qn_dim element = qn_element_of_dim(total);
    qn_infer_set(self, 0, QN_INT64, 0, NULL);
    return qn_infer_set_elements(self, 0, &element, 1);
}

static qn_status size_eval(qn_eval *self)
{
    *(int64_t *)self->out[0]->data = qn_tensor_count(self->in[0]);
    return QN_OK;
}

const qn_op qn_op_Size = {.name = "Size",
                          .domain = "",
                          .since = 1,
                          QN_PORTS(in, any_in),
                          QN_PORTS(out, int64_out),
                          .quant = QN_QUANT_SHAPE,
                          .infer = size_infer,
                          .eval = size_eval,
                          .brief = "number of elements"};

/* ---- Reshape --------------------------------------------------------------------------------- */

typedef struct reshape_attrs {
    int64_t allowzero;
    /* Before opset 5 */
    qn_ints shape;
} reshape_attrs;

static const qn_attr_spec reshape_specs[] = {QN_INT_ATTR(reshape_attrs, allowzero, 0, .since = 14),
                                             QN_ATTR(reshape_attrs, shape, INTS, .until = 5)};

static const qn_type_rule reshape_types[] = {{5, QN_SET_TENSOR & ~QN_SET_FLOAT}};
static const qn_port reshape_in[] = {{"data", 'T', QN_SET_TENSOR, 0},
                                     {"shape", 0, QN_SET(QN_INT64), 0}};

/* Opset 5: the shape became an input. */
static qn_status reshape_upgrade(qn_node **node)
{
    reshape_attrs *a = (*node)->attrs;
    if (!a->shape.at)
        return qn_node_fail(*node, QN_E_FORMAT, "attribute 'shape' is missing");
    return qn_upgrade_ints(*node, &a->shape, 1);
}

static qn_status reshape_downgrade(qn_node **node)
{
    return qn_downgrade_ints(*node, &((reshape_attrs *)(*node)->attrs)->shape, 1);
}

static const qn_version_rule reshape_versions[] = {{5, reshape_upgrade, reshape_downgrade}};

/* Product of the dims; names of unknown ones are not multiplied. */
static qn_dim product_of(const qn_dim *dims, int32_t rank)
{
    qn_dim product = qn_dim_of(1);
    for (int32_t d = 0; d < rank; d++)
        product = qn_dim_mul(product, dims[d]);
    return product;
}

/* The dim that -1 stands for. Dims that occur on both sides by one name cancel, so that [N,8,16] to
 * [N,-1] is known without N. */
static qn_status reshape_rest(qn_infer *self, qn_dim *dims, int32_t rank, int32_t rest)
{
    const qn_type *in = self->in[0];
    qn_dim from[QN_MAX_RANK], to[QN_MAX_RANK];
    memcpy(from, in->dims, sizeof from);
    memcpy(to, dims, sizeof to);
    to[rest] = qn_dim_of(1);
    for (int32_t i = 0; i < in->rank; i++) {
        for (int32_t o = 0; o < rank; o++) {
            if (from[i].value < 0 && to[o].value < 0 && qn_dim_same(from[i], to[o]))
                from[i] = to[o] = qn_dim_of(1);
        }
    }
    const qn_dim total = product_of(from, in->rank), known = product_of(to, rank);
    if (known.value == 1)
        dims[rest] = total;
    if (total.value < 0 || known.value < 0)
        return QN_OK;
    if (known.value == 0 || total.value % known.value != 0)
        return qn_infer_fail(self, "%lld elements cannot be split by %lld", (long long)total.value,
                             (long long)known.value);
    dims[rest] = qn_dim_of(total.value / known.value);
    return QN_OK;
}

static qn_status reshape_check(qn_infer *self, const qn_dim *dims, int32_t rank)
{
    const qn_dim from = product_of(self->in[0]->dims, self->in[0]->rank);
    const qn_dim to = product_of(dims, rank);
    if (self->in[0]->rank >= 0 && from.value >= 0 && to.value >= 0 && from.value != to.value)
        return qn_infer_fail(self, "%lld elements do not fit a shape of %lld",
                             (long long)from.value, (long long)to.value);
    return QN_OK;
}

static qn_status reshape_infer(qn_infer *self)
{
    const reshape_attrs *a = self->attrs;
    const qn_type *in = self->in[0], *shape = self->in[1];
    qn_dim dims[QN_MAX_RANK];
    size_t count;
    int32_t rest = -1;
    qn_infer_set_dtype(self, 0, in->dtype);
    if (shape->rank >= 0 && shape->rank != 1)
        return qn_infer_fail(self, "the shape must have one dimension");
    if (shape->rank == 1 && shape->dims[0].value > QN_MAX_RANK)
        return qn_infer_fail(self, "more than %d dimensions", QN_MAX_RANK);
    if (!qn_infer_elements(self, 1, dims, QN_MAX_RANK, &count)) {
        /* Only the rank is known then. */
        for (int32_t d = 0; d < QN_MAX_RANK; d++)
            dims[d] = qn_dim_unknown();
        if (shape->rank == 1 && shape->dims[0].value >= 0)
            qn_infer_set(self, 0, in->dtype, (int32_t)shape->dims[0].value, dims);
        return QN_OK;
    }
    for (int32_t d = 0; d < (int32_t)count; d++) {
        if (dims[d].value == -1 && rest >= 0)
            return qn_infer_fail(self, "the shape has more than one -1");
        if (dims[d].value < -1 && qn_element_known(dims[d]))
            return qn_infer_fail(self, "the shape has a dimension %lld", (long long)dims[d].value);
        if (dims[d].value == -1)
            rest = d;
        else if (dims[d].value == 0 && !a->allowzero && in->rank >= 0 && d >= in->rank)
            return qn_infer_fail(self, "0 at %d copies a dimension that the input lacks", d);
        else if (dims[d].value == 0 && !a->allowzero)
            dims[d] = in->rank < 0 ? qn_dim_unknown() : in->dims[d];
        dims[d] = qn_dim_of_element(dims[d]);
    }
    if (rest >= 0 && in->rank >= 0)
        QN_TRY(reshape_rest(self, dims, (int32_t)count, rest));
    QN_TRY(reshape_check(self, dims, (int32_t)count));
    qn_infer_set(self, 0, in->dtype, (int32_t)count, dims);
    return QN_OK;
}

const qn_op qn_op_Reshape = {.name = "Reshape",
                             .domain = "",
                             .since = 1,
                             QN_PORTS(in, reshape_in),
                             QN_PORTS(out, any_out),
                             QN_ATTRS(reshape_specs, reshape_attrs),
                             QN_VERSIONS(reshape_versions),
                             QN_TYPE_RULES(reshape_types),
                             .flags = QN_OP_MOVES,
                             .quant = QN_QUANT_PASS,
                             .infer = reshape_infer,
                             .eval = qn_eval_move_all,
                             .brief = "same elements, other dimensions"};

/* ---- Flatten --------------------------------------------------------------------------------- */

typedef struct flatten_attrs {
    int64_t axis;
} flatten_attrs;

static const qn_attr_spec flatten_specs[] = {QN_INT_ATTR(flatten_attrs, axis, 1)};

static qn_status flatten_infer(qn_infer *self)
{
    const qn_type *in = self->in[0];
    int64_t axis = ((const flatten_attrs *)self->attrs)->axis;
    qn_dim dims[2] = {qn_dim_unknown(), qn_dim_unknown()};
    if (in->rank >= 0) {
        if (axis < -(int64_t)in->rank || axis > in->rank)
            return qn_infer_fail(self, "axis %lld is outside [-%d, %d]", (long long)axis, in->rank,
                                 in->rank);
        axis += axis < 0 ? in->rank : 0;
        dims[0] = product_of(in->dims, (int32_t)axis);
        dims[1] = product_of(in->dims + axis, in->rank - (int32_t)axis);
    }
    qn_infer_set(self, 0, in->dtype, 2, dims);
    return QN_OK;
}

/* Since opset 11 the axis may count from the end. */
static qn_status flatten_downgrade(qn_node **node)
{
    flatten_attrs *a = (*node)->attrs;
    const int32_t rank = (*node)->in[0]->type.rank;
    if (a->axis < 0 && rank < 0)
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "a negative axis needs opset 11");
    a->axis += a->axis < 0 ? rank : 0;
    return QN_OK;
}

static const qn_version_rule flatten_versions[] = {{11, NULL, flatten_downgrade}};

static const qn_type_rule flatten_types[] = {{9, QN_SET_TENSOR & ~QN_SET_FLOAT},
                                             {21, QN_SET_FLOAT8}};

const qn_op qn_op_Flatten = {.name = "Flatten",
                             .domain = "",
                             .since = 1,
                             QN_PORTS(in, any_in),
                             QN_PORTS(out, any_out),
                             QN_ATTRS(flatten_specs, flatten_attrs),
                             QN_VERSIONS(flatten_versions),
                             QN_TYPE_RULES(flatten_types),
                             .flags = QN_OP_MOVES,
                             .quant = QN_QUANT_PASS,
                             .infer = flatten_infer,
                             .eval = qn_eval_move_all,
                             .brief = "two dimensions, split at an axis"};
