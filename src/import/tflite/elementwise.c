/* Functions of one number, and of two tensors that broadcast. */
#include "import/tflite/tflite.h"

enum { BINARY_ACTIVATION = 0, LEAKY_ALPHA = 0, GELU_APPROXIMATE = 0, CAST_TO = 1 };
enum { FAKE_MIN = 0, FAKE_MAX = 1, FAKE_BITS = 2, FAKE_NARROW = 3 };

/* ---- One number ------------------------------------------------------------------------------ */

typedef qn_status (*tfl_function)(qn_value **y, tfl_layer *l, qn_value *x);

static qn_status apply(tfl_layer *l, tfl_function function)
{
    qn_axis_order order;
    qn_value *x, *y;
    QN_TRY(qn_tfl_expect(l, 1, 1));
    QN_TRY(qn_tfl_take_any(&x, &order, l, 0));
    QN_TRY(function(&y, l, x));
    return qn_tfl_put(l, 0, y, order);
}

static qn_status build_unary(qn_value **y, tfl_layer *l, qn_value *x)
{
    return qn_tfl_unary(y, l, l->row->op, x);
}

qn_status qn_tfl_function(tfl_layer *l)
{
    return apply(l, build_unary);
}

static qn_status build_square(qn_value **y, tfl_layer *l, qn_value *x)
{
    return qn_tfl_binary(y, l, &qn_op_Mul, x, x);
}

qn_status qn_tfl_square(tfl_layer *l)
{
    return apply(l, build_square);
}

static qn_status build_rsqrt(qn_value **y, tfl_layer *l, qn_value *x)
{
    QN_TRY(qn_tfl_unary(&x, l, &qn_op_Sqrt, x));
    return qn_tfl_unary(y, l, &qn_op_Reciprocal, x);
}

qn_status qn_tfl_rsqrt(tfl_layer *l)
{
    return apply(l, build_rsqrt);
}

static qn_status build_relu6(qn_value **y, tfl_layer *l, qn_value *x)
{
    return qn_tfl_clip(y, l, x, 0, 6);
}

qn_status qn_tfl_relu6(tfl_layer *l)
{
    return apply(l, build_relu6);
}

static qn_status build_relu_n1(qn_value **y, tfl_layer *l, qn_value *x)
{
    return qn_tfl_clip(y, l, x, -1, 1);
}

qn_status qn_tfl_relu_n1_to_1(tfl_layer *l)
{
    return apply(l, build_relu_n1);
}

static qn_status build_relu_1(qn_value **y, tfl_layer *l, qn_value *x)
{
    return qn_tfl_clip(y, l, x, 0, 1);
}

qn_status qn_tfl_relu_0_to_1(tfl_layer *l)
{
    return apply(l, build_relu_1);
}

static qn_status build_leaky_relu(qn_value **y, tfl_layer *l, qn_value *x)
{
    const float alpha = qn_flat_real(&l->options, LEAKY_ALPHA, 0);
    return qn_graph_build(y, l->b, &qn_op_LeakyRelu, QN_INPUTS(x),
                          QN_WITH(QN_A_REAL("alpha", alpha)));
}

qn_status qn_tfl_leaky_relu(tfl_layer *l)
{
    return apply(l, build_leaky_relu);
}

static qn_status build_gelu(qn_value **y, tfl_layer *l, qn_value *x)
{
    return qn_graph_build(
        y, l->b, &qn_op_Gelu, QN_INPUTS(x),
        QN_WITH(QN_A_TEXT("approximate", qn_tfl_byte(l, GELU_APPROXIMATE) ? "tanh" : "none")));
}

qn_status qn_tfl_gelu(tfl_layer *l)
{
    return apply(l, build_gelu);
}

static qn_status build_zeros(qn_value **y, tfl_layer *l, qn_value *x)
{
    qn_value *shape, *zero;
    QN_TRY(qn_tfl_unary(&shape, l, &qn_op_Shape, x));
    QN_TRY(qn_tfl_number(&zero, l, x->type.dtype, 0));
    return qn_tfl_binary(y, l, &qn_op_Expand, zero, shape);
}

qn_status qn_tfl_zeros_like(tfl_layer *l)
{
    return apply(l, build_zeros);
}

/* A Cast's types are those of the tensors. */
static qn_status build_cast(qn_value **y, tfl_layer *l, qn_value *x)
{
    if (l->out[0]->dtype == QN_UNDEFINED)
        return qn_tfl_unsupported(l, "'%s' has a type that graphs lack", l->out[0]->name);
    return qn_tfl_cast(y, l, x, l->out[0]->dtype);
}

