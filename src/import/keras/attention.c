/* Attention in heads. */
#include <math.h>

#include "import/keras/keras.h"

/* The layers inside, as their weights are called and listed. */
enum { QUERY, KEY, VALUE, OUTPUT };
static const char *const parts[] = {"query_dense", "key_dense", "value_dense", "output_dense"};

typedef struct heads {
    qn_keras_call *call;
    qn_keras_import *import;
    int64_t count, wide[3];
    bool bias;
} heads;

static qn_status weight(qn_value **out, const heads *h, int which, size_t i)
{
    const size_t flat = (size_t)which * (h->bias ? 2 : 1) + i;
    return qn_keras_weight(out, h->call, (qn_keras_weight_id){parts[which], i, flat});
}

/* x W + b of weights [in, heads, width], or [heads, width, out] for the output. */
static qn_status project(qn_value **x, const heads *h, int which)
{
    qn_value *w, *b;
    int64_t dims[2];
    QN_TRY(weight(&w, h, which, 0));
    if (w->type.rank != 3)
        return qn_keras_fail(h->call, QN_E_FORMAT, "weights of %d axes", w->type.rank);
    const int64_t all[3] = {w->type.dims[0].value, w->type.dims[1].value, w->type.dims[2].value};
    dims[0] = which == OUTPUT ? all[0] * all[1] : all[0];
    dims[1] = which == OUTPUT ? all[2] : all[1] * all[2];
    QN_TRY(qn_keras_with_ints(&w, h->import, &qn_op_Reshape, dims, 2));
    QN_TRY(qn_keras_two(x, h->import, &qn_op_MatMul, *x, w));
    if (!h->bias)
        return QN_OK;
    QN_TRY(weight(&b, h, which, 1));
    QN_TRY(qn_keras_with_ints(&b, h->import, &qn_op_Reshape, &dims[1], 1));
    return qn_keras_two(x, h->import, &qn_op_Add, *x, b);
}

/* [N, T, D] to [N, heads, T, width]; the keys to [N, heads, width, T]. */
static qn_status split(qn_value **x, const heads *h, int which, size_t in)
{
    static const int64_t plain[] = {0, 2, 1, 3}, turned[] = {0, 2, 3, 1};
    const int64_t dims[] = {0, 0, h->count, h->wide[which]};
    QN_TRY(qn_keras_in(x, h->call, in, QN_ORDER_OWN));
    if ((*x)->type.rank != 3)
        return qn_keras_fail(h->call, QN_E_UNSUPPORTED, "an input of %d axes", (*x)->type.rank);
    QN_TRY(project(x, h, which));
    QN_TRY(qn_keras_with_ints(x, h->import, &qn_op_Reshape, dims, 4));
    return qn_keras_permute(x, h->import, which == KEY ? turned : plain, 4);
}

static qn_status attend(qn_value **y, const heads *h, const size_t in[3])
{
    static const int64_t back[] = {0, 2, 1, 3};
    const int64_t dims[] = {0, 0, h->count * h->wide[VALUE]};
    qn_value *q, *k, *v, *scale;
    qn_graph_builder *b = &h->import->builder;
    QN_TRY(split(&q, h, QUERY, in[QUERY]));
    QN_TRY(split(&k, h, KEY, in[KEY]));
    QN_TRY(split(&v, h, VALUE, in[VALUE]));
    QN_TRY(qn_keras_number(&scale, h->import, 1 / sqrt((double)h->wide[KEY]), QN_FLOAT32));
    QN_TRY(qn_keras_two(&q, h->import, &qn_op_Mul, q, scale));
    QN_TRY(qn_keras_two(y, h->import, &qn_op_MatMul, q, k));
    QN_TRY(qn_graph_build(y, b, &qn_op_Softmax, QN_INPUTS(*y), QN_WITH(QN_A_INT("axis", -1))));
    QN_TRY(qn_keras_two(y, h->import, &qn_op_MatMul, *y, v));
    QN_TRY(qn_keras_permute(y, h->import, back, 4));
    QN_TRY(qn_keras_with_ints(y, h->import, &qn_op_Reshape, dims, 3));
    return project(y, h, OUTPUT);
}

static bool says(const qn_keras_call *call, const char *key)
{
    qn_json_place place;
    bool value;
    return qn_keras_find(&place, &call->keywords, key) &&
           (!qn_json_is_bool(&place) || qn_json_get_bool(&value, &place) != QN_OK || value);
}

/* Inputs: query, value, key; the key is the value where there is none. */
qn_status qn_keras_attention(qn_keras_call *call)
{
    qn_json_place place;
    qn_value *y;
    const int64_t width = qn_keras_int(call, "key_dim", 0);
    heads h = {.call = call, .import = call->import, .count = qn_keras_int(call, "num_heads", 0)};
    const size_t value = call->n_in > 1 ? 1 : 0, key = call->n_in > 2 ? 2 : value;
    h.wide[QUERY] = h.wide[KEY] = width;
    h.wide[VALUE] = qn_keras_int(call, "value_dim", width);
    h.bias = qn_keras_bool(call, "use_bias", true);
    if (h.count < 1 || width < 1 || h.wide[VALUE] < 1)
        return qn_keras_fail(call, QN_E_FORMAT, "its num_heads or key_dim are missing");
    if (call->keywords.item && (says(call, "use_causal_mask") || says(call, "attention_mask") ||
                                says(call, "return_attention_scores")))
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "masks, or scores as a result");
    if (qn_keras_find(&place, &call->layer->config, "attention_axes") && call->n_in == 0)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "attention_axes");
    QN_TRY(attend(&y, &h, (const size_t[]){0, key, value}));
    return qn_keras_out(call, y, QN_ORDER_OWN);
}
