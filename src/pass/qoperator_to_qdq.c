/* The pass qoperator-to-qdq: operators on integers (QOperator files) become float operators between
 * D and Q.
 *
 *   QLinearConv(x, ..., y)   D(x), D(w), D(bias) -> Conv -> Q = y, with the same scales
 *   MaxPool(x) of integers   D(x) -> MaxPool -> Q, with the scale of the Q before it
 *
 * An operator that can do more than its float version (channels last, a scale per row) stays. */
#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/qlinear.h"
#include "ops/versions.h"
#include "pass/qoperator_to_qdq.h"

/* ---- Operators with scales of their own ------------------------------------------------------ */

/* Attributes of the float operator, and what it reads besides. */
typedef qn_status attrs_fn(qn_node *fresh, const qn_node *node);

typedef struct qoperator_row {
    const qn_op *from, *to;
    /* Slot of the first (integers, scale, zero point) */
    int32_t first;
    /* How many of them; 0: all that there are */
    int32_t parts;
    /* Slot of the result's scale */
    int32_t y;
    /* Its slot; -1: none */
    int32_t bias;
    attrs_fn *attrs;
    /* Whether the float operator can express the node; NULL: it always can. */
    bool (*fits)(const qn_node *node);
} qoperator_row;

static qn_status same_attrs(qn_node *fresh, const qn_node *node)
{
    memcpy(fresh->attrs, node->attrs, fresh->op->attrs_size);
    return QN_OK;
}

static qn_status no_attrs(qn_node *fresh, const qn_node *node)
{
    (void)fresh;
    (void)node;
    return QN_OK;
}

static qn_status gemm_attrs(qn_node *fresh, const qn_node *node)
{
    const qn_gemm_attrs *from = node->attrs;
    qn_gemm_attrs *to = fresh->attrs;
    to->alpha = from->alpha;
    to->transA = from->transA;
    to->transB = from->transB;
    return QN_OK;
}

static qn_status pool_attrs(qn_node *fresh, const qn_node *node)
{
    *(qn_window_attrs *)fresh->attrs = ((const qn_qpool_attrs *)node->attrs)->window;
    return QN_OK;
}

static bool is_channels_first(const qn_node *node)
{
    return !((const qn_qpool_attrs *)node->attrs)->channels_last;
}

static qn_status softmax_attrs(qn_node *fresh, const qn_node *node)
{
    ((qn_softmax_attrs *)fresh->attrs)->axis = ((const qn_qsoftmax_attrs *)node->attrs)->axis;
    return QN_OK;
}

/* Before opset 13 Softmax covers all dimensions from its axis on. */
static bool is_over_one_axis(const qn_node *node)
{
    const qn_qsoftmax_attrs *attrs = node->attrs;
    const int32_t rank = node->in[0]->type.rank;
    return attrs->opset >= 13 || attrs->axis == -1 || (rank > 0 && attrs->axis == rank - 1);
}

static qn_status reduce_attrs(qn_node *fresh, const qn_node *node)
{
    const qn_reduce_attrs *attrs = node->attrs;
    qn_value *axes;
    ((qn_reduce_attrs *)fresh->attrs)->keepdims = attrs->keepdims;
    if (!attrs->axes.count)
        return QN_OK;
    QN_TRY(qn_value_ints(&axes, node->graph, attrs->axes.at, attrs->axes.count));
    QN_TRY(qn_node_resize_inputs(fresh, fresh->n_in + 1));
    return qn_node_set_input(fresh, fresh->n_in - 1, axes);
}

