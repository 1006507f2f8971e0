/* Recurrent layers. States are variables, which begin with zeros in every run. */
#include <math.h>

#include "import/tflite/tflite.h"

enum { LSTM_ACTIVATION = 0, LSTM_CELL_CLIP = 1, LSTM_PROJ_CLIP = 2, LSTM_TIME_MAJOR = 3 };
enum { LSTM_KERNEL = 3, BOTH_MERGE = 3, BOTH_TIME_MAJOR = 4 };
enum { RNN_ACTIVATION = 0, SEQUENCE_TIME_MAJOR = 0, SEQUENCE_ACTIVATION = 1, RNN_BOTH_MERGE = 2 };
enum { SVDF_RANK = 0, SVDF_ACTIVATION = 1 };

/* Where the tensors of one direction stand among the inputs: four gates (input, forget, cell,
 * output) of each kind but the peepholes, which have no cell. */
typedef struct tfl_lstm {
    size_t weights, recurrent, peepholes, biases, projection, state, cell, norms;
} tfl_lstm;

/* ONNX's order of gates is input, output, forget, cell. */
static const size_t gate_order[] = {0, 3, 1, 2};

/* ---- LSTM ------------------------------------------------------------------------------------ */

static qn_status check_lstm(tfl_layer *l, const tfl_lstm *at)
{
    const float clip = qn_flat_real(&l->options, LSTM_CELL_CLIP, 0);
    if (qn_tfl_byte(l, LSTM_ACTIVATION) != QN_TFL_TANH)
        return qn_tfl_unsupported(l, "an activation that is not tanh");
    if (qn_tfl_has(l, at->projection))
        return qn_tfl_unsupported(l, "a projection of its state");
    for (size_t i = 0; at->norms && i < 4; i++) {
        if (qn_tfl_has(l, at->norms + i))
            return qn_tfl_unsupported(l, "normalization of its gates");
    }
    /* Keras' layers are converted with a limit of 10, where tanh is 1 in float already. */
    if (clip > 0 && clip < 10)
        return qn_tfl_unsupported(l, "cells limited to %g", (double)clip);
    return QN_OK;
}

/* A gate without weights is one minus the forget gate: sigmoid(-x) = 1 - sigmoid(x). */
static qn_status take_gate(qn_value **out, tfl_layer *l, size_t first, size_t gate)
{
    const bool coupled = gate == 0 && !qn_tfl_has(l, first);
    QN_TRY(qn_tfl_real(out, l, first + (coupled ? 1 : gate), QN_ORDER_OWN));
    QN_TRY(qn_tfl_cast(out, l, *out, QN_FLOAT32));
    return coupled ? qn_tfl_unary(out, l, &qn_op_Neg, *out) : QN_OK;
}

/* [1, 4 * cells, columns]. */
static qn_status join_gates(qn_value **out, tfl_layer *l, size_t first)
{
    static const int64_t axis[] = {0};
    qn_value *gates[4];
    for (size_t i = 0; i < 4; i++)
        QN_TRY(take_gate(&gates[i], l, first, gate_order[i]));
    QN_TRY(qn_graph_build(out, l->b, &qn_op_Concat,
                          QN_INPUTS(gates[0], gates[1], gates[2], gates[3]),
                          QN_WITH(QN_A_INT("axis", 0))));
    return qn_tfl_along(out, l, &qn_op_Unsqueeze, *out, axis, 1);
}

/* Integer biases count in steps of input scale times the gate's scale. */
static qn_status take_gate_bias(qn_value **out, tfl_layer *l, const tfl_lstm *at, size_t gate)
{
    const bool coupled = gate == 0 && !qn_tfl_has(l, at->weights);
    const size_t from = coupled ? 1 : gate;
    QN_TRY(qn_tfl_bias(out, l, at->biases + from, 0, at->weights + from));
    if (!*out)
        return qn_tfl_wrong(l, "input %zu is missing", at->biases + from);
    return coupled ? qn_tfl_unary(out, l, &qn_op_Neg, *out) : QN_OK;
}

/* [1, 8 * cells]: the second half, of the recurrent products, is 0. */
static qn_status join_biases(qn_value **out, tfl_layer *l, const tfl_lstm *at)
{
    static const int64_t axis[] = {0};
    qn_value *gates[4], *rest;
    for (size_t i = 0; i < 4; i++)
        QN_TRY(take_gate_bias(&gates[i], l, at, gate_order[i]));
    QN_TRY(qn_graph_build(out, l->b, &qn_op_Concat,
                          QN_INPUTS(gates[0], gates[1], gates[2], gates[3]),
                          QN_WITH(QN_A_INT("axis", 0))));
    QN_TRY(qn_tfl_with(&rest, l, &qn_op_Mul, *out, 0));
    QN_TRY(qn_graph_build(out, l->b, &qn_op_Concat, QN_INPUTS(*out, rest),
                          QN_WITH(QN_A_INT("axis", 0))));
    return qn_tfl_along(out, l, &qn_op_Unsqueeze, *out, axis, 1);
}

