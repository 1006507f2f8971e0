/* Functions of one number. */
#include <math.h>

#include "import/paddle/paddle.h"

qn_status qn_paddle_unary(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_make(&x, l, l->op->row->onnx, x));
    return qn_paddle_out(l, "Out", x);
}

/* An ONNX operator whose alpha is the attribute of one of these names. */
static qn_status with_alpha(qn_paddle_layer *l, const char *names, double fallback)
{
    const float alpha = (float)qn_paddle_real(l, names, fallback);
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_graph_build(&x, l->b, l->op->row->onnx, QN_INPUTS(x),
                          QN_WITH(QN_A_REAL("alpha", alpha))));
    return qn_paddle_out(l, "Out", x);
}

qn_status qn_paddle_leaky_relu(qn_paddle_layer *l)
{
    return with_alpha(l, "alpha negative_slope", 0.02);
}

qn_status qn_paddle_elu(qn_paddle_layer *l)
{
    return with_alpha(l, "alpha", 1);
}

qn_status qn_paddle_thresholded_relu(qn_paddle_layer *l)
{
    if (qn_paddle_real(l, "value", 0) != 0)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "a value other than 0 below the threshold");
    return with_alpha(l, "threshold", 1);
}

qn_status qn_paddle_selu(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_graph_build(
        &x, l->b, &qn_op_Selu, QN_INPUTS(x),
        QN_WITH(QN_A_REAL("alpha", (float)qn_paddle_real(l, "alpha", 1.6732632423543772)),
                QN_A_REAL("gamma", (float)qn_paddle_real(l, "scale", 1.0507009873554805)))));
    return qn_paddle_out(l, "Out", x);
}

qn_status qn_paddle_hard_sigmoid(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_HardSigmoid, QN_INPUTS(x),
                          QN_WITH(QN_A_REAL("alpha", (float)qn_paddle_real(l, "slope", 0.2)),
                                  QN_A_REAL("beta", (float)qn_paddle_real(l, "offset", 0.5)))));
    return qn_paddle_out(l, "Out", x);
}

static qn_status clip(qn_value **x, const qn_paddle_layer *l, double least, double most)
{
    qn_value *from, *to;
    QN_TRY(qn_paddle_number_of(&from, l, (*x)->type.dtype ? (*x)->type.dtype : QN_FLOAT32, least));
    QN_TRY(qn_paddle_number_of(&to, l, (*x)->type.dtype ? (*x)->type.dtype : QN_FLOAT32, most));
    return qn_graph_build(x, l->b, &qn_op_Clip, QN_INPUTS(*x, from, to), QN_PLAIN);
}

/* PaddlePaddle 3 does not look at the attributes. */
qn_status qn_paddle_hard_swish(qn_paddle_layer *l)
{
    const double threshold = qn_paddle_real(l, "threshold", 6),
                 scale = qn_paddle_real(l, "scale", 6), offset = qn_paddle_real(l, "offset", 3);
    qn_value *x;
    if (threshold != 6 || scale != 6 || offset != 3)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "x min(max(x + %g, 0), %g) / %g", offset,
                              threshold, scale);
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_make(&x, l, &qn_op_HardSwish, x));
    return qn_paddle_out(l, "Out", x);
}

qn_status qn_paddle_relu6(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(clip(&x, l, 0, qn_paddle_real(l, "threshold", 6)));
    return qn_paddle_out(l, "Out", x);
}

qn_status qn_paddle_hard_tanh(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(clip(&x, l, qn_paddle_real(l, "t_min", 0), qn_paddle_real(l, "t_max", 24)));
    return qn_paddle_out(l, "Out", x);
}

/* x * sigmoid(beta * x) */
qn_status qn_paddle_swish(qn_paddle_layer *l)
{
    const double beta = qn_paddle_real(l, "beta", 1);
    qn_value *x, *gate;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    gate = x;
    if (beta != 1)
        QN_TRY(qn_paddle_with(&gate, l, &qn_op_Mul, x, beta));
    QN_TRY(qn_paddle_make(&gate, l, &qn_op_Sigmoid, gate));
    QN_TRY(qn_paddle_make2(&x, l, &qn_op_Mul, x, gate));
    return qn_paddle_out(l, "Out", x);
}

qn_status qn_paddle_gelu(qn_paddle_layer *l)
{
    const char *form = qn_paddle_int(l, "approximate", 0) ? "tanh" : "none";
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_Gelu, QN_INPUTS(x),
                          QN_WITH(QN_A_TEXT("approximate", form))));
    return qn_paddle_out(l, "Out", x);
}

/* log(1 + exp(beta * x)) / beta. Above the threshold PaddlePaddle gives x, which is the same to
 * e^-20. */
qn_status qn_paddle_softplus(qn_paddle_layer *l)
{
    const double beta = qn_paddle_real(l, "beta", 1);
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    if (beta != 1)
        QN_TRY(qn_paddle_with(&x, l, &qn_op_Mul, x, beta));
    QN_TRY(qn_paddle_make(&x, l, &qn_op_Softplus, x));
    if (beta != 1)
        QN_TRY(qn_paddle_with(&x, l, &qn_op_Div, x, beta));
    return qn_paddle_out(l, "Out", x);
}

/* Numbers nearer to 0 than lambda become 0; the soft one moves the others by lambda. */
static qn_status shrink(qn_paddle_layer *l, const char *names, bool soft)
{
    const float lambda = (float)qn_paddle_real(l, names, 0.5);
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_graph_build(
        &x, l->b, &qn_op_Shrink, QN_INPUTS(x),
        QN_WITH(QN_A_REAL("lambd", lambda), QN_A_REAL("bias", soft ? lambda : 0.0F))));
    return qn_paddle_out(l, "Out", x);
}

