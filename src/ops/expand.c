/* Functions written as smaller operators, for opsets that lack them. */
#include "ops/expand.h"

#include <math.h>

#include "ops/infer.h"
#include "ops/nn_attrs.h"
#include "ops/resize.h"
#include "ops/tensor_attrs.h"
#include "ops/versions.h"

qn_status qn_emit(qn_value **out, qn_node *place, const qn_op *op, qn_value *a, qn_value *b)
{
    const qn_node_spec spec = {.op = op, .before = place, .in = {a, b}, .n_in = b ? 2 : 1};
    qn_node *node;
    QN_TRY(qn_node_build(&node, place->graph, &spec));
    *out = node->out[0];
    return qn_node_infer(node);
}

qn_status qn_emit_number(qn_value **out, qn_node *place, const qn_op *op, qn_value *a,
                         double number)
{
    qn_value *constant;
    QN_TRY(qn_value_number(&constant, place->graph, a->type.dtype, number));
    return qn_emit(out, place, op, a, constant);
}

/* ---- One function per operator: *out = the same from older operators ------------------------- */

/* x * sigmoid(alpha * x) */
static qn_status swish(qn_value **out, qn_node *node)
{
    const double alpha = (double)((const qn_activation_attrs *)node->attrs)->alpha;
    qn_value *x = node->in[0], *gate = x;
    if (alpha != 1)
        QN_TRY(qn_emit_number(&gate, node, &qn_op_Mul, x, alpha));
    QN_TRY(qn_emit(&gate, node, &qn_op_Sigmoid, gate, NULL));
    return qn_emit(out, node, &qn_op_Mul, x, gate);
}

/* x * hardsigmoid(x; 1/6, 1/2) */
static qn_status hard_swish(qn_value **out, qn_node *node)
{
    qn_value *x = node->in[0], *gate;
    QN_TRY(qn_emit(&gate, node, &qn_op_HardSigmoid, x, NULL));
    qn_activation_attrs *a = gate->producer->attrs;
    a->alpha = 1.0f / 6;
    a->beta = 0.5f;
    return qn_emit(out, node, &qn_op_Mul, x, gate);
}

/* x * tanh(softplus(x)) */
static qn_status mish(qn_value **out, qn_node *node)
{
    qn_value *x = node->in[0], *gate;
    QN_TRY(qn_emit(&gate, node, &qn_op_Softplus, x, NULL));
    QN_TRY(qn_emit(&gate, node, &qn_op_Tanh, gate, NULL));
    return qn_emit(out, node, &qn_op_Mul, x, gate);
}

/* x / 2 * (1 + erf(x / sqrt(2))), or with tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)) for erf(..) */
static qn_status gelu(qn_value **out, qn_node *node)
{
    const bool tanh_form = ((const qn_gelu_attrs *)node->attrs)->approximate == QN_GELU_TANH;
    qn_value *x = node->in[0], *inner = x, *half;
    if (tanh_form) {
        QN_TRY(qn_emit(&inner, node, &qn_op_Mul, x, x));
        QN_TRY(qn_emit(&inner, node, &qn_op_Mul, inner, x));
        QN_TRY(qn_emit_number(&inner, node, &qn_op_Mul, inner, 0.044715));
        QN_TRY(qn_emit(&inner, node, &qn_op_Add, inner, x));
    }
    const double scale = tanh_form ? 0.79788456080286535588 : 0.70710678118654752440;
    QN_TRY(qn_emit_number(&inner, node, &qn_op_Mul, inner, scale));
    QN_TRY(qn_emit(&inner, node, tanh_form ? &qn_op_Tanh : &qn_op_Erf, inner, NULL));
    QN_TRY(qn_emit_number(&inner, node, &qn_op_Add, inner, 1));
    QN_TRY(qn_emit_number(&half, node, &qn_op_Mul, x, 0.5));
    return qn_emit(out, node, &qn_op_Mul, half, inner);
}

/* mean(x) over the axes from `first` on */
static qn_status mean_from(qn_value **out, qn_node *node, qn_value *x, int64_t first)
{
    int64_t axes[QN_MAX_RANK];
    qn_value *list;
    const int32_t rank = x->type.rank;
    for (int64_t d = first; d < rank; d++)
        axes[d - first] = d;
    QN_TRY(qn_value_ints(&list, node->graph, axes, (size_t)(rank - first)));
    return qn_emit(out, node, &qn_op_ReduceMean, x, list);
}

/* d / sqrt(mean(d^2) + epsilon) * scale + bias with d = x - mean(x) */
static qn_status layer_norm(qn_value **out, qn_node *node)
{
    const qn_norm_attrs *a = node->attrs;
    qn_value *x = node->in[0], *centred, *spread;
    const int64_t first = a->axis < 0 ? a->axis + x->type.rank : a->axis;
    if (qn_node_is_read(node, 1) || qn_node_is_read(node, 2))
        return qn_node_fail(node, QN_E_UNSUPPORTED,
                            "before opset 17 its outputs Mean and InvStdDev have no form");
    if (x->type.rank < 1 || x->type.dtype != QN_FLOAT32)
        return qn_node_fail(node, QN_E_UNSUPPORTED,
                            "before opset 17 only float32 of known rank has a form");
    QN_TRY(mean_from(&centred, node, x, first));
    QN_TRY(qn_emit(&centred, node, &qn_op_Sub, x, centred));
    /* Other engines know the normalization again by its Pow. */
    QN_TRY(qn_emit_number(&spread, node, &qn_op_Pow, centred, 2));
    QN_TRY(mean_from(&spread, node, spread, first));
    QN_TRY(qn_emit_number(&spread, node, &qn_op_Add, spread, (double)a->epsilon));
    QN_TRY(qn_emit(&spread, node, &qn_op_Sqrt, spread, NULL));
    QN_TRY(qn_emit(out, node, &qn_op_Div, centred, spread));
    QN_TRY(qn_emit(out, node, &qn_op_Mul, *out, node->in[1]));
    if (node->n_in > 2 && node->in[2])
        QN_TRY(qn_emit(out, node, &qn_op_Add, *out, node->in[2]));
    return QN_OK;
}

