/* LSTM and RNN. A second bottom says for each step and picture whether the sequence goes on (1) or
 * begins (0), which ONNX's layers cannot be told: where it says nothing but that all begin with the
 * first step, an LSTM is ONNX's; else the steps are nodes. */
#include <string.h>

#include "import/caffe/caffe.h"

enum { MOST_STEPS = 1024 };

typedef struct recurrent {
    int64_t steps, batch, outputs, gates;
    /* [steps, batch, 1] */
    qn_value *go_on;
    /* What the inputs add to the gates of all steps: [steps, batch, gates * outputs]. */
    qn_value *given;
    /* [outputs, gates * outputs] */
    qn_value *back;
} recurrent;

static qn_status read_recurrent(recurrent *r, qn_caffe_net *net, const qn_caffe_layer *layer,
                                const qn_value *x)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_RECURRENT);
    r->outputs = qn_proto_int(param, QN_CAFFE_RECURRENT_NUM_OUTPUT, 0);
    QN_TRY(qn_caffe_check(net, "num_output", r->outputs, 1, 1 << 24));
    if (qn_proto_int(param, QN_CAFFE_RECURRENT_EXPOSE_HIDDEN, 0))
        return QN_CAFFE_REFUSE(net, "its state as a bottom and top (expose_hidden)");
    if (x->type.rank < 3)
        return QN_CAFFE_FAIL(net, "its first bottom is to be [steps, pictures, numbers]");
    r->steps = qn_caffe_dim(x, 0);
    r->batch = qn_caffe_dim(x, 1);
    QN_TRY(qn_caffe_check(net, "the number of steps", r->steps, 1, MOST_STEPS));
    return qn_caffe_check(net, "the number of pictures", r->batch, 1, QN_CAFFE_MOST);
}

/* x * weights^T of blob i, whose rows are those of the gates. */
static qn_status multiply(qn_value **out, qn_caffe_net *net, const qn_caffe_layer *layer, size_t i,
                          const int64_t dims[2])
{
    const int64_t perm[] = {1, 0};
    qn_value *weights;
    QN_TRY(qn_caffe_constant(&weights, net, layer, i, 2, dims));
    QN_TRY(qn_caffe_transpose(&weights, net, weights, perm));
    return qn_caffe_op2(out, net, &qn_op_MatMul, *out, weights);
}

/* The numbers of a bottom for each step and picture, or for each picture: [..., numbers]. */
static qn_status flatten(qn_value **x, int64_t *numbers, qn_caffe_net *net, const recurrent *r,
                         int64_t first)
{
    QN_TRY(qn_caffe_count(numbers, net, *x, first, (*x)->type.rank));
    const int64_t dims[] = {first == 2 ? r->steps : 1, r->batch, *numbers};
    return qn_caffe_reshape(x, net, *x, 3, dims);
}

/* Blobs: of x, the bias, of the static bottom where there is one, of the state before. */
static qn_status read_bottoms(recurrent *r, qn_caffe_net *net, const qn_caffe_layer *layer,
                              qn_value *x)
{
    const int64_t rows = r->gates * r->outputs, perm[] = {1, 0};
    const int64_t cont[] = {r->steps, r->batch, 1}, back[] = {rows, r->outputs};
    const bool has_static = layer->bottoms.count > 2;
    int64_t numbers;
    qn_value *bias, *fixed;
    QN_TRY(qn_caffe_in(&r->go_on, net, layer, 1));
    QN_TRY(qn_caffe_reshape(&r->go_on, net, r->go_on, 3, cont));
    QN_TRY(flatten(&x, &numbers, net, r, 2));
    QN_TRY(multiply(&x, net, layer, 0, (const int64_t[]){rows, numbers}));
    QN_TRY(qn_caffe_constant(&bias, net, layer, 1, 1, &rows));
    QN_TRY(qn_caffe_op2(&r->given, net, &qn_op_Add, x, bias));
    if (has_static) {
        QN_TRY(qn_caffe_in(&fixed, net, layer, 2));
        QN_TRY(flatten(&fixed, &numbers, net, r, 1));
        QN_TRY(multiply(&fixed, net, layer, 2, (const int64_t[]){rows, numbers}));
        QN_TRY(qn_caffe_op2(&r->given, net, &qn_op_Add, r->given, fixed));
    }
    QN_TRY(qn_caffe_constant(&r->back, net, layer, 2 + has_static, 2, back));
    return qn_caffe_transpose(&r->back, net, r->back, perm);
}

