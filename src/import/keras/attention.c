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
    /* Which steps look at which, bool, as [N, 1, T, S]; NULL: all at all. */
    qn_value *mask;
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

/* ---- Masks ----------------------------------------------------------------------------------- */

/* One more condition, with axes added so that it has four. */
static qn_status restrict_to(heads *h, qn_value *mask, const int64_t *axes, size_t count)
{
    if (!mask)
        return QN_OK;
    QN_TRY(qn_keras_with_ints(&mask, h->import, &qn_op_Unsqueeze, axes, count));
    if (h->mask)
        QN_TRY(qn_keras_two(&mask, h->import, &qn_op_And, h->mask, mask));
    h->mask = mask;
    return QN_OK;
}

/* [1, 1, T, S]: a step looks at itself and those before it. */
static qn_status causal(heads *h, size_t value)
{
    static const int64_t outer[] = {0, 1}, last[] = {1};
    qn_value *numbers[2], *x, *zero, *one;
    qn_graph_builder *b = &h->import->builder;
    QN_TRY(qn_keras_number(&zero, h->import, 0, QN_INT64));
    QN_TRY(qn_keras_number(&one, h->import, 1, QN_INT64));
    for (size_t i = 0; i < 2; i++) {
        QN_TRY(qn_keras_in(&x, h->call, i ? value : 0, QN_ORDER_OWN));
        QN_TRY(qn_graph_build(&x, b, &qn_op_Shape, QN_INPUTS(x), QN_PLAIN));
        QN_TRY(qn_keras_part(&x, h->import, 0, 1, 2));
        QN_TRY(qn_keras_with_ints(&x, h->import, &qn_op_Reshape, NULL, 0));
        QN_TRY(qn_graph_build(&numbers[i], b, &qn_op_Range, QN_INPUTS(zero, x, one), QN_PLAIN));
    }
    QN_TRY(qn_keras_with_ints(&numbers[0], h->import, &qn_op_Unsqueeze, last, 1));
    QN_TRY(qn_keras_two(&x, h->import, &qn_op_GreaterOrEqual, numbers[0], numbers[1]));
    return restrict_to(h, x, outer, 2);
}

static bool says(const qn_keras_call *call, const char *key)
{
    qn_json_place place;
    bool value;
    return qn_keras_find(&place, &call->keywords, key) &&
           (!qn_json_is_bool(&place) || qn_json_get_bool(&value, &place) != QN_OK || value);
}

/* Steps of the query, the value and the key that count, what is given, and what came before. */
static qn_status find_masks(heads *h, size_t value, size_t key)
{
    static const int64_t rows[] = {1, 3}, columns[] = {1, 2}, head[] = {1};
    const qn_keras_call *call = h->call;
    const qn_names *masks = &h->import->masks;
    qn_value *given = NULL;
    QN_TRY(restrict_to(h, qn_names_get(masks, call->in[0]), rows, 2));
    if (value < call->n_in)
        QN_TRY(restrict_to(h, qn_names_get(masks, call->in[value]), columns, 2));
    if (key != value && key < call->n_in)
        QN_TRY(restrict_to(h, qn_names_get(masks, call->in[key]), columns, 2));
    if (call->mask) {
        QN_TRY(qn_layout_find(&given, &h->import->layouts, call->mask, QN_ORDER_OWN));
        if (given->type.rank != 3)
            return qn_keras_fail(call, QN_E_UNSUPPORTED, "a mask of %d axes", given->type.rank);
        QN_TRY(qn_graph_build(&given, &h->import->builder, &qn_op_Cast, QN_INPUTS(given),
                              QN_WITH(QN_A_INT("to", QN_BOOL))));
    }
    QN_TRY(restrict_to(h, given, head, 1));
    return call->keywords.item && says(call, "use_causal_mask") ? causal(h, value) : QN_OK;
}

/* What is not looked at is far below all others. Where nothing is left of a row Keras 3 has zeros
 * in layers with a dropout, for which it has another way to compute. */
static qn_status softmax(qn_value **y, const heads *h)
{
    qn_value *number;
    qn_graph_builder *b = &h->import->builder;
    if (h->mask) {
        QN_TRY(qn_keras_number(&number, h->import, -1e9, QN_FLOAT32));
        QN_TRY(qn_graph_build(y, b, &qn_op_Where, QN_INPUTS(h->mask, *y, number), QN_PLAIN));
    }
    QN_TRY(qn_graph_build(y, b, &qn_op_Softmax, QN_INPUTS(*y), QN_WITH(QN_A_INT("axis", -1))));
    if (!h->mask || h->import->version < 3 || qn_keras_real(h->call, "dropout", 0) <= 0)
        return QN_OK;
    QN_TRY(qn_keras_number(&number, h->import, 0, QN_FLOAT32));
    return qn_graph_build(y, b, &qn_op_Where, QN_INPUTS(h->mask, *y, number), QN_PLAIN);
}

