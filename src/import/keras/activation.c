/* Activations, as layers and as parameters of layers. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "import/keras/keras.h"

/* Functions that are one operator of ONNX with its defaults. */
static const struct {
    const char *name;
    const qn_op *op;
} plain[] = {
    {"relu", &qn_op_Relu},
    {"sigmoid", &qn_op_Sigmoid},
    {"tanh", &qn_op_Tanh},
    {"softplus", &qn_op_Softplus},
    {"softsign", &qn_op_Softsign},
    {"elu", &qn_op_Elu},
    {"selu", &qn_op_Selu},
    {"exponential", &qn_op_Exp},
    {"mish", &qn_op_Mish},
    {"celu", &qn_op_Celu},
    {"gelu", &qn_op_Gelu},
    {"hard_silu", &qn_op_HardSwish},
    {"hard_swish", &qn_op_HardSwish},
    {"swish", &qn_op_Swish},
    {"silu", &qn_op_Swish},
};

static qn_status clip(qn_value **value, qn_keras_import *import, double low, double high)
{
    qn_value *least, *most = NULL;
    QN_TRY(qn_keras_number(&least, import, low, (*value)->type.dtype));
    if (high < (double)FLT_MAX)
        QN_TRY(qn_keras_number(&most, import, high, (*value)->type.dtype));
    return qn_graph_build(value, &import->builder, &qn_op_Clip, QN_INPUTS(*value, least, most),
                          QN_PLAIN);
}

/* Keras 2: 0.2 x + 0.5; Keras 3: x / 6 + 0.5; both between 0 and 1. */
static qn_status hard_sigmoid(qn_value **value, qn_keras_import *import)
{
    const float slope = import->version >= 3 ? 1.f / 6.f : .2f;
    return qn_graph_build(value, &import->builder, &qn_op_HardSigmoid, QN_INPUTS(*value),
                          QN_WITH(QN_A_REAL("alpha", slope), QN_A_REAL("beta", .5f)));
}

static qn_status leaky(qn_value **value, qn_keras_import *import, double slope)
{
    return qn_graph_build(value, &import->builder, &qn_op_LeakyRelu, QN_INPUTS(*value),
                          QN_WITH(QN_A_REAL("alpha", (float)slope)));
}

static qn_status along(qn_value **value, qn_keras_import *import, const qn_op *op, int64_t axis)
{
    return qn_graph_build(value, &import->builder, op, QN_INPUTS(*value),
                          QN_WITH(QN_A_INT("axis", axis)));
}

qn_status qn_keras_function(qn_value **value, qn_keras_call *call, const char *name, int64_t axis)
{
    qn_keras_import *import = call->import;
    if (strcmp(name, "linear") == 0)
        return QN_OK;
    for (size_t i = 0; i < QN_COUNT_OF(plain); i++) {
        if (strcmp(plain[i].name, name) == 0)
            return qn_graph_build(value, &import->builder, plain[i].op, QN_INPUTS(*value),
                                  QN_PLAIN);
    }
    if (strcmp(name, "relu6") == 0)
        return clip(value, import, 0, 6);
    if (strcmp(name, "hard_sigmoid") == 0)
        return hard_sigmoid(value, import);
    if (strcmp(name, "leaky_relu") == 0)
        return leaky(value, import, (double).2f);
    if (strcmp(name, "softmax") == 0)
        return along(value, import, &qn_op_Softmax, axis);
    if (strcmp(name, "log_softmax") == 0)
        return along(value, import, &qn_op_LogSoftmax, axis);
    return qn_keras_fail(call, QN_E_UNSUPPORTED, "the activation '%s' is not known", name);
}

/* The name of a function: a text, or an object whose `config` is the name of a function, or that is
 * a layer. */
static const char *function_name(const qn_keras_call *call, const char *key)
{
    qn_json_place place, config;
    const char *name = "linear";
    if (!qn_keras_find(&place, &call->layer->config, key))
        return name;
    if (qn_json_is_object(&place)) {
        if (qn_keras_find(&config, &place, "config") && qn_json_is_text(&config))
            place = config;
        else if (!qn_keras_find(&place, &place, "class_name"))
            return name;
    }
    return qn_json_get_text(&name, &place) == QN_OK ? name : "linear";
}

qn_status qn_keras_activate(qn_value **value, qn_keras_call *call, const char *key, int64_t axis)
{
    static const char *const layers[][2] = {{"ReLU", "relu"}, {"Softmax", "softmax"}};
    const char *name = function_name(call, key);
    for (size_t i = 0; i < QN_COUNT_OF(layers); i++) {
        if (strcmp(name, layers[i][0]) == 0)
            name = layers[i][1];
    }
    return qn_keras_function(value, call, name, axis);
}

