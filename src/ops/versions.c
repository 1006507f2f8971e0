/* Nodes brought from an opset to the latest one, and back. */
#include "ops/versions.h"

#include <string.h>

#include "ops/expand.h"
#include "ops/infer.h"

/* ---- Applying the rules ---------------------------------------------------------------------- */

qn_status qn_node_upgrade(qn_node **node, int from)
{
    const qn_op *op = (*node)->op;
    /* What rules look at first has been there in every opset. */
    const bool needed = op->n_in && !(op->in[0].flags & (QN_OPTIONAL | QN_VARIADIC));
    if (needed && ((*node)->n_in < 1 || !(*node)->in[0]))
        return qn_node_fail(*node, QN_E_INVALID, "input 0 (%s) is missing", op->in[0].name);
    for (size_t i = 0; *node && i < op->n_versions; i++) {
        if (op->versions[i].opset > from && op->versions[i].upgrade)
            QN_TRY(op->versions[i].upgrade(node));
    }
    return QN_OK;
}

const qn_type_rule qn_float8_21[1] = {{21, QN_SET_FLOAT8}};
const qn_type_rule qn_bfloat16_22[1] = {{22, QN_SET(QN_BFLOAT16)}};
const qn_type_rule qn_bfloat16_28[1] = {{28, QN_SET(QN_BFLOAT16)}};

/* The first opset with an operator that takes the type. */
static const qn_type_rule first_opsets[] = {
    {13, QN_SET(QN_BFLOAT16)},
    {19, QN_SET(QN_FLOAT8E4M3FN) | QN_SET(QN_FLOAT8E4M3FNUZ) | QN_SET(QN_FLOAT8E5M2) |
             QN_SET(QN_FLOAT8E5M2FNUZ)},
    {21, QN_SET(QN_INT4) | QN_SET(QN_UINT4)},
    {23, QN_SET(QN_FLOAT4E2M1)},
    {24, QN_SET(QN_FLOAT8E8M0)},
    {25, QN_SET(QN_INT2) | QN_SET(QN_UINT2)},
    {28, QN_SET(QN_FLOAT6E2M3) | QN_SET(QN_FLOAT6E3M2)}};

static qn_status check_type(const qn_node *node, const qn_value *value, const qn_port *port,
                            const qn_type_rule *rule)
{
    if (!value || !(qn_type_set(&value->type) & rule->types) || !(port->types & ~rule->types))
        return QN_OK;
    char type[128];
    qn_type_format(type, sizeof type, &value->type);
    if (rule->opset == QN_NO_OPSET)
        return qn_node_fail(node, QN_E_UNSUPPORTED, "'%s' is %s, which no opset lets it take",
                            value->name, type);
    return qn_node_fail(node, QN_E_UNSUPPORTED, "'%s' is %s, which it takes since opset %d only",
                        value->name, type, rule->opset);
}

static qn_status check_types(const qn_node *node, int to, const qn_type_rule *rules, size_t n_rules)
{
    const qn_op *op = node->op;
    for (const qn_type_rule *rule = rules; rule < rules + n_rules; rule++) {
        if (rule->opset <= to)
            continue;
        for (int32_t i = 0; i < node->n_explicit; i++)
            QN_TRY(check_type(node, node->in[i], &op->in[QN_MIN(i, op->n_in - 1)], rule));
        for (int32_t o = 0; o < node->n_out; o++)
            QN_TRY(check_type(node, node->out[o], &op->out[QN_MIN(o, op->n_out - 1)], rule));
    }
    return QN_OK;
}

static qn_status check_attrs(const qn_node *node, int to)
{
    for (size_t i = 0; i < node->op->n_attrs; i++) {
        const qn_attr_spec *spec = &node->op->attrs[i];
        if (spec->since > to && !qn_attr_is_default(node->attrs, spec))
            return qn_node_fail(node, QN_E_UNSUPPORTED,
                                "attribute '%s' came with opset %d; opset %d cannot say it",
                                spec->name, spec->since, to);
    }
    return QN_OK;
}

qn_status qn_node_downgrade(qn_node **node, int to)
{
    const qn_op *op = (*node)->op;
    if (op->since > to)
        return qn_node_expand(node);
    QN_TRY(check_types(*node, to, op->type_rules, op->n_type_rules));
    if (*op->domain == 0)
        QN_TRY(check_types(*node, to, first_opsets, QN_COUNT_OF(first_opsets)));
    for (size_t i = op->n_versions; *node && i-- > 0;) {
        if (op->versions[i].opset > to && op->versions[i].downgrade)
            QN_TRY(op->versions[i].downgrade(node));
    }
    return *node ? check_attrs(*node, to) : QN_OK;
}