static const qoperator_row rows[] = {
    {&qn_op_QLinearConv, &qn_op_Conv, 0, 2, 6, 8, same_attrs, NULL},
    {&qn_op_QLinearMatMul, &qn_op_MatMul, 0, 2, 6, -1, no_attrs, NULL},
    {&qn_op_ms_QGemm, &qn_op_Gemm, 0, 2, 7, 6, gemm_attrs, NULL},
    {&qn_op_ms_QLinearAdd, &qn_op_Add, 0, 2, 6, -1, no_attrs, NULL},
    {&qn_op_ms_QLinearMul, &qn_op_Mul, 0, 2, 6, -1, no_attrs, NULL},
    {&qn_op_ms_QLinearConcat, &qn_op_Concat, 2, 0, 0, -1, same_attrs, NULL},
    {&qn_op_ms_QLinearAveragePool, &qn_op_AveragePool, 0, 1, 3, -1, pool_attrs, is_channels_first},
    {&qn_op_ms_QLinearGlobalAveragePool, &qn_op_GlobalAveragePool, 0, 1, 3, -1, no_attrs,
     is_channels_first},
    {&qn_op_ms_QLinearLeakyRelu, &qn_op_LeakyRelu, 0, 1, 3, -1, same_attrs, NULL},
    {&qn_op_ms_QLinearReduceMean, &qn_op_ReduceMean, 0, 1, 3, -1, reduce_attrs, NULL},
    {&qn_op_ms_QLinearSigmoid, &qn_op_Sigmoid, 0, 1, 3, -1, no_attrs, NULL},
    {&qn_op_ms_QLinearSoftmax, &qn_op_Softmax, 0, 1, 3, -1, softmax_attrs, is_over_one_axis},
};

/* Along which axis several scales of a part stand; -1: none can. */
static int32_t axis_of(const qn_node *node, const qn_value *integers, int32_t part)
{
    if (part != 1)
        return -1;
    if (node->op == &qn_op_QLinearConv)
        return 0;
    if (node->op == &qn_op_ms_QGemm)
        return ((const qn_gemm_attrs *)node->attrs)->transB ? 0 : 1;
    return node->op == &qn_op_QLinearMatMul ? integers->type.rank - 1 : -1;
}

/* Scale and zero point are one number, or one for each index of the part's axis. */
static bool read_part(qn_quantized *out, const qn_node *node, int32_t slot, int32_t part)
{
    out->value = qn_qoperator_input(node, slot);
    out->scale = qn_qoperator_input(node, slot + 1);
    out->zero = qn_qoperator_input(node, slot + 2);
    out->params.axis = -1;
    const qn_type *scale = out->scale ? &out->scale->type : NULL;
    const qn_type *zero = out->zero ? &out->zero->type : scale;
    if (!out->value || !scale || scale->rank < 0 || scale->rank > 1 || zero->rank < 0 ||
        zero->rank > 1)
        return false;
    if (qn_qoperator_count(out->scale) == 1 && qn_qoperator_count(out->zero) == 1)
        return true;
    out->params.axis = axis_of(node, out->value, part);
    return out->params.axis >= 0;
}

/* [N] or [1, N]. */
static bool is_row(const qn_type *type)
{
    return type->rank == 1 || (type->rank == 2 && type->dims[0].value == 1);
}

/* Biases are in units of alpha * sx * sw. */
static qn_status read_bias(bool *done, qn_quantized *out, const qn_node *node,
                           const qn_quantized *parts)
{
    const qn_tensor *x = parts[0].scale->data, *w = parts[1].scale->data;
    const double alpha =
        node->op == &qn_op_ms_QGemm ? (double)((const qn_gemm_attrs *)node->attrs)->alpha : 1;
    qn_tensor *units;
    *done = x && w && out->value->data && out->value->type.dtype == QN_INT32 &&
            is_row(&out->value->type);
    if (!*done)
        return QN_OK;
    const int64_t count = qn_tensor_count(w);
    const qn_type type = qn_type_tensor(QN_FLOAT32, count > 1 ? 1 : 0, &count);
    QN_TRY(qn_tensor_create(&units, node->graph->ctx, node->graph->arena, &type));
    for (int64_t i = 0; i < count; i++)
        ((float *)units->data)[i] = (float)(alpha * qn_tensor_f64(x, 0) * qn_tensor_f64(w, i));
    out->params.axis = count > 1 ? out->value->type.rank - 1 : -1;
    out->zero = NULL;
    return qn_value_constant(&out->scale, node->graph, out->value->name, units);
}