qn_status qn_tfl_to_type(tfl_layer *l)
{
    l->raw = true;
    return apply(l, build_cast);
}

/* DEQUANTIZE takes the real numbers, which may be those of halves. */
static qn_status build_dequantize(qn_value **y, tfl_layer *l, qn_value *x)
{
    return qn_tfl_cast(y, l, x, QN_FLOAT32);
}

qn_status qn_tfl_to_real(tfl_layer *l)
{
    return apply(l, build_dequantize);
}

static qn_status build_same(qn_value **y, tfl_layer *l, qn_value *x)
{
    return qn_tfl_unary(y, l, &qn_op_Identity, x);
}

/* QUANTIZE: the new scale is the output's. */
qn_status qn_tfl_requantize(tfl_layer *l)
{
    return apply(l, build_same);
}

/* The range is moved so that 0 is one of its steps, then the integers are 0 .. 2^bits - 1. */
static qn_status build_fake_quant(qn_value **y, tfl_layer *l, qn_value *x)
{
    const int64_t bits = qn_tfl_int(l, FAKE_BITS, 0);
    const float low = qn_flat_real(&l->options, FAKE_MIN, 0);
    const float high = qn_flat_real(&l->options, FAKE_MAX, 0);
    const float qmin = qn_tfl_byte(l, FAKE_NARROW) ? 1 : 0;
    if (bits < 2 || bits > 16 || !(low < high))
        return qn_tfl_wrong(l, "%lld bits from %g to %g", (long long)bits, (double)low,
                            (double)high);
    const float qmax = (float)((1 << bits) - 1), scale = (high - low) / (qmax - qmin);
    const float from = qmin - low / scale;
    const double zero = (double)(from < qmin   ? qmin
                                 : from > qmax ? qmax
                                               : (float)(int)(from + 0.5f));
    const double step = (double)scale, least = ((double)qmin - zero) * step;
    QN_TRY(qn_tfl_clip(&x, l, x, least, ((double)qmax - zero) * step));
    QN_TRY(qn_tfl_with(&x, l, &qn_op_Sub, x, least));
    QN_TRY(qn_tfl_with(&x, l, &qn_op_Mul, x, (double)(1 / scale)));
    QN_TRY(qn_tfl_with(&x, l, &qn_op_Add, x, 0.5));
    QN_TRY(qn_tfl_unary(&x, l, &qn_op_Floor, x));
    QN_TRY(qn_tfl_with(&x, l, &qn_op_Mul, x, step));
    return qn_tfl_with(y, l, &qn_op_Add, x, least);
}

qn_status qn_tfl_fake_quant(tfl_layer *l)
{
    return apply(l, build_fake_quant);
}

/* ---- Two tensors ----------------------------------------------------------------------------- */

static qn_status take_two(qn_value **x, qn_axis_order *order, tfl_layer *l)
{
    return qn_tfl_take_agreed(x, order, l, 2);
}

/* Sums, differences, products and quotients may have an activation. */
qn_status qn_tfl_arithmetic(tfl_layer *l)
{
    qn_axis_order order;
    qn_value *x[2], *y;
    QN_TRY(take_two(x, &order, l));
    QN_TRY(qn_tfl_binary(&y, l, l->row->op, x[0], x[1]));
    return qn_tfl_put_active(l, y, order, qn_tfl_byte(l, BINARY_ACTIVATION));
}

/* Comparisons, extremes, logic. */
qn_status qn_tfl_pair(tfl_layer *l)
{
    qn_axis_order order;
    qn_value *x[2], *y;
    QN_TRY(take_two(x, &order, l));
    QN_TRY(qn_tfl_binary(&y, l, l->row->op, x[0], x[1]));
    return qn_tfl_put(l, 0, y, order);
}

qn_status qn_tfl_not_equal(tfl_layer *l)
{
    qn_axis_order order;
    qn_value *x[2], *y;
    QN_TRY(take_two(x, &order, l));
    QN_TRY(qn_tfl_binary(&y, l, &qn_op_Equal, x[0], x[1]));
    QN_TRY(qn_tfl_unary(&y, l, &qn_op_Not, y));
    return qn_tfl_put(l, 0, y, order);
}

qn_status qn_tfl_squared_difference(tfl_layer *l)
{
    qn_axis_order order;
    qn_value *x[2], *y;
    QN_TRY(take_two(x, &order, l));
    QN_TRY(qn_tfl_binary(&y, l, &qn_op_Sub, x[0], x[1]));
    QN_TRY(qn_tfl_binary(&y, l, &qn_op_Mul, y, y));
    return qn_tfl_put(l, 0, y, order);
}

