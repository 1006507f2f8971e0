/* Functions in the place of layers: operations of Keras 3, and TensorFlow's functions in Keras 2
 * (TFOpLambda), which go by the rows of the same operations. */
#include <ctype.h>
#include <string.h>

#include "import/keras/keras.h"

/* ---- What a call is given -------------------------------------------------------------------- */

enum { MOST_OPERANDS = 3 };

/* Values and numbers in their order. */
typedef struct operands {
    qn_value *values[MOST_OPERANDS];
    double numbers[MOST_OPERANDS];
    bool is_number[MOST_OPERANDS];
    size_t count, n_values;
    qn_axis_order order;
} operands;

/* An argument: a number, or the next of the values that the call has; others are parameters. */
static bool take(operands *o, const qn_json_place *place)
{
    double number;
    const bool is_value = qn_json_is_object(place) || qn_json_is_list(place);
    if (o->count >= MOST_OPERANDS)
        return false;
    if (!is_value && qn_json_get_double(&number, place) != QN_OK)
        return false;
    o->is_number[o->count] = !is_value;
    if (is_value)
        o->n_values++;
    else
        o->numbers[o->count] = number;
    o->count++;
    return true;
}

static void take_keywords(operands *o, const qn_keras_call *call, const char *const *keys)
{
    qn_json_place place;
    for (size_t i = 0; keys[i] && call->keywords.item; i++) {
        if (qn_keras_find(&place, &call->keywords, keys[i]))
            (void)take(o, &place);
    }
}

/* [name, number, number, {...}] of Keras 2; a number has a name of its own. */
static void take_old(operands *o, const qn_json_place *node)
{
    const char *text;
    const qn_json_place name = qn_json_element(node, 0);
    if (qn_json_is_list(&name) || qn_json_get_text(&text, &name) != QN_OK) {
        (void)take(o, &name);
    } else if (strcmp(text, "_CONSTANT_VALUE") == 0) {
        const qn_json_place number = qn_json_element(node, 2);
        (void)take(o, &number);
    } else {
        (void)take(o, node);
    }
}

static void list_operands(operands *o, const qn_keras_call *call)
{
    static const char *const keys[] = {"x", "x1", "x2", "y", "a", "b", NULL};
    qn_json_place args;
    size_t length;
    *o = (operands){.count = 0};
    if (!call->node.item)
        return;
    if (qn_json_is_list(&call->node)) {
        if (qn_json_length(&length, &call->node) == QN_OK && length >= 3)
            take_old(o, &call->node);
    } else if (qn_keras_find(&args, &call->node, "args") && qn_json_is_list(&args) &&
               qn_json_length(&length, &args) == QN_OK) {
        for (size_t i = 0; i < length; i++) {
            const qn_json_place item = qn_json_element(&args, i);
            (void)take(o, &item);
        }
    }
    take_keywords(o, call, keys);
}

/* All values in one order, and numbers of their type. */
static qn_status read_operands(operands *o, qn_keras_call *call, size_t count)
{
    qn_value *in[MOST_OPERANDS];
    qn_keras_import *import = call->import;
    size_t next = 0;
    list_operands(o, call);
    if (o->count != count || o->n_values != call->n_in || o->n_values == 0)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "%zu values where it wants %zu", o->count,
                             count);
    QN_TRY(qn_layout_agree(in, &o->order, &import->layouts, call->in, call->n_in));
    const qn_dtype dtype = in[call->n_in - 1]->type.dtype;
    for (size_t i = 0; i < count; i++) {
        if (o->is_number[i])
            QN_TRY(qn_keras_number(&o->values[i], import, o->numbers[i], dtype));
        else
            o->values[i] = in[next++];
    }
    return QN_OK;
}

qn_status qn_keras_binary(qn_keras_call *call)
{
    operands o;
    qn_value *y;
    QN_TRY(read_operands(&o, call, 2));
    QN_TRY(qn_keras_two(&y, call->import, call->layer->op->as, o.values[0], o.values[1]));
    if (strcmp(call->layer->op->name, "NotEqual") == 0)
        QN_TRY(qn_graph_build(&y, &call->import->builder, &qn_op_Not, QN_INPUTS(y), QN_PLAIN));
    return qn_keras_out(call, y, o.order);
}

qn_status qn_keras_choice(qn_keras_call *call)
{
    operands o;
    qn_value *y;
    QN_TRY(read_operands(&o, call, 3));
    QN_TRY(qn_graph_build(&y, &call->import->builder, &qn_op_Where,
                          QN_INPUTS(o.values[0], o.values[1], o.values[2]), QN_PLAIN));
    return qn_keras_out(call, y, o.order);
}

