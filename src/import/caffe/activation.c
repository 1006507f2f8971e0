/* Layers that compute each number on its own, and Eltwise. */
#include <math.h>
#include <string.h>

#include "import/caffe/caffe.h"

/* ---- Functions without parameters ------------------------------------------------------------ */

static const struct {
    const char *type;
    const qn_op *op;
} functions[] = {
    {"AbsVal", &qn_op_Abs},
    {"BNLL", &qn_op_Softplus},
    {"Sigmoid", &qn_op_Sigmoid},
    {"TanH", &qn_op_Tanh},
};

qn_status qn_caffe_function(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    qn_value *x;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    for (size_t i = 0; i < QN_COUNT_OF(functions); i++) {
        if (strcmp(functions[i].type, layer->type) == 0)
            QN_TRY(qn_caffe_op1(&x, net, functions[i].op, x));
    }
    return qn_caffe_out(net, layer, 0, x);
}

/* x * sigmoid(beta * x), and x * tanh(softplus(x)): older opsets have no word for them. */
qn_status qn_caffe_swish(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const double beta =
        qn_proto_real(qn_caffe_param(layer, QN_CAFFE_LAYER_SWISH), QN_CAFFE_SIMPLE_BETA, 1);
    qn_value *x, *y;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    y = x;
    if (beta != 1)
        QN_TRY(qn_caffe_op_real(&y, net, &qn_op_Mul, x, beta));
    QN_TRY(qn_caffe_op1(&y, net, &qn_op_Sigmoid, y));
    QN_TRY(qn_caffe_op2(&y, net, &qn_op_Mul, x, y));
    return qn_caffe_out(net, layer, 0, y);
}

qn_status qn_caffe_mish(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    qn_value *x, *y;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(qn_caffe_op1(&y, net, &qn_op_Softplus, x));
    QN_TRY(qn_caffe_op1(&y, net, &qn_op_Tanh, y));
    QN_TRY(qn_caffe_op2(&y, net, &qn_op_Mul, x, y));
    return qn_caffe_out(net, layer, 0, y);
}

/* ---- ReLU and its kin ------------------------------------------------------------------------ */

qn_status qn_caffe_relu(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const double slope = qn_proto_real(qn_caffe_param(layer, QN_CAFFE_LAYER_RELU),
                                       QN_CAFFE_SIMPLE_NEGATIVE_SLOPE, 0);
    qn_value *x;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    if (slope == 0)
        QN_TRY(qn_caffe_op1(&x, net, &qn_op_Relu, x));
    else
        QN_TRY(qn_graph_build(&x, &net->builder, &qn_op_LeakyRelu, QN_INPUTS(x),
                              QN_WITH(QN_A_REAL("alpha", (float)slope))));
    return qn_caffe_out(net, layer, 0, x);
}

/* ReLU6, and Clip with its bounds. */
qn_status qn_caffe_clip(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_CLIP);
    const bool is_relu = strcmp(layer->type, "ReLU6") == 0;
    qn_value *x, *low, *high;
    if (!is_relu &&
        (!qn_proto_has(param, QN_CAFFE_SIMPLE_MIN) || !qn_proto_has(param, QN_CAFFE_SIMPLE_MAX)))
        return QN_CAFFE_FAIL(net, "clip_param needs min and max");
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(qn_graph_build_real(&low, &net->builder,
                               (float)qn_proto_real(param, QN_CAFFE_SIMPLE_MIN, 0)));
    QN_TRY(qn_graph_build_real(&high, &net->builder,
                               (float)qn_proto_real(param, QN_CAFFE_SIMPLE_MAX, 6)));
    QN_TRY(qn_graph_build(&x, &net->builder, &qn_op_Clip, QN_INPUTS(x, low, high), QN_PLAIN));
    return qn_caffe_out(net, layer, 0, x);
}

