/* Operators that compute element by element: functions, activations, arithmetic, comparisons. */
#include <math.h>
#include <string.h>

#include "import/pytorch/aten.h"

/* The argument in a real type: functions of integers are computed in float32. */
static qn_status real_tensor(qn_value **out, qn_aten_call *c, const char *name)
{
    QN_TRY(qn_aten_tensor(out, c, name));
    return qn_dtype_is_float(qn_dtype_of(*out)) ? QN_OK : qn_aten_cast(out, c, *out, QN_FLOAT32);
}

/* ---- One operator of ONNX -------------------------------------------------------------------- */

/* Functions whose values are real whatever the argument is. */
qn_status qn_aten_function(qn_aten_call *c)
{
    qn_value *x;
    QN_TRY(real_tensor(&x, c, "self"));
    QN_TRY(qn_aten_unary_node(&x, c, c->op->onnx, x));
    return qn_aten_return(c, x);
}

/* Functions that integers have too. */
qn_status qn_aten_unary(qn_aten_call *c)
{
    qn_value *x;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_unary_node(&x, c, c->op->onnx, x));
    return qn_aten_return(c, x);
}

/* Integers are their own floor. */
qn_status qn_aten_rounding(qn_aten_call *c)
{
    qn_value *x;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    if (qn_aten_has(c, "decimals"))
        return qn_aten_unsupported(c, "it rounds to decimals");
    if (qn_dtype_is_float(qn_dtype_of(x)))
        QN_TRY(qn_aten_unary_node(&x, c, c->op->onnx, x));
    return qn_aten_return(c, x);
}

/* One attribute, under ONNX's name. */
static qn_status with_real(qn_aten_call *c, const char *attribute, const char *parameter)
{
    qn_value *x, *y;
    double number;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_real(&number, c, parameter));
    QN_TRY(qn_graph_build(&y, c->b, c->op->onnx, QN_INPUTS(x),
                          QN_WITH(QN_A_REAL(attribute, (float)number))));
    return qn_aten_return(c, y);
}

qn_status qn_aten_leaky_relu(qn_aten_call *c)
{
    return with_real(c, "alpha", "negative_slope");
}

qn_status qn_aten_celu(qn_aten_call *c)
{
    return with_real(c, "alpha", "alpha");
}

/* elu(x) = scale * (x > 0 ? x : alpha * (exp(input_scale * x) - 1)) */
qn_status qn_aten_elu(qn_aten_call *c)
{
    double scale, input_scale;
    qn_value *y;
    QN_TRY(qn_aten_real(&scale, c, "scale"));
    QN_TRY(qn_aten_real(&input_scale, c, "input_scale"));
    if (input_scale != 1)
        return qn_aten_unsupported(c, "its input_scale is not 1");
    QN_TRY(with_real(c, "alpha", "alpha"));
    if (scale == 1)
        return QN_OK;
    QN_TRY(qn_torch_value_of(&y, c->t, &c->result));
    QN_TRY(qn_aten_with_number(&y, c, &qn_op_Mul, y, scale));
    return qn_aten_return(c, y);
}

qn_status qn_aten_shrink(qn_aten_call *c)
{
    const bool soft = strcmp(c->op->name, "softshrink") == 0;
    qn_value *x, *y;
    double lambda;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_real(&lambda, c, "lambd"));
    QN_TRY(qn_graph_build(
        &y, c->b, &qn_op_Shrink, QN_INPUTS(x),
        QN_WITH(QN_A_REAL("lambd", (float)lambda), QN_A_REAL("bias", soft ? (float)lambda : 0))));
    return qn_aten_return(c, y);
}

qn_status qn_aten_gelu(qn_aten_call *c)
{
    const qn_torch_value *way = qn_aten_value(c, "approximate");
    qn_value *x, *y;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_graph_build(
        &y, c->b, &qn_op_Gelu, QN_INPUTS(x),
        QN_WITH(QN_A_TEXT("approximate", way->kind == QN_TORCH_TEXT ? way->text : "none"))));
    return qn_aten_return(c, y);
}

