/* Recurrent layers, one way and both. */
#include <stdio.h>
#include <string.h>

#include "import/keras/keras.h"

enum { MOST_GATES = 4 };

/* What the three kinds differ in: gates of ONNX by their places in Keras's weights. */
typedef struct kind {
    const char *name;
    const qn_op *op;
    int gates;
    int order[MOST_GATES];
} kind;

static const kind kinds[] = {
    /* Keras: input, forget, new cell, output; ONNX: input, output, forget, new cell. */
    {"LSTM", &qn_op_LSTM, 4, {0, 3, 1, 2}},
    /* Both: update, reset, new state. */
    {"GRU", &qn_op_GRU, 3, {0, 1, 2}},
    {"SimpleRNN", &qn_op_RNN, 1, {0}},
};

/* A layer that runs one way: where its weights are, and which way. */
typedef struct run {
    qn_keras_call *call;
    const kind *kind;
    const char *part;
    size_t flat;
    int64_t hidden;
    bool backward;
    /* Zeros stand where steps do not count. */
    bool zeros;
} run;

static qn_status weight(qn_value **out, const run *r, size_t i)
{
    return qn_keras_weight(out, r->call, (qn_keras_weight_id){r->part, i, r->flat + i});
}

/* Gates along an axis in ONNX's order. */
static qn_status gates(qn_value **w, const run *r, int64_t axis)
{
    qn_value *parts[MOST_GATES];
    qn_keras_import *import = r->call->import;
    const kind *k = r->kind;
    for (int i = 0; i < k->gates; i++) {
        parts[i] = *w;
        QN_TRY(qn_keras_part(&parts[i], import, axis, k->order[i] * r->hidden,
                             (k->order[i] + 1) * r->hidden));
    }
    return qn_graph_build(w, &import->builder, &qn_op_Concat,
                          (qn_graph_build_inputs){parts, (size_t)k->gates},
                          QN_WITH(QN_A_INT("axis", axis)));
}

/* [rows, gates H] to [1, gates H, rows]. */
static qn_status matrix(qn_value **out, const run *r, size_t i)
{
    static const int64_t turned[] = {1, 0}, first[] = {0};
    char shape[128];
    QN_TRY(weight(out, r, i));
    if ((*out)->type.rank != 2 || (*out)->type.dims[1].value != r->kind->gates * r->hidden) {
        qn_type_format(shape, sizeof shape, &(*out)->type);
        return qn_keras_fail(r->call, QN_E_FORMAT, "its weights are %s, its units %lld", shape,
                             (long long)r->hidden);
    }
    QN_TRY(gates(out, r, 1));
    QN_TRY(qn_keras_permute(out, r->call->import, turned, 2));
    return qn_keras_with_ints(out, r->call->import, &qn_op_Unsqueeze, first, 1);
}

static bool resets_after(const run *r)
{
    /* Before Keras 2 learned it layers did not have it, and did not say so. */
    qn_json_place place;
    return strcmp(r->kind->name, "GRU") == 0 &&
           qn_keras_find(&place, &r->call->layer->config, "reset_after") &&
           qn_keras_bool(r->call, "reset_after", false);
}

/* [1, 2 gates H]: the bias, and that of the state, which only a GRU that resets after has. */
static qn_status bias(qn_value **out, const run *r)
{
    static const int64_t first[] = {0};
    qn_value *own, *other, *zero;
    qn_keras_import *import = r->call->import;
    const int64_t width = r->kind->gates * r->hidden;
    *out = NULL;
    if (!qn_keras_bool(r->call, "use_bias", true))
        return QN_OK;
    QN_TRY(weight(&own, r, 2));
    if (own->type.rank == 2) {
        other = own;
        QN_TRY(qn_keras_part(&own, import, 0, 0, 1));
        QN_TRY(qn_keras_part(&other, import, 0, 1, 2));
        QN_TRY(qn_keras_with_ints(&own, import, &qn_op_Reshape, &width, 1));
        QN_TRY(qn_keras_with_ints(&other, import, &qn_op_Reshape, &width, 1));
        QN_TRY(gates(&other, r, 0));
    } else {
        QN_TRY(qn_keras_number(&zero, import, 0, QN_FLOAT32));
        other = zero;
        QN_TRY(qn_keras_with_ints(&other, import, &qn_op_Expand, &width, 1));
    }
    QN_TRY(gates(&own, r, 0));
    QN_TRY(qn_graph_build(out, &import->builder, &qn_op_Concat, QN_INPUTS(own, other),
                          QN_WITH(QN_A_INT("axis", 0))));
    return qn_keras_with_ints(out, import, &qn_op_Unsqueeze, first, 1);
}

