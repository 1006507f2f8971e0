/* Masks: which steps of a sequence count, bool [N, T], beside the values that they belong to. */
#include <string.h>

#include "import/keras/keras.h"

qn_value *qn_keras_mask(const qn_keras_call *call, size_t i)
{
    qn_value *value = NULL;
    if (i == 0 && call->mask &&
        qn_layout_find(&value, &call->import->layouts, call->mask, QN_ORDER_OWN) == QN_OK)
        return value;
    return i < call->n_in ? qn_names_get(&call->import->masks, call->in[i]) : NULL;
}

qn_status qn_keras_set_mask(const qn_keras_call *call, qn_value *mask)
{
    if (!mask)
        return QN_OK;
    return qn_names_set(&call->import->masks, call->out, mask);
}

/* ---- What becomes of masks ------------------------------------------------------------------- */

/* Layers that add and the like: Keras 3 takes steps that count in one of the inputs, where all have
 * masks; Keras 2 takes steps that count in all inputs that have one. */
static qn_status of_merged(qn_keras_call *call)
{
    qn_value *mask = NULL;
    const bool newer = call->import->version >= 3;
    for (size_t i = 0; i < call->n_in; i++) {
        qn_value *other = qn_keras_mask(call, i);
        if (!other && newer)
            return QN_OK;
        if (mask && other && mask != other)
            QN_TRY(qn_keras_two(&mask, call->import, newer ? &qn_op_Or : &qn_op_And, mask, other));
        mask = mask ? mask : other;
    }
    return qn_keras_set_mask(call, mask);
}

/* What has no mask counts: it decides where Keras 3 asks for one of the inputs. Along the steps the
 * masks are joined as the values are. */
static qn_status of_concatenated(qn_keras_call *call)
{
    qn_value *x;
    qn_axis_order order;
    size_t masked = 0;
    for (size_t i = 0; i < call->n_in; i++)
        masked += qn_keras_mask(call, i) != NULL;
    if (masked == 0)
        return QN_OK;
    QN_TRY(qn_keras_in_any(&x, &order, call, 0));
    const int64_t axis = qn_keras_int(call, "axis", -1);
    if (axis == -1 || axis == x->type.rank - 1)
        return masked == call->n_in || call->import->version < 3 ? of_merged(call) : QN_OK;
    if (axis != 1 || masked < call->n_in)
        return qn_keras_fail(call, QN_E_UNSUPPORTED, "masks of parts that are joined");
    qn_value **all = qn_arena_array(&call->import->arena, call->n_in, sizeof *all);
    QN_TRY_ALLOC(call->import->ctx, all);
    for (size_t i = 0; i < call->n_in; i++)
        all[i] = qn_keras_mask(call, i);
    QN_TRY(qn_graph_build(&x, &call->import->builder, &qn_op_Concat,
                          (qn_graph_build_inputs){all, call->n_in}, QN_WITH(QN_A_INT("axis", 1))));
    return qn_keras_set_mask(call, x);
}

qn_status qn_keras_pass_mask(qn_keras_call *call)
{
    switch (call->layer->op->mask) {
    case QN_KERAS_MASK_KEPT: return qn_keras_set_mask(call, qn_keras_mask(call, 0));
    case QN_KERAS_MASK_MERGED: return of_merged(call);
    case QN_KERAS_MASK_JOINED: return of_concatenated(call);
    default: return QN_OK;
    }
}

/* ---- Where masks come from ------------------------------------------------------------------- */

/* Whether each number is another one. */
static qn_status differs(qn_value **out, qn_keras_import *import, qn_value *x, double number)
{
    qn_value *value;
    QN_TRY(qn_keras_number(&value, import, number, x->type.dtype));
    QN_TRY(qn_keras_two(out, import, &qn_op_Equal, x, value));
    return qn_graph_build(out, &import->builder, &qn_op_Not, QN_INPUTS(*out), QN_PLAIN);
}

qn_status qn_keras_mask_of_words(qn_keras_call *call, qn_value *words)
{
    qn_value *mask;
    if (!qn_keras_bool(call, "mask_zero", false))
        return QN_OK;
    QN_TRY(differs(&mask, call->import, words, 0));
    return qn_keras_set_mask(call, mask);
}

/* Steps all of whose numbers are the one that is named do not count, and become zeros. */
qn_status qn_keras_masking(qn_keras_call *call)
{
    static const int64_t last[] = {-1};
    qn_value *x, *mask, *zero, *list, *y;
    qn_keras_import *import = call->import;
    qn_graph_builder *b = &import->builder;
    QN_TRY(qn_keras_in(&x, call, 0, QN_ORDER_OWN));
    QN_TRY(differs(&mask, import, x, qn_keras_real(call, "mask_value", 0)));
    QN_TRY(
        qn_graph_build(&mask, b, &qn_op_Cast, QN_INPUTS(mask), QN_WITH(QN_A_INT("to", QN_INT32))));
    QN_TRY(qn_graph_build_ints(&list, b, last, 1));
    QN_TRY(qn_graph_build(&mask, b, &qn_op_ReduceMax, QN_INPUTS(mask, list),
                          QN_WITH(QN_A_INT("keepdims", 0))));
    QN_TRY(
        qn_graph_build(&mask, b, &qn_op_Cast, QN_INPUTS(mask), QN_WITH(QN_A_INT("to", QN_BOOL))));
    QN_TRY(qn_keras_set_mask(call, mask));
    QN_TRY(qn_keras_with_ints(&mask, import, &qn_op_Unsqueeze, last, 1));
    QN_TRY(qn_keras_number(&zero, import, 0, x->type.dtype));
    QN_TRY(qn_graph_build(&y, b, &qn_op_Where, QN_INPUTS(mask, x, zero), QN_PLAIN));
    return qn_keras_out(call, y, QN_ORDER_OWN);
}

