/* Products of matrices, and what weights of integers do to real inputs. */
#include <math.h>

#include "import/tflite/tflite.h"

enum { DENSE_ACTIVATION = 0, DENSE_FORMAT = 1, DENSE_KEEP_DIMS = 2, DENSE_ASYMMETRIC = 3 };
enum { MATMUL_ADJ_X = 0, MATMUL_ADJ_Y = 1, MATMUL_ASYMMETRIC = 2 };

/* ---- Integer weights, real inputs ------------------------------------------------------------ */

/* The extreme of each index of the first axis; the other axes become 1. */
static qn_status extreme_of(qn_value **out, tfl_layer *l, const qn_op *op, qn_value *x)
{
    int64_t axes[QN_MAX_RANK];
    const int32_t rank = qn_tfl_rank(x);
    for (int32_t i = 1; i < rank; i++)
        axes[i - 1] = i;
    return qn_tfl_along(out, l, op, x, axes, (size_t)rank - 1);
}

/* Rows of zeros have the scale 0, and stay zeros with any other. */
static qn_status not_zero(qn_value **out, tfl_layer *l, qn_value *scale)
{
    return qn_tfl_with(out, l, &qn_op_Max, scale, 1e-30);
}

/* scale = max |x| / 127, q = round(x / scale). */
static qn_status round_symmetric(qn_value **out, tfl_layer *l, qn_value *x)
{
    qn_value *scale;
    QN_TRY(qn_tfl_unary(&scale, l, &qn_op_Abs, x));
    QN_TRY(extreme_of(&scale, l, &qn_op_ReduceMax, scale));
    QN_TRY(qn_tfl_with(&scale, l, &qn_op_Mul, scale, 1.0 / 127));
    QN_TRY(not_zero(&scale, l, scale));
    QN_TRY(qn_tfl_binary(&x, l, &qn_op_Div, x, scale));
    QN_TRY(qn_tfl_unary(&x, l, &qn_op_Round, x));
    return qn_tfl_binary(out, l, &qn_op_Mul, x, scale);
}

/* scale = (max - min) / 255 over a range that has 0, zero = round(-128 - min / scale), and q =
 * round(x / scale + zero). */
static qn_status round_with_zero(qn_value **out, tfl_layer *l, qn_value *x)
{
    qn_value *low, *high, *scale, *zero;
    QN_TRY(extreme_of(&low, l, &qn_op_ReduceMin, x));
    QN_TRY(extreme_of(&high, l, &qn_op_ReduceMax, x));
    QN_TRY(qn_tfl_with(&low, l, &qn_op_Min, low, 0));
    QN_TRY(qn_tfl_with(&high, l, &qn_op_Max, high, 0));
    QN_TRY(qn_tfl_binary(&scale, l, &qn_op_Sub, high, low));
    QN_TRY(qn_tfl_with(&scale, l, &qn_op_Mul, scale, 1.0 / 255));
    QN_TRY(not_zero(&scale, l, scale));
    QN_TRY(qn_tfl_binary(&zero, l, &qn_op_Div, low, scale));
    QN_TRY(qn_tfl_with(&zero, l, &qn_op_Add, zero, 128));
    QN_TRY(qn_tfl_unary(&zero, l, &qn_op_Neg, zero));
    QN_TRY(qn_tfl_unary(&zero, l, &qn_op_Round, zero));
    QN_TRY(qn_tfl_binary(&x, l, &qn_op_Div, x, scale));
    QN_TRY(qn_tfl_binary(&x, l, &qn_op_Add, x, zero));
    QN_TRY(qn_tfl_unary(&x, l, &qn_op_Round, x));
    QN_TRY(qn_tfl_clip(&x, l, x, -128, 127));
    QN_TRY(qn_tfl_binary(&x, l, &qn_op_Sub, x, zero));
    return qn_tfl_binary(out, l, &qn_op_Mul, x, scale);
}

qn_status qn_tfl_round_input(qn_value **out, tfl_layer *l, qn_value *x, size_t w, bool with_zero)
{
    *out = x;
    if (!qn_tfl_is_quantized(l->in[w]) || !qn_dtype_is_float(x->type.dtype) ||
        (x->producer && x->producer->op == &qn_op_DequantizeLinear))
        return QN_OK;
    if (qn_tfl_rank(x) < 2)
        return qn_tfl_unsupported(l, "a real input of %d axes for integer weights",
                                  (int)qn_tfl_rank(x));
    return with_zero ? round_with_zero(out, l, x) : round_symmetric(out, l, x);
}

/* ---- FULLY_CONNECTED ------------------------------------------------------------------------- */

/* Rows of as many numbers as the weights have columns; those of pictures stand in the file's order.
 */
static qn_status take_rows(qn_value **out, tfl_layer *l, int64_t columns)
{
    const tfl_tensor *t = l->in[0];
    qn_value *x;
    l->raw = true;
    const qn_status status = qn_tfl_take_flat(&x, l, 0);
    l->raw = false;
    QN_TRY(status);
    if (qn_tfl_rank(x) != 2 || qn_tfl_dim(x, 1) != columns)
        QN_TRY(qn_tfl_reshape(&x, l, x, (const int64_t[]){-1, columns}, 2));
    QN_TRY(qn_tfl_dequantize(&x, l, x, t, t->axis));
    return qn_tfl_round_input(out, l, x, 1, qn_tfl_byte(l, DENSE_ASYMMETRIC) != 0);
}