qn_status qn_aten_hardsigmoid(qn_aten_call *c)
{
    qn_value *x, *y;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_graph_build(&y, c->b, &qn_op_HardSigmoid, QN_INPUTS(x),
                          QN_WITH(QN_A_REAL("alpha", 1.0f / 6), QN_A_REAL("beta", 0.5f))));
    return qn_aten_return(c, y);
}

/* ---- Activations of several nodes ------------------------------------------------------------ */

qn_status qn_aten_silu(qn_aten_call *c)
{
    qn_value *x, *y;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_unary_node(&y, c, &qn_op_Sigmoid, x));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Mul, x, y));
    return qn_aten_return(c, y);
}

/* x * tanh(log(1 + exp(x))) */
qn_status qn_aten_mish(qn_aten_call *c)
{
    qn_value *x, *y;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_unary_node(&y, c, &qn_op_Softplus, x));
    QN_TRY(qn_aten_unary_node(&y, c, &qn_op_Tanh, y));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Mul, x, y));
    return qn_aten_return(c, y);
}

/* log(1 + exp(beta x)) / beta. Above the threshold PyTorch gives x, from which this differs by less
 * than exp(-threshold). */
qn_status qn_aten_softplus(qn_aten_call *c)
{
    qn_value *x;
    double beta;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_real(&beta, c, "beta"));
    if (beta != 1)
        QN_TRY(qn_aten_with_number(&x, c, &qn_op_Mul, x, beta));
    QN_TRY(qn_aten_unary_node(&x, c, &qn_op_Softplus, x));
    if (beta != 1)
        QN_TRY(qn_aten_with_number(&x, c, &qn_op_Div, x, beta));
    return qn_aten_return(c, x);
}

/* -log(1 + exp(-x)) */
qn_status qn_aten_log_sigmoid(qn_aten_call *c)
{
    qn_value *x;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_unary_node(&x, c, &qn_op_Neg, x));
    QN_TRY(qn_aten_unary_node(&x, c, &qn_op_Softplus, x));
    QN_TRY(qn_aten_unary_node(&x, c, &qn_op_Neg, x));
    return qn_aten_return(c, x);
}

/* The slopes are of channels, which stand second. */
qn_status qn_aten_prelu(qn_aten_call *c)
{
    qn_value *x, *slope, *y;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_tensor(&slope, c, "weight"));
    if (rank > 2 && slope->type.rank == 1) {
        int64_t shape[QN_MAX_RANK] = {-1};
        for (int32_t i = 1; i < rank - 1; i++)
            shape[i] = 1;
        QN_TRY(qn_aten_reshape(&slope, c, slope, shape, (size_t)rank - 1));
    }
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_PRelu, x, slope));
    return qn_aten_return(c, y);
}

/* One half of the axis times the sigmoid of the other. */
qn_status qn_aten_glu(qn_aten_call *c)
{
    qn_value *x, *parts[2], *y;
    int32_t rank;
    int64_t axis;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axis(&axis, c, "dim", rank));
    QN_TRY(qn_graph_build_several(parts, 2, c->b, &qn_op_Split, QN_INPUTS(x),
                                  QN_WITH(QN_A_INT("axis", axis), QN_A_INT("num_outputs", 2))));
    QN_TRY(qn_aten_unary_node(&y, c, &qn_op_Sigmoid, parts[1]));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Mul, parts[0], y));
    return qn_aten_return(c, y);
}