/* The gates of step t before their functions: [1, batch, gates * outputs]. */
static qn_status gates_of(qn_value **out, qn_caffe_net *net, const recurrent *r, int64_t t,
                          qn_value *before)
{
    QN_TRY(qn_caffe_slice(out, net, r->given, 0, t, t + 1));
    if (!before)
        return QN_OK;
    QN_TRY(qn_caffe_op2(&before, net, &qn_op_MatMul, before, r->back));
    return qn_caffe_op2(out, net, &qn_op_Add, *out, before);
}

/* What a step keeps of the state before: nothing where a sequence begins. */
static qn_status carry(qn_value **state, qn_caffe_net *net, const recurrent *r, int64_t t)
{
    qn_value *go_on;
    QN_TRY(qn_caffe_slice(&go_on, net, r->go_on, 0, t, t + 1));
    return qn_caffe_op2(state, net, &qn_op_Mul, *state, go_on);
}

/* ---- LSTM: gates i, f, o, g ------------------------------------------------------------------ */

static qn_status lstm_step(qn_value **cell, qn_value **hidden, qn_caffe_net *net,
                           const recurrent *r, int64_t t)
{
    qn_value *gates, *parts[4];
    if (t > 0) {
        QN_TRY(carry(hidden, net, r, t));
        QN_TRY(carry(cell, net, r, t));
    }
    QN_TRY(gates_of(&gates, net, r, t, t > 0 ? *hidden : NULL));
    for (int64_t g = 0; g < 4; g++) {
        QN_TRY(qn_caffe_slice(&parts[g], net, gates, 2, g * r->outputs, (g + 1) * r->outputs));
        QN_TRY(qn_caffe_op1(&parts[g], net, g < 3 ? &qn_op_Sigmoid : &qn_op_Tanh, parts[g]));
    }
    QN_TRY(qn_caffe_op2(&parts[0], net, &qn_op_Mul, parts[0], parts[3]));
    if (t > 0) {
        QN_TRY(qn_caffe_op2(&parts[1], net, &qn_op_Mul, parts[1], *cell));
        QN_TRY(qn_caffe_op2(&parts[0], net, &qn_op_Add, parts[0], parts[1]));
    }
    *cell = parts[0];
    QN_TRY(qn_caffe_op1(hidden, net, &qn_op_Tanh, *cell));
    return qn_caffe_op2(hidden, net, &qn_op_Mul, *hidden, parts[2]);
}

/* Whether a constant says that all sequences go on behind the first step. */
static bool always_goes_on(const qn_value *cont, const recurrent *r)
{
    const qn_tensor *data = cont->data;
    int64_t count;
    if (!data || data->dtype != QN_FLOAT32 || !qn_dims_count(&count, data->rank, data->dims) ||
        count != r->steps * r->batch)
        return false;
    for (int64_t i = r->batch; i < count; i++) {
        if (((const float *)data->data)[i] != 1)
            return false;
    }
    return true;
}

/* Blob i with its gates in ONNX's order, i, o, f, g, and one direction in front. */
static qn_status reorder(qn_value **out, qn_caffe_net *net, const qn_caffe_layer *layer, size_t i,
                         const int64_t dims[2])
{
    const int64_t places[] = {0, 2, 1, 3}, apart[] = {4, dims[0] / 4, dims[1]};
    const int64_t whole[] = {1, dims[0], dims[1]};
    const qn_type stored = qn_type_tensor(QN_FLOAT32, 2, dims);
    const qn_type wanted = qn_type_tensor(QN_FLOAT32, 3, apart);
    qn_value *order;
    QN_TRY(qn_caffe_constant_as(out, net, layer, i, &stored, &wanted));
    QN_TRY(qn_graph_build_ints(&order, &net->builder, places, 4));
    QN_TRY(qn_caffe_op2(out, net, &qn_op_Gather, *out, order));
    return qn_caffe_reshape(out, net, *out, 3, whole);
}