/* ---- Activations ----------------------------------------------------------------------------- */

static qn_status word(qn_string *out, const qn_keras_call *call, const char *key,
                      const char *fallback)
{
    static const char *const words[][2] = {
        {"tanh", "Tanh"},         {"sigmoid", "Sigmoid"},
        {"relu", "Relu"},         {"hard_sigmoid", "HardSigmoid"},
        {"softsign", "Softsign"}, {"softplus", "Softplus"},
        {"linear", "Affine"}};
    const char *name = qn_keras_text(call, key, fallback);
    for (size_t i = 0; i < QN_COUNT_OF(words); i++) {
        if (strcmp(words[i][0], name) == 0) {
            *out = (qn_string){words[i][1], strlen(words[i][1])};
            return QN_OK;
        }
    }
    return qn_keras_fail(call, QN_E_UNSUPPORTED, "the activation '%s' in a recurrent layer", name);
}

/* f, g and h of ONNX: of the gates, of the new values, of the cell. */
static qn_status activations(qn_string *out, size_t *count, const run *r)
{
    qn_string gate, fresh;
    QN_TRY(word(&fresh, r->call, "activation", "tanh"));
    QN_TRY(word(&gate, r->call, "recurrent_activation", "sigmoid"));
    *count = r->kind->gates == 1 ? 1 : r->kind->gates == 3 ? 2 : 3;
    out[0] = *count == 1 ? fresh : gate;
    out[1] = out[2] = fresh;
    return QN_OK;
}

/* ---- One way --------------------------------------------------------------------------------- */

/* States that the call gives: [N, H] to [1, N, H]. */
static qn_status initial(qn_value **out, const run *r, size_t i)
{
    static const int64_t first[] = {0};
    *out = NULL;
    if (i >= r->call->n_in)
        return QN_OK;
    QN_TRY(qn_keras_in(out, r->call, i, QN_ORDER_OWN));
    return qn_keras_with_ints(out, r->call->import, &qn_op_Unsqueeze, first, 1);
}

static qn_status build(qn_value **out, const run *r, qn_value *const *in)
{
    qn_string words[3];
    qn_strings list = {words, 0};
    float slopes[3];
    const float slope = r->call->import->version >= 3 ? 1.f / 6.f : .2f;
    qn_graph_builder *b = &r->call->import->builder;
    const bool lstm = r->kind->gates == 4;
    QN_TRY(activations(words, &list.count, r));
    for (size_t i = 0; i < 3; i++)
        slopes[i] = slope;
    const bool hard = words[0].length == 11 || words[1].length == 11;
    const qn_graph_build_attr attrs[] = {
        QN_A_INT("hidden_size", r->hidden),
        QN_A_TEXT("direction", r->backward ? "reverse" : "forward"),
        {.name = "activations", .kind = QN_ATTR_STRINGS, .object = &list},
        {.name = hard ? "activation_alpha" : "linear_before_reset",
         .kind = hard ? QN_ATTR_FLOATS : QN_ATTR_INT,
         .reals = slopes,
         .count = 1,
         .number = resets_after(r)}};
    const bool gru = r->kind->gates == 3;
    if (hard && gru && resets_after(r))
        return qn_keras_fail(r->call, QN_E_UNSUPPORTED, "hard_sigmoid in a GRU that resets after");
    const qn_graph_build_inputs inputs = {in, lstm ? 7 : 6};
    return qn_graph_build_several(out, lstm ? 3 : 2, b, r->kind->op, inputs,
                                  (qn_graph_build_attrs){attrs, hard || gru ? 4 : 3});
}

