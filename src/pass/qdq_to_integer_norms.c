/* Operators that look at many numbers at once. */
#include "ops/eval.h"
#include "ops/qlinear.h"
#include "ops/resize.h"
#include "pass/qdq_to_integer.h"

qn_status qn_qdq_softmax(bool *done, qn_node *node)
{
    const int32_t rank = node->in[0]->type.rank;
    qn_qdq_unary p;
    if (rank < 1)
        return QN_OK;
    QN_TRY(qn_qdq_find_unary(done, &p, node));
    const qn_qsoftmax_attrs attrs = {.axis = qn_softmax_axis(node->attrs, rank), .opset = 13};
    return *done ? qn_qdq_replace_unary(node, &p, &qn_op_ms_QLinearSoftmax, &attrs, sizeof attrs)
                 : QN_OK;
}

/* The axes are an attribute of the integer operator. */
static bool read_axes(qn_reduce_attrs *out, const qn_node *node, int64_t *axes)
{
    const qn_tensor *given = node->n_in > 1 && node->in[1] ? node->in[1]->data : NULL;
    *out = *(const qn_reduce_attrs *)node->attrs;
    out->axes = (qn_ints){0};
    if (node->n_in < 2 || !node->in[1])
        return !out->noop_with_empty_axes;
    if (!given || given->rank != 1 || given->dims[0] < 1 || given->dims[0] > QN_MAX_RANK)
        return false;
    for (int64_t i = 0; i < given->dims[0]; i++)
        axes[i] = qn_tensor_i64(given, i);
    out->axes = (qn_ints){axes, (size_t)given->dims[0]};
    return true;
}

qn_status qn_qdq_reduce_mean(bool *done, qn_node *node)
{
    int64_t *axes = qn_arena_array(node->graph->arena, QN_MAX_RANK, sizeof *axes);
    qn_reduce_attrs attrs;
    qn_qdq_unary p;
    QN_TRY_ALLOC(node->graph->ctx, axes);
    if (!read_axes(&attrs, node, axes))
        return QN_OK;
    QN_TRY(qn_qdq_find_unary(done, &p, node));
    return *done ? qn_qdq_replace_unary(node, &p, &qn_op_ms_QLinearReduceMean, &attrs, sizeof attrs)
                 : QN_OK;
}

static bool is_float_constant(const qn_value *value)
{
    return value && value->data && value->data->dtype == QN_FLOAT32;
}

qn_status qn_qdq_layer_norm(bool *done, qn_node *node)
{
    qn_value *shift = node->n_in > 2 ? node->in[2] : NULL;
    qn_qdq_unary p;
    for (int32_t o = 1; o < node->n_out; o++) {
        if (node->out[o])
            return QN_OK;
    }
    if (!is_float_constant(node->in[1]) || (shift && !is_float_constant(shift)))
        return QN_OK;
    QN_TRY(qn_qdq_find_unary(done, &p, node));
    if (!*done)
        return QN_OK;
    qn_value *const in[7] = {p.x.value, p.x.scale, p.x.zero, node->in[1],
                             shift,     p.y.scale, p.y.zero};
    return qn_qdq_replace(node, &p.y,
                          &(qn_integer_node){&qn_op_qn_QLayerNormalization, in, 7, node->attrs,
                                             sizeof(qn_norm_attrs)});
}

qn_status qn_qdq_resize(bool *done, qn_node *node)
{
    qn_qdq_unary p;
    QN_TRY(qn_qdq_find_unary(done, &p, node));
    if (!*done)
        return QN_OK;
    qn_value *in[8] = {p.x.value, p.x.scale, p.x.zero, p.y.scale, p.y.zero};
    for (int32_t i = 1; i < node->n_in && i < 4; i++)
        in[4 + i] = node->in[i];
    return qn_qdq_replace(node, &p.y,
                          &(qn_integer_node){&qn_op_qn_QLinearResize, in, 4 + node->n_in,
                                             node->attrs, sizeof(qn_resize_attrs)});
}
