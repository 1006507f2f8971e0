/* The table of quantization classes, and the reasons why a node of each operator may have to stay
 * float. */
#include "quant/quant_classes.h"

#include "ops/nn_attrs.h"
#include "ops/qrecurrent.h"
#include "ops/resize.h"
#include "pass/rewrite.h"
#include "pass/unary_function.h"

static bool is_constant_or_absent(const qn_node *node, int32_t i)
{
    return i >= node->n_in || !node->in[i] || node->in[i]->data;
}

bool qn_value_is_dequantized(const qn_value *value)
{
    return value && value->producer && value->producer->op == &qn_op_DequantizeLinear;
}

/* Weights that the model has as integers keep their scales, and with them the node as it is. */
static const char *refuse_window(const qn_node *node)
{
    if (!node->in[1]->data)
        return qn_value_is_dequantized(node->in[1]) ? "its weights are integers already"
                                                    : "its weights are computed while running";
    return is_constant_or_absent(node, 2) ? NULL : "its bias is computed while running";
}

static bool is_square(const qn_value *value)
{
    const qn_node *node = value ? value->producer : NULL;
    if (node && node->op == &qn_op_Pow)
        return qn_match_is(node->in[1], 2);
    return node && node->op == &qn_op_Mul && node->in[0] == node->in[1];
}

/* The Add of a root over two squares. */
static bool is_sum_of_squares(const qn_node *node)
{
    const qn_node *root = node->op == &qn_op_Add ? qn_value_only_user(node->out[0]) : NULL;
    return root && root->op == &qn_op_Sqrt && is_square(node->in[0]) && is_square(node->in[1]);
}

bool qn_quant_class_is_norm_part(const qn_node *node)
{
    const qn_node *near = node;
    if (node->op == &qn_op_Sqrt)
        near = node->in[0] ? node->in[0]->producer : NULL;
    else if (node->n_out > 0 && node->out[0] && is_square(node->out[0]))
        near = qn_value_only_user(node->out[0]);
    return near && is_sum_of_squares(near);
}

const char *qn_quant_class_refuse_scaled(const qn_node *gemm)
{
    const qn_gemm_attrs *a = gemm->attrs;
    const bool has_c = gemm->n_in > 2 && gemm->in[2];
    return a->transA || a->alpha != 1 || (has_c && a->beta != 1)
               ? "it scales or transposes its first input"
               : NULL;
}

const char *qn_quant_class_refuse_constants(const qn_node *node)
{
    for (int32_t i = 0; i < QN_MIN(node->n_in, 3); i++) {
        if (node->in[i] && node->in[i]->data && !qn_tensor_is_finite(node->in[i]->data))
            return "its constants are not finite";
    }
    return NULL;
}

static const char *refuse_gemm(const qn_node *node)
{
    const qn_gemm_attrs *a = node->attrs;
    const char *why = qn_quant_class_refuse_scaled(node);
    if (!why)
        why = refuse_window(node);
    if (why || node->n_in < 3 || !node->in[2])
        return why;
    const int64_t filters = node->in[1]->data->dims[a->transB ? 0 : 1];
    const qn_tensor *c = node->in[2]->data;
    const bool is_row = c->rank > 0 && c->dims[c->rank - 1] == filters;
    return qn_tensor_count(c) == filters && is_row ? NULL : "what it adds is no row of biases";
}

static const char *refuse_matmul(const qn_node *node)
{
    if (node->in[0]->data)
        return "its first input is a constant";
    const qn_tensor *w = node->in[1]->data;
    return w && w->rank < 2 ? "its second input is a vector" : NULL;
}

static const char *refuse_clip(const qn_node *node)
{
    return is_constant_or_absent(node, 1) && is_constant_or_absent(node, 2)
               ? NULL
               : "its limits are computed while running";
}

/* The pass canonicalize-elements makes Adds of others. */
static const char *refuse_sum(const qn_node *node)
{
    return node->n_in == 2 ? NULL : "it adds more than two";
}

static const char *refuse_prelu(const qn_node *node)
{
    return node->in[1]->data ? NULL : "its slopes are computed while running";
}

static const char *refuse_norm(const qn_node *node)
{
    if ((node->n_out > 1 && node->out[1]) || (node->n_out > 2 && node->out[2]))
        return "its statistics are wanted too";
    return is_constant_or_absent(node, 1) && is_constant_or_absent(node, 2)
               ? NULL
               : "its weights are computed while running";
}

static const char *refuse_resize(const qn_node *node)
{
    const qn_resize_attrs *a = node->attrs;
    return a->coordinate_transformation_mode == QN_COORD_TF_CROP_AND_RESIZE
               ? "it puts a number of its own beside the picture"
               : NULL;
}

/* Padding with zeros needs nothing; other numbers may lie outside the integers' range. */
static const char *refuse_pad(const qn_node *node)
{
    const qn_pad_attrs *a = node->attrs;
    const bool plain = node->n_in < 3 || !node->in[2] || qn_match_is(node->in[2], 0);
    return a->mode == QN_PAD_CONSTANT && !plain ? "it pads with a number that is not 0" : NULL;
}

static const char *refuse_pool(const qn_node *node)
{
    return node->n_out > 1 && node->out[1] ? "its indices are wanted too" : NULL;
}

/* QLinearAveragePool has none. */
static const char *refuse_dilated(const qn_node *node)
{
    const qn_window_attrs *a = node->attrs;
    for (size_t d = 0; d < a->dilations.count; d++) {
        if (a->dilations.at[d] != 1)
            return "its windows have gaps";
    }
    return NULL;
}

bool qn_quant_class_breaks_in_ort(const qn_node *node)
{
    if (node->op == &qn_op_Resize)
        return ((const qn_resize_attrs *)node->attrs)->mode == QN_RESIZE_CUBIC;
    return node->op == &qn_op_AveragePool && refuse_dilated(node);
}