/* One slope for each channel, or one for all. */
qn_status qn_caffe_prelu(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_PRELU);
    const bool is_shared = qn_proto_int(param, QN_CAFFE_SIMPLE_CHANNEL_SHARED, 0) != 0;
    int64_t dims[QN_MAX_RANK];
    qn_value *x, *slope;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    if (x->type.rank < 2)
        return QN_CAFFE_FAIL(net, "a blob of rank %d has no channels", x->type.rank);
    const int64_t count = is_shared ? 1 : qn_caffe_dim(x, 1);
    const qn_type stored = qn_type_tensor(QN_FLOAT32, 1, &count);
    dims[0] = count;
    for (int32_t i = 1; i < x->type.rank - 1; i++)
        dims[i] = 1;
    const qn_type wanted = qn_type_tensor(QN_FLOAT32, x->type.rank - 1, dims);
    QN_TRY(qn_caffe_constant_as(&slope, net, layer, 0, &stored, &wanted));
    QN_TRY(qn_caffe_op2(&x, net, &qn_op_PRelu, x, slope));
    return qn_caffe_out(net, layer, 0, x);
}

qn_status qn_caffe_elu(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const double alpha =
        qn_proto_real(qn_caffe_param(layer, QN_CAFFE_LAYER_ELU), QN_CAFFE_SIMPLE_ALPHA, 1);
    qn_value *x;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(qn_graph_build(&x, &net->builder, &qn_op_Elu, QN_INPUTS(x),
                          QN_WITH(QN_A_REAL("alpha", (float)alpha))));
    return qn_caffe_out(net, layer, 0, x);
}

qn_status qn_caffe_threshold(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const double threshold = qn_proto_real(qn_caffe_param(layer, QN_CAFFE_LAYER_THRESHOLD),
                                           QN_CAFFE_SIMPLE_THRESHOLD, 0);
    qn_value *x;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(qn_caffe_op_real(&x, net, &qn_op_Greater, x, threshold));
    QN_TRY(qn_caffe_cast(&x, net, x, QN_FLOAT32));
    return qn_caffe_out(net, layer, 0, x);
}

/* ---- Powers ---------------------------------------------------------------------------------- */

/* x * scale + shift, without what changes nothing. */
static qn_status shift_scale(qn_value **x, qn_caffe_net *net, double scale, double shift)
{
    if (scale != 1)
        QN_TRY(qn_caffe_op_real(x, net, &qn_op_Mul, *x, scale));
    return shift != 0 ? qn_caffe_op_real(x, net, &qn_op_Add, *x, shift) : QN_OK;
}

static qn_status read_scaled(qn_value **x, qn_caffe_net *net, const qn_caffe_layer *layer,
                             const qn_proto_message *param)
{
    QN_TRY(qn_caffe_in(x, net, layer, 0));
    return shift_scale(x, net, qn_proto_real(param, QN_CAFFE_SIMPLE_SCALE, 1),
                       qn_proto_real(param, QN_CAFFE_SIMPLE_SHIFT, 0));
}

/* (scale * x + shift) ^ power */
qn_status qn_caffe_power(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_POWER);
    const double power = qn_proto_real(param, QN_CAFFE_SIMPLE_POWER, 1);
    qn_value *x;
    QN_TRY(read_scaled(&x, net, layer, param));
    if (power == 2)
        QN_TRY(qn_caffe_op2(&x, net, &qn_op_Mul, x, x));
    else if (power == 0.5)
        QN_TRY(qn_caffe_op1(&x, net, &qn_op_Sqrt, x));
    else if (power != 1)
        QN_TRY(qn_caffe_op_real(&x, net, &qn_op_Pow, x, power));
    return qn_caffe_out(net, layer, 0, x);
}

/* base ^ (scale * x + shift); base -1 is e. */
qn_status qn_caffe_exp(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_EXP);
    const double base = qn_proto_real(param, QN_CAFFE_SIMPLE_BASE, -1);
    qn_value *x;
    if (base != -1 && !(base > 0))
        return QN_CAFFE_FAIL(net, "base is %g; it is to be -1, which is e, or positive", base);
    QN_TRY(read_scaled(&x, net, layer, param));
    if (base != -1)
        QN_TRY(qn_caffe_op_real(&x, net, &qn_op_Mul, x, log(base)));
    QN_TRY(qn_caffe_op1(&x, net, &qn_op_Exp, x));
    return qn_caffe_out(net, layer, 0, x);
}