qn_status qn_keras_matmul(qn_keras_call *call)
{
    static const char *const turned[] = {"transpose_a", "transpose_b"};
    qn_value *in[2], *y;
    for (size_t i = 0; i < 2; i++) {
        int64_t perm[QN_MAX_RANK];
        QN_TRY(qn_keras_in(&in[i], call, i, QN_ORDER_OWN));
        const int32_t rank = in[i]->type.rank;
        if (rank < 2 || !qn_keras_bool(call, turned[i], false))
            continue;
        for (int32_t a = 0; a < rank; a++)
            perm[a] = a < rank - 2 ? a : 2 * rank - 3 - a;
        QN_TRY(qn_keras_permute(&in[i], call->import, perm, (size_t)rank));
    }
    QN_TRY(qn_keras_two(&y, call->import, &qn_op_MatMul, in[0], in[1]));
    return qn_keras_out(call, y, QN_ORDER_OWN);
}

/* ---- Of one value ---------------------------------------------------------------------------- */

qn_status qn_keras_unary(qn_keras_call *call)
{
    qn_value *x;
    qn_axis_order order;
    const char *type = call->layer->op->name;
    qn_graph_builder *b = &call->import->builder;
    QN_TRY(qn_keras_in_any(&x, &order, call, 0));
    if (strcmp(type, "Square") == 0)
        QN_TRY(qn_keras_two(&x, call->import, &qn_op_Mul, x, x));
    else
        QN_TRY(qn_graph_build(&x, b, call->layer->op->as, QN_INPUTS(x), QN_PLAIN));
    if (strcmp(type, "Rsqrt") == 0)
        QN_TRY(qn_graph_build(&x, b, &qn_op_Reciprocal, QN_INPUTS(x), QN_PLAIN));
    return qn_keras_out(call, x, order);
}

/* ZerosLike and OnesLike. */
qn_status qn_keras_like(qn_keras_call *call)
{
    qn_value *x, *shape, *number;
    qn_axis_order order;
    const bool one = strcmp(call->layer->op->name, "OnesLike") == 0;
    QN_TRY(qn_keras_in_any(&x, &order, call, 0));
    QN_TRY(qn_graph_build(&shape, &call->import->builder, &qn_op_Shape, QN_INPUTS(x), QN_PLAIN));
    QN_TRY(qn_keras_number(&number, call->import, one, QN_INT32));
    QN_TRY(qn_keras_two(&number, call->import, &qn_op_Expand, number, shape));
    const qn_dtype dtype =
        qn_dtype_by_name(qn_keras_text(call, "dtype", qn_dtype_get(x->type.dtype)->name));
    QN_TRY(qn_graph_build(&number, &call->import->builder, &qn_op_Cast, QN_INPUTS(number),
                          QN_WITH(QN_A_INT("to", dtype == QN_UNDEFINED ? x->type.dtype : dtype))));
    return qn_keras_out(call, number, order);
}

/* Activations, by the name of the class in small letters. */
qn_status qn_keras_called(qn_keras_call *call)
{
    qn_value *x;
    qn_axis_order order;
    const char *name = qn_keras_small_letters(call->import, call->layer->op->name);
    QN_TRY_ALLOC(call->import->ctx, name);
    QN_TRY(qn_keras_in_any(&x, &order, call, 0));
    if (strcmp(name, "gelu") == 0)
        QN_TRY(qn_graph_build(
            &x, &call->import->builder, &qn_op_Gelu, QN_INPUTS(x),
            QN_WITH(QN_A_TEXT("approximate",
                              qn_keras_bool(call, "approximate", call->import->version >= 3)
                                  ? "tanh"
                                  : "none"))));
    else
        QN_TRY(qn_keras_function(&x, call, name, qn_layout_axis(order, x->type.rank, -1)));
    return qn_keras_out(call, x, order);
}

/* Any and All go by integers. */
qn_status qn_keras_reduce(qn_keras_call *call)
{
    int64_t axes[QN_MAX_RANK];
    size_t count = 0;
    qn_value *x, *list = NULL;
    qn_graph_builder *b = &call->import->builder;
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    const bool is_bool = x->type.dtype == QN_BOOL;
    const int64_t keep = qn_keras_bool(call, "keepdims", false);
    if (qn_keras_int_list(axes, &count, call, "axis", QN_COUNT_OF(axes)))
        QN_TRY(qn_graph_build_ints(&list, b, axes, count));
    if (is_bool)
        QN_TRY(qn_graph_build(&x, b, &qn_op_Cast, QN_INPUTS(x), QN_WITH(QN_A_INT("to", QN_INT32))));
    QN_TRY(qn_graph_build(&x, b, call->layer->op->as, QN_INPUTS(x, list),
                          QN_WITH(QN_A_INT("keepdims", keep))));
    if (is_bool)
        QN_TRY(qn_graph_build(&x, b, &qn_op_Cast, QN_INPUTS(x), QN_WITH(QN_A_INT("to", QN_BOOL))));
    return qn_keras_out(call, x, QN_ORDER_OWN);
}