/* ---- Attributes that became inputs ----------------------------------------------------------- */

qn_status qn_ints_copy(qn_ints *out, qn_graph *graph, const int64_t *values, size_t count)
{
    /* One spare: the pointer of an empty list is not NULL. */
    int64_t *copy = qn_arena_array(graph->arena, count + 1, sizeof *copy);
    QN_TRY_ALLOC(graph->ctx, copy);
    if (count)
        memcpy(copy, values, count * sizeof *copy);
    *out = (qn_ints){copy, count};
    return QN_OK;
}

qn_status qn_value_number(qn_value **out, qn_graph *graph, qn_dtype dtype, double number)
{
    const qn_type type = qn_type_tensor(dtype, 0, NULL);
    qn_tensor *tensor;
    QN_TRY(qn_tensor_create(&tensor, graph->ctx, graph->arena, &type));
    qn_store_f64(tensor->data, dtype, 0, &number, 1);
    return qn_value_constant(out, graph, "number", tensor);
}

static qn_status put_input(qn_node *node, int32_t slot, qn_value *value)
{
    if (node->n_in <= slot)
        QN_TRY(qn_node_resize_inputs(node, slot + 1));
    return qn_node_set_input(node, slot, value);
}

/* The contents of input `slot`, which the older form has as an attribute; NULL where left out. */
static qn_status constant_input(const qn_tensor **out, const qn_node *node, int32_t slot)
{
    const qn_value *value = slot < node->n_explicit ? node->in[slot] : NULL;
    *out = value ? value->data : NULL;
    if (value && !value->data)
        return qn_node_fail(node, QN_E_UNSUPPORTED,
                            "input '%s' is computed; the older form needs a constant", value->name);
    return QN_OK;
}

static qn_status drop_input(qn_node *node, int32_t slot)
{
    if (node->n_in == slot + 1)
        return qn_node_resize_inputs(node, slot);
    return qn_node_set_input(node, slot, NULL);
}

qn_status qn_upgrade_ints(qn_node *node, qn_ints *field, int32_t slot)
{
    qn_value *value;
    if (!field->at)
        return QN_OK;
    QN_TRY(qn_value_ints(&value, node->graph, field->at, field->count));
    *field = (qn_ints){NULL, 0};
    return put_input(node, slot, value);
}

qn_status qn_downgrade_ints(qn_node *node, qn_ints *field, int32_t slot)
{
    const qn_tensor *data;
    QN_TRY(constant_input(&data, node, slot));
    if (!data)
        return QN_OK;
    const int64_t count = qn_tensor_count(data);
    int64_t *values = qn_arena_array(node->graph->arena, (size_t)count + 1, sizeof *values);
    QN_TRY_ALLOC(node->graph->ctx, values);
    qn_load_i64(values, data->dtype, data->data, 0, count);
    *field = (qn_ints){values, (size_t)count};
    return drop_input(node, slot);
}

qn_status qn_downgrade_floats(qn_node *node, qn_floats *field, int32_t slot)
{
    const qn_tensor *data;
    QN_TRY(constant_input(&data, node, slot));
    if (!data)
        return QN_OK;
    const size_t count = (size_t)qn_tensor_count(data);
    float *values = qn_arena_array(node->graph->arena, count + 1, sizeof *values);
    QN_TRY_ALLOC(node->graph->ctx, values);
    if (count)
        memcpy(values, data->data, count * sizeof *values);
    *field = (qn_floats){values, count};
    return drop_input(node, slot);
}

qn_status qn_upgrade_number(qn_node *node, double value, int32_t slot)
{
    const qn_type *type = node->n_in && node->in[0] ? &node->in[0]->type : NULL;
    const qn_dtype dtype = type && type->dtype != QN_UNDEFINED ? type->dtype : QN_FLOAT32;
    qn_value *constant;
    QN_TRY(qn_value_number(&constant, node->graph, dtype, value));
    return put_input(node, slot, constant);
}

qn_status qn_downgrade_number(double *value, qn_node *node, int32_t slot)
{
    const qn_tensor *data;
    QN_TRY(constant_input(&data, node, slot));
    if (!data)
        return QN_OK;
    if (qn_tensor_count(data) != 1)
        return qn_node_fail(node, QN_E_UNSUPPORTED, "input %d is no single number", slot);
    qn_load_f64(value, data->dtype, data->data, 0, 1);
    return drop_input(node, slot);
}

/* ---- Outputs --------------------------------------------------------------------------------- */