static qn_status whole_lstm(qn_value **out, qn_caffe_net *net, const recurrent *r,
                            const qn_caffe_layer *layer, qn_value *x)
{
    const int64_t rows = 4 * r->outputs, bias[] = {1, 2 * rows},
                  y[] = {r->steps, r->batch, r->outputs};
    int64_t numbers;
    qn_value *in[4], *both[2];
    QN_TRY(flatten(&x, &numbers, net, r, 2));
    in[0] = x;
    QN_TRY(reorder(&in[1], net, layer, 0, (const int64_t[]){rows, numbers}));
    QN_TRY(reorder(&in[2], net, layer, 2, (const int64_t[]){rows, r->outputs}));
    QN_TRY(reorder(&both[0], net, layer, 1, (const int64_t[]){rows, 1}));
    QN_TRY(qn_caffe_op_real(&both[1], net, &qn_op_Mul, both[0], 0));
    QN_TRY(qn_caffe_concat(&in[3], net, both, 2, 1));
    QN_TRY(qn_caffe_reshape(&in[3], net, in[3], 2, bias));
    QN_TRY(qn_graph_build(out, &net->builder, &qn_op_LSTM, (qn_graph_build_inputs){in, 4},
                          QN_WITH(QN_A_INT("hidden_size", r->outputs))));
    return qn_caffe_reshape(out, net, *out, 3, y);
}

qn_status qn_caffe_lstm(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    recurrent r = {.gates = 4};
    qn_value *x, *cont, *y, *cell = NULL, *hidden = NULL, *steps[MOST_STEPS];
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(qn_caffe_in(&cont, net, layer, 1));
    QN_TRY(read_recurrent(&r, net, layer, x));
    if (layer->bottoms.count == 2 && always_goes_on(cont, &r)) {
        QN_TRY(whole_lstm(&y, net, &r, layer, x));
        return qn_caffe_out(net, layer, 0, y);
    }
    QN_TRY(read_bottoms(&r, net, layer, x));
    for (int64_t t = 0; t < r.steps; t++) {
        QN_TRY(lstm_step(&cell, &hidden, net, &r, t));
        steps[t] = hidden;
    }
    QN_TRY(qn_caffe_concat(&y, net, steps, (size_t)r.steps, 0));
    return qn_caffe_out(net, layer, 0, y);
}

/* ---- RNN: h = tanh(x, h before), y = tanh(h) ------------------------------------------------- */

qn_status qn_caffe_rnn(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const size_t blob = layer->bottoms.count > 2 ? 4 : 3;
    recurrent r = {.gates = 1};
    qn_value *x, *y, *bias, *hidden = NULL, *steps[MOST_STEPS];
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(read_recurrent(&r, net, layer, x));
    QN_TRY(read_bottoms(&r, net, layer, x));
    for (int64_t t = 0; t < r.steps; t++) {
        if (t > 0)
            QN_TRY(carry(&hidden, net, &r, t));
        QN_TRY(gates_of(&hidden, net, &r, t, hidden));
        QN_TRY(qn_caffe_op1(&hidden, net, &qn_op_Tanh, hidden));
        steps[t] = hidden;
    }
    QN_TRY(qn_caffe_concat(&y, net, steps, (size_t)r.steps, 0));
    QN_TRY(multiply(&y, net, layer, blob, (const int64_t[]){r.outputs, r.outputs}));
    QN_TRY(qn_caffe_constant(&bias, net, layer, blob + 1, 1, &r.outputs));
    QN_TRY(qn_caffe_op2(&y, net, &qn_op_Add, y, bias));
    QN_TRY(qn_caffe_op1(&y, net, &qn_op_Tanh, y));
    return qn_caffe_out(net, layer, 0, y);
}

/* 0 in the first step, 1 behind it: [time_step, batch_size]. */
qn_status qn_caffe_continuation(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_CONTINUATION);
    const int64_t dims[] = {qn_proto_int(param, QN_CAFFE_CONTINUATION_TIME_STEP, 0),
                            qn_proto_int(param, QN_CAFFE_CONTINUATION_BATCH_SIZE, 0)};
    const qn_type type = qn_type_tensor(QN_FLOAT32, 2, dims);
    qn_tensor *tensor;
    qn_value *y;
    QN_TRY(qn_caffe_check(net, "time_step", dims[0], 1, MOST_STEPS));
    QN_TRY(qn_caffe_check(net, "batch_size", dims[1], 1, 1 << 12));
    QN_TRY(qn_model_tensor(&tensor, net->builder.model, &type));
    for (int64_t i = 0; i < dims[0] * dims[1]; i++)
        ((float *)tensor->data)[i] = i >= dims[1];
    QN_TRY(qn_value_constant(&y, net->builder.graph, layer->name, tensor));
    return qn_caffe_out(net, layer, 0, y);
}
