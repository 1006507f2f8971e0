/* LSTM, GRU and RNN: whole stacks of layers, and single cells. */
#include <string.h>

#include "import/pytorch/aten.h"

typedef struct stack_kind {
    const qn_op *op;
    int64_t gates;
    /* ONNX's gates by PyTorch's: i, f, g, o to i, o, f, g; r, z, n to z, r, n */
    int64_t order[4];
    /* A hidden state, and of LSTM a cell state */
    size_t states;
} stack_kind;

static const stack_kind kinds[] = {
    {&qn_op_LSTM, 4, {0, 3, 1, 2}, 2},
    {&qn_op_GRU, 3, {1, 0, 2}, 1},
    {&qn_op_RNN, 1, {0}, 1},
};

/* A stack of layers at work. */
typedef struct stack {
    const stack_kind *kind;
    qn_value *x;
    /* [layers x directions, N, H] */
    qn_value *first[2];
    qn_value **params;
    size_t n_params;
    int64_t layers, directions, hidden;
    bool biases;
    /* The one direction is from the end. */
    bool reverse;
    /* Last states of each layer */
    qn_value **last[2];
} stack;

/* Rows of the gates in ONNX's order; weights that are constants are folded later. */
static qn_status order_gates(qn_value **out, qn_aten_call *c, const stack *s, qn_value *w)
{
    qn_value *parts[4];
    *out = w;
    for (int64_t g = 0; s->kind->gates > 1 && g < s->kind->gates; g++) {
        const int64_t from = s->kind->order[g] * s->hidden;
        QN_TRY(qn_aten_slice(&parts[g], c, w, 0, from, from + s->hidden));
    }
    if (s->kind->gates == 1)
        return QN_OK;
    return qn_graph_build(out, c->b, &qn_op_Concat,
                          (qn_graph_build_inputs){parts, (size_t)s->kind->gates},
                          QN_WITH(QN_A_INT("axis", 0)));
}

static qn_status join(qn_value **out, qn_aten_call *c, qn_value *const *parts, size_t count,
                      int64_t axis)
{
    *out = parts[0];
    return count == 1
               ? QN_OK
               : qn_graph_build(out, c->b, &qn_op_Concat, (qn_graph_build_inputs){parts, count},
                                QN_WITH(QN_A_INT("axis", axis)));
}

/* W [D, gates H, I], R [D, gates H, H] and B [D, 2 gates H] of a layer. */
static qn_status layer_weights(qn_value **out, qn_aten_call *c, const stack *s, int64_t layer)
{
    const size_t own = s->biases ? 4 : 2;
    qn_value *parts[3][2];
    for (int64_t d = 0; d < s->directions; d++) {
        qn_value *const *params = s->params + (size_t)(layer * s->directions + d) * own;
        qn_value *ordered[4];
        for (size_t k = 0; k < own; k++)
            QN_TRY(order_gates(&ordered[k], c, s, params[k]));
        if (s->biases)
            QN_TRY(join(&ordered[2], c, ordered + 2, 2, 0));
        for (size_t k = 0; k < own && k < 3; k++)
            QN_TRY(qn_aten_unsqueeze(&parts[k][d], c, ordered[k], 0));
    }
    out[2] = NULL;
    for (size_t k = 0; k < (s->biases ? 3 : 2); k++)
        QN_TRY(join(&out[k], c, parts[k], (size_t)s->directions, 0));
    return QN_OK;
}

static qn_status build_layer(qn_value **out, qn_aten_call *c, const stack *s,
                             qn_value *const *weights, qn_value *const *states)
{
    const bool lstm = s->kind->states == 2;
    const char *direction = s->directions == 2 ? "bidirectional"
                            : s->reverse       ? "reverse"
                                               : "forward";
    qn_value *inputs[7] = {s->x, weights[0], weights[1], weights[2], NULL, states[0], states[1]};
    if (strcmp(c->op->name, "rnn_relu") == 0)
        return qn_aten_unsupported(c, "its activation is not tanh");
    const qn_graph_build_attr attrs[] = {QN_A_INT("hidden_size", s->hidden),
                                         QN_A_TEXT("direction", direction),
                                         QN_A_INT("linear_before_reset", 1)};
    return qn_graph_build_several(out, lstm ? 3 : 2, c->b, s->kind->op,
                                  (qn_graph_build_inputs){inputs, lstm ? 7 : 6},
                                  (qn_graph_build_attrs){attrs, s->kind->op == &qn_op_GRU ? 3 : 2});
}