/* [1, 3 * cells] in the order input, output, forget; NULL: there are none. */
static qn_status join_peepholes(qn_value **out, tfl_layer *l, size_t first)
{
    static const int64_t axis[] = {0};
    static const size_t order[] = {0, 2, 1};
    qn_value *gates[3];
    *out = NULL;
    if (!qn_tfl_has(l, first + 1))
        return QN_OK;
    for (size_t i = 0; i < 3; i++)
        QN_TRY(take_gate(&gates[i], l, first, order[i]));
    QN_TRY(qn_graph_build(out, l->b, &qn_op_Concat, QN_INPUTS(gates[0], gates[1], gates[2]),
                          QN_WITH(QN_A_INT("axis", 0))));
    return qn_tfl_along(out, l, &qn_op_Unsqueeze, *out, axis, 1);
}

/* A state [batch, n] that is no variable: [1, batch, n]. */
static qn_status take_state(qn_value **out, tfl_layer *l, size_t i)
{
    static const int64_t axis[] = {0};
    *out = NULL;
    if (!qn_tfl_has(l, i) || (l->in[i]->variable && !l->in[i]->known))
        return QN_OK;
    QN_TRY(qn_tfl_real(out, l, i, QN_ORDER_OWN));
    return qn_tfl_along(out, l, &qn_op_Unsqueeze, *out, axis, 1);
}

/* y [time, batch, cells] of x [time, batch, n]. */
static qn_status build_lstm(qn_value **y, tfl_layer *l, const tfl_lstm *at, qn_value *x,
                            bool backwards)
{
    static const int64_t axis[] = {1};
    qn_value *w, *r, *b, *p, *h, *c;
    QN_TRY(check_lstm(l, at));
    QN_TRY(join_gates(&w, l, at->weights));
    QN_TRY(join_gates(&r, l, at->recurrent));
    QN_TRY(join_biases(&b, l, at));
    QN_TRY(join_peepholes(&p, l, at->peepholes));
    QN_TRY(take_state(&h, l, at->state));
    QN_TRY(take_state(&c, l, at->cell));
    const int64_t cells = qn_tfl_dim(r, 2);
    if (cells < 1)
        return qn_tfl_unsupported(l, "the number of its cells is not known");
    QN_TRY(
        qn_graph_build(y, l->b, &qn_op_LSTM,
                       ((qn_graph_build_inputs){QN_INPUTS(x, w, r, b, NULL, h, c, p).at, p   ? 8u
                                                                                         : c ? 7u
                                                                                             : 4u}),
                       QN_WITH(QN_A_INT("hidden_size", cells),
                               QN_A_TEXT("direction", backwards ? "reverse" : "forward"))));
    return qn_tfl_along(y, l, &qn_op_Squeeze, *y, axis, 1);
}

static const int64_t time_and_batch[] = {1, 0, 2};

static qn_status take_sequence(qn_value **x, tfl_layer *l, bool time_major)
{
    QN_TRY(qn_tfl_expect(l, 1, 1));
    QN_TRY(qn_tfl_real(x, l, 0, QN_ORDER_OWN));
    if (qn_tfl_rank(*x) != 3)
        return qn_tfl_wrong(l, "its input has %d axes", (int)qn_tfl_rank(*x));
    return time_major ? QN_OK : qn_tfl_transpose(x, l, *x, time_and_batch, 3);
}

static qn_status put_sequence(tfl_layer *l, size_t o, qn_value *y, bool time_major)
{
    if (!time_major)
        QN_TRY(qn_tfl_transpose(&y, l, y, time_and_batch, 3));
    return qn_tfl_put(l, o, y, QN_ORDER_OWN);
}

static const tfl_lstm alone = {.weights = 1,
                               .recurrent = 5,
                               .peepholes = 9,
                               .biases = 12,
                               .projection = 16,
                               .state = 18,
                               .cell = 19,
                               .norms = 20};