/* x where it is above the threshold, else the value. */
qn_status qn_aten_threshold(qn_aten_call *c)
{
    qn_value *x, *limit, *value, *above;
    double number;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_real(&number, c, "threshold"));
    QN_TRY(qn_aten_number_like(&limit, c, x, number));
    QN_TRY(qn_aten_real(&number, c, "value"));
    QN_TRY(qn_aten_number_like(&value, c, x, number));
    QN_TRY(qn_aten_binary_node(&above, c, &qn_op_Greater, x, limit));
    QN_TRY(qn_graph_build(&x, c->b, &qn_op_Where, QN_INPUTS(above, x, value), QN_PLAIN));
    return qn_aten_return(c, x);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static qn_status limit_value(qn_value **out, qn_aten_call *c, const qn_value *x, const char *name)
{
    double number;
    *out = NULL;
    if (!qn_aten_has(c, name))
        return QN_OK;
    QN_TRY(qn_aten_real(&number, c, name));
    return qn_aten_number_like(out, c, x, number);
}

/* Limits that are tensors. */
static qn_status limit_by_tensors(qn_aten_call *c, qn_value *x)
{
    qn_value *low, *high;
    QN_TRY(qn_aten_optional(&low, c, "min"));
    QN_TRY(qn_aten_optional(&high, c, "max"));
    if (low) {
        QN_TRY(qn_aten_cast(&low, c, low, qn_dtype_of(x)));
        QN_TRY(qn_aten_binary_node(&x, c, &qn_op_Max, x, low));
    }
    if (high) {
        QN_TRY(qn_aten_cast(&high, c, high, qn_dtype_of(x)));
        QN_TRY(qn_aten_binary_node(&x, c, &qn_op_Min, x, high));
    }
    return qn_aten_return(c, x);
}

/* Integers are limited by reals in float32. */
qn_status qn_aten_clamp(qn_aten_call *c)
{
    const qn_torch_value *ends[2] = {qn_aten_value(c, "min"), qn_aten_value(c, "max")};
    qn_value *x, *low, *high;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    for (int i = 0; i < 2; i++) {
        if (ends[i]->kind == QN_TORCH_TENSOR || ends[i]->kind == QN_TORCH_SIZE)
            return limit_by_tensors(c, x);
        if (ends[i]->kind == QN_TORCH_REAL && !qn_dtype_is_float(qn_dtype_of(x)))
            QN_TRY(qn_aten_cast(&x, c, x, QN_FLOAT32));
    }
    QN_TRY(limit_value(&low, c, x, "min"));
    QN_TRY(limit_value(&high, c, x, "max"));
    if (low || high)
        QN_TRY(qn_graph_build(&x, c->b, &qn_op_Clip, QN_INPUTS(x, low, high), QN_PLAIN));
    return qn_aten_return(c, x);
}

/* ---- Arithmetic ------------------------------------------------------------------------------ */

static const char *const operands[] = {"self", "other"};

static qn_status scale_by_alpha(qn_value **out, qn_aten_call *c, qn_value *y)
{
    double alpha = 1;
    *out = y;
    if (qn_aten_has(c, "alpha"))
        QN_TRY(qn_aten_real(&alpha, c, "alpha"));
    return alpha == 1 ? QN_OK : qn_aten_with_number(out, c, &qn_op_Mul, y, alpha);
}

/* self + alpha other, and so on; truths add as logical or and multiply as logical and. */
qn_status qn_aten_arithmetic(qn_aten_call *c)
{
    const qn_op *op = c->op->onnx;
    qn_value *v[2];
    qn_dtype dtype;
    QN_TRY(qn_aten_promote(v, &dtype, c, operands, 2));
    if (dtype == QN_BOOL && (op == &qn_op_Add || op == &qn_op_Mul))
        op = op == &qn_op_Add ? &qn_op_Or : &qn_op_And;
    QN_TRY(scale_by_alpha(&v[1], c, v[1]));
    QN_TRY(qn_aten_binary_node(&v[0], c, op, v[0], v[1]));
    return qn_aten_return(c, v[0]);
}

