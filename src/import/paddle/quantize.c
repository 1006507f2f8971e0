/* Scales that a training for integers has left in the program: they become QuantizeLinear and
 * DequantizeLinear, whose parameters are taken as ours. */
#include "import/paddle/paddle.h"

/* The largest number of so many bits: 127 of 8. PaddlePaddle's scales are what it stands for. */
static qn_status largest_of(double *out, const qn_paddle_layer *l)
{
    const int64_t bits = qn_paddle_int(l, "bit_length", 8);
    if (bits != 8 && bits != 16)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "numbers of %lld bits", (long long)bits);
    *out = bits == 8 ? 127 : 32767;
    return QN_OK;
}

static qn_dtype type_of(double largest)
{
    return largest == 127 ? QN_INT8 : QN_INT16;
}

/* The scales of a slot in parts of the largest number: one (rank 0), or one for each channel. */
static qn_status step_of(qn_value **out, const qn_paddle_layer *l, const char *slot, double largest)
{
    static const int64_t none[] = {0};
    qn_value *scale;
    qn_ints dims;
    QN_TRY(qn_paddle_in(&scale, l, slot));
    QN_TRY(qn_paddle_with(out, l, &qn_op_Div, scale, largest));
    if (qn_paddle_contents(&dims, l, scale) && dims.count == 1)
        QN_TRY(qn_paddle_reshape(out, l, *out, none, 0));
    return QN_OK;
}

/* A zero point of 0 for each step. */
static qn_status zero_of(qn_value **out, const qn_paddle_layer *l, qn_value *step, qn_dtype dtype)
{
    qn_value *zero, *shape;
    QN_TRY(qn_paddle_number_of(&zero, l, dtype, 0));
    *out = zero;
    if (step->type.kind == QN_TYPE_TENSOR && step->type.rank == 0)
        return QN_OK;
    QN_TRY(qn_paddle_make(&shape, l, &qn_op_Shape, step));
    return qn_paddle_make2(out, l, &qn_op_Expand, zero, shape);
}

/* -1 means one scale for all. */
static int64_t axis_of(const qn_paddle_layer *l)
{
    const int64_t axis = qn_paddle_int(l, "quant_axis", 0);
    return axis < 0 ? 0 : axis;
}

static qn_status build(qn_value **x, const qn_paddle_layer *l, const qn_op *op, qn_value *step,
                       qn_dtype dtype)
{
    qn_value *zero;
    QN_TRY(zero_of(&zero, l, step, dtype));
    return qn_graph_build(x, l->b, op, QN_INPUTS(*x, step, zero),
                          QN_WITH(QN_A_INT("axis", axis_of(l))));
}

/* Their zero points are all 0. */
static qn_status read_step(qn_value **step, double *largest, const qn_paddle_layer *l)
{
    qn_value *zeros;
    qn_ints numbers;
    QN_TRY(largest_of(largest, l));
    QN_TRY(qn_paddle_maybe(&zeros, l, "ZeroPoint"));
    if (zeros && qn_paddle_contents(&numbers, l, zeros)) {
        for (size_t i = 0; i < numbers.count; i++) {
            if (numbers.at[i] != 0)
                return qn_paddle_fail(l, QN_E_UNSUPPORTED, "a zero point other than 0");
        }
    }
    return step_of(step, l, "Scale", *largest);
}

qn_status qn_paddle_quantize_linear(qn_paddle_layer *l)
{
    double largest = 0;
    qn_value *x, *step;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(read_step(&step, &largest, l));
    QN_TRY(build(&x, l, &qn_op_QuantizeLinear, step, type_of(largest)));
    return qn_paddle_out(l, "Y", x);
}

/* Weights may be whole numbers in floats. */
qn_status qn_paddle_dequantize_linear(qn_paddle_layer *l)
{
    double largest = 0;
    qn_value *x, *step;
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(read_step(&step, &largest, l));
    QN_TRY(qn_paddle_cast(&x, l, x, type_of(largest)));
    QN_TRY(build(&x, l, &qn_op_DequantizeLinear, step, type_of(largest)));
    return qn_paddle_out(l, "Y", x);
}

/* Both at once, with a scale that was learned. */
qn_status qn_paddle_fake_quantize(qn_paddle_layer *l)
{
    double largest = 0;
    qn_value *x, *step;
    if (!qn_paddle_int(l, "is_test", 0))
        return qn_paddle_fail(l, QN_E_UNSUPPORTED,
                              "it is of a program for training; save the model for inference");
    QN_TRY(largest_of(&largest, l));
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(step_of(&step, l, "InScale", largest));
    QN_TRY(build(&x, l, &qn_op_QuantizeLinear, step, type_of(largest)));
    QN_TRY(build(&x, l, &qn_op_DequantizeLinear, step, type_of(largest)));
    return qn_paddle_out(l, "Out", x);
}

/* The same of weights, whose scale is the largest of each channel. */
qn_status qn_paddle_fake_quantize_channels(qn_paddle_layer *l)
{
    int64_t axes[QN_MAX_RANK];
    size_t count = 0;
    double largest = 0;
    qn_value *x, *step, *list;
    int32_t rank;
    QN_TRY(largest_of(&largest, l));
    QN_TRY(qn_paddle_in(&x, l, "X"));
    QN_TRY(qn_paddle_rank(&rank, l, x));
    for (int32_t i = 0; i < rank; i++) {
        if (i != axis_of(l))
            axes[count++] = i;
    }
    QN_TRY(qn_paddle_make(&step, l, &qn_op_Abs, x));
    QN_TRY(qn_graph_build_ints(&list, l->b, axes, count));
    QN_TRY(qn_graph_build(&step, l->b, &qn_op_ReduceMax, QN_INPUTS(step, list),
                          QN_WITH(QN_A_INT("keepdims", 0))));
    QN_TRY(qn_paddle_with(&step, l, &qn_op_Div, step, largest));
    QN_TRY(build(&x, l, &qn_op_QuantizeLinear, step, type_of(largest)));
    QN_TRY(build(&x, l, &qn_op_DequantizeLinear, step, type_of(largest)));
    return qn_paddle_out(l, "Out", x);
}