/* Y [L, D, N, H] becomes the next layer's input [L, N, D H]. */
static qn_status run_layer(qn_aten_call *c, stack *s, int64_t layer)
{
    qn_value *weights[3], *states[2] = {NULL, NULL}, *y[3];
    const int64_t from = layer * s->directions;
    QN_TRY(layer_weights(weights, c, s, layer));
    for (size_t k = 0; k < s->kind->states; k++) {
        states[k] = s->first[k];
        if (s->layers > 1)
            QN_TRY(qn_aten_slice(&states[k], c, s->first[k], 0, from, from + s->directions));
    }
    QN_TRY(build_layer(y, c, s, weights, states));
    for (size_t k = 0; k < s->kind->states; k++)
        s->last[k][layer] = y[k + 1];
    if (s->directions == 1)
        return qn_aten_squeeze(&s->x, c, y[0], 1);
    QN_TRY(qn_aten_transpose(&s->x, c, y[0], 1, 2));
    return qn_aten_reshape(&s->x, c, s->x, (const int64_t[]){0, 0, 2 * s->hidden}, 3);
}

/* ---- Stacks ---------------------------------------------------------------------------------- */

static qn_status read_stack(stack *s, qn_aten_call *c)
{
    qn_value **states;
    size_t n_states;
    QN_TRY(qn_aten_tensors(&s->params, &s->n_params, c, "params"));
    QN_TRY(qn_aten_tensors(&states, &n_states, c, "hx"));
    QN_TRY(qn_aten_int(&s->layers, c, "num_layers"));
    s->biases = qn_aten_flag(c, "has_biases");
    s->directions = 1 + qn_aten_flag(c, "bidirectional");
    const size_t each = (size_t)s->directions * (s->biases ? 4 : 2);
    if (s->layers < 1 || s->layers > 1024 || s->n_params != (size_t)s->layers * each ||
        n_states != s->kind->states)
        return qn_aten_unsupported(c, "%zu weights and %zu states of %lld layers", s->n_params,
                                   n_states, (long long)s->layers);
    if (s->params[1]->type.rank != 2 || s->params[1]->type.dims[1].value < 1)
        return qn_aten_unsupported(c, "its weights are not known");
    s->hidden = s->params[1]->type.dims[1].value;
    for (size_t k = 0; k < n_states; k++) {
        s->first[k] = states[k];
        s->last[k] = qn_arena_array(c->t->arena, (size_t)s->layers, sizeof *s->last[k]);
        QN_TRY_ALLOC(c->t->ctx, s->last[k]);
    }
    return QN_OK;
}

qn_status qn_aten_recurrent(qn_aten_call *c)
{
    stack s = {.kind = &kinds[0]};
    const bool batch_first = qn_aten_flag(c, "batch_first");
    qn_value *results[3];
    int32_t rank;
    while (s.kind->op != c->op->onnx)
        s.kind++;
    QN_TRY(read_stack(&s, c));
    c->t->hint = (qn_type){.kind = QN_TYPE_TENSOR,
                           .dtype = QN_FLOAT32,
                           .rank = 3,
                           .dims = {qn_dim_unknown(), qn_dim_unknown(), s.params[0]->type.dims[1]}};
    QN_TRY(qn_aten_ranked(&s.x, &rank, c, "input"));
    if (rank != 3)
        return qn_aten_unsupported(c, "an input of %d axes", rank);
    if (batch_first)
        QN_TRY(qn_aten_transpose(&s.x, c, s.x, 0, 1));
    for (int64_t layer = 0; layer < s.layers; layer++)
        QN_TRY(run_layer(c, &s, layer));
    results[0] = s.x;
    if (batch_first)
        QN_TRY(qn_aten_transpose(&results[0], c, s.x, 0, 1));
    for (size_t k = 0; k < s.kind->states; k++)
        QN_TRY(join(&results[k + 1], c, s.last[k], (size_t)s.layers, 0));
    return qn_aten_return_tuple(c, results, s.kind->states + 1);
}