/* other - alpha self */
qn_status qn_aten_rsub(qn_aten_call *c)
{
    qn_value *v[2];
    qn_dtype dtype;
    QN_TRY(qn_aten_promote(v, &dtype, c, operands, 2));
    QN_TRY(scale_by_alpha(&v[0], c, v[0]));
    QN_TRY(qn_aten_binary_node(&v[0], c, &qn_op_Sub, v[1], v[0]));
    return qn_aten_return(c, v[0]);
}

/* sign(x) floor(|x|) */
static qn_status truncate(qn_value **out, qn_aten_call *c, qn_value *x)
{
    qn_value *sign;
    QN_TRY(qn_aten_unary_node(&sign, c, &qn_op_Sign, x));
    QN_TRY(qn_aten_unary_node(&x, c, &qn_op_Abs, x));
    QN_TRY(qn_aten_unary_node(&x, c, &qn_op_Floor, x));
    return qn_aten_binary_node(out, c, &qn_op_Mul, sign, x);
}

qn_status qn_aten_trunc(qn_aten_call *c)
{
    const bool rest = strcmp(c->op->name, "frac") == 0;
    qn_value *x, *whole;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    if (!qn_dtype_is_float(qn_dtype_of(x)))
        return qn_aten_return(c, x);
    QN_TRY(truncate(&whole, c, x));
    if (rest)
        QN_TRY(qn_aten_binary_node(&whole, c, &qn_op_Sub, x, whole));
    return qn_aten_return(c, whole);
}

/* (a - mod(a, b)) / b of integers. */
static qn_status floor_divide(qn_value **out, qn_aten_call *c, qn_value *a, qn_value *b)
{
    qn_value *y;
    if (qn_dtype_is_float(qn_dtype_of(a))) {
        QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Div, a, b));
        return qn_aten_unary_node(out, c, &qn_op_Floor, y);
    }
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Mod, a, b));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Sub, a, y));
    return qn_aten_binary_node(out, c, &qn_op_Div, y, b);
}

/* A quotient is real unless a rounding is asked for. */
qn_status qn_aten_div(qn_aten_call *c)
{
    const qn_torch_value *rounding = qn_aten_value(c, "rounding_mode");
    const bool rounded = rounding->kind == QN_TORCH_TEXT;
    qn_value *v[2], *y;
    qn_dtype dtype;
    QN_TRY(qn_aten_promote(v, &dtype, c, operands, 2));
    if (!rounded && !qn_dtype_is_float(dtype)) {
        QN_TRY(qn_aten_cast(&v[0], c, v[0], QN_FLOAT32));
        QN_TRY(qn_aten_cast(&v[1], c, v[1], QN_FLOAT32));
    }
    if (rounded && strcmp(rounding->text, "floor") == 0)
        QN_TRY(floor_divide(&y, c, v[0], v[1]));
    else
        QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Div, v[0], v[1]));
    if (rounded && strcmp(rounding->text, "trunc") == 0 && qn_dtype_is_float(dtype))
        QN_TRY(truncate(&y, c, y));
    return qn_aten_return(c, y);
}

qn_status qn_aten_floor_divide(qn_aten_call *c)
{
    qn_value *v[2], *y;
    qn_dtype dtype;
    QN_TRY(qn_aten_promote(v, &dtype, c, operands, 2));
    QN_TRY(floor_divide(&y, c, v[0], v[1]));
    return qn_aten_return(c, y);
}

/* a - floor(a / b) b has the sign of b; ONNX's Mod has that for integers only. fmod has the sign
 * of a. */
qn_status qn_aten_remainder(qn_aten_call *c)
{
    const bool fmod = strcmp(c->op->name, "fmod") == 0;
    qn_value *v[2], *y;
    qn_dtype dtype;
    QN_TRY(qn_aten_promote(v, &dtype, c, operands, 2));
    if (fmod || !qn_dtype_is_float(dtype)) {
        QN_TRY(qn_graph_build(&y, c->b, &qn_op_Mod, QN_INPUTS(v[0], v[1]),
                              QN_WITH(QN_A_INT("fmod", fmod))));
        return qn_aten_return(c, y);
    }
    QN_TRY(floor_divide(&y, c, v[0], v[1]));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Mul, y, v[1]));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Sub, v[0], y));
    return qn_aten_return(c, y);
}

