/* Layers that give another shape. */
#include <string.h>

#include "import/keras/keras.h"

/* [N, all others]. */
qn_status qn_keras_flatten(qn_keras_call *call)
{
    int64_t dims[2] = {-1, 1};
    qn_value *x;
    qn_axis_order held;
    qn_keras_import *import = call->import;
    QN_TRY(qn_keras_in_any(&x, &held, call, 0));
    if (qn_keras_channels_first(call))
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "channels that come first");
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    for (int32_t i = 1; i < x->type.rank; i++) {
        const int64_t size = x->type.dims[i].value;
        if (size < 1 || !qn_mul_int64(&dims[1], dims[1], size))
            return qn_keras_fail(call, QN_E_UNSUPPORTED, "the sizes of its input are not known");
    }
    QN_TRY(qn_keras_with_ints(&x, import, &qn_op_Reshape, dims, 2));
    QN_TRY(qn_keras_out(call, x, QN_ORDER_OWN));
    if (held != QN_ORDER_CHANNELS_FIRST)
        return QN_OK;
    return qn_names_set(&import->flat, call->out, (void *)(uintptr_t)call->in[0]);
}

qn_status qn_keras_reshape(qn_keras_call *call)
{
    int64_t dims[QN_MAX_RANK] = {0};
    size_t count;
    qn_value *x;
    bool done;
    QN_TRY(qn_keras_reshape_to(call, &done));
    if (done)
        return QN_OK;
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    if (!qn_keras_int_list(dims + 1, &count, call, "target_shape", QN_MAX_RANK - 1))
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "its target_shape is not known");
    const int64_t batch = x->type.rank > 0 ? x->type.dims[0].value : -1;
    for (size_t i = 1; i <= count; i++) {
        if (dims[i] == 0 || dims[i] < -1)
            return qn_keras_fail(call, QN_E_FORMAT, "its target_shape has %lld",
                                 (long long)dims[i]);
    }
    dims[0] = batch > 0 ? batch : 0; /* 0: as it is */
    QN_TRY(qn_keras_with_ints(&x, call->import, &qn_op_Reshape, dims, count + 1));
    return qn_keras_out(call, x, QN_ORDER_OWN);
}

/* Axes are counted from 1, behind the batch. */
qn_status qn_keras_permute_layer(qn_keras_call *call)
{
    int64_t perm[QN_MAX_RANK] = {0};
    bool seen[QN_MAX_RANK + 1] = {false};
    size_t count;
    qn_value *x;
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    if (!qn_keras_int_list(perm + 1, &count, call, "dims", QN_MAX_RANK - 1) ||
        (int32_t)count + 1 != x->type.rank)
        return qn_keras_fail(call, QN_E_FORMAT, "its dims are no order of the axes");
    for (size_t i = 1; i <= count; i++) {
        if (perm[i] < 1 || perm[i] > (int64_t)count || seen[perm[i]])
            return qn_keras_fail(call, QN_E_FORMAT, "its dims are no order of the axes");
        seen[perm[i]] = true;
    }
    QN_TRY(qn_keras_permute(&x, call->import, perm, count + 1));
    return qn_keras_out(call, x, QN_ORDER_OWN);
}

/* [N, C] to [N, n, C]. */
qn_status qn_keras_repeat(qn_keras_call *call)
{
    const int64_t times[] = {1, qn_keras_int(call, "n", 1), 1}, axis = 1;
    qn_value *x;
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    QN_TRY(qn_keras_with_ints(&x, call->import, &qn_op_Unsqueeze, &axis, 1));
    QN_TRY(qn_keras_with_ints(&x, call->import, &qn_op_Tile, times, 3));
    return qn_keras_out(call, x, QN_ORDER_OWN);
}

/* ---- A layer for each step ------------------------------------------------------------------- */