/* log(scale * x + shift) to the base; -1 is e. */
qn_status qn_caffe_log(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_LOG);
    const double base = qn_proto_real(param, QN_CAFFE_SIMPLE_BASE, -1);
    qn_value *x;
    if (base != -1 && (!(base > 0) || base == 1))
        return QN_CAFFE_FAIL(net, "base is %g; it is to be -1, which is e, or positive and not 1",
                             base);
    QN_TRY(read_scaled(&x, net, layer, param));
    QN_TRY(qn_caffe_op1(&x, net, &qn_op_Log, x));
    if (base != -1)
        QN_TRY(qn_caffe_op_real(&x, net, &qn_op_Mul, x, 1 / log(base)));
    return qn_caffe_out(net, layer, 0, x);
}

/* a * x + y, where a has a number for each channel. */
qn_status qn_caffe_axpy(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const int64_t dims[] = {0, 0, 1, 1};
    qn_value *a, *x, *y;
    QN_TRY(qn_caffe_in(&a, net, layer, 0));
    QN_TRY(qn_caffe_in(&x, net, layer, 1));
    QN_TRY(qn_caffe_in(&y, net, layer, 2));
    if (a->type.rank == 2 && x->type.rank == 4)
        QN_TRY(qn_caffe_reshape(&a, net, a, 4, dims));
    QN_TRY(qn_caffe_op2(&x, net, &qn_op_Mul, a, x));
    QN_TRY(qn_caffe_op2(&x, net, &qn_op_Add, x, y));
    return qn_caffe_out(net, layer, 0, x);
}

/* ---- Eltwise --------------------------------------------------------------------------------- */

static qn_status check_equal(qn_caffe_net *net, const qn_value *x, const qn_value *y)
{
    bool is_equal = x->type.rank == y->type.rank;
    for (int32_t i = 0; is_equal && i < x->type.rank; i++) {
        const int64_t a = qn_caffe_dim(x, i), b = qn_caffe_dim(y, i);
        is_equal = a < 0 || b < 0 || a == b;
    }
    return is_equal ? QN_OK
                    : QN_CAFFE_FAIL(net, "'%s' and '%s' have different shapes", x->name, y->name);
}

/* coeff[0] * x0 + coeff[1] * x1 ... : a coefficient of -1 subtracts. */
static qn_status add_scaled(qn_value **sum, qn_caffe_net *net, qn_value *x, double coeff)
{
    const bool subtracts = *sum && coeff == -1;
    if (!subtracts && coeff != 1)
        QN_TRY(qn_caffe_op_real(&x, net, &qn_op_Mul, x, coeff));
    if (*sum)
        return qn_caffe_op2(sum, net, subtracts ? &qn_op_Sub : &qn_op_Add, *sum, x);
    *sum = x;
    return QN_OK;
}

qn_status qn_caffe_eltwise(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_ELTWISE);
    const int64_t operation = qn_proto_int(param, QN_CAFFE_ELTWISE_OPERATION, QN_CAFFE_ELTWISE_SUM);
    qn_proto_numbers coeffs = qn_proto_numbers_of(param, QN_CAFFE_ELTWISE_COEFF);
    const size_t n_coeffs = qn_proto_count(param, QN_CAFFE_ELTWISE_COEFF);
    qn_value *first, *x, *y = NULL;
    QN_TRY(qn_caffe_check(net, "operation", operation, 0, 2));
    QN_TRY(qn_caffe_in(&first, net, layer, 0));
    if (n_coeffs && n_coeffs != layer->bottoms.count)
        return QN_CAFFE_FAIL(net, "%zu coefficients for %zu bottoms", n_coeffs,
                             layer->bottoms.count);
    for (size_t i = 0; i < layer->bottoms.count; i++) {
        double coeff = 1;
        (void)qn_proto_next_real(&coeff, &coeffs);
        QN_TRY(qn_caffe_in(&x, net, layer, i));
        QN_TRY(check_equal(net, first, x));
        if (operation == QN_CAFFE_ELTWISE_SUM)
            QN_TRY(add_scaled(&y, net, x, coeff));
        else if (!y)
            y = x;
        else
            QN_TRY(qn_caffe_op2(&y, net,
                                operation == QN_CAFFE_ELTWISE_MAX ? &qn_op_Max : &qn_op_Mul, y, x));
    }
    return qn_caffe_out(net, layer, 0, y);
}