bool qn_node_is_read(const qn_node *node, int32_t slot)
{
    const qn_value *out = slot < node->n_out ? node->out[slot] : NULL;
    return out && (out->n_users || out->is_output);
}

/* ---- Inserting nodes ------------------------------------------------------------------------- */

qn_status qn_node_append(qn_node **out, qn_node *node, int32_t slot, const qn_op *op)
{
    qn_value *result = slot < node->n_out ? node->out[slot] : NULL, *fresh;
    if (slot >= node->n_out)
        return qn_node_fail(node, QN_E_INVALID, "output %d is missing", slot);
    QN_TRY(qn_value_create(&fresh, node->graph, result ? result->name : node->name));
    QN_TRY(qn_node_add(out, node->graph, op, node->name, op->n_in, 1));
    if (node->next != *out)
        qn_node_move(*out, node->next);
    QN_TRY(qn_node_set_input(*out, 0, fresh));
    qn_node_set_output(node, slot, fresh);
    qn_node_set_output(*out, 0, result);
    return QN_OK;
}

qn_status qn_node_prepend(qn_node **out, qn_node *node, int32_t slot, const qn_op *op)
{
    const qn_node_spec spec = {
        .op = op, .name = node->name, .before = node, .in = {node->in[slot]}, .n_in = op->n_in};
    QN_TRY(qn_node_build(out, node->graph, &spec));
    return qn_node_set_input(node, slot, (*out)->out[0]);
}

qn_status qn_node_flatten(qn_node *node, int64_t axis)
{
    qn_value *x = node->in[0];
    qn_node *flatten, *reshape, *shape;
    QN_TRY(qn_node_prepend(&flatten, node, 0, &qn_op_Flatten));
    *(int64_t *)qn_attr_field(flatten, qn_op_attr(&qn_op_Flatten, "axis", QN_LATEST_OPSET)) = axis;
    QN_TRY(qn_node_append(&reshape, node, 0, &qn_op_Reshape));
    const qn_node_spec spec = {
        .op = &qn_op_Shape, .name = node->name, .before = reshape, .in = {x}, .n_in = 1};
    QN_TRY(qn_node_build(&shape, node->graph, &spec));
    return qn_node_set_input(reshape, 1, shape->out[0]);
}

/* ---- Broadcast before opset 7 ---------------------------------------------------------------- */

/* A constant is seen through a tensor of more dims over the same data. */
static qn_status widen_constant(qn_node *node, int32_t slot, int32_t more)
{
    const qn_tensor *data = node->in[slot]->data;
    qn_tensor *view = qn_arena_copy(node->graph->arena, data, sizeof *data);
    QN_TRY_ALLOC(node->graph->ctx, view);
    for (int32_t i = 0; i < more; i++)
        view->dims[view->rank++] = 1;
    qn_value *value;
    QN_TRY(qn_value_constant(&value, node->graph, node->in[slot]->name, view));
    return qn_node_set_input(node, slot, value);
}

static qn_status widen(qn_node *node, int32_t slot, int32_t more)
{
    const int32_t rank = node->in[slot]->type.rank;
    if (node->in[slot]->data)
        return widen_constant(node, slot, more);
    int64_t axes[QN_MAX_RANK];
    for (int32_t i = 0; i < more; i++)
        axes[i] = rank + i;
    qn_node *unsqueeze;
    qn_value *value;
    QN_TRY(qn_node_prepend(&unsqueeze, node, slot, &qn_op_Unsqueeze));
    QN_TRY(qn_value_ints(&value, node->graph, axes, (size_t)more));
    QN_TRY(qn_node_set_input(unsqueeze, 1, value));
    unsqueeze->out[0]->type = unsqueeze->in[0]->type;
    qn_type *type = &unsqueeze->out[0]->type;
    type->elements = NULL;
    for (int32_t i = 0; i < more; i++)
        type->dims[type->rank++] = qn_dim_of(1);
    return QN_OK;
}

qn_status qn_upgrade_aligned(qn_node *node, int32_t slot, int64_t axis)
{
    if (axis == QN_ABSENT || !node->in[0] || slot >= node->n_in || !node->in[slot])
        return QN_OK;
    const int32_t rank = node->in[0]->type.rank, own = node->in[slot]->type.rank;
    if (rank < 0 || own < 0)
        return qn_node_fail(node, QN_E_UNSUPPORTED,
                            "its broadcast axis (before opset 7) needs inputs of known rank");
    if (axis < 0)
        axis += rank;
    if (axis < 0 || axis > rank - own)
        return qn_node_fail(node, QN_E_INVALID, "broadcast axis %lld does not fit ranks %d and %d",
                            (long long)axis, rank, own);
    const int32_t more = rank - own - (int32_t)axis;
    return more > 0 && own > 0 ? widen(node, slot, more) : QN_OK;
}

