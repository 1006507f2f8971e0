/* Quantized numbers as real ones, and fake quantization. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "import/tensorflow/tensorflow.h"

/* A range of one tensor or of each channel, as the parameters of QuantizeLinear. */
typedef struct grid {
    int64_t bits, least, most;
    const qn_tensor *low, *high;
    qn_value *scale, *zero;
    /* The least and the largest number of the grid, where the type has more of them. */
    qn_value *bottom, *top;
} grid;

static double number_at(const qn_tensor *tensor, int64_t i)
{
    double value;
    qn_load_f64(&value, tensor->dtype, tensor->data, i, 1);
    return value;
}

/* A number of each channel, or one. */
static qn_status tensor_like(qn_tensor **out, qn_value **value, qn_tf_node *node,
                             const qn_tensor *like, qn_dtype dtype)
{
    const int64_t count = qn_tensor_count(like);
    const qn_type type = qn_type_tensor(dtype, like->rank, &count);
    qn_graph_builder *b = &node->import->builder;
    QN_TRY(qn_tensor_create(out, b->ctx, &b->model->arena, &type));
    return qn_value_constant(value, b->graph, NULL, *out);
}

/* The range is moved so that 0 is one of its numbers. */
static qn_status nudge(grid *g, qn_tf_node *node)
{
    const qn_dtype dtype = g->bits <= 8 ? QN_UINT8 : QN_UINT16;
    qn_tensor *scale, *zero, *bottom, *top;
    QN_TRY(tensor_like(&scale, &g->scale, node, g->low, QN_FLOAT32));
    QN_TRY(tensor_like(&zero, &g->zero, node, g->low, dtype));
    QN_TRY(tensor_like(&bottom, &g->bottom, node, g->low, QN_FLOAT32));
    QN_TRY(tensor_like(&top, &g->top, node, g->low, QN_FLOAT32));
    for (int64_t i = 0; i < qn_tensor_count(g->low); i++) {
        const double low = number_at(g->low, i), high = number_at(g->high, i);
        /* In floats, as TensorFlow does it: halves fall to the same side. */
        const float step = (float)(high - low) / (float)(g->most - g->least);
        const float place = step > 0 ? (float)g->least - (float)low / step : 0;
        if (!(step > 0))
            return qn_tf_fail(node, QN_E_UNSUPPORTED, "a range from %g to %g", low, high);
        const double bound = fmin(fmax(round((double)place), (double)g->least), (double)g->most);
        ((float *)scale->data)[i] = step;
        ((float *)bottom->data)[i] = (float)((double)g->least - bound) * step;
        ((float *)top->data)[i] = (float)((double)g->most - bound) * step;
        qn_store_i64(zero->data, dtype, i, &(int64_t){(int64_t)bound}, 1);
    }
    return QN_OK;
}