/* The quotient is rounded down; ONNX's Div of integers is rounded to zero, so that one is taken
 * away where the rest is neither 0 nor of the divisor's sign, as Mod's never is. */
static qn_status floor_quotient(qn_value **y, tfl_layer *l, qn_value *a, qn_value *b)
{
    qn_value *rest;
    if (qn_dtype_is_float(a->type.dtype)) {
        QN_TRY(qn_tfl_binary(y, l, &qn_op_Div, a, b));
        return qn_tfl_unary(y, l, &qn_op_Floor, *y);
    }
    QN_TRY(qn_tfl_binary(&rest, l, &qn_op_Mod, a, b));
    QN_TRY(qn_tfl_binary(&rest, l, &qn_op_Sub, a, rest));
    return qn_tfl_binary(y, l, &qn_op_Div, rest, b);
}

qn_status qn_tfl_floor_div(tfl_layer *l)
{
    qn_axis_order order;
    qn_value *x[2], *y;
    QN_TRY(take_two(x, &order, l));
    QN_TRY(floor_quotient(&y, l, x[0], x[1]));
    return qn_tfl_put(l, 0, y, order);
}

/* ONNX's Mod of floats has the dividend's sign, this one the divisor's. */
qn_status qn_tfl_floor_mod(tfl_layer *l)
{
    qn_axis_order order;
    qn_value *x[2], *y;
    QN_TRY(take_two(x, &order, l));
    if (!qn_dtype_is_float(x[0]->type.dtype)) {
        QN_TRY(qn_tfl_binary(&y, l, &qn_op_Mod, x[0], x[1]));
        return qn_tfl_put(l, 0, y, order);
    }
    QN_TRY(floor_quotient(&y, l, x[0], x[1]));
    QN_TRY(qn_tfl_binary(&y, l, &qn_op_Mul, y, x[1]));
    QN_TRY(qn_tfl_binary(&y, l, &qn_op_Sub, x[0], y));
    return qn_tfl_put(l, 0, y, order);
}

/* Any number of inputs. */
qn_status qn_tfl_add_n(tfl_layer *l)
{
    qn_axis_order order;
    qn_value *y;
    qn_value **x = qn_arena_array(&l->b->model->arena, l->n_in, sizeof(qn_value *));
    QN_TRY_ALLOC(l->b->ctx, x);
    QN_TRY(qn_tfl_expect(l, 1, 1));
    QN_TRY(qn_tfl_take_agreed(x, &order, l, l->n_in));
    y = x[0];
    for (size_t i = 1; i < l->n_in; i++)
        QN_TRY(qn_tfl_binary(&y, l, &qn_op_Add, y, x[i]));
    if (l->n_in == 1)
        QN_TRY(qn_tfl_unary(&y, l, &qn_op_Identity, y));
    return qn_tfl_put(l, 0, y, order);
}

qn_status qn_tfl_prelu(tfl_layer *l)
{
    qn_axis_order order;
    qn_value *x[2], *y;
    QN_TRY(take_two(x, &order, l));
    QN_TRY(qn_tfl_binary(&y, l, &qn_op_PRelu, x[0], x[1]));
    return qn_tfl_put(l, 0, y, order);
}

/* atan(y / x) is in the right half of the plane; in the left one half a turn is missing, towards
 * the side of y. */
qn_status qn_tfl_atan2(tfl_layer *l)
{
    qn_axis_order order;
    qn_value *x[2], *angle, *left, *below, *turn, *none, *pi;
    QN_TRY(take_two(x, &order, l));
    QN_TRY(qn_tfl_binary(&angle, l, &qn_op_Div, x[0], x[1]));
    QN_TRY(qn_tfl_unary(&angle, l, &qn_op_Atan, angle));
    QN_TRY(qn_tfl_with(&left, l, &qn_op_Less, x[1], 0));
    QN_TRY(qn_tfl_with(&below, l, &qn_op_Less, x[0], 0));
    QN_TRY(qn_tfl_number(&pi, l, QN_FLOAT32, 3.14159265358979323846));
    QN_TRY(qn_tfl_number(&turn, l, QN_FLOAT32, -3.14159265358979323846));
    QN_TRY(qn_tfl_number(&none, l, QN_FLOAT32, 0));
    QN_TRY(qn_graph_build(&turn, l->b, &qn_op_Where, QN_INPUTS(below, turn, pi), QN_PLAIN));
    QN_TRY(qn_graph_build(&turn, l->b, &qn_op_Where, QN_INPUTS(left, turn, none), QN_PLAIN));
    QN_TRY(qn_tfl_binary(&angle, l, &qn_op_Add, angle, turn));
    return qn_tfl_put(l, 0, angle, order);
}