/* out: all states [N, T, H], the last one [N, H], of an LSTM the cell [N, H]. */
static qn_status run_one_way(qn_value **out, const run *r)
{
    static const int64_t time_first[] = {1, 0, 2}, directions[] = {1}, first[] = {0};
    qn_value *in[7] = {NULL}, *made[3], *mask = qn_keras_mask(r->call, 0);
    qn_keras_import *import = r->call->import;
    qn_keras_steps steps = {.mask = NULL};
    QN_TRY(qn_keras_in(&in[0], r->call, 0, QN_ORDER_OWN));
    if (in[0]->type.rank != 3)
        return qn_keras_fail(r->call, QN_E_FORMAT, "an input of %d axes", in[0]->type.rank);
    if (mask)
        QN_TRY(qn_keras_steps_front(&steps, &in[0], import, mask));
    in[4] = steps.lengths;
    QN_TRY(qn_keras_permute(&in[0], import, time_first, 3));
    QN_TRY(matrix(&in[1], r, 0));
    QN_TRY(matrix(&in[2], r, 1));
    QN_TRY(bias(&in[3], r));
    QN_TRY(initial(&in[5], r, 1));
    QN_TRY(initial(&in[6], r, 2));
    QN_TRY(build(made, r, in));
    QN_TRY(qn_keras_with_ints(&made[0], import, &qn_op_Squeeze, directions, 1));
    QN_TRY(qn_keras_permute(&made[0], import, time_first, 3));
    if (mask)
        QN_TRY(
            qn_keras_steps_back(&made[0], &steps, import, (qn_keras_gaps){r->backward, r->zeros}));
    for (int i = 1; i < (r->kind->gates == 4 ? 3 : 2); i++)
        QN_TRY(qn_keras_with_ints(&made[i], import, &qn_op_Squeeze, first, 1));
    memcpy(out, made, sizeof made);
    return QN_OK;
}

static qn_status prepare(run *r, qn_keras_call *call, const char *part, size_t flat)
{
    *r = (run){.call = call, .part = part, .flat = flat};
    for (size_t i = 0; i < QN_COUNT_OF(kinds); i++) {
        if (strcmp(kinds[i].name, call->layer->type) == 0)
            r->kind = &kinds[i];
    }
    if (!r->kind)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "'%s' both ways", call->layer->type);
    r->hidden = qn_keras_int(call, "units", 0);
    r->backward = qn_keras_bool(call, "go_backwards", false);
    r->zeros = qn_keras_bool(call, "zero_output_for_mask", false);
    if (r->hidden < 1)
        return qn_keras_fail(call, QN_E_FORMAT, "its units are missing");
    return QN_OK;
}

/* Steps in the opposite order. */
static qn_status turn_time(qn_value **value, qn_keras_import *import)
{
    static const int64_t from[] = {-1}, to[] = {INT64_MIN}, axis[] = {1};
    qn_value *lists[3];
    qn_graph_builder *b = &import->builder;
    QN_TRY(qn_graph_build_ints(&lists[0], b, from, 1));
    QN_TRY(qn_graph_build_ints(&lists[1], b, to, 1));
    QN_TRY(qn_graph_build_ints(&lists[2], b, axis, 1));
    return qn_graph_build(value, b, &qn_op_Slice,
                          QN_INPUTS(*value, lists[0], lists[1], lists[2], lists[0]), QN_PLAIN);
}

qn_status qn_keras_recurrent(qn_keras_call *call)
{
    run r;
    qn_value *out[3];
    qn_keras_import *import = call->import;
    QN_TRY(prepare(&r, call, "cell", 0));
    QN_TRY(run_one_way(out, &r));
    const bool all = qn_keras_bool(call, "return_sequences", false);
    if (all && r.backward)
        QN_TRY(turn_time(&out[0], import));
    if (qn_keras_bool(call, "return_state", false)) {
        for (int i = 1; i < (r.kind->gates == 4 ? 3 : 2); i++) {
            const char *name = qn_arena_format(&import->arena, "%s:%d", call->out, i);
            QN_TRY_ALLOC(import->ctx, name);
            QN_TRY(qn_layout_define(&import->layouts, name, out[i], QN_ORDER_OWN));
        }
    }
    if (all)
        QN_TRY(qn_keras_set_mask(call, qn_keras_mask(call, 0)));
    return qn_keras_out(call, all ? out[0] : out[1], QN_ORDER_OWN);
}