/* x of more than two axes keeps them: a product of matrices. */
static qn_status build_batched(qn_value **y, tfl_layer *l, qn_value *weights, qn_value *bias)
{
    static const int64_t swapped[] = {1, 0};
    qn_value *x;
    const tfl_tensor *t = l->in[1];
    QN_TRY(qn_tfl_real(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_transpose(&weights, l, weights, swapped, 2));
    QN_TRY(qn_tfl_dequantize(&weights, l, weights, t, 1 - t->axis));
    QN_TRY(qn_tfl_binary(y, l, &qn_op_MatMul, x, weights));
    return bias ? qn_tfl_binary(y, l, &qn_op_Add, *y, bias) : QN_OK;
}

static qn_status build_gemm(qn_value **y, tfl_layer *l, qn_value *weights, qn_value *bias)
{
    qn_value *x;
    const int64_t columns = qn_tfl_dim(weights, 1);
    if (columns < 1)
        return qn_tfl_unsupported(l, "the size of its weights is not known");
    QN_TRY(take_rows(&x, l, columns));
    QN_TRY(qn_tfl_dequantize(&weights, l, weights, l->in[1], l->in[1]->axis));
    const qn_graph_build_inputs inputs = QN_INPUTS(x, weights, bias);
    return qn_graph_build(y, l->b, &qn_op_Gemm, (qn_graph_build_inputs){inputs.at, bias ? 3u : 2u},
                          QN_WITH(QN_A_INT("transB", 1)));
}

/* The axes of x, and as many numbers along the last one as there are rows of weights. */
static qn_status put_kept(tfl_layer *l, qn_value *y, const qn_value *x, const qn_value *weights)
{
    int64_t dims[QN_MAX_RANK];
    const int32_t rank = qn_tfl_rank(x);
    int32_t open = 0;
    for (int32_t i = 0; i < rank - 1; i++) {
        dims[i] = qn_tfl_dim(x, i);
        open += dims[i] < 0;
    }
    dims[rank - 1] = qn_tfl_dim(weights, 0);
    if (open > 1)
        return qn_tfl_unsupported(l, "several sizes of its input are open");
    QN_TRY(qn_tfl_activate(&y, l, y, qn_tfl_byte(l, DENSE_ACTIVATION)));
    if (qn_tfl_is_quantized(l->out[0]))
        QN_TRY(qn_tfl_quantize(&y, l, y, l->out[0]));
    QN_TRY(qn_tfl_reshape(&y, l, y, dims, (size_t)rank));
    return qn_tfl_give_raw(l, 0, y, QN_ORDER_OWN);
}

/* Weights [F, C]. Integers have rows always, since engines know a Gemm of them with its bias. */
qn_status qn_tfl_fully_connected(tfl_layer *l)
{
    qn_axis_order order;
    qn_value *x, *weights, *bias, *y;
    QN_TRY(qn_tfl_expect(l, 2, 1));
    if (qn_tfl_byte(l, DENSE_FORMAT) != 0)
        return qn_tfl_unsupported(l, "its weights are shuffled");
    QN_TRY(qn_tfl_hold(l, l->in[0]));
    QN_TRY(qn_layout_any(&x, &order, l->layouts, l->in[0]->name));
    QN_TRY(qn_tfl_raw(&weights, l, 1, QN_ORDER_OWN));
    QN_TRY(qn_tfl_bias(&bias, l, 2, 0, 1));
    if (qn_tfl_rank(weights) != 2)
        return qn_tfl_wrong(l, "its weights have %d axes", (int)qn_tfl_rank(weights));
    const bool keeps = qn_tfl_byte(l, DENSE_KEEP_DIMS) && qn_tfl_rank(x) > 2;
    if (keeps)
        QN_TRY(qn_tfl_raw(&x, l, 0, QN_ORDER_OWN));
    if (keeps && !qn_tfl_is_quantized(l->in[1]))
        QN_TRY(build_batched(&y, l, weights, bias));
    else
        QN_TRY(build_gemm(&y, l, weights, bias));
    if (!keeps || !qn_tfl_is_quantized(l->in[1]))
        return qn_tfl_put_active(l, y, QN_ORDER_OWN, qn_tfl_byte(l, DENSE_ACTIVATION));
    return put_kept(l, y, x, weights);
}

/* ---- BATCH_MATMUL ---------------------------------------------------------------------------- */

static qn_status take_side(qn_value **out, tfl_layer *l, size_t i, bool adjoint)
{
    int64_t perm[QN_MAX_RANK];
    QN_TRY(qn_tfl_raw(out, l, i, QN_ORDER_OWN));
    const int32_t rank = qn_tfl_rank(*out);
    const tfl_tensor *t = l->in[i];
    int64_t axis = t->axis;
    if (rank < 2)
        return qn_tfl_wrong(l, "input %zu has %d axes", i, (int)rank);
    if (adjoint) {
        for (int32_t d = 0; d < rank; d++)
            perm[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
        QN_TRY(qn_tfl_transpose(out, l, *out, perm, (size_t)rank));
        axis = axis >= 0 && axis < rank ? perm[axis] : axis;
    }
    return qn_tfl_dequantize(out, l, *out, t, axis);
}

qn_status qn_tfl_batch_matmul(tfl_layer *l)
{
    qn_value *x, *w, *y;
    QN_TRY(qn_tfl_expect(l, 2, 1));
    if (qn_tfl_is_quantized(l->in[1]) && !qn_tfl_is_quantized(l->in[0]))
        return qn_tfl_unsupported(l, "real numbers times integers");
    QN_TRY(take_side(&x, l, 0, qn_tfl_byte(l, MATMUL_ADJ_X) != 0));
    QN_TRY(take_side(&w, l, 1, qn_tfl_byte(l, MATMUL_ADJ_Y) != 0));
    QN_TRY(qn_tfl_binary(&y, l, &qn_op_MatMul, x, w));
    return qn_tfl_put(l, 0, y, QN_ORDER_OWN);
}
