/* Recurrent layers: LSTM, GRU and plain ones, stacked, in one or both directions. */
#include <string.h>

#include "import/paddle/paddle.h"

/* A kind of cell: ONNX's operator, and which of PaddlePaddle's gates each of ONNX's is. */
typedef struct cell_kind {
    const char *mode;
    const qn_op *op;
    int gates;
    int order[4];
} cell_kind;

static const cell_kind kinds[] = {
    {"LSTM", &qn_op_LSTM, 4, {0, 3, 1, 2}}, /* i, f, c, o -> i, o, f, c */
    {"GRU", &qn_op_GRU, 3, {1, 0, 2}},      /* r, z, c -> z, r, h */
    {"RNN_TANH", &qn_op_RNN, 1, {0}},
};

typedef struct recurrent {
    const cell_kind *kind;
    int64_t hidden, layers, directions;
    qn_value *lengths;
} recurrent;

static qn_status read_recurrent(recurrent *r, const qn_paddle_layer *l)
{
    const char *mode = qn_paddle_text(l, "mode", "");
    *r = (recurrent){.hidden = qn_paddle_int(l, "hidden_size", 0),
                     .layers = qn_paddle_int(l, "num_layers", 1),
                     .directions = qn_paddle_int(l, "is_bidirec", 0) ? 2 : 1};
    for (size_t i = 0; i < QN_COUNT_OF(kinds); i++) {
        if (strcmp(kinds[i].mode, mode) == 0)
            r->kind = &kinds[i];
    }
    if (!r->kind)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED, "mode '%s'", mode);
    if (r->hidden < 1 || r->hidden > INT32_MAX || r->layers < 1 || r->layers > 64)
        return qn_paddle_fail(l, QN_E_FORMAT, "%lld layers of %lld", (long long)r->layers,
                              (long long)r->hidden);
    if (qn_paddle_in_count(l, "WeightList") != (size_t)(4 * r->layers * r->directions))
        return qn_paddle_fail(l, QN_E_FORMAT, "%zu weights for %lld layers in %lld directions",
                              qn_paddle_in_count(l, "WeightList"), (long long)r->layers,
                              (long long)r->directions);
    QN_TRY(qn_paddle_maybe(&r->lengths, l, "SequenceLength"));
    return r->lengths ? qn_paddle_cast(&r->lengths, l, r->lengths, QN_INT32) : QN_OK;
}

/* Weights number i with their gates in ONNX's order, [gates * hidden, ...]. */
static qn_status reorder(qn_value **out, const qn_paddle_layer *l, const recurrent *r, size_t i)
{
    qn_value *weights, *parts[4];
    QN_TRY(qn_paddle_in_at(&weights, l, "WeightList", i));
    *out = weights;
    if (r->kind->gates == 1)
        return QN_OK;
    for (int g = 0; g < r->kind->gates; g++) {
        const int64_t from = r->kind->order[g] * r->hidden;
        QN_TRY(qn_paddle_slice(&parts[g], l, weights, 0, from, from + r->hidden));
    }
    return qn_paddle_concat(out, l, parts, (size_t)r->kind->gates, 0);
}

/* The weights of both directions, [directions, ...]. */
static qn_status both(qn_value **out, const qn_paddle_layer *l, const recurrent *r,
                      qn_value *const *parts)
{
    static const int64_t first[] = {0};
    qn_value *made[2];
    for (int64_t d = 0; d < r->directions; d++)
        QN_TRY(qn_paddle_unsqueeze(&made[d], l, parts[d], first, 1));
    *out = made[0];
    return r->directions == 1 ? QN_OK : qn_paddle_concat(out, l, made, 2, 0);
}

/* Input and recurrent weights of all layers come first, then their biases, which ONNX has in one
 * row. */
static qn_status weights_of(qn_value **weights, const qn_paddle_layer *l, const recurrent *r,
                            int64_t layer)
{
    qn_value *parts[3][2], *ends[2];
    const int64_t biases = 2 * r->layers * r->directions;
    for (int64_t d = 0; d < r->directions; d++) {
        const int64_t at = 2 * (layer * r->directions + d);
        QN_TRY(reorder(&parts[0][d], l, r, (size_t)at));
        QN_TRY(reorder(&parts[1][d], l, r, (size_t)at + 1));
        QN_TRY(reorder(&ends[0], l, r, (size_t)(biases + at)));
        QN_TRY(reorder(&ends[1], l, r, (size_t)(biases + at + 1)));
        QN_TRY(qn_paddle_concat(&parts[2][d], l, ends, 2, 0));
    }
    for (size_t i = 0; i < 3; i++)
        QN_TRY(both(&weights[i], l, r, parts[i]));
    return QN_OK;
}

/* One layer: x [T, N, C] -> [T, N, directions * hidden], and its last states. */
static qn_status run_layer(qn_value **x, qn_value **states, const qn_paddle_layer *l,
                           const recurrent *r, int64_t layer)
{
    static const int64_t perm[] = {0, 2, 1, 3}, joined[] = {0, 0, -1};
    const bool has_cell = r->kind->op == &qn_op_LSTM, is_gru = r->kind->op == &qn_op_GRU;
    qn_value *w[3], *first[2] = {NULL, NULL}, *made[3];
    QN_TRY(weights_of(w, l, r, layer));
    for (size_t i = 0; i < (has_cell ? 2U : 1U) && qn_paddle_has(l, "PreState"); i++) {
        QN_TRY(qn_paddle_in_at(&first[i], l, "PreState", i));
        QN_TRY(qn_paddle_slice(&first[i], l, first[i], 0, layer * r->directions,
                               (layer + 1) * r->directions));
    }
    qn_graph_build_attrs attrs =
        QN_WITH(QN_A_INT("hidden_size", r->hidden),
                QN_A_TEXT("direction", r->directions == 2 ? "bidirectional" : "forward"),
                QN_A_INT("linear_before_reset", 1));
    attrs.count -= !is_gru;
    qn_value *in[] = {*x, w[0], w[1], w[2], r->lengths, first[0], first[1]};
    QN_TRY(qn_graph_build_several(made, has_cell ? 3 : 2, l->b, r->kind->op,
                                  (qn_graph_build_inputs){in, has_cell ? 7 : 6}, attrs));
    states[0] = made[1];
    states[1] = has_cell ? made[2] : NULL;
    QN_TRY(qn_paddle_transpose(x, l, made[0], perm, 4));
    return qn_paddle_reshape(x, l, *x, joined, 3);
}

qn_status qn_paddle_rnn(qn_paddle_layer *l)
{
    qn_value *x, *states[2][64], *one[2], *all;
    recurrent r;
    QN_TRY(read_recurrent(&r, l));
    if (!qn_paddle_int(l, "is_test", 0) && qn_paddle_real(l, "dropout_prob", 0) != 0)
        return qn_paddle_fail(l, QN_E_UNSUPPORTED,
                              "it is of a program for training; save the model for inference");
    QN_TRY(qn_paddle_in(&x, l, "Input"));
    for (int64_t i = 0; i < r.layers; i++) {
        QN_TRY(run_layer(&x, one, l, &r, i));
        states[0][i] = one[0];
        states[1][i] = one[1];
    }
    for (size_t s = 0; s < 2 && states[s][0]; s++) {
        QN_TRY(qn_paddle_concat(&all, l, states[s], (size_t)r.layers, 0));
        QN_TRY(qn_paddle_out_at(l, "State", s, all));
    }
    return qn_paddle_out(l, "Out", x);
}