const qn_attr_spec qn_broadcast_specs[2] = {
    QN_INT_ATTR(qn_broadcast_attrs, axis, QN_ABSENT, .until = 7),
    QN_INT_ATTR(qn_broadcast_attrs, broadcast, 0, .until = 7)};

qn_status qn_upgrade_broadcast(qn_node **node)
{
    qn_broadcast_attrs *a = (*node)->attrs;
    if (a->broadcast)
        QN_TRY(qn_upgrade_aligned(*node, 1, a->axis));
    *a = (qn_broadcast_attrs){QN_ABSENT, 0};
    return QN_OK;
}

static bool same_dims(const qn_dim *a, const qn_dim *b, int32_t count)
{
    for (int32_t d = 0; d < count; d++) {
        if (!qn_dim_same(a[d], b[d]))
            return false;
    }
    return true;
}

/* Dims [first, last) of input 1, where those around them are 1 and go away. */
static qn_status narrow(qn_node *node, int32_t first, int32_t last)
{
    const qn_value *value = node->in[1];
    int64_t axes[QN_MAX_RANK];
    size_t count = 0;
    qn_value *list;
    qn_node *squeeze;
    for (int32_t d = 0; d < value->type.rank; d++) {
        if (d < first || d >= last)
            axes[count++] = d;
    }
    if (value->data) {
        qn_tensor *view = qn_arena_copy(node->graph->arena, value->data, sizeof *view);
        QN_TRY_ALLOC(node->graph->ctx, view);
        view->rank = last - first;
        memmove(view->dims, view->dims + first, (size_t)view->rank * sizeof *view->dims);
        QN_TRY(qn_value_constant(&list, node->graph, value->name, view));
        return qn_node_set_input(node, 1, list);
    }
    QN_TRY(qn_node_prepend(&squeeze, node, 1, &qn_op_Squeeze));
    QN_TRY(qn_value_ints(&list, node->graph, axes, count));
    QN_TRY(qn_node_set_input(squeeze, 1, list));
    return qn_node_infer(squeeze);
}

/* The older form can say that B is one element, or that it has dims of A that follow each other. */
qn_status qn_downgrade_broadcast(qn_node **node)
{
    qn_broadcast_attrs *a = (*node)->attrs;
    const qn_type *x = &(*node)->in[0]->type, *y = &(*node)->in[1]->type;
    const int32_t before = x->rank - y->rank;
    int32_t first = 0, last = y->rank;
    const bool known = x->rank >= 0 && y->rank >= 0 && before >= 0;
    if (known && same_dims(x->dims + before, y->dims, y->rank)) {
        a->broadcast = before > 0;
        return QN_OK;
    }
    while (first < last && y->dims[last - 1].value == 1)
        last--;
    while (first < last && y->dims[first].value == 1)
        first++;
    if (!known || !same_dims(x->dims + before + first, y->dims + first, last - first))
        return qn_node_fail(*node, QN_E_UNSUPPORTED,
                            "before opset 7 the second input must be one element or have dims of "
                            "the first that follow each other");
    a->broadcast = 1;
    if (first == last) /* one element, of any rank */
        return QN_OK;
    a->axis = before + first;
    return last - first < y->rank ? narrow(*node, first, last) : QN_OK;
}

const qn_version_rule qn_broadcast_versions[1] = {
    {7, qn_upgrade_broadcast, qn_downgrade_broadcast}};

qn_status qn_downgrade_one_type(const qn_node *node, int32_t slot, int opset)
{
    if (node->in[slot]->type.dtype == node->in[0]->type.dtype)
        return QN_OK;
    return qn_node_fail(node, QN_E_UNSUPPORTED,
                        "'%s' has another element type than '%s', which it may since opset %d only",
                        node->in[slot]->name, node->in[0]->name, opset);
}

qn_status qn_downgrade_same_shapes(qn_node **node)
{
    const qn_type *first = &(*node)->in[0]->type;
    for (int32_t i = 1; i < (*node)->n_explicit; i++) {
        const qn_type *type = &(*node)->in[i]->type;
        if (first->rank < 0 || type->rank != first->rank ||
            !same_dims(type->dims, first->dims, first->rank))
            return qn_node_fail(*node, QN_E_UNSUPPORTED, "older opsets need inputs of one shape");
    }
    return QN_OK;
}
