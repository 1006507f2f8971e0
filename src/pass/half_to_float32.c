/* The pass half-to-float32: float16 and bfloat16 are formats of storage. Nodes that read them
 * compute in float32, with a Cast where a value is read or written by other nodes. Between two such
 * nodes nothing is rounded. */
#include "ops/infer.h"
#include "ops/nn_attrs.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

#define HALVES (QN_SET(QN_FLOAT16) | QN_SET(QN_BFLOAT16))

static bool is_half(const qn_value *value)
{
    return value && (qn_type_set(&value->type) & HALVES);
}

static bool all_tensors(qn_value *const *values, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (values[i] && values[i]->type.kind != QN_TYPE_TENSOR)
            return false;
    }
    return true;
}

/* Where it takes a half it takes a float32. */
static bool takes_floats(const qn_op *op)
{
    for (int i = 0; i < op->n_in; i++) {
        if ((op->in[i].types & HALVES) && !(op->in[i].types & QN_SET(QN_FLOAT32)))
            return false;
    }
    return true;
}

/* Casts round, as they are asked to. A table from which rows are taken (Gather) stays as small as
 * it is. */
static bool can_use_float32(const qn_node *node)
{
    const qn_op *op = node->op;
    const bool picks = (op->flags & QN_OP_MOVES) && node->in[0] && node->in[0]->data;
    bool found = false;
    for (int32_t i = 0; i < node->n_in; i++)
        found = found || is_half(node->in[i]);
    return found && op != &qn_op_Cast && op != &qn_op_CastLike && !picks &&
           !(op->flags & QN_OP_RANDOM) && !qn_node_subgraph(node, 0) && takes_floats(op) &&
           all_tensors(node->in, node->n_in) && all_tensors(node->out, node->n_out);
}

/* ---- Casts at the borders -----------------------------------------------------------------------
 * The mark of a half is 1 + the place, among the graph's values, of the float32 that stands for it;
 * 0: none. */

static qn_status finish_cast(qn_node *cast, qn_dtype to)
{
    ((qn_cast_attrs *)cast->attrs)->to = to;
    return qn_node_infer(cast);
}

static qn_status cast_input(qn_node *node, int32_t slot)
{
    qn_value *value = node->in[slot];
    const qn_node_spec spec = {.op = &qn_op_Cast, .before = node, .in = {value}, .n_in = 1};
    if (!value->mark) {
        qn_node *cast;
        QN_TRY(qn_node_build(&cast, node->graph, &spec));
        QN_TRY(finish_cast(cast, QN_FLOAT32));
        value->mark = (uint32_t)node->graph->n_values;
    }
    return qn_node_set_input(node, slot, node->graph->values[value->mark - 1]);
}

/* The name stays with what the node computes, unless callers know it as an output's. */
static qn_status cast_output(qn_node *node, int32_t slot, qn_dtype half)
{
    qn_graph *graph = node->graph;
    qn_value *value = node->out[slot], *wide;
    qn_node *cast;
    const char *name = value->name;
    QN_TRY(qn_value_create(&wide, graph, name));
    value->mark = (uint32_t)graph->n_values;
    wide->type = value->type;
    QN_TRY(qn_node_create(&cast, graph, &qn_op_Cast, node->next));
    QN_TRY(qn_node_set_input(cast, 0, wide));
    qn_node_set_output(node, slot, wide);
    qn_node_set_output(cast, 0, value);
    if (!value->is_output) {
        QN_TRY(qn_value_rename(value, name));
        QN_TRY(qn_value_rename(wide, name));
    }
    return finish_cast(cast, half);
}

/* What an output is is known by inference: an attribute may fix it (DequantizeLinear's
 * output_dtype). */
static qn_status use_float32(qn_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        if (is_half(node->in[i]))
            QN_TRY(cast_input(node, i));
    }
    for (int32_t o = 0; o < node->n_out; o++) {
        if (node->out[o])
            node->out[o]->mark = is_half(node->out[o]) ? (uint32_t)node->out[o]->type.dtype : 0;
    }
    QN_TRY(qn_node_infer(node));
    for (int32_t o = 0; o < node->n_out; o++) {
        qn_value *value = node->out[o];
        const qn_dtype half = value ? (qn_dtype)value->mark : QN_UNDEFINED;
        if (!half)
            continue;
        value->mark = 0;
        if (value->type.dtype == QN_FLOAT32)
            QN_TRY(cast_output(node, o, half));
    }
    return QN_OK;
}

/* ---- The pass -------------------------------------------------------------------------------- */

/* Halves that nobody reads any more. */
static void remove_unread(qn_graph *graph)
{
    for (qn_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        if (node->op == &qn_op_Cast && node->out[0] && node->out[0]->mark && qn_node_is_dead(node))
            qn_node_remove(node);
    }
}

static qn_status half_to_float32(qn_pass_context *self)
{
    for (size_t i = 0; i < self->graph->n_values; i++)
        self->graph->values[i]->mark = 0;
    for (qn_node *node = self->graph->first, *next; node; node = next) {
        next = node->next;
        if (!can_use_float32(node))
            continue;
        QN_TRY(use_float32(node));
        self->changes++;
    }
    if (self->changes)
        remove_unread(self->graph);
    return QN_OK;
}

const qn_pass qn_pass_half_to_float32 = {
    "half-to-float32", "computes in float32 what is stored as float16 or bfloat16",
    half_to_float32};