/* Quantized and back, which the quantizer takes as this value's parameters. */
static qn_status apply(qn_tf_node *node, grid *g, qn_value *x, qn_axis_order order)
{
    qn_value *y = x;
    qn_graph_builder *b = &node->import->builder;
    const int64_t axis = g->low->rank ? (int64_t)x->type.rank - 1 : 1;
    g->bits = qn_tf_attr_int(node, "num_bits", 8);
    g->least = qn_tf_attr_bool(node, "narrow_range", false);
    if (g->bits < 2 || g->bits > 16 || g->low->rank > 1 ||
        qn_tensor_count(g->low) != qn_tensor_count(g->high))
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "%lld bits", (long long)g->bits);
    g->most = (INT64_C(1) << g->bits) - 1;
    QN_TRY(nudge(g, node));
    if (g->least || (g->bits != 8 && g->bits != 16)) {
        QN_TRY(qn_graph_build(&y, b, &qn_op_Max, QN_INPUTS(y, g->bottom), QN_PLAIN));
        QN_TRY(qn_graph_build(&y, b, &qn_op_Min, QN_INPUTS(y, g->top), QN_PLAIN));
    }
    QN_TRY(qn_graph_build(&y, b, &qn_op_QuantizeLinear, QN_INPUTS(y, g->scale, g->zero),
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

/* ---- Dequantize ------------------------------------------------------------------------------ */

/* y = (x - lowest) scale + low, of one range. */
static void line_of(double *scale, double *low, double *lowest, const qn_tf_node *node,
                    const double range[2], const double limits[2])
{
    const double steps = limits[1] - limits[0];
    *lowest = limits[0];
    *scale = (range[1] - range[0]) / steps;
    *low = range[0];
    if (qn_tf_attr_is(node, "mode", "SCALED")) {
        const double least = limits[0] + (qn_tf_attr_bool(node, "narrow_range", false) ? 1 : 0);
        *scale = range[1] / limits[1];
        if (limits[0] < 0)
            *scale = fmax(*scale, range[0] / least);
        *lowest = *low = 0;
    } else if (qn_tf_attr_is(node, "mode", "MIN_FIRST")) {
        /* A multiple of the step, so that 0 is one of the numbers. A step too small for a normal
         * number is 0 to TensorFlow, which computes without denormals. */
        *scale = fabs(*scale) < (double)FLT_MIN ? 0 : *scale;
        *low = fabs(range[0]) < (double)FLT_MIN ? 0 : range[0];
        if (*scale > 0)
            *low = round(range[0] / (double)(float)*scale) * (double)(float)*scale;
    }
}

static qn_status ranges(grid *g, const qn_tf_node *node)
{
    QN_TRY(qn_tf_known(&g->low, node, 1));
    QN_TRY(qn_tf_known(&g->high, node, 2));
    const bool known = g->low && g->high && g->low->dtype == QN_FLOAT32 &&
                       g->high->dtype == QN_FLOAT32 && g->low->rank <= 1 &&
                       qn_tensor_count(g->low) == qn_tensor_count(g->high);
    return known ? QN_OK : qn_tf_fail(node, QN_E_UNSUPPORTED, "ranges that are not constant");
}

static qn_status lines(qn_value **scale, qn_value **low, qn_value **lowest, qn_tf_node *node,
                       qn_dtype dtype)
{
    grid g = {.bits = 8};
    qn_tensor *scales, *lows;
    double first = 0, own_scale, own_low;
    double limits[2] = {0, 255};
    QN_TRY(ranges(&g, node));
    if (dtype == QN_INT8 || dtype == QN_INT16 || dtype == QN_INT32)
        limits[0] = dtype == QN_INT8 ? INT8_MIN : dtype == QN_INT16 ? INT16_MIN : INT32_MIN;
    limits[1] = dtype == QN_UINT8 ? UINT8_MAX : dtype == QN_UINT16 ? UINT16_MAX : -1 - limits[0];
    QN_TRY(tensor_like(&scales, scale, node, g.low, QN_FLOAT32));
    QN_TRY(tensor_like(&lows, low, node, g.low, QN_FLOAT32));
    for (int64_t i = 0; i < qn_tensor_count(g.low); i++) {
        const double range[] = {number_at(g.low, i), number_at(g.high, i)};
        line_of(&own_scale, &own_low, &first, node, range, limits);
        ((float *)scales->data)[i] = (float)own_scale;
        ((float *)lows->data)[i] = (float)own_low;
    }
    return qn_tf_number(lowest, node->import, first, QN_FLOAT32);
}

/* The numbers of an axis, where each place of it has its own range. */
static qn_status along_axis(qn_value **value, const qn_tf_node *node, const qn_value *x)
{
    int64_t dims[QN_MAX_RANK], axis = qn_tf_attr_int(node, "axis", -1);
    if ((*value)->type.rank == 0 || x->type.rank < 1)
        return QN_OK;
    axis = axis < 0 ? x->type.rank - 1 : axis;
    for (int32_t i = 0; i < x->type.rank; i++)
        dims[i] = i == axis ? -1 : 1;
    QN_TRY(qn_tf_reshape(value, node->import, dims, (size_t)x->type.rank));
    return qn_tf_fold(value, node->import);
}

qn_status qn_tf_dequantize(qn_tf_node *node)
{
    qn_value *x, *scale, *low, *lowest;
    qn_tf_import *import = node->import;
    qn_graph_builder *b = &import->builder;
    QN_TRY(qn_tf_in(&x, node, 0));
    if (!qn_dtype_is_integer(x->type.dtype))
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "numbers of no quantized type");
    QN_TRY(lines(&scale, &low, &lowest, node, x->type.dtype));
    QN_TRY(along_axis(&scale, node, x));
    QN_TRY(along_axis(&low, node, x));
    QN_TRY(qn_tf_cast(&x, import, QN_FLOAT32));
    QN_TRY(qn_graph_build(&x, b, &qn_op_Sub, QN_INPUTS(x, lowest), QN_PLAIN));
    QN_TRY(qn_graph_build(&x, b, &qn_op_Mul, QN_INPUTS(x, scale), QN_PLAIN));
    QN_TRY(qn_graph_build(&x, b, &qn_op_Add, QN_INPUTS(x, low), QN_PLAIN));
    return qn_tf_out(node, 0, x, QN_ORDER_OWN);
}