/* Reads all inputs of the float operator; *count 0: floats cannot express the node. */
static qn_status read_parts(qn_quantized **out, int32_t *count, const qn_node *node,
                            const qoperator_row *row)
{
    const int32_t n = row->parts ? row->parts : (node->n_in - row->first) / 3;
    qn_quantized *parts = qn_arena_array(node->graph->arena, (size_t)n + 1, sizeof *parts);
    bool done = true;
    QN_TRY_ALLOC(node->graph->ctx, parts);
    *out = parts;
    for (int32_t i = 0; i < n && done; i++)
        done = read_part(&parts[i], node, row->first + 3 * i, i);
    parts[n].value = qn_qoperator_input(node, row->bias);
    *count = parts[n].value ? n + 1 : n;
    if (done && parts[n].value)
        QN_TRY(read_bias(&done, &parts[n], node, parts));
    *count = done ? *count : 0;
    return QN_OK;
}

/* The float node in the place of the other, and a Q behind it where that one had a scale for its
 * result. */
static qn_status take_place(qn_node *fresh, qn_node *node, const qoperator_row *row)
{
    qn_quantized y = {.value = node->out[0],
                      .scale = qn_qoperator_input(node, row->y),
                      .zero = qn_qoperator_input(node, row->y + 1),
                      .params = {.axis = -1}};
    const char *name = node->name;
    if (!y.scale)
        return qn_rewrite_finish(fresh, node);
    if (!y.zero) /* its type is that of the integers */
        QN_TRY(qn_value_number(&y.zero, node->graph, y.value->type.dtype, 0));
    node->out[0] = NULL;
    qn_node_remove(node);
    QN_TRY(qn_node_rename(fresh, name));
    QN_TRY(qn_qoperator_float_output(fresh, 0, y.value));
    QN_TRY(qn_node_infer(fresh));
    return qn_qoperator_quantize(fresh->out[0], &y);
}

static qn_status replace_by_qdq(bool *done, qn_node *node, const qoperator_row *row)
{
    qn_quantized *parts;
    qn_node *fresh;
    int32_t count = 0;
    if (row->fits && !row->fits(node))
        return QN_OK;
    QN_TRY(read_parts(&parts, &count, node, row));
    *done = count > 0;
    if (!*done)
        return QN_OK;
    QN_TRY(qn_node_add(&fresh, node->graph, row->to, node->name, count, 1));
    qn_node_move(fresh, node);
    QN_TRY(row->attrs(fresh, node));
    for (int32_t i = 0; i < count; i++) {
        qn_value *real = NULL;
        QN_TRY(qn_qoperator_dequantize(&real, &parts[i], fresh));
        QN_TRY(qn_node_set_input(fresh, i, real));
    }
    return take_place(fresh, node, row);
}

/* ---- The walk -------------------------------------------------------------------------------- */

static qn_status convert_node(bool *done, qn_node *node)
{
    for (size_t i = 0; i < QN_COUNT_OF(rows); i++) {
        if (rows[i].from == node->op)
            return replace_by_qdq(done, node, &rows[i]);
    }
    return qn_qoperator_move_to_qdq(done, node);
}

static qn_status qoperator_to_qdq(qn_pass_context *self)
{
    for (qn_node *node = self->graph->first, *next; node; node = next) {
        bool done = false;
        next = node->next;
        QN_TRY(convert_node(&done, node));
        self->changes += done;
    }
    return QN_OK;
}

const qn_pass qn_pass_qoperator_to_qdq = {
    "qoperator-to-qdq",
    "operators of integers become float ones between DequantizeLinear and QuantizeLinear",
    qoperator_to_qdq};