qn_status qn_aten_square(qn_aten_call *c)
{
    qn_value *x;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_binary_node(&x, c, &qn_op_Mul, x, x));
    return qn_aten_return(c, x);
}

qn_status qn_aten_rsqrt(qn_aten_call *c)
{
    qn_value *x;
    QN_TRY(real_tensor(&x, c, "self"));
    QN_TRY(qn_aten_unary_node(&x, c, &qn_op_Sqrt, x));
    QN_TRY(qn_aten_unary_node(&x, c, &qn_op_Reciprocal, x));
    return qn_aten_return(c, x);
}

/* Logarithms to other bases, and the pair that keeps digits near 0. */
qn_status qn_aten_logarithm(qn_aten_call *c)
{
    static const struct {
        const char *name;
        double scale, before, after;
        bool exponential;
    } kinds[] = {
        {"log2", 1.4426950408889634, 0, 0, false},
        {"log10", 0.43429448190325182, 0, 0, false},
        {"log1p", 1, 1, 0, false},
        {"expm1", 1, 0, -1, true},
        {"exp2", 0.69314718055994531, 0, 0, true},
    };
    qn_value *x;
    size_t k = 0;
    while (k + 1 < QN_COUNT_OF(kinds) && strcmp(kinds[k].name, c->op->name) != 0)
        k++;
    QN_TRY(real_tensor(&x, c, "self"));
    if (kinds[k].before != 0)
        QN_TRY(qn_aten_with_number(&x, c, &qn_op_Add, x, kinds[k].before));
    if (kinds[k].exponential && kinds[k].scale != 1)
        QN_TRY(qn_aten_with_number(&x, c, &qn_op_Mul, x, kinds[k].scale));
    QN_TRY(qn_aten_unary_node(&x, c, kinds[k].exponential ? &qn_op_Exp : &qn_op_Log, x));
    if (!kinds[k].exponential && kinds[k].scale != 1)
        QN_TRY(qn_aten_with_number(&x, c, &qn_op_Mul, x, kinds[k].scale));
    if (kinds[k].after != 0)
        QN_TRY(qn_aten_with_number(&x, c, &qn_op_Add, x, kinds[k].after));
    return qn_aten_return(c, x);
}

/* self + value tensor1 (* or /) tensor2 */
qn_status qn_aten_addc(qn_aten_call *c)
{
    const qn_op *op = c->op->onnx;
    qn_value *x, *a, *b;
    double value;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_tensor(&a, c, "tensor1"));
    QN_TRY(qn_aten_tensor(&b, c, "tensor2"));
    QN_TRY(qn_aten_real(&value, c, "value"));
    QN_TRY(qn_aten_binary_node(&a, c, op, a, b));
    if (value != 1)
        QN_TRY(qn_aten_with_number(&a, c, &qn_op_Mul, a, value));
    QN_TRY(qn_aten_binary_node(&x, c, &qn_op_Add, x, a));
    return qn_aten_return(c, x);
}

/* self + weight (end - self) */
qn_status qn_aten_lerp(qn_aten_call *c)
{
    qn_value *x, *end, *weight;
    QN_TRY(qn_aten_tensor(&x, c, "self"));
    QN_TRY(qn_aten_tensor(&end, c, "end"));
    QN_TRY(qn_aten_tensor(&weight, c, "weight"));
    QN_TRY(qn_aten_cast(&weight, c, weight, qn_dtype_of(x)));
    QN_TRY(qn_aten_binary_node(&end, c, &qn_op_Sub, end, x));
    QN_TRY(qn_aten_binary_node(&end, c, &qn_op_Mul, end, weight));
    QN_TRY(qn_aten_binary_node(&x, c, &qn_op_Add, x, end));
    return qn_aten_return(c, x);
}