/* One layer of an LSTM in one direction, as programs of torch 2.1 to 2.3 have it for CPUs. */
qn_status qn_aten_recurrent_layer(qn_aten_call *c)
{
    enum { LSTM = 2 };
    static const char *const weights[] = {"weight0", "weight1", "weight2", "weight3"};
    static const char *const states[] = {"hx_", "cx_"};
    qn_value *params[4], *last[2], *results[3];
    stack s = {.kind = &kinds[0], .params = params, .layers = 1, .directions = 1, .biases = true};
    int64_t mode;
    QN_TRY(qn_aten_int(&mode, c, "mode"));
    if (mode != LSTM || qn_aten_flag(c, "batch_first"))
        return qn_aten_unsupported(c, "it is no LSTM that counts steps first");
    for (size_t i = 0; i < QN_COUNT_OF(weights); i++)
        QN_TRY(qn_aten_tensor(&params[i], c, weights[i]));
    QN_TRY(qn_aten_int(&s.hidden, c, "hidden_size"));
    QN_TRY(qn_aten_tensor(&s.x, c, "input"));
    s.reverse = qn_aten_flag(c, "reverse");
    for (size_t k = 0; k < s.kind->states; k++) {
        QN_TRY(qn_aten_tensor(&s.first[k], c, states[k]));
        s.last[k] = &last[k];
    }
    QN_TRY(run_layer(c, &s, 0));
    results[0] = s.x;
    results[1] = last[0];
    results[2] = last[1];
    return qn_aten_return_tuple(c, results, 3);
}

/* ---- Cells ----------------------------------------------------------------------------------- */

/* x W^T + b */
static qn_status gates_of(qn_value **out, qn_aten_call *c, qn_value *x, const char *weight,
                          const char *bias)
{
    qn_value *inputs[3] = {x};
    QN_TRY(qn_aten_tensor(&inputs[1], c, weight));
    QN_TRY(qn_aten_optional(&inputs[2], c, bias));
    return qn_graph_build(out, c->b, &qn_op_Gemm,
                          (qn_graph_build_inputs){inputs, inputs[2] ? 3 : 2},
                          QN_WITH(QN_A_INT("transB", 1)));
}

static qn_status split_gates(qn_value **out, qn_aten_call *c, qn_value *x, size_t count)
{
    return qn_graph_build_several(
        out, count, c->b, &qn_op_Split, QN_INPUTS(x),
        QN_WITH(QN_A_INT("axis", -1), QN_A_INT("num_outputs", (int64_t)count)));
}

/* c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c') */
qn_status qn_aten_lstm_cell(qn_aten_call *c)
{
    qn_value *x, **states, *y, *g[4], *results[2];
    size_t count;
    QN_TRY(qn_aten_tensor(&x, c, "input"));
    QN_TRY(qn_aten_tensors(&states, &count, c, "hx"));
    if (count != 2)
        return qn_aten_unsupported(c, "%zu states", count);
    QN_TRY(gates_of(&x, c, x, "w_ih", "b_ih"));
    QN_TRY(gates_of(&y, c, states[0], "w_hh", "b_hh"));
    QN_TRY(qn_aten_binary_node(&x, c, &qn_op_Add, x, y));
    QN_TRY(split_gates(g, c, x, 4));
    for (int i = 0; i < 4; i++)
        QN_TRY(qn_aten_unary_node(&g[i], c, i == 2 ? &qn_op_Tanh : &qn_op_Sigmoid, g[i]));
    QN_TRY(qn_aten_binary_node(&x, c, &qn_op_Mul, g[1], states[1]));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Mul, g[0], g[2]));
    QN_TRY(qn_aten_binary_node(&results[1], c, &qn_op_Add, x, y));
    QN_TRY(qn_aten_unary_node(&y, c, &qn_op_Tanh, results[1]));
    QN_TRY(qn_aten_binary_node(&results[0], c, &qn_op_Mul, g[3], y));
    return qn_aten_return_tuple(c, results, 2);
}

/* n = tanh(xn + sigmoid(r) hn), h' = n + sigmoid(z) (h - n) */
qn_status qn_aten_gru_cell(qn_aten_call *c)
{
    qn_value *x, *h, *y, *a[3], *b[3];
    QN_TRY(qn_aten_tensor(&x, c, "input"));
    QN_TRY(qn_aten_tensor(&h, c, "hx"));
    QN_TRY(gates_of(&x, c, x, "w_ih", "b_ih"));
    QN_TRY(gates_of(&y, c, h, "w_hh", "b_hh"));
    QN_TRY(split_gates(a, c, x, 3));
    QN_TRY(split_gates(b, c, y, 3));
    for (int i = 0; i < 2; i++) {
        QN_TRY(qn_aten_binary_node(&a[i], c, &qn_op_Add, a[i], b[i]));
        QN_TRY(qn_aten_unary_node(&a[i], c, &qn_op_Sigmoid, a[i]));
    }
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Mul, a[0], b[2]));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Add, a[2], y));
    QN_TRY(qn_aten_unary_node(&y, c, &qn_op_Tanh, y));
    QN_TRY(qn_aten_binary_node(&h, c, &qn_op_Sub, h, y));
    QN_TRY(qn_aten_binary_node(&h, c, &qn_op_Mul, a[1], h));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Add, y, h));
    return qn_aten_return(c, y);
}
