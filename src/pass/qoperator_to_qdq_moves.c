/* Operators that move integers: D -> the operator in float -> Q, with the scale that the Q before
 * has. */
#include "ops/infer.h"
#include "ops/versions.h"
#include "pass/qoperator_to_qdq.h"

/* Reads the parameters of the value from a Q before it. */
static qn_status written_by(bool *found, qn_quantized *out, qn_value *value)
{
    *found = false;
    *out = (qn_quantized){.value = value};
    if (!value || !qn_is_quantize(value->producer))
        return QN_OK;
    QN_TRY(qn_qdq_parameters(found, out, value->producer));
    *found = *found && out->params.axis < 0;
    return QN_OK;
}

/* All parts of a Concat come from the same scale; of others the first input is what is moved. */
static qn_status read_moved(bool *found, qn_quantized *out, const qn_node *node)
{
    QN_TRY(written_by(found, out, qn_qoperator_input(node, 0)));
    for (int32_t i = 1; i < node->n_in && *found && node->op == &qn_op_Concat; i++) {
        qn_quantized part;
        QN_TRY(written_by(found, &part, node->in[i]));
        *found = *found && qn_quantized_alike(out, &part);
    }
    return QN_OK;
}

/* Slots of constants that are integers like those which are moved: the value of a Pad, limits of a
 * Clip. */
static bool is_constant_slot(const qn_node *node, int32_t slot)
{
    return (node->op == &qn_op_Pad && slot == 2) ||
           (node->op == &qn_op_Clip && (slot == 1 || slot == 2));
}

static bool only_moves(const qn_node *node)
{
    const bool indices = node->n_out > 1 && node->op == &qn_op_MaxPool && node->out[1];
    if (indices || (!qn_moves_numbers(node) && node->op != &qn_op_Clip))
        return false;
    for (int32_t i = 0; i < node->n_in; i++) {
        if (is_constant_slot(node, i) && node->in[i] && !node->in[i]->data)
            return false;
    }
    return true;
}

/* A Pad without a number fills with the integer 0, whatever that stands for. */
static qn_status set_pad_value(qn_node *node, qn_dtype dtype)
{
    qn_value *zero;
    if (node->op != &qn_op_Pad || qn_qoperator_input(node, 2))
        return QN_OK;
    QN_TRY(qn_value_number(&zero, node->graph, dtype, 0));
    if (node->n_in < 3)
        QN_TRY(qn_node_resize_inputs(node, 3));
    return qn_node_set_input(node, 2, zero);
}

static qn_status make_inputs_float(qn_node *node, const qn_quantized *x)
{
    const int32_t moved = node->op == &qn_op_Concat ? node->n_in : 1;
    QN_TRY(set_pad_value(node, x->value->type.dtype));
    for (int32_t i = 0; i < node->n_in; i++) {
        qn_quantized part = *x;
        qn_value *real = NULL;
        part.value = node->in[i];
        if (!part.value || (i >= moved && !is_constant_slot(node, i)))
            continue;
        QN_TRY(qn_qoperator_dequantize(&real, &part, node));
        if (part.value->data)
            QN_TRY(qn_rewrite_fold(real->producer));
        QN_TRY(qn_node_set_input(node, i, real));
    }
    return QN_OK;
}

static qn_status make_outputs_float(qn_node *node, const qn_quantized *x)
{
    qn_value **integers = qn_arena_array(node->graph->arena, (size_t)node->n_out, sizeof *integers);
    qn_quantized y = *x;
    QN_TRY_ALLOC(node->graph->ctx, integers);
    for (int32_t o = 0; o < node->n_out; o++) {
        integers[o] = node->out[o];
        if (integers[o])
            QN_TRY(qn_qoperator_float_output(node, o, integers[o]));
    }
    QN_TRY(qn_node_infer(node));
    for (int32_t o = 0; o < node->n_out; o++) {
        y.value = integers[o];
        if (y.value)
            QN_TRY(qn_qoperator_quantize(node->out[o], &y));
    }
    return QN_OK;
}

qn_status qn_qoperator_move_to_qdq(bool *done, qn_node *node)
{
    qn_quantized x;
    if (!only_moves(node))
        return QN_OK;
    QN_TRY(read_moved(done, &x, node));
    if (!*done)
        return QN_OK;
    QN_TRY(make_inputs_float(node, &x));
    return make_outputs_float(node, &x);
}
