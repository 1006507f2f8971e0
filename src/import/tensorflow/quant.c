/* Fake quantization, and the choice of boxes. */
#include <math.h>
#include <string.h>

#include "import/tensorflow/tensorflow.h"

/* A range of one tensor or of each channel, as the parameters of QuantizeLinear. */
typedef struct grid {
    int64_t bits, least, most;
    const qn_tensor *low, *high;
    qn_value *scale, *zero;
} grid;

static double number_at(const qn_tensor *tensor, int64_t i)
{
    double value;
    qn_load_f64(&value, tensor->dtype, tensor->data, i, 1);
    return value;
}

/* The range is moved so that 0 is one of its numbers. */
static qn_status nudge(grid *g, qn_tf_node *node)
{
    const int64_t count = qn_tensor_count(g->low);
    const qn_dtype dtype = g->bits <= 8 ? QN_UINT8 : QN_UINT16;
    const int32_t rank = g->low->rank;
    const qn_type scales = qn_type_tensor(QN_FLOAT32, rank, &count);
    const qn_type zeros = qn_type_tensor(dtype, rank, &count);
    qn_graph_builder *b = &node->import->builder;
    qn_tensor *scale, *zero;
    QN_TRY(qn_tensor_create(&scale, b->ctx, &b->model->arena, &scales));
    QN_TRY(qn_tensor_create(&zero, b->ctx, &b->model->arena, &zeros));
    for (int64_t i = 0; i < count; i++) {
        const double low = number_at(g->low, i), high = number_at(g->high, i);
        /* In floats, as TensorFlow does it: halves fall to the same side. */
        const float step = (float)(high - low) / (float)(g->most - g->least);
        const float place = step > 0 ? (float)g->least - (float)low / step : 0;
        if (!(step > 0))
            return qn_tf_fail(node, QN_E_UNSUPPORTED, "a range from %g to %g", low, high);
        const double bound = fmin(fmax(round((double)place), (double)g->least), (double)g->most);
        ((float *)scale->data)[i] = step;
        qn_store_i64(zero->data, dtype, i, &(int64_t){(int64_t)bound}, 1);
    }
    QN_TRY(qn_value_constant(&g->scale, b->graph, NULL, scale));
    return qn_value_constant(&g->zero, b->graph, NULL, zero);
}

/* Quantized and back, which the quantizer takes as this value's parameters. */
static qn_status apply(qn_tf_node *node, grid *g, qn_value *x, qn_axis_order order)
{
    qn_value *y;
    qn_graph_builder *b = &node->import->builder;
    const int64_t axis = g->low->rank ? (int64_t)x->type.rank - 1 : 1;
    const bool narrow = qn_tf_attr_bool(node, "narrow_range", false);
    g->bits = qn_tf_attr_int(node, "num_bits", 8);
    if ((g->bits != 8 && g->bits != 16) || narrow || g->low->rank > 1 ||
        qn_tensor_count(g->low) != qn_tensor_count(g->high))
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "%lld bits%s", (long long)g->bits,
                          narrow ? " of a narrow range" : "");
    g->least = 0;
    g->most = (INT64_C(1) << g->bits) - 1;
    QN_TRY(nudge(g, node));
    QN_TRY(qn_graph_build(&y, b, &qn_op_QuantizeLinear, QN_INPUTS(x, g->scale, g->zero),
                          QN_WITH(QN_A_INT("axis", axis))));
    QN_TRY(qn_graph_build(&y, b, &qn_op_DequantizeLinear, QN_INPUTS(y, g->scale, g->zero),
                          QN_WITH(QN_A_INT("axis", axis))));
    return qn_tf_out(node, 0, y, order);
}

qn_status qn_tf_fake_quant_args(qn_tf_node *node)
{
    grid g = {.bits = 8};
    qn_value *x, *low, *high;
    qn_axis_order order;
    const double least = qn_tf_attr_real(node, "min", -6), most = qn_tf_attr_real(node, "max", 6);
    QN_TRY(qn_tf_in_any(&x, &order, node, 0));
    QN_TRY(qn_tf_number(&low, node->import, least, QN_FLOAT32));
    QN_TRY(qn_tf_number(&high, node->import, most, QN_FLOAT32));
    g.low = low->data;
    g.high = high->data;
    return apply(node, &g, x, order);
}

/* Ranges that training found: one, or one of each channel, which is the last axis. */
qn_status qn_tf_fake_quant_vars(qn_tf_node *node)
{
    grid g = {.bits = 8};
    qn_value *x;
    qn_axis_order order;
    QN_TRY(qn_tf_known(&g.low, node, 1));
    QN_TRY(qn_tf_known(&g.high, node, 2));
    if (!g.low || !g.high || !qn_dtype_is_float(g.low->dtype) || !qn_dtype_is_float(g.high->dtype))
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "a range that is not constant");
    QN_TRY(qn_tf_in_ranked(&x, &order, node, 0));
    if (g.low->rank) {
        QN_TRY(qn_tf_in(&x, node, 0));
        order = QN_ORDER_OWN;
    }
    return apply(node, &g, x, order);
}

/* ---- Boxes ----------------------------------------------------------------------------------- */

static qn_status scalar(qn_value **out, qn_tf_node *node, size_t i, qn_dtype dtype)
{
    QN_TRY(qn_tf_in(out, node, i));
    QN_TRY(qn_tf_cast(out, node->import, dtype));
    QN_TRY(qn_tf_reshape(out, node->import, (const int64_t[]){1}, 1));
    return qn_tf_fold(out, node->import);
}

/* Boxes [N, 4] and scores [N] are one image of one class for ONNX, whose result has three columns:
 * image, class, box. */
qn_status qn_tf_non_max_suppression(qn_tf_node *node)
{
    static const int64_t first[] = {0}, two[] = {0, 1}, last[] = {1};
    qn_value *boxes, *scores, *limits[3], *y;
    qn_tf_import *import = node->import;
    qn_graph_builder *b = &import->builder;
    QN_TRY(qn_tf_in(&boxes, node, 0));
    QN_TRY(qn_tf_in(&scores, node, 1));
    QN_TRY(qn_tf_unsqueeze(&boxes, import, first, 1));
    QN_TRY(qn_tf_unsqueeze(&scores, import, two, 2));
    QN_TRY(scalar(&limits[0], node, 2, QN_INT64));
    QN_TRY(scalar(&limits[1], node, 3, QN_FLOAT32));
    QN_TRY(scalar(&limits[2], node, 4, QN_FLOAT32));
    QN_TRY(qn_graph_build(&y, b, &qn_op_NonMaxSuppression,
                          QN_INPUTS(boxes, scores, limits[0], limits[1], limits[2]), QN_PLAIN));
    QN_TRY(qn_tf_part(&y, import, 1, 2, 3));
    QN_TRY(qn_tf_squeeze(&y, import, last, 1));
    QN_TRY(qn_tf_cast(&y, import, QN_INT32));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}
