/* Functions that change shapes and take parts: operations of Keras 3, and those of TensorFlow. */
#include <string.h>

#include "import/keras/keras.h"

/* ---- Shapes ---------------------------------------------------------------------------------- */

/* Integers that go by one of two names. */
static bool either(int64_t *out, size_t *count, const qn_keras_call *call, const char *const *keys)
{
    return qn_keras_int_list(out, count, call, keys[0], QN_MAX_RANK) ||
           qn_keras_int_list(out, count, call, keys[1], QN_MAX_RANK);
}

/* The batch, which a shape of the file may have as a number, stays open where it is. */
qn_status qn_keras_reshape_to(qn_keras_call *call, bool *done)
{
    static const char *const keys[] = {"newshape", "shape"};
    int64_t dims[QN_MAX_RANK];
    size_t count;
    qn_value *x;
    *done = either(dims, &count, call, keys);
    if (!*done)
        return QN_OK;
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    QN_TRY(qn_keras_with_ints(&x, call->import, &qn_op_Reshape, dims, count));
    return qn_keras_out(call, x, QN_ORDER_OWN);
}

qn_status qn_keras_transpose(qn_keras_call *call)
{
    static const char *const keys[] = {"axes", "perm"};
    int64_t perm[QN_MAX_RANK];
    bool seen[QN_MAX_RANK] = {false};
    size_t count;
    qn_value *x;
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    const int32_t rank = x->type.rank;
    const bool given = either(perm, &count, call, keys);
    for (int32_t i = 0; i < rank; i++) {
        const int64_t axis =
            given && i < (int32_t)count ? perm[i] + (perm[i] < 0 ? rank : 0) : rank - 1 - i;
        if ((given && (int32_t)count != rank) || axis < 0 || axis >= rank || seen[axis])
            return qn_keras_fail(call, QN_E_FORMAT, "its axes are no order of %d", rank);
        seen[axis] = true;
        perm[i] = axis;
    }
    if (rank > 0)
        QN_TRY(qn_keras_permute(&x, call->import, perm, (size_t)rank));
    return qn_keras_out(call, x, QN_ORDER_OWN);
}

/* ExpandDims and Squeeze. */
qn_status qn_keras_axes(qn_keras_call *call)
{
    int64_t axes[QN_MAX_RANK];
    size_t count;
    qn_value *x;
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    if (!qn_keras_int_list(axes, &count, call, "axis", QN_COUNT_OF(axes)))
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "its axis is not known");
    QN_TRY(qn_keras_with_ints(&x, call->import, call->layer->op->as, axes, count));
    return qn_keras_out(call, x, QN_ORDER_OWN);
}