qn_status qn_paddle_hard_shrink(qn_paddle_layer *l)
{
    return shrink(l, "threshold", false);
}

qn_status qn_paddle_soft_shrink(qn_paddle_layer *l)
{
    return shrink(l, "lambda threshold", true);
}

qn_status qn_paddle_tanh_shrink(qn_paddle_layer *l)
{
    qn_value *x, *y;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_make(&y, l, &qn_op_Tanh, x));
    QN_TRY(qn_paddle_make2(&y, l, &qn_op_Sub, x, y));
    return qn_paddle_out(l, "Out", y);
}

/* -softplus(-x) */
qn_status qn_paddle_log_sigmoid(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_make(&x, l, &qn_op_Neg, x));
    QN_TRY(qn_paddle_make(&x, l, &qn_op_Softplus, x));
    QN_TRY(qn_paddle_make(&x, l, &qn_op_Neg, x));
    return qn_paddle_out(l, "Out", x);
}

/* b * tanh(a * x) */
qn_status qn_paddle_stanh(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_with(&x, l, &qn_op_Mul, x, qn_paddle_real(l, "scale_a", 0.67)));
    QN_TRY(qn_paddle_make(&x, l, &qn_op_Tanh, x));
    QN_TRY(qn_paddle_with(&x, l, &qn_op_Mul, x, qn_paddle_real(l, "scale_b", 1.7159)));
    return qn_paddle_out(l, "Out", x);
}

qn_status qn_paddle_square(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_make2(&x, l, &qn_op_Mul, x, x));
    return qn_paddle_out(l, "Out", x);
}

qn_status qn_paddle_rsqrt(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_make(&x, l, &qn_op_Sqrt, x));
    QN_TRY(qn_paddle_make(&x, l, &qn_op_Reciprocal, x));
    return qn_paddle_out(l, "Out", x);
}

static qn_status log_of_base(qn_paddle_layer *l, double base)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_make(&x, l, &qn_op_Log, x));
    QN_TRY(qn_paddle_with(&x, l, &qn_op_Div, x, log(base)));
    return qn_paddle_out(l, "Out", x);
}

qn_status qn_paddle_log2(qn_paddle_layer *l)
{
    return log_of_base(l, 2);
}

qn_status qn_paddle_log10(qn_paddle_layer *l)
{
    return log_of_base(l, 10);
}

qn_status qn_paddle_log1p(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_with(&x, l, &qn_op_Add, x, 1));
    QN_TRY(qn_paddle_make(&x, l, &qn_op_Log, x));
    return qn_paddle_out(l, "Out", x);
}

qn_status qn_paddle_expm1(qn_paddle_layer *l)
{
    qn_value *x;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_make(&x, l, &qn_op_Exp, x));
    QN_TRY(qn_paddle_with(&x, l, &qn_op_Sub, x, 1));
    return qn_paddle_out(l, "Out", x);
}

/* Halves go to even numbers, as ONNX's do. */
qn_status qn_paddle_round(qn_paddle_layer *l)
{
    if (qn_paddle_int(l, "decimals", 0) != 0)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "decimals");
    return qn_paddle_unary(l);
}

/* One alpha for all, per channel, or per element of a sample. */
qn_status qn_paddle_prelu(qn_paddle_layer *l)
{
    static const int64_t one[] = {1};
    int64_t axes[QN_MAX_RANK];
    qn_value *x, *alpha, *y;
    int32_t rank;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_in(&alpha, l, "Alpha"));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    if (qn_paddle_says(l, "mode", "channel")) {
        static const int64_t flat[] = {-1};
        QN_TRY(qn_paddle_reshape(&alpha, l, alpha, flat, 1));
        for (int32_t i = 1; i < rank - 1; i++)
            axes[i - 1] = i;
        if (rank > 2 && !qn_paddle_is_last(l))
            QN_TRY(qn_paddle_unsqueeze(&alpha, l, alpha, axes, (size_t)rank - 2));
    } else if (!qn_paddle_says(l, "mode", "element")) {
        QN_TRY(qn_paddle_reshape(&alpha, l, alpha, one, 1));
    }
    QN_TRY(qn_paddle_make2(&y, l, &qn_op_PRelu, x, alpha));
    return qn_paddle_out(l, "Out", y);
}

/* The largest of each group of channels. */
qn_status qn_paddle_maxout(qn_paddle_layer *l)
{
    const int64_t groups = qn_paddle_int(l, "groups", 1);
    int64_t shape[QN_MAX_RANK + 1] = {0}, axis = qn_paddle_int(l, "axis", 1);
    qn_value *x, *axes;
    int32_t rank;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    QN_TRY(qn_paddle_axis(&axis, l, rank));
    const int64_t channels = x->type.dims[axis].value;
    if (groups < 1 || channels < groups || rank == QN_MAX_RANK)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "%lld groups of %lld channels",
                              (long long)groups, (long long)channels);
    for (int32_t i = 0; i <= rank; i++)
        shape[i] = i == axis ? channels / groups : i == axis + 1 ? groups : i < axis ? 0 : -1;
    for (int32_t i = (int32_t)axis + 2; i <= rank; i++)
        shape[i] = x->type.dims[i - 1].value;
    const int64_t reduced = axis + 1;
    QN_TRY(qn_graph_build_ints(&axes, l->b, &reduced, 1));
    QN_TRY(qn_paddle_reshape(&x, l, x, shape, (size_t)rank + 1));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_ReduceMax, QN_INPUTS(x, axes),
                          QN_WITH(QN_A_INT("keepdims", 0))));
    return qn_paddle_out(l, "Out", x);
}
