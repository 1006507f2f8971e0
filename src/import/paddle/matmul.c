/* Matrix products. */
#include "import/paddle/paddle.h"

/* Swaps the last two axes. */
static qn_status turn(qn_value **x, const qn_paddle_layer *l)
{
    int64_t perm[QN_MAX_RANK];
    int32_t rank;
    QN_TRY(qn_paddle_rank(&rank, l, *x));
    if (rank < 2)
        return QN_OK;
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i;
    perm[rank - 1] = rank - 2;
    perm[rank - 2] = rank - 1;
    return qn_paddle_transpose(x, l, *x, perm, (size_t)rank);
}

qn_status qn_paddle_matmul(qn_paddle_layer *l)
{
    const double alpha = qn_paddle_real(l, "alpha", 1);
    qn_value *x, *y, *out;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_in(&y, l, "Y Vec"));
    if (qn_paddle_int(l, "trans_x transpose_x transpose_X", 0))
        QN_TRY(turn(&x, l));
    if (qn_paddle_int(l, "trans_y transpose_y transpose_Y", 0))
        QN_TRY(turn(&y, l));
    QN_TRY(qn_paddle_make2(&out, l, &qn_op_MatMul, x, y));
    if (alpha != 1)
        QN_TRY(qn_paddle_with(&out, l, &qn_op_Mul, out, alpha));
    return qn_paddle_out(l, "Out", out);
}

/* The product of x and y as matrices, the first `rows` axes of x and the first `columns` of y being
 * one each; the result has the other axes again. */
static qn_status flat_product(qn_value **out, const qn_paddle_layer *l, qn_value *x, qn_value *y,
                              int64_t rows, int64_t columns)
{
    qn_value *dims[2], *a, *b, *shape;
    int32_t rank_x, rank_y;
    QN_TRY(qn_paddle_rank(&rank_x, l, x));
    QN_TRY(qn_paddle_rank(&rank_y, l, y));
    if (rows < 1 || rows > rank_x || columns < 1 || columns > rank_y)
        return qn_paddle_fail(l, QN_E_FORMAT, "%lld axes of rank %d by %lld of rank %d",
                              (long long)rows, rank_x, (long long)columns, rank_y);
    if (rows == rank_x - 1 && columns == 1 && rank_y == 2)
        return qn_paddle_make2(out, l, &qn_op_MatMul, x, y);
    QN_TRY(qn_graph_build(&a, l->b, &qn_op_Flatten, QN_INPUTS(x), QN_WITH(QN_A_INT("axis", rows))));
    QN_TRY(
        qn_graph_build(&b, l->b, &qn_op_Flatten, QN_INPUTS(y), QN_WITH(QN_A_INT("axis", columns))));
    QN_TRY(qn_paddle_make2(out, l, &qn_op_MatMul, a, b));
    if (rows == 1 && columns == rank_y - 1)
        return QN_OK;
    QN_TRY(
        qn_graph_build(&dims[0], l->b, &qn_op_Shape, QN_INPUTS(x), QN_WITH(QN_A_INT("end", rows))));
    QN_TRY(qn_graph_build(&dims[1], l->b, &qn_op_Shape, QN_INPUTS(y),
                          QN_WITH(QN_A_INT("start", columns))));
    QN_TRY(qn_paddle_concat(&shape, l, dims, 2, 0));
    return qn_paddle_make2(out, l, &qn_op_Reshape, *out, shape);
}

qn_status qn_paddle_mul(qn_paddle_layer *l)
{
    qn_value *x, *y, *out;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_in(&y, l, "Y"));
    QN_TRY(flat_product(&out, l, x, y, qn_paddle_int(l, "x_num_col_dims", 1),
                        qn_paddle_int(l, "y_num_col_dims", 1)));
    return qn_paddle_out(l, "Out", out);
}

qn_status qn_paddle_fc(qn_paddle_layer *l)
{
    qn_value *x, *weights, *bias, *out;
    QN_TRY(qn_paddle_in(&x, l, "Input"));
    QN_TRY(qn_paddle_in(&weights, l, "W"));
    QN_TRY(qn_paddle_maybe(&bias, l, "Bias"));
    if (qn_paddle_int(l, "padding_weights", 0))
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "padded weights");
    QN_TRY(flat_product(&out, l, x, weights, qn_paddle_int(l, "in_num_col_dims", 1), 1));
    if (bias)
        QN_TRY(qn_paddle_make2(&out, l, &qn_op_Add, out, bias));
    if (qn_paddle_says(l, "activation_type", "relu"))
        QN_TRY(qn_paddle_make(&out, l, &qn_op_Relu, out));
    else if (qn_paddle_text(l, "activation_type", "")[0])
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "an activation other than relu");
    return qn_paddle_out(l, "Out", out);
}

/* The sum of products along the last axis. */
qn_status qn_paddle_dot(qn_paddle_layer *l)
{
    static const int64_t last[] = {-1};
    qn_value *x, *y, *axes;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_in(&y, l, "Y"));
    QN_TRY(qn_paddle_make2(&x, l, &qn_op_Mul, x, y));
    QN_TRY(qn_graph_build_ints(&axes, l->b, last, 1));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_ReduceSum, QN_INPUTS(x, axes),
                          QN_WITH(QN_A_INT("keepdims", 0))));
    return qn_paddle_out(l, "Out", x);
}

/* beta * input + alpha * x y */
qn_status qn_paddle_addmm(qn_paddle_layer *l)
{
    qn_value *input, *x, *y;
    QN_TRY(qn_paddle_in(&input, l, "Input"));
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_in(&y, l, "Y"));
    QN_TRY(qn_graph_build(&x, l->b, &qn_op_Gemm, QN_INPUTS(x, y, input),
                          QN_WITH(QN_A_REAL("alpha", (float)qn_paddle_real(l, "Alpha alpha", 1)),
                                  QN_A_REAL("beta", (float)qn_paddle_real(l, "Beta beta", 1)))));
    return qn_paddle_out(l, "Out", x);
}

/* Attention's and other sums of products in einsum's notation. */
qn_status qn_paddle_einsum(qn_paddle_layer *l)
{
    const char *equation = qn_paddle_text(l, "equation", "");
    const size_t count = qn_paddle_in_count(l, "Operands");
    qn_value *in[8], *out;
    if (count < 1 || count > QN_COUNT_OF(in))
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "%zu operands", count);
    for (size_t i = 0; i < count; i++)
        QN_TRY(qn_paddle_in_at(&in[i], l, "Operands", i));
    QN_TRY(qn_graph_build(&out, l->b, &qn_op_Einsum, (qn_graph_build_inputs){in, count},
                          QN_WITH(QN_A_TEXT("equation", equation))));
    return qn_paddle_out(l, "Out", out);
}