qn_status qn_keras_stack(qn_keras_call *call)
{
    const int64_t axis = qn_keras_int(call, "axis", 0);
    qn_value *y, **in = qn_arena_array(&call->import->arena, call->n_in + 1, sizeof *in);
    QN_TRY_ALLOC(call->import->ctx, in);
    if (call->n_in == 0)
        return qn_keras_fail(call, QN_E_FORMAT, "it has no input");
    for (size_t i = 0; i < call->n_in; i++) {
        QN_TRY(qn_keras_in(&in[i], call, i, QN_ORDER_OWN));
        QN_TRY(qn_keras_with_ints(&in[i], call->import, &qn_op_Unsqueeze, &axis, 1));
    }
    QN_TRY(qn_graph_build(&y, &call->import->builder, &qn_op_Concat,
                          (qn_graph_build_inputs){in, call->n_in},
                          QN_WITH(QN_A_INT("axis", axis))));
    return qn_keras_out(call, y, QN_ORDER_OWN);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* Slice's four lists, the axes that go, and the axes that come. */
typedef struct part {
    int64_t lists[4][QN_MAX_RANK];
    int64_t gone[QN_MAX_RANK], fresh[QN_MAX_RANK];
    size_t count, n_gone, n_fresh;
} part;

static bool number_of(int64_t *out, const qn_json_place *slice, const char *key, int64_t fallback)
{
    qn_json_place place;
    *out = fallback;
    return !qn_keras_find(&place, slice, key) ||
           qn_json_get_int(out, &place, INT32_MIN, INT32_MAX) == QN_OK;
}

/* One index: a number takes an axis away, a slice takes a part of it, null adds one. */
static bool take_index(part *p, const qn_json_place *item, int64_t axis)
{
    qn_json_place config;
    int64_t *const at[] = {&p->lists[0][p->count], &p->lists[1][p->count], &p->lists[2][p->count],
                           &p->lists[3][p->count]};
    *at[2] = axis;
    *at[3] = 1;
    p->count++;
    if (qn_json_is_int(item)) {
        p->gone[p->n_gone++] = axis;
        if (qn_json_get_int(at[0], item, INT32_MIN, INT32_MAX) != QN_OK)
            return false;
        *at[1] = *at[0] == -1 ? INT64_MAX : *at[0] + 1;
        return true;
    }
    if (!qn_keras_find(&config, item, "config"))
        config = *item;
    return qn_json_is_object(&config) && number_of(at[3], &config, "step", 1) && *at[3] != 0 &&
           number_of(at[0], &config, "start", *at[3] < 0 ? INT64_MAX : 0) &&
           number_of(at[1], &config, "stop", *at[3] < 0 ? INT64_MIN : INT64_MAX);
}

static bool take_indices(part *p, const qn_json_place *items, int32_t rank)
{
    size_t length;
    int64_t axis = 0;
    if (!qn_json_is_list(items))
        return take_index(p, items, 0);
    if (qn_json_length(&length, items) != QN_OK || length > QN_MAX_RANK)
        return false;
    for (size_t i = 0; i < length; i++) {
        const qn_json_place item = qn_json_element(items, i);
        if (qn_json_is_null(&item)) {
            const size_t n = p->n_fresh++;
            p->fresh[n] = axis - (int64_t)p->n_gone + (int64_t)n;
            continue;
        }
        if (axis >= rank || !take_index(p, &item, axis++))
            return false;
    }
    return true;
}

/* x[:, 0], x[:, 1:5:2], x[:, None] */
qn_status qn_keras_get_item(qn_keras_call *call)
{
    part p = {.count = 0};
    qn_json_place args, items;
    size_t length = 0;
    qn_value *x, *lists[4];
    qn_graph_builder *b = &call->import->builder;
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    bool found = call->keywords.item && qn_keras_find(&items, &call->keywords, "slice_spec");
    if (!found && call->node.item && qn_keras_find(&args, &call->node, "args") &&
        qn_json_is_list(&args) && qn_json_length(&length, &args) == QN_OK && length == 2) {
        items = qn_json_element(&args, 1);
        found = true;
    }
    if (!found || x->type.rank < 1 || !take_indices(&p, &items, x->type.rank))
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "its indices are not known");
    for (size_t i = 0; i < 4; i++)
        QN_TRY(qn_graph_build_ints(&lists[i], b, p.lists[i], p.count));
    QN_TRY(qn_graph_build(&x, b, &qn_op_Slice, QN_INPUTS(x, lists[0], lists[1], lists[2], lists[3]),
                          QN_PLAIN));
    if (p.n_gone)
        QN_TRY(qn_keras_with_ints(&x, call->import, &qn_op_Squeeze, p.gone, p.n_gone));
    if (p.n_fresh)
        QN_TRY(qn_keras_with_ints(&x, call->import, &qn_op_Unsqueeze, p.fresh, p.n_fresh));
    return qn_keras_out(call, x, QN_ORDER_OWN);
}

/* Equal parts, or parts that end where a list says. */
qn_status qn_keras_split(qn_keras_call *call)
{
    static const char *const keys[] = {"indices_or_sections", "num_or_size_splits"};
    int64_t ends[QN_MAX_RANK], axis = qn_keras_int(call, "axis", 0);
    size_t count;
    qn_value *x, *y;
    qn_keras_import *import = call->import;
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    axis += axis < 0 ? x->type.rank : 0;
    const int64_t size = axis >= 0 && axis < x->type.rank ? x->type.dims[axis].value : -1;
    if (!either(ends, &count, call, keys) || count != 1 || ends[0] < 1 || size < 0 ||
        size % ends[0] || ends[0] > 1 << 16)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "parts that are not equal");
    for (int64_t i = 0, step = size / ends[0]; i < ends[0]; i++) {
        const char *name =
            i ? qn_arena_format(&import->arena, "%s:%lld", call->out, (long long)i) : call->out;
        QN_TRY_ALLOC(import->ctx, name);
        y = x;
        QN_TRY(qn_keras_part(&y, import, axis, i * step, (i + 1) * step));
        QN_TRY(qn_layout_define(&import->layouts, name, y, QN_ORDER_OWN));
    }
    return QN_OK;
}
