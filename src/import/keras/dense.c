/* Products with matrices, and rows by indices. */
#include <string.h>

#include "import/keras/keras.h"

static qn_status check(const qn_keras_call *call, const qn_value *x, const qn_value *weights)
{
    char shape[128];
    const int64_t units = qn_keras_int(call, "units", -1);
    const qn_type *type = &weights->type;
    const int64_t in = x->type.rank > 0 ? x->type.dims[x->type.rank - 1].value : -1;
    if (type->rank == 2 && (units < 0 || type->dims[1].value == units) &&
        (in < 0 || type->dims[0].value == in))
        return QN_OK;
    qn_type_format(shape, sizeof shape, type);
    return qn_keras_fail(call, QN_E_FORMAT,
                         "its weights are %s, it wants [%lld,%lld]: those of another model", shape,
                         (long long)in, (long long)units);
}

/* Where the input is a flattened picture, the rows of the weights follow the picture's order. */
static qn_status multiply(qn_value **out, qn_keras_call *call, qn_value *x, qn_value *weights)
{
    qn_value *picture;
    qn_axis_order order;
    bool done = false;
    qn_keras_import *import = call->import;
    const char *source = qn_names_get(&import->flat, call->in[0]);
    if (source) {
        QN_TRY(qn_layout_any(&picture, &order, &import->layouts, source));
        if (order == QN_ORDER_CHANNELS_FIRST)
            QN_TRY(qn_tf_flat_product(&done, &x, &weights, &import->builder, picture));
    }
    return qn_keras_two(out, import, &qn_op_MatMul, x, weights);
}

qn_status qn_keras_dense(qn_keras_call *call)
{
    qn_value *x, *weights, *bias, *y;
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    QN_TRY(qn_keras_own_weight(&weights, call, 0));
    QN_TRY(check(call, x, weights));
    QN_TRY(multiply(&y, call, x, weights));
    if (qn_keras_bool(call, "use_bias", true)) {
        QN_TRY(qn_keras_own_weight(&bias, call, 1));
        QN_TRY(qn_keras_two(&y, call->import, &qn_op_Add, y, bias));
    }
    QN_TRY(qn_keras_activate(&y, call, "activation", -1));
    return qn_keras_out(call, y, QN_ORDER_OWN);
}

/* Products by an equation; the bias has axes of 1 where it is the same. */
qn_status qn_keras_einsum_dense(qn_keras_call *call)
{
    qn_value *x, *weights, *bias, *y;
    const char *equation = qn_keras_text(call, "equation", "");
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    QN_TRY(qn_keras_own_weight(&weights, call, 0));
    QN_TRY(qn_graph_build(&y, &call->import->builder, &qn_op_Einsum, QN_INPUTS(x, weights),
                          QN_WITH(QN_A_TEXT("equation", equation))));
    if (*qn_keras_text(call, "bias_axes", "")) {
        QN_TRY(qn_keras_own_weight(&bias, call, 1));
        QN_TRY(qn_keras_two(&y, call->import, &qn_op_Add, y, bias));
    }
    QN_TRY(qn_keras_activate(&y, call, "activation", -1));
    return qn_keras_out(call, y, QN_ORDER_OWN);
}

qn_status qn_keras_embedding(qn_keras_call *call)
{
    qn_value *x, *rows, *y;
    qn_graph_builder *b = &call->import->builder;
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    QN_TRY(qn_keras_own_weight(&rows, call, 0));
    if (x->type.dtype != QN_INT32 && x->type.dtype != QN_INT64)
        QN_TRY(qn_graph_build(&x, b, &qn_op_Cast, QN_INPUTS(x), QN_WITH(QN_A_INT("to", QN_INT32))));
    QN_TRY(qn_keras_mask_of_words(call, x));
    QN_TRY(qn_keras_two(&y, call->import, &qn_op_Gather, rows, x));
    return qn_keras_out(call, y, QN_ORDER_OWN);
}