/* A layer whose cell says what it computes: what the layer itself says is looked up behind that. */
qn_status qn_keras_rnn(qn_keras_call *call)
{
    qn_json_place cell;
    qn_keras_import *import = call->import;
    qn_keras_layer *layer = qn_arena_alloc(&import->arena, sizeof *layer);
    const qn_json_place *kept;
    qn_keras_call inner = *call;
    QN_TRY_ALLOC(import->ctx, layer);
    *layer = *call->layer;
    if (!qn_keras_find(&cell, &call->layer->config, "cell") || !qn_json_is_object(&cell))
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "several cells");
    kept = qn_arena_copy(&import->arena, &cell, sizeof cell);
    QN_TRY_ALLOC(import->ctx, kept);
    QN_TRY(qn_json_member_text(&layer->type, kept, "class_name"));
    QN_TRY(qn_json_member(&layer->config, kept, "config"));
    const size_t length = strlen(layer->type), ending = strlen("Cell");
    if (length <= ending || strcmp(layer->type + length - ending, "Cell") != 0)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "the cell '%s'", layer->type);
    layer->type = qn_arena_text(&import->arena, layer->type, length - ending);
    QN_TRY_ALLOC(import->ctx, layer->type);
    inner.layer = layer;
    inner.keywords = call->layer->config;
    return qn_keras_recurrent(&inner);
}

/* ---- Both ways ------------------------------------------------------------------------------- */

static qn_status both(qn_value **y, qn_keras_call *call, qn_value *forward, qn_value *backward)
{
    static const struct {
        const char *word;
        const qn_op *op;
    } modes[] = {{"sum", &qn_op_Add}, {"ave", &qn_op_Add}, {"mul", &qn_op_Mul}};
    const char *mode = qn_keras_text(call, "merge_mode", "concat");
    qn_keras_import *import = call->import;
    qn_value *half;
    if (strcmp(mode, "concat") == 0)
        return qn_graph_build(y, &import->builder, &qn_op_Concat, QN_INPUTS(forward, backward),
                              QN_WITH(QN_A_INT("axis", -1)));
    for (size_t i = 0; i < QN_COUNT_OF(modes); i++) {
        if (strcmp(mode, modes[i].word) == 0)
            QN_TRY(qn_keras_two(y, import, modes[i].op, forward, backward));
    }
    if (strcmp(mode, "ave") != 0)
        return QN_OK;
    QN_TRY(qn_keras_number(&half, import, .5, QN_FLOAT32));
    return qn_keras_two(y, import, &qn_op_Mul, *y, half);
}

static qn_status inner_layer(qn_keras_layer *out, const qn_keras_call *call)
{
    qn_json_place place;
    *out = *call->layer;
    QN_TRY(qn_json_member(&place, &call->layer->config, "layer"));
    const qn_json_place *kept = qn_arena_copy(&call->import->arena, &place, sizeof place);
    QN_TRY_ALLOC(call->import->ctx, kept);
    QN_TRY(qn_json_member_text(&out->type, kept, "class_name"));
    return qn_json_member(&out->config, kept, "config");
}

qn_status qn_keras_bidirectional(qn_keras_call *call)
{
    run r[2];
    qn_value *forward[3], *backward[3], *y = NULL;
    qn_keras_import *import = call->import;
    qn_keras_layer *layer = qn_arena_alloc(&import->arena, sizeof *layer);
    QN_TRY_ALLOC(import->ctx, layer);
    QN_TRY(inner_layer(layer, call));
    qn_keras_call inner = *call;
    inner.layer = layer;
    if (inner.n_in != 1)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "states that are given");
    const size_t weights = qn_keras_bool(&inner, "use_bias", true) ? 3 : 2;
    QN_TRY(prepare(&r[0], &inner, "forward_layer/cell", 0));
    QN_TRY(prepare(&r[1], &inner, "backward_layer/cell", weights));
    r[1].backward = !r[0].backward;
    r[0].zeros = r[1].zeros = true;
    QN_TRY(run_one_way(forward, &r[0]));
    QN_TRY(run_one_way(backward, &r[1]));
    const int which = qn_keras_bool(&inner, "return_sequences", false) ? 0 : 1;
    if (which == 0)
        QN_TRY(qn_keras_set_mask(call, qn_keras_mask(call, 0)));
    QN_TRY(both(&y, call, forward[which], backward[which]));
    if (!y)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "the merge_mode is not known");
    return qn_keras_out(call, y, QN_ORDER_OWN);
}
