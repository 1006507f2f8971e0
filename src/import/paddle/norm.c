/* Normalizations. */
#include "import/paddle/paddle.h"

/* A factor or summand per channel; where the layer has none, `number` for each. */
static qn_status per_channel(qn_value **out, const qn_paddle_layer *l, const char *slot,
                             int64_t channels, float number)
{
    QN_TRY(qn_paddle_maybe(out, l, slot));
    if (*out)
        return QN_OK;
    if (channels < 0 || channels > INT32_MAX)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "it has no %s and its channels are not known",
                              slot);
    float *numbers = qn_arena_array(&l->b->model->arena, (size_t)channels + 1, sizeof *numbers);
    QN_TRY_ALLOC(l->b->ctx, numbers);
    for (int64_t i = 0; i < channels; i++)
        numbers[i] = number;
    return qn_graph_build_reals(out, l->b, numbers, (size_t)channels);
}

static int64_t dim_of(const qn_value *value, int32_t axis)
{
    return value->type.kind == QN_TYPE_TENSOR && value->type.rank > axis
               ? value->type.dims[axis].value
               : -1;
}

qn_status qn_paddle_batch_norm(qn_paddle_layer *l)
{
    qn_value *x, *scale, *bias, *mean, *variance, *y;
    if (!qn_paddle_int(l, "is_test", 0) && !qn_paddle_int(l, "use_global_stats", 0))
        return qn_paddle_fail(l, QN_E_UNSUPPORTED,
                              "it is of a program for training; save the model for inference");
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_to_first(&x, l));
    QN_TRY(qn_paddle_in(&mean, l, "Mean"));
    QN_TRY(qn_paddle_in(&variance, l, "Variance"));
    QN_TRY(per_channel(&scale, l, "Scale", dim_of(mean, 0), 1));
    QN_TRY(per_channel(&bias, l, "Bias", dim_of(mean, 0), 0));
    QN_TRY(qn_graph_build(
        &y, l->b, &qn_op_BatchNormalization, QN_INPUTS(x, scale, bias, mean, variance),
        QN_WITH(QN_A_REAL("epsilon", (float)qn_paddle_real(l, "epsilon", 1e-5)))));
    QN_TRY(qn_paddle_from_first(&y, l));
    return qn_paddle_out(l, "Y", y);
}

/* The dims of x from an axis on, as int64[n]. */
static qn_status dims_from(qn_value **out, const qn_paddle_layer *l, qn_value *x, int64_t axis)
{
    return qn_graph_build(out, l->b, &qn_op_Shape, QN_INPUTS(x), QN_WITH(QN_A_INT("start", axis)));
}

/* Factors and summands lie in one row, ONNX wants them in the shape of what is normalized. */
static qn_status shaped(qn_value **out, const qn_paddle_layer *l, const char *slot, qn_value *x,
                        int64_t axis, float number)
{
    const int32_t rank = x->type.rank;
    qn_value *shape;
    QN_TRY(qn_paddle_maybe(out, l, slot));
    if (*out && axis == rank - 1)
        return QN_OK;
    QN_TRY(dims_from(&shape, l, x, axis));
    if (*out)
        return qn_paddle_make2(out, l, &qn_op_Reshape, *out, shape);
    QN_TRY(qn_graph_build_real(out, l->b, number));
    return qn_paddle_make2(out, l, &qn_op_Expand, *out, shape);
}

qn_status qn_paddle_layer_norm(qn_paddle_layer *l)
{
    qn_value *x, *scale, *bias = NULL, *y;
    int64_t axis = qn_paddle_int(l, "begin_norm_axis", 1);
    int32_t rank;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    QN_TRY(qn_paddle_axis(&axis, l, rank));
    QN_TRY(shaped(&scale, l, "Scale", x, axis, 1));
    if (qn_paddle_has(l, "Bias"))
        QN_TRY(shaped(&bias, l, "Bias", x, axis, 0));
    QN_TRY(
        qn_graph_build(&y, l->b, &qn_op_LayerNormalization, QN_INPUTS(x, scale, bias),
                       QN_WITH(QN_A_INT("axis", axis),
                               QN_A_REAL("epsilon", (float)qn_paddle_real(l, "epsilon", 1e-5)))));
    return qn_paddle_out(l, "Y", y);
}

static qn_status instance_norm(qn_value **out, const qn_paddle_layer *l, qn_value *x,
                               qn_value *scale, qn_value *bias)
{
    return qn_graph_build(out, l->b, &qn_op_InstanceNormalization, QN_INPUTS(x, scale, bias),
                          QN_WITH(QN_A_REAL("epsilon", (float)qn_paddle_real(l, "epsilon", 1e-5))));
}