/* ---- Steps that count, one behind the other -------------------------------------------------- */

static qn_status cast(qn_value **value, qn_keras_import *import, qn_dtype dtype)
{
    return qn_graph_build(value, &import->builder, &qn_op_Cast, QN_INPUTS(*value),
                          QN_WITH(QN_A_INT("to", dtype)));
}

static qn_status along_steps(qn_value **value, qn_keras_import *import, const qn_op *op,
                             qn_graph_build_attrs attrs)
{
    qn_value *axis;
    static const int64_t steps[] = {1};
    QN_TRY(qn_graph_build_ints(&axis, &import->builder, steps, 1));
    if (op == &qn_op_CumSum)
        QN_TRY(qn_keras_with_ints(&axis, import, &qn_op_Reshape, NULL, 0));
    return qn_graph_build(value, &import->builder, op, QN_INPUTS(*value, axis), attrs);
}

/* Rows [N, T, D] by places [N, T]. */
static qn_status pick(qn_value **x, qn_keras_import *import, qn_value *places)
{
    static const int64_t last[] = {-1};
    QN_TRY(qn_keras_with_ints(&places, import, &qn_op_Unsqueeze, last, 1));
    return qn_graph_build(x, &import->builder, &qn_op_GatherND, QN_INPUTS(*x, places),
                          QN_WITH(QN_A_INT("batch_dims", 1)));
}

/* Steps that do not count come last: where 1 + t T stands for them, all places differ. */
qn_status qn_keras_steps_front(qn_keras_steps *steps, qn_value **x, qn_keras_import *import,
                               qn_value *mask)
{
    qn_value *numbers, *place, *total, *made[2], *length;
    qn_graph_builder *b = &import->builder;
    static const int64_t first[] = {1};
    steps->mask = mask;
    QN_TRY(cast(&mask, import, QN_INT64));
    numbers = mask;
    QN_TRY(along_steps(&numbers, import, &qn_op_ReduceSum, QN_WITH(QN_A_INT("keepdims", 0))));
    steps->lengths = numbers;
    QN_TRY(cast(&steps->lengths, import, QN_INT32));
    steps->before = mask;
    QN_TRY(along_steps(&steps->before, import, &qn_op_CumSum, QN_WITH(QN_A_INT("exclusive", 1))));
    /* The place of a step that does not count: behind all that do, by its number. */
    QN_TRY(qn_graph_build(&place, b, &qn_op_Shape, QN_INPUTS(mask), QN_PLAIN));
    length = place;
    QN_TRY(qn_keras_part(&length, import, 0, 1, 2));
    QN_TRY(qn_keras_number(&total, import, 1, QN_INT64));
    QN_TRY(qn_graph_build(&place, b, &qn_op_Expand, QN_INPUTS(total, place), QN_PLAIN));
    QN_TRY(along_steps(&place, import, &qn_op_CumSum, QN_PLAIN));
    QN_TRY(qn_keras_two(&place, import, &qn_op_Add, place, length));
    QN_TRY(qn_graph_build(&place, b, &qn_op_Where, QN_INPUTS(steps->mask, steps->before, place),
                          QN_PLAIN));
    QN_TRY(qn_graph_build_several(
        made, 2, b, &qn_op_TopK, QN_INPUTS(place, length),
        QN_WITH(QN_A_INT("axis", first[0]), QN_A_INT("largest", 0), QN_A_INT("sorted", 1))));
    return pick(x, import, made[1]);
}

/* The state at each step of the sequence: that of the last step that counted, or, backwards, of the
 * next; zeros before the first, and everywhere else with `zeros`. */
qn_status qn_keras_steps_back(qn_value **y, const qn_keras_steps *steps, qn_keras_import *import,
                              qn_keras_gaps gaps)
{
    static const int64_t last[] = {-1};
    qn_value *place = steps->before, *there, *limit, *zero;
    qn_graph_builder *b = &import->builder;
    QN_TRY(qn_keras_number(&zero, import, 0, QN_INT64));
    if (gaps.backward) {
        limit = steps->lengths;
        QN_TRY(cast(&limit, import, QN_INT64));
        QN_TRY(qn_keras_with_ints(&limit, import, &qn_op_Unsqueeze, last, 1));
        QN_TRY(qn_keras_two(&there, import, &qn_op_Less, place, limit));
    } else {
        limit = steps->mask;
        QN_TRY(cast(&limit, import, QN_INT64));
        QN_TRY(qn_keras_two(&place, import, &qn_op_Add, place, limit));
        QN_TRY(qn_keras_two(&there, import, &qn_op_Greater, place, zero));
        QN_TRY(qn_keras_number(&limit, import, 1, QN_INT64));
        QN_TRY(qn_keras_two(&place, import, &qn_op_Sub, place, limit));
    }
    QN_TRY(qn_graph_build(&place, b, &qn_op_Where, QN_INPUTS(there, place, zero), QN_PLAIN));
    QN_TRY(pick(y, import, place));
    there = gaps.zeros ? steps->mask : there;
    QN_TRY(qn_keras_with_ints(&there, import, &qn_op_Unsqueeze, last, 1));
    QN_TRY(qn_keras_number(&zero, import, 0, (*y)->type.dtype));
    return qn_graph_build(y, b, &qn_op_Where, QN_INPUTS(there, *y, zero), QN_PLAIN);
}