/* ---- Layers ---------------------------------------------------------------------------------- */

qn_status qn_keras_activation(qn_keras_call *call)
{
    qn_value *x;
    qn_axis_order order;
    QN_TRY(qn_keras_in_any(&x, &order, call, 0));
    const int64_t axis = qn_layout_axis(order, x->type.rank, -1);
    QN_TRY(qn_keras_activate(&x, call, "activation", axis));
    return qn_keras_out(call, x, order);
}

/* x from `threshold` on, slope (x - threshold) below, at most `max_value`. */
qn_status qn_keras_relu(qn_keras_call *call)
{
    qn_value *x;
    qn_axis_order order;
    qn_keras_import *import = call->import;
    const double slope = qn_keras_real(call, "negative_slope", 0);
    const double threshold = qn_keras_real(call, "threshold", 0);
    const double most = qn_keras_real(call, "max_value", (double)FLT_MAX);
    QN_TRY(qn_keras_in_any(&x, &order, call, 0));
    if (threshold != 0)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "a threshold of %g", threshold);
    if (slope == 0) {
        QN_TRY(most < (double)FLT_MAX ? clip(&x, import, 0, most)
                                      : qn_keras_function(&x, call, "relu", 0));
    } else {
        qn_value *limit;
        QN_TRY(leaky(&x, import, slope));
        if (most < (double)FLT_MAX) {
            QN_TRY(qn_keras_number(&limit, import, most, x->type.dtype));
            QN_TRY(qn_keras_two(&x, import, &qn_op_Min, x, limit));
        }
    }
    return qn_keras_out(call, x, order);
}

qn_status qn_keras_leaky_relu(qn_keras_call *call)
{
    qn_value *x;
    qn_axis_order order;
    const double slope =
        qn_keras_real(call, "negative_slope", qn_keras_real(call, "alpha", (double).3f));
    QN_TRY(qn_keras_in_any(&x, &order, call, 0));
    QN_TRY(leaky(&x, call->import, slope));
    return qn_keras_out(call, x, order);
}

static qn_status with_alpha(qn_keras_call *call, const qn_op *op, const char *key)
{
    qn_value *x, *y;
    qn_axis_order order;
    QN_TRY(qn_keras_in_any(&x, &order, call, 0));
    QN_TRY(qn_graph_build(&y, &call->import->builder, op, QN_INPUTS(x),
                          QN_WITH(QN_A_REAL("alpha", (float)qn_keras_real(call, key, 1)))));
    return qn_keras_out(call, y, order);
}

qn_status qn_keras_elu(qn_keras_call *call)
{
    return with_alpha(call, &qn_op_Elu, "alpha");
}

qn_status qn_keras_thresholded(qn_keras_call *call)
{
    return with_alpha(call, &qn_op_ThresholdedRelu, "theta");
}

/* The slopes have the shape of the input without its batch, 1 where axes share them. */
qn_status qn_keras_prelu(qn_keras_call *call)
{
    int64_t perm[QN_MAX_RANK], first = 0;
    qn_value *x, *slopes;
    qn_axis_order order;
    QN_TRY(qn_keras_in_any(&x, &order, call, 0));
    QN_TRY(qn_keras_own_weight(&slopes, call, 0));
    if (slopes->type.rank != x->type.rank - 1)
        return qn_keras_fail(call, QN_E_FORMAT, "its slopes have %d axes, its input %d",
                             slopes->type.rank, x->type.rank);
    QN_TRY(qn_keras_with_ints(&slopes, call->import, &qn_op_Unsqueeze, &first, 1));
    if (order == QN_ORDER_CHANNELS_FIRST) {
        qn_layout_perm(perm, x->type.rank, order);
        QN_TRY(qn_keras_permute(&slopes, call->import, perm, (size_t)x->type.rank));
    }
    QN_TRY(qn_keras_two(&x, call->import, &qn_op_PRelu, x, slopes));
    return qn_keras_out(call, x, order);
}

qn_status qn_keras_softmax(qn_keras_call *call)
{
    int64_t axis = -1;
    size_t count;
    qn_value *x;
    qn_axis_order order;
    if (qn_keras_int_list(&axis, &count, call, "axis", 1) && count != 1)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "several axes");
    QN_TRY(qn_keras_in_any(&x, &order, call, 0));
    if (axis < -x->type.rank || axis >= x->type.rank)
        return qn_keras_fail(call, QN_E_FORMAT, "axis %lld", (long long)axis);
    QN_TRY(along(&x, call->import, &qn_op_Softmax, qn_layout_axis(order, x->type.rank, axis)));
    return qn_keras_out(call, x, order);
}