qn_status qn_tfl_sequence_lstm(tfl_layer *l)
{
    const bool time_major = qn_tfl_byte(l, LSTM_TIME_MAJOR) != 0;
    qn_value *x, *y;
    QN_TRY(take_sequence(&x, l, time_major));
    QN_TRY(build_lstm(&y, l, &alone, x, false));
    return put_sequence(l, 0, y, time_major);
}

/* Two directions, joined along the channels where there is one output. */
static qn_status put_both(tfl_layer *l, qn_value *const *both, bool merged, bool time_major)
{
    qn_value *y;
    if (!merged) {
        QN_TRY(put_sequence(l, 0, both[0], time_major));
        return put_sequence(l, 1, both[1], time_major);
    }
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_Concat, QN_INPUTS(both[0], both[1]),
                          QN_WITH(QN_A_INT("axis", 2))));
    return put_sequence(l, 0, y, time_major);
}

qn_status qn_tfl_both_lstm(tfl_layer *l)
{
    static const tfl_lstm at[] = {{.weights = 1,
                                   .recurrent = 5,
                                   .peepholes = 9,
                                   .biases = 12,
                                   .projection = 16,
                                   .state = 35,
                                   .cell = 36},
                                  {.weights = 18,
                                   .recurrent = 22,
                                   .peepholes = 26,
                                   .biases = 29,
                                   .projection = 33,
                                   .state = 37,
                                   .cell = 38}};
    const bool time_major = qn_flat_int(&l->options, BOTH_TIME_MAJOR, 1, 1) != 0;
    qn_value *x, *y[2];
    if (qn_tfl_has(l, 39))
        return qn_tfl_unsupported(l, "a second input");
    QN_TRY(take_sequence(&x, l, time_major));
    QN_TRY(build_lstm(&y[0], l, &at[0], x, false));
    QN_TRY(build_lstm(&y[1], l, &at[1], x, true));
    return put_both(l, y, qn_tfl_byte(l, BOTH_MERGE) != 0, time_major);
}

/* Four gates of one product: input, cell, forget, output. */
static qn_status split_gates(qn_value **gates, tfl_layer *l)
{
    qn_value *x, *h, *w, *bias, *joined;
    QN_TRY(qn_tfl_real(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_real(&h, l, 1, QN_ORDER_OWN));
    QN_TRY(qn_tfl_real(&w, l, 2, QN_ORDER_OWN));
    QN_TRY(qn_tfl_bias(&bias, l, 3, 0, 2));
    if (!bias)
        return qn_tfl_wrong(l, "input 3 is missing");
    QN_TRY(qn_graph_build(&joined, l->b, &qn_op_Concat, QN_INPUTS(x, h),
                          QN_WITH(QN_A_INT("axis", 1))));
    QN_TRY(qn_graph_build(&joined, l->b, &qn_op_Gemm, QN_INPUTS(joined, w, bias),
                          QN_WITH(QN_A_INT("transB", 1))));
    return qn_graph_build_several(gates, 4, l->b, &qn_op_Split, QN_INPUTS(joined),
                                  QN_WITH(QN_A_INT("axis", 1), QN_A_INT("num_outputs", 4)));
}

/* One step of an LSTM whose state is an input: data, h, weights, biases, c -> h, c. */
static qn_status basic_lstm(tfl_layer *l)
{
    qn_value *gates[4], *c, *h, *part;
    QN_TRY(qn_tfl_expect(l, 5, 2));
    QN_TRY(split_gates(gates, l));
    for (size_t i = 0; i < 4; i++)
        QN_TRY(qn_tfl_unary(&gates[i], l, i == 1 ? &qn_op_Tanh : &qn_op_Sigmoid, gates[i]));
    QN_TRY(qn_tfl_real(&c, l, 4, QN_ORDER_OWN));
    QN_TRY(qn_tfl_binary(&c, l, &qn_op_Mul, gates[2], c));
    QN_TRY(qn_tfl_binary(&part, l, &qn_op_Mul, gates[0], gates[1]));
    QN_TRY(qn_tfl_binary(&c, l, &qn_op_Add, c, part));
    QN_TRY(qn_tfl_unary(&h, l, &qn_op_Tanh, c));
    QN_TRY(qn_tfl_binary(&h, l, &qn_op_Mul, h, gates[3]));
    QN_TRY(qn_tfl_put(l, 0, h, QN_ORDER_OWN));
    QN_TRY(qn_tfl_put(l, 1, c, QN_ORDER_OWN));
    /* What LiteRT keeps for itself nobody reads. */
    for (size_t o = 2; o < l->n_out; o++)
        QN_TRY(qn_tfl_give_raw(l, o, h, QN_ORDER_OWN));
    return QN_OK;
}

/* One step: a sequence of length 1. */
qn_status qn_tfl_lstm_step(tfl_layer *l)
{
    static const int64_t axis[] = {0};
    qn_value *x, *y;
    if (qn_flat_int(&l->options, LSTM_KERNEL, 1, 0) != 0)
        return basic_lstm(l);
    QN_TRY(qn_tfl_expect(l, 1, 1));
    QN_TRY(qn_tfl_real(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_along(&x, l, &qn_op_Unsqueeze, x, axis, 1));
    QN_TRY(build_lstm(&y, l, &alone, x, false));
    QN_TRY(qn_tfl_along(&y, l, &qn_op_Squeeze, y, axis, 1));
    return qn_tfl_put(l, l->n_out - 1, y, QN_ORDER_OWN);
}

/* ---- RNN ------------------------------------------------------------------------------------- */

/* h' = activation(x W + h R + b): [batch, units]. */
static qn_status step(qn_value **h, tfl_layer *l, qn_value *x, size_t first, int64_t activation)
{
    qn_value *w, *r, *bias, *y, *recurrent;
    const qn_graph_build_attrs turned = QN_WITH(QN_A_INT("transB", 1));
    QN_TRY(qn_tfl_real(&w, l, first, QN_ORDER_OWN));
    QN_TRY(qn_tfl_real(&r, l, first + 1, QN_ORDER_OWN));
    QN_TRY(qn_tfl_real(&bias, l, first + 2, QN_ORDER_OWN));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_Gemm, QN_INPUTS(x, w, bias), turned));
    if (*h) {
        QN_TRY(qn_graph_build(&recurrent, l->b, &qn_op_Gemm, QN_INPUTS(*h, r), turned));
        QN_TRY(qn_tfl_binary(&y, l, &qn_op_Add, y, recurrent));
    }
    return qn_tfl_activate(h, l, y, activation);
}