/* x with its dims in the order of `perm` */
static qn_status transposed(qn_value **out, qn_node *node, qn_value *x, const int64_t *perm)
{
    QN_TRY(qn_emit(out, node, &qn_op_Transpose, x, NULL));
    qn_node *fresh = (*out)->producer;
    QN_TRY(qn_ints_copy(&((qn_transpose_attrs *)fresh->attrs)->perm, node->graph, perm, 4));
    return qn_node_infer(fresh);
}

/* [batch, length, heads * size] as [batch, heads, length, size]; four dims stay as they are */
static qn_status split_heads(qn_value **out, qn_node *node, qn_value *x, int64_t heads)
{
    static const int64_t heads_first[] = {0, 2, 1, 3};
    const int64_t shape[] = {0, 0, heads, -1};
    qn_value *list;
    *out = x;
    if (x->type.rank == 4)
        return QN_OK;
    QN_TRY(qn_value_ints(&list, node->graph, shape, 4));
    QN_TRY(qn_emit(out, node, &qn_op_Reshape, x, list));
    return transposed(out, node, *out, heads_first);
}

/* softmax(Q K' * scale) V; masks, caches, windows and shared heads have no form here */
static qn_status attention(qn_value **out, qn_node *node)
{
    static const int64_t turned[] = {0, 1, 3, 2}, length_first[] = {0, 2, 1, 3};
    const qn_attention_attrs *a = node->attrs;
    const bool three = node->in[0]->type.rank == 3;
    const int64_t joined[] = {0, 0, -1};
    qn_value *q, *k, *v, *list;
    bool plain = !a->is_causal && a->softcap == 0 && a->left_window_size < 0 &&
                 a->right_window_size < 0 && a->q_num_heads == a->kv_num_heads;
    for (int32_t i = 3; i < node->n_explicit; i++)
        plain = plain && !node->in[i];
    for (int32_t o = 1; o < node->n_out; o++)
        plain = plain && !node->out[o];
    if (!plain || node->in[0]->type.dtype != QN_FLOAT32 || node->in[0]->type.rank < 3)
        return qn_node_fail(node, QN_E_UNSUPPORTED,
                            "before opset 23 only attention without masks and caches has a form");
    QN_TRY(split_heads(&q, node, node->in[0], a->q_num_heads));
    QN_TRY(split_heads(&k, node, node->in[1], a->kv_num_heads));
    QN_TRY(split_heads(&v, node, node->in[2], a->kv_num_heads));
    const int64_t size = q->type.dims[3].value;
    if (a->scale == 0 && size < 1)
        return qn_node_fail(node, QN_E_UNSUPPORTED, "the size of a head is not known");
    QN_TRY(transposed(&k, node, k, turned));
    QN_TRY(qn_emit(&q, node, &qn_op_MatMul, q, k));
    QN_TRY(qn_emit_number(&q, node, &qn_op_Mul, q,
                          a->scale != 0 ? (double)a->scale : 1 / sqrt((double)size)));
    QN_TRY(qn_emit(&q, node, &qn_op_Softmax, q, NULL));
    QN_TRY(qn_emit(out, node, &qn_op_MatMul, q, v));
    if (!three)
        return QN_OK;
    QN_TRY(transposed(out, node, *out, length_first));
    QN_TRY(qn_value_ints(&list, node->graph, joined, 3));
    return qn_emit(out, node, &qn_op_Reshape, *out, list);
}

static const struct {
    const qn_op *op;
    qn_status (*expand)(qn_value **out, qn_node *node);
} rows[] = {
    {&qn_op_Attention, attention},
    {&qn_op_Gelu, gelu},
    {&qn_op_HardSwish, hard_swish},
    {&qn_op_LayerNormalization, layer_norm},
    {&qn_op_Mish, mish},
    {&qn_op_Resize, qn_upsample_of_resize},
    {&qn_op_Swish, swish},
};

/* The last of the fresh nodes takes over the value itself, and with it name and readers. */
static qn_status hand_over(qn_node **node, qn_value *result)
{
    qn_value *value = (*node)->out[0];
    qn_node *last = result->producer;
    (*node)->out[0] = NULL;
    qn_node_set_output(last, 0, value);
    qn_node_remove(*node);
    *node = NULL;
    return QN_OK;
}

qn_status qn_node_expand(qn_node **node)
{
    for (size_t i = 0; i < QN_COUNT_OF(rows); i++) {
        qn_value *result;
        if (rows[i].op != (*node)->op)
            continue;
        QN_TRY(rows[i].expand(&result, *node));
        return hand_over(node, result);
    }
    return qn_node_fail(*node, QN_E_UNSUPPORTED,
                        "the operator came with opset %d and has no form in older ones",
                        (*node)->op->since);
}