/* ---- Layers ---------------------------------------------------------------------------------- */

static qn_status attend(qn_value **y, const heads *h, const size_t in[3])
{
    static const int64_t back[] = {0, 2, 1, 3};
    const int64_t dims[] = {0, 0, h->count * h->wide[VALUE]};
    qn_value *q, *k, *v, *scale;
    QN_TRY(split(&q, h, QUERY, in[QUERY]));
    QN_TRY(split(&k, h, KEY, in[KEY]));
    QN_TRY(split(&v, h, VALUE, in[VALUE]));
    QN_TRY(qn_keras_number(&scale, h->import, 1 / sqrt((double)h->wide[KEY]), QN_FLOAT32));
    QN_TRY(qn_keras_two(&q, h->import, &qn_op_Mul, q, scale));
    QN_TRY(qn_keras_two(y, h->import, &qn_op_MatMul, q, k));
    QN_TRY(softmax(y, h));
    QN_TRY(qn_keras_two(y, h->import, &qn_op_MatMul, *y, v));
    QN_TRY(qn_keras_permute(y, h->import, back, 4));
    QN_TRY(qn_keras_with_ints(y, h->import, &qn_op_Reshape, dims, 3));
    return project(y, h, OUTPUT);
}

/* Inputs: query, value, key; the key is the value where there is none. */
qn_status qn_keras_attention(qn_keras_call *call)
{
    int64_t axes[QN_MAX_RANK];
    size_t n_axes;
    qn_value *y;
    const int64_t width = qn_keras_int(call, "key_dim", 0);
    heads h = {.call = call, .import = call->import, .count = qn_keras_int(call, "num_heads", 0)};
    const size_t value = call->n_in > 1 ? 1 : 0, key = call->n_in > 2 ? 2 : value;
    h.wide[QUERY] = h.wide[KEY] = width;
    h.wide[VALUE] = qn_keras_int(call, "value_dim", width);
    h.bias = qn_keras_bool(call, "use_bias", true);
    if (h.count < 1 || width < 1 || h.wide[VALUE] < 1)
        return qn_keras_fail(call, QN_E_FORMAT, "its num_heads or key_dim are missing");
    if (call->n_in == 0)
        return qn_keras_fail(call, QN_E_FORMAT, "it has no input");
    if (call->keywords.item && says(call, "return_attention_scores"))
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "scores as a result");
    if (qn_keras_int_list(axes, &n_axes, call, "attention_axes", QN_COUNT_OF(axes)) &&
        (n_axes != 1 || axes[0] != 1))
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "attention_axes");
    QN_TRY(find_masks(&h, value, key));
    QN_TRY(qn_keras_set_mask(call, qn_names_get(&call->import->masks, call->in[0])));
    QN_TRY(attend(&y, &h, (const size_t[]){0, key, value}));
    return qn_keras_out(call, y, QN_ORDER_OWN);
}

/* ---- Attention by products ------------------------------------------------------------------- */

/* softmax(q k^T s) v of a query, a value, and a key, which is the value where there is none; s is a
 * weight, or 1. */
qn_status qn_keras_dot_attention(qn_keras_call *call)
{
    static const int64_t turned[] = {0, 2, 1};
    qn_value *in[3], *scale, *y;
    qn_keras_import *import = call->import;
    for (size_t i = 0; i < 3; i++) {
        QN_TRY(qn_keras_in(&in[i], call, i < call->n_in ? i : 1, QN_ORDER_OWN));
        if (qn_keras_mask(call, i) || in[i]->type.rank != 3)
            return qn_keras_fail(call, QN_E_UNSUPPORTED, "masks, or %d axes", in[i]->type.rank);
    }
    if (!qn_keras_is(call, "score_mode", "dot") || qn_keras_bool(call, "causal", false) ||
        (call->keywords.item &&
         (says(call, "use_causal_mask") || says(call, "return_attention_scores"))))
        return qn_keras_fail(call, QN_E_UNSUPPORTED,
                             "scores that are no products, masks, or scores as a result");
    QN_TRY(qn_keras_permute(&in[2], import, turned, 3));
    QN_TRY(qn_keras_two(&y, import, &qn_op_MatMul, in[0], in[2]));
    if (qn_keras_bool(call, "use_scale", false)) {
        QN_TRY(qn_keras_own_weight(&scale, call, 0));
        QN_TRY(qn_keras_two(&y, import, &qn_op_Mul, y, scale));
    }
    QN_TRY(qn_graph_build(&y, &import->builder, &qn_op_Softmax, QN_INPUTS(y),
                          QN_WITH(QN_A_INT("axis", -1))));
    QN_TRY(qn_keras_two(&y, import, &qn_op_MatMul, y, in[1]));
    return qn_keras_out(call, y, QN_ORDER_OWN);
}