static const char *refuse_pow(const qn_node *node)
{
    return qn_unary_function_slot(node) == 0 ? NULL : "its exponent is not one constant number";
}

/* What has no bound does not fit the fixed units of a cell. */
static const char *refuse_recurrent(const qn_node *node)
{
    const qn_recurrent_attrs *a = node->attrs;
    for (int32_t i = 1; i <= 2; i++) {
        if (!node->in[i]->data)
            return "its weights are computed while running";
    }
    if (!is_constant_or_absent(node, 3) || !is_constant_or_absent(node, 7))
        return "its bias is computed while running";
    for (size_t i = 0; i < a->activations.count && node->op != &qn_op_RNN; i++) {
        qn_activation f;
        if (!qn_activation_of(&f, a, i, QN_SQUASH_TANH) || !qn_activation_is_bounded(&f))
            return "an activation has no bound";
    }
    return qn_quant_class_refuse_constants(node);
}

static const char *refuse_always(const qn_node *node)
{
    (void)node;
    return "it fills up with numbers of its own";
}

static const qn_quant_class_row classes[] = {
    {&qn_op_Conv, QN_CLASS_MAC, 1, 0, refuse_window},
    {&qn_op_ConvTranspose, QN_CLASS_MAC, 1, 0, refuse_window},
    {&qn_op_Gemm, QN_CLASS_MAC, 1, 0, refuse_gemm},
    {&qn_op_MatMul, QN_CLASS_MAC, 2, 0, refuse_matmul},
    {&qn_op_Relu, QN_CLASS_CLIP, 1, 0, NULL},
    {&qn_op_Clip, QN_CLASS_CLIP, 1, 0, refuse_clip},
    {&qn_op_Add, QN_CLASS_ELEMENTWISE, 2, QN_CAN_ADD, NULL},
    {&qn_op_Sub, QN_CLASS_ELEMENTWISE, 2, QN_CAN_ADD, NULL},
    {&qn_op_Mul, QN_CLASS_ELEMENTWISE, 2, QN_CAN_MUL, NULL},
    {&qn_op_Sum, QN_CLASS_ELEMENTWISE, 0, QN_CAN_ADD, refuse_sum},
    {&qn_op_AveragePool, QN_CLASS_ELEMENTWISE, 1, QN_CAN_POOL, refuse_dilated},
    {&qn_op_GlobalAveragePool, QN_CLASS_ELEMENTWISE, 1, QN_CAN_POOL, NULL},
    {&qn_op_ReduceMean, QN_CLASS_ELEMENTWISE, 1, QN_CAN_MEAN, NULL},
    {&qn_op_Softmax, QN_CLASS_ELEMENTWISE, 1, QN_CAN_SOFTMAX, NULL},
    {&qn_op_LayerNormalization, QN_CLASS_ELEMENTWISE, 1, QN_CAN_NORM, refuse_norm},
    {&qn_op_LeakyRelu, QN_CLASS_ELEMENTWISE, 1, QN_CAN_SIGMOID, NULL},
    {&qn_op_PRelu, QN_CLASS_ELEMENTWISE, 1, QN_CAN_PRELU, refuse_prelu},
    {&qn_op_Pow, QN_CLASS_ELEMENTWISE, 1, QN_CAN_POW, refuse_pow},
    {&qn_op_Sigmoid, QN_CLASS_ELEMENTWISE, 1, QN_CAN_SIGMOID, NULL},
    {&qn_op_Concat, QN_CLASS_CONCAT, 0, QN_CAN_CONCAT, NULL},
    {&qn_op_GRU, QN_CLASS_RECURRENT, 3, QN_CAN_RECURRENT, refuse_recurrent},
    {&qn_op_LSTM, QN_CLASS_RECURRENT, 3, QN_CAN_RECURRENT, refuse_recurrent},
    {&qn_op_RNN, QN_CLASS_RECURRENT, 3, QN_CAN_RECURRENT, refuse_recurrent},
    {&qn_op_Resize, QN_CLASS_ELEMENTWISE, 1, QN_CAN_RESIZE, refuse_resize},
    {&qn_op_Pad, QN_CLASS_PASS_THROUGH, 1, QN_CAN_MOVE, refuse_pad},
    {&qn_op_MaxPool, QN_CLASS_PASS_THROUGH, 1, QN_CAN_MOVE, refuse_pool},
    {&qn_op_CenterCropPad, QN_CLASS_PASS_THROUGH, 1, QN_CAN_MOVE, refuse_always},
};
/* Operators without a row of their own. */
static const qn_quant_class_row moving = {NULL, QN_CLASS_PASS_THROUGH, 1, QN_CAN_MOVE, NULL};
static const qn_quant_class_row function = {NULL, QN_CLASS_ELEMENTWISE, 1, QN_CAN_TABLE, NULL};

const qn_quant_class_row *qn_quant_class_of(const qn_node *node)
{
    const bool moves = qn_moves_numbers(node) && node->n_in > 0;
    for (size_t i = 0; i < QN_COUNT_OF(classes); i++) {
        if (classes[i].op == node->op && !(moves && classes[i].quant_class == QN_CLASS_ELEMENTWISE))
            return &classes[i];
    }
    if (moves)
        return &moving;
    return qn_unary_function_slot(node) == 0 ? &function : NULL;
}

qn_quant_class qn_rule_quant_class(unsigned *can, int32_t *n_data, const qn_node *node)
{
    const qn_quant_class_row *row = qn_quant_class_of(node);
    *can = row ? row->can : 0;
    *n_data = row ? (row->n_data ? row->n_data : node->n_in) : 0;
    return row ? row->quant_class : QN_CLASS_FLOAT;
}