qn_status qn_keras_cast(qn_keras_call *call)
{
    qn_value *x;
    qn_axis_order order;
    qn_json_place place;
    const char *name = qn_keras_text(call, "dtype", "float32");
    /* A function's layer has a type of its own. */
    if (call->keywords.item && qn_keras_find(&place, &call->keywords, "dtype") &&
        qn_json_is_text(&place))
        QN_TRY(qn_json_get_text(&name, &place));
    const qn_dtype dtype = qn_dtype_by_name(name);
    QN_TRY(qn_keras_in_any(&x, &order, call, 0));
    if (dtype == QN_UNDEFINED)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "numbers of type '%s'", name);
    QN_TRY(qn_graph_build(&x, &call->import->builder, &qn_op_Cast, QN_INPUTS(x),
                          QN_WITH(QN_A_INT("to", dtype))));
    return qn_keras_out(call, x, order);
}

qn_status qn_keras_clip(qn_keras_call *call)
{
    static const char *const keys[2][2] = {{"x_min", "clip_value_min"},
                                           {"x_max", "clip_value_max"}};
    qn_value *x, *limits[2];
    qn_axis_order order;
    QN_TRY(qn_keras_in_any(&x, &order, call, 0));
    for (size_t i = 0; i < 2; i++) {
        const double far = i ? 3e38 : -3e38;
        const double limit = qn_keras_real(call, keys[i][0], qn_keras_real(call, keys[i][1], far));
        QN_TRY(qn_keras_number(&limits[i], call->import, limit, x->type.dtype));
    }
    QN_TRY(qn_graph_build(&x, &call->import->builder, &qn_op_Clip,
                          QN_INPUTS(x, limits[0], limits[1]), QN_PLAIN));
    return qn_keras_out(call, x, order);
}

/* ---- Functions of TensorFlow ----------------------------------------------------------------- */

/* The function behind its last point, and the row that does the same. */
static const char *const rows[][2] = {
    {"abs", "Absolute"},
    {"add", "Add"},
    {"cast", "Cast"},
    {"clip_by_value", "Clip"},
    {"concat", "Concatenate"},
    {"cos", "Cos"},
    {"divide", "Divide"},
    {"elu", "Elu"},
    {"equal", "Equal"},
    {"exp", "Exp"},
    {"expand_dims", "ExpandDims"},
    {"gelu", "Gelu"},
    {"getitem", "GetItem"},
    {"greater", "Greater"},
    {"greater_equal", "GreaterEqual"},
    {"identity", "Identity"},
    {"less", "Less"},
    {"less_equal", "LessEqual"},
    {"log", "Log"},
    {"log_softmax", "LogSoftmax"},
    {"logical_and", "LogicalAnd"},
    {"logical_not", "LogicalNot"},
    {"logical_or", "LogicalOr"},
    {"matmul", "Matmul"},
    {"maximum", "Maximum"},
    {"minimum", "Minimum"},
    {"multiply", "Multiply"},
    {"negative", "Negative"},
    {"not_equal", "NotEqual"},
    {"pow", "Power"},
    {"reduce_max", "Max"},
    {"reduce_mean", "Mean"},
    {"reduce_min", "Min"},
    {"reduce_sum", "Sum"},
    {"relu", "Relu"},
    {"relu6", "Relu6"},
    {"reshape", "Reshape"},
    {"rsqrt", "Rsqrt"},
    {"selu", "Selu"},
    {"sigmoid", "Sigmoid"},
    {"silu", "Silu"},
    {"sin", "Sin"},
    {"softmax", "Softmax"},
    {"softplus", "Softplus"},
    {"split", "Split"},
    {"sqrt", "Sqrt"},
    {"square", "Square"},
    {"squeeze", "Squeeze"},
    {"stack", "Stack"},
    {"stop_gradient", "Identity"},
    {"subtract", "Subtract"},
    {"swish", "Silu"},
    {"tanh", "Tanh"},
    {"transpose", "Transpose"},
    {"truediv", "Divide"},
};

/* TFOpLambda and SlicingOpLambda: the function by its name. */
qn_status qn_keras_tf_function(qn_keras_call *call)
{
    const char *function = qn_keras_text(call, "function", ""), *point = strrchr(function, '.');
    const char *name = point ? point + 1 : function;
    qn_keras_layer layer = *call->layer;
    qn_keras_call as = *call;
    as.layer = &layer;
    layer.op = NULL;
    for (size_t i = 0; i < QN_COUNT_OF(rows); i++) {
        if (strcmp(rows[i][0], name) == 0)
            layer.op = qn_keras_op_find(rows[i][1]);
    }
    if (!layer.op)
        return qn_keras_fail(call, QN_E_UNSUPPORTED,
                             "the function '%s' is not known; a SavedModel has it as operators",
                             function);
    QN_TRY(layer.op->convert(&as));
    return qn_keras_pass_mask(&as);
}