static qn_status first_state(qn_value **h, tfl_layer *l, size_t i)
{
    *h = NULL;
    if (!qn_tfl_has(l, i) || (l->in[i]->variable && !l->in[i]->known))
        return QN_OK;
    return qn_tfl_real(h, l, i, QN_ORDER_OWN);
}

qn_status qn_tfl_rnn_step(tfl_layer *l)
{
    qn_value *x, *h;
    QN_TRY(qn_tfl_expect(l, 4, 1));
    QN_TRY(qn_tfl_real(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(first_state(&h, l, 4));
    QN_TRY(step(&h, l, x, 1, qn_tfl_byte(l, RNN_ACTIVATION)));
    return qn_tfl_put(l, l->n_out - 1, h, QN_ORDER_OWN);
}

enum { MAX_STEPS = 1024 };

/* The steps one by one, since ONNX's RNN has no Relu6: y [time, batch, units]. */
static qn_status unroll(qn_value **out, tfl_layer *l, qn_value *x, size_t first,
                        const int64_t options[2])
{
    static const int64_t axis[] = {0};
    const int64_t steps = qn_tfl_dim(x, 0);
    qn_value *parts[MAX_STEPS], *results[MAX_STEPS], *h;
    if (steps < 1 || steps > MAX_STEPS)
        return qn_tfl_unsupported(l, "%lld steps; 1 to %d are unrolled", (long long)steps,
                                  MAX_STEPS);
    QN_TRY(first_state(&h, l, first + 3));
    QN_TRY(qn_graph_build_several(parts, (size_t)steps, l->b, &qn_op_Split, QN_INPUTS(x),
                                  QN_WITH(QN_A_INT("axis", 0), QN_A_INT("num_outputs", steps))));
    for (int64_t i = 0; i < steps; i++) {
        const int64_t at = options[1] ? steps - 1 - i : i;
        QN_TRY(qn_tfl_along(&parts[at], l, &qn_op_Squeeze, parts[at], axis, 1));
        QN_TRY(step(&h, l, parts[at], first, options[0]));
        QN_TRY(qn_tfl_along(&results[at], l, &qn_op_Unsqueeze, h, axis, 1));
    }
    return qn_graph_build(out, l->b, &qn_op_Concat, (qn_graph_build_inputs){results, (size_t)steps},
                          QN_WITH(QN_A_INT("axis", 0)));
}

qn_status qn_tfl_sequence_rnn(tfl_layer *l)
{
    const bool time_major = qn_tfl_byte(l, SEQUENCE_TIME_MAJOR) != 0;
    const int64_t options[] = {qn_tfl_byte(l, SEQUENCE_ACTIVATION), 0};
    qn_value *x, *y;
    QN_TRY(qn_tfl_expect(l, 4, 1));
    QN_TRY(take_sequence(&x, l, time_major));
    QN_TRY(unroll(&y, l, x, 1, options));
    return put_sequence(l, l->n_out - 1, y, time_major);
}

qn_status qn_tfl_both_rnn(tfl_layer *l)
{
    const bool time_major = qn_tfl_byte(l, SEQUENCE_TIME_MAJOR) != 0;
    const int64_t options[][2] = {{qn_tfl_byte(l, SEQUENCE_ACTIVATION), 0},
                                  {qn_tfl_byte(l, SEQUENCE_ACTIVATION), 1}};
    qn_value *x, *y[2];
    QN_TRY(qn_tfl_expect(l, 9, 1));
    if (qn_tfl_has(l, 9))
        return qn_tfl_unsupported(l, "a second input");
    QN_TRY(take_sequence(&x, l, time_major));
    QN_TRY(unroll(&y[0], l, x, 1, options[0]));
    QN_TRY(unroll(&y[1], l, x, 5, options[1]));
    return put_both(l, y, qn_tfl_byte(l, RNN_BOTH_MERGE) != 0, time_major);
}

/* ---- SVDF ------------------------------------------------------------------------------------ */

/* The memory [batch, filters, steps] forgets its oldest step and gets the input's. */
static qn_status remember(qn_value **memory, tfl_layer *l, qn_value *fresh, int64_t steps)
{
    static const int64_t last[] = {-1};
    qn_value *old, *shape;
    QN_TRY(qn_tfl_along(&fresh, l, &qn_op_Unsqueeze, fresh, last, 1));
    *memory = fresh;
    if (steps == 1)
        return QN_OK;
    QN_TRY(first_state(&old, l, 4));
    if (!old) {
        const int64_t pads[] = {0, 0, steps - 1, 0, 0, 0};
        QN_TRY(qn_graph_build_ints(&shape, l->b, pads, 6));
        return qn_tfl_binary(memory, l, &qn_op_Pad, fresh, shape);
    }
    return qn_tfl_unsupported(l, "a memory that is no variable");
}

/* Features [filters, n] of the input, their weights in time [filters, steps], sums of `rank`
 * filters, a bias. */
qn_status qn_tfl_svdf(tfl_layer *l)
{
    static const int64_t last[] = {2};
    const int64_t rank = qn_tfl_int(l, SVDF_RANK, 0);
    qn_value *x, *features, *times, *memory, *y, *bias, *axes;
    QN_TRY(qn_tfl_expect(l, 3, 1));
    QN_TRY(qn_tfl_real(&x, l, 0, QN_ORDER_OWN));
    QN_TRY(qn_tfl_round_input(&x, l, x, 1, false));
    QN_TRY(qn_tfl_real(&features, l, 1, QN_ORDER_OWN));
    QN_TRY(qn_tfl_real(&times, l, 2, QN_ORDER_OWN));
    const int64_t filters = qn_tfl_dim(features, 0), steps = qn_tfl_dim(times, 1);
    if (rank < 1 || filters < 1 || filters % rank || qn_tfl_dim(times, 0) != filters || steps < 1)
        return qn_tfl_wrong(l, "%lld filters of rank %lld", (long long)filters, (long long)rank);
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_Gemm, QN_INPUTS(x, features),
                          QN_WITH(QN_A_INT("transB", 1))));
    QN_TRY(remember(&memory, l, y, steps));
    QN_TRY(qn_tfl_binary(&y, l, &qn_op_Mul, memory, times));
    QN_TRY(qn_graph_build_ints(&axes, l->b, last, 1));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_ReduceSum, QN_INPUTS(y, axes),
                          QN_WITH(QN_A_INT("keepdims", 0))));
    QN_TRY(qn_tfl_reshape(&y, l, y, (const int64_t[]){-1, filters / rank, rank}, 3));
    QN_TRY(qn_graph_build(&y, l->b, &qn_op_ReduceSum, QN_INPUTS(y, axes),
                          QN_WITH(QN_A_INT("keepdims", 0))));
    if (qn_tfl_has(l, 3)) {
        /* Integer biases count in the output's steps before its activation: the scale that the
         * file gives them. */
        QN_TRY(qn_tfl_bias_by_scale(&bias, l, 3));
        QN_TRY(qn_tfl_binary(&y, l, &qn_op_Add, y, bias));
    }
    return qn_tfl_put_active(l, y, QN_ORDER_OWN, qn_tfl_byte(l, SVDF_ACTIVATION));
}