qn_status qn_paddle_instance_norm(qn_paddle_layer *l)
{
    qn_value *x, *scale, *bias, *y;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(per_channel(&scale, l, "Scale", dim_of(x, 1), 1));
    QN_TRY(per_channel(&bias, l, "Bias", dim_of(x, 1), 0));
    QN_TRY(instance_norm(&y, l, x, scale, bias));
    return qn_paddle_out(l, "Y", y);
}

/* [C] as [C, 1, ...] beside an input of that rank. */
static qn_status apply(qn_value **y, const qn_paddle_layer *l, const char *slot, const qn_op *op,
                       int32_t rank)
{
    int64_t axes[QN_MAX_RANK];
    qn_value *numbers;
    QN_TRY(qn_paddle_maybe(&numbers, l, slot));
    if (!numbers)
        return QN_OK;
    for (int32_t i = 0; i < rank - 2; i++)
        axes[i] = i + 1;
    QN_TRY(qn_paddle_unsqueeze(&numbers, l, numbers, axes, (size_t)rank - 2));
    return qn_paddle_make2(y, l, op, *y, numbers);
}

/* Groups become the channels of an InstanceNormalization, which opset 14 has. */
qn_status qn_paddle_group_norm(qn_paddle_layer *l)
{
    const int64_t groups = qn_paddle_int(l, "groups", 1), shape[] = {0, groups, -1};
    qn_value *x, *y, *dims, *one, *zero;
    int32_t rank;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_to_first(&x, l));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    if (groups < 1 || rank < 2)
        return qn_paddle_fail(l, QN_E_FORMAT, "%lld groups for rank %d", (long long)groups, rank);
    QN_TRY(per_channel(&one, l, "no", groups, 1));
    QN_TRY(per_channel(&zero, l, "no", groups, 0));
    QN_TRY(dims_from(&dims, l, x, 0));
    QN_TRY(qn_paddle_reshape(&y, l, x, shape, 3));
    QN_TRY(instance_norm(&y, l, y, one, zero));
    QN_TRY(qn_paddle_make2(&y, l, &qn_op_Reshape, y, dims));
    QN_TRY(apply(&y, l, "Scale", &qn_op_Mul, rank));
    QN_TRY(apply(&y, l, "Bias", &qn_op_Add, rank));
    QN_TRY(qn_paddle_from_first(&y, l));
    return qn_paddle_out(l, "Y", y);
}

/* x * scale + bias for each channel. */
qn_status qn_paddle_affine_channel(qn_paddle_layer *l)
{
    qn_value *x;
    int32_t rank;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_to_first(&x, l));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    if (rank < 2)
        return qn_paddle_fail(l, QN_E_FORMAT, "channels in rank %d", rank);
    QN_TRY(apply(&x, l, "Scale", &qn_op_Mul, rank));
    QN_TRY(apply(&x, l, "Bias", &qn_op_Add, rank));
    QN_TRY(qn_paddle_from_first(&x, l));
    return qn_paddle_out(l, "Out", x);
}

/* PaddlePaddle's alpha is for each number, ONNX's for the sum over the window. */
qn_status qn_paddle_lrn(qn_paddle_layer *l)
{
    const int64_t n = qn_paddle_int(l, "n", 5);
    const double alpha = qn_paddle_real(l, "alpha", 1e-4);
    qn_value *x, *y;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_to_first(&x, l));
    QN_TRY(
        qn_graph_build(&y, l->b, &qn_op_LRN, QN_INPUTS(x),
                       QN_WITH(QN_A_INT("size", n), QN_A_REAL("alpha", (float)(alpha * (double)n)),
                               QN_A_REAL("beta", (float)qn_paddle_real(l, "beta", 0.75)),
                               QN_A_REAL("bias", (float)qn_paddle_real(l, "k", 1)))));
    QN_TRY(qn_paddle_from_first(&y, l));
    return qn_paddle_out(l, "Out", y);
}

/* x / sqrt(sum of squares along the axis + epsilon) */
qn_status qn_paddle_norm(qn_paddle_layer *l)
{
    const int64_t axis = qn_paddle_int(l, "axis", -1);
    qn_value *x, *y, *axes;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_graph_build_ints(&axes, l->b, &axis, 1));
    QN_TRY(qn_paddle_make2(&y, l, &qn_op_ReduceSumSquare, x, axes));
    QN_TRY(qn_paddle_with(&y, l, &qn_op_Add, y, qn_paddle_real(l, "epsilon", 1e-10)));
    QN_TRY(qn_paddle_make(&y, l, &qn_op_Sqrt, y));
    QN_TRY(qn_paddle_out(l, "Norm", y));
    QN_TRY(qn_paddle_make2(&y, l, &qn_op_Div, x, y));
    return qn_paddle_out(l, "Out", y);
}