/* The inner layer sees all steps of all samples as samples: [N T, ...]. */
static qn_status fold_steps(const char **name, qn_keras_call *call, int64_t *batch, int64_t *steps)
{
    int64_t dims[QN_MAX_RANK];
    qn_value *x;
    qn_keras_import *import = call->import;
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    const int32_t rank = x->type.rank;
    if (rank < 3 || x->type.dims[1].value < 1)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "the number of steps is not known");
    *batch = x->type.dims[0].value;
    *steps = x->type.dims[1].value;
    dims[0] = -1;
    for (int32_t i = 2; i < rank; i++) {
        dims[i - 1] = x->type.dims[i].value;
        if (dims[i - 1] < 1)
            return qn_keras_fail(call, QN_E_UNSUPPORTED, "the sizes of its input are not known");
    }
    QN_TRY(qn_keras_with_ints(&x, import, &qn_op_Reshape, dims, (size_t)rank - 1));
    *name = qn_keras_fresh(import);
    QN_TRY_ALLOC(import->ctx, *name);
    return qn_layout_define(&import->layouts, *name, x, QN_ORDER_OWN);
}

static qn_status unfold_steps(qn_keras_call *call, const char *name, int64_t batch, int64_t steps)
{
    int64_t dims[QN_MAX_RANK];
    qn_value *y;
    QN_TRY(qn_layout_find(&y, &call->import->layouts, name, QN_ORDER_OWN));
    const int32_t rank = y->type.rank;
    if (y->type.kind != QN_TYPE_TENSOR || rank < 1 || rank >= QN_MAX_RANK)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "the layer inside cannot be read");
    dims[0] = batch > 0 ? batch : -1;
    dims[1] = steps;
    for (int32_t i = 1; i < rank; i++) {
        dims[i + 1] = y->type.dims[i].value;
        if (dims[i + 1] < 1)
            return qn_keras_fail(call, QN_E_UNSUPPORTED, "the sizes of its result are not known");
    }
    QN_TRY(qn_keras_with_ints(&y, call->import, &qn_op_Reshape, dims, (size_t)rank + 1));
    return qn_keras_out(call, y, QN_ORDER_OWN);
}

/* The layer that a wrapper is around, with the wrapper's weights. */
static qn_status inner_layer(qn_keras_layer *out, const qn_keras_call *call)
{
    qn_json_place place;
    qn_arena *arena = &call->import->arena;
    *out = (qn_keras_layer){.name = call->layer->name};
    QN_TRY(qn_json_member(&place, &call->layer->config, "layer"));
    out->place = place;
    const qn_json_place *kept = qn_arena_copy(arena, &place, sizeof place);
    QN_TRY_ALLOC(call->import->ctx, kept);
    QN_TRY(qn_json_member_text(&out->type, kept, "class_name"));
    QN_TRY(qn_json_member(&out->config, kept, "config"));
    out->op = qn_keras_op_find(out->type);
    out->sets = call->layer->sets;
    out->n_sets = call->layer->n_sets;
    if (call->layer->group) {
        out->group = qn_arena_format(arena, "%slayer/", call->layer->group);
        QN_TRY_ALLOC(call->import->ctx, out->group);
    }
    return QN_OK;
}

qn_status qn_keras_time_distributed(qn_keras_call *call)
{
    qn_keras_layer *layer = qn_arena_alloc(&call->import->arena, sizeof *layer);
    qn_keras_import *import = call->import;
    const char *in;
    int64_t batch = -1, steps = 1;
    QN_TRY_ALLOC(import->ctx, layer);
    QN_TRY(inner_layer(layer, call));
    QN_TRY(fold_steps(&in, call, &batch, &steps));
    qn_keras_call inner = {.import = import, .layer = layer, .in = &in, .n_in = 1};
    inner.out = qn_keras_fresh(import);
    QN_TRY_ALLOC(import->ctx, inner.out);
    if (import->depth > 8)
        return qn_keras_fail(call, QN_E_FORMAT, "layers lie too deep in one another");
    import->depth++;
    const qn_status status = qn_keras_convert(&inner);
    import->depth--;
    QN_TRY(status);
    qn_graph_builder_layer(&import->builder, call->layer->name, call->layer->type);
    return unfold_steps(call, inner.out, batch, steps);
}
