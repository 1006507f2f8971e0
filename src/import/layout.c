/* Values in two orders of axes, and the padding of frameworks. */
#include "import/layout.h"

#include <string.h>

#include "ops/infer.h"

/* One value in both orders; NULL: not made yet. */
typedef struct laid {
    qn_value *forms[2];
} laid;

void qn_layouts_init(qn_layouts *layouts, qn_graph_builder *builder)
{
    layouts->builder = builder;
    qn_names_init(&layouts->named, builder->ctx);
}

void qn_layouts_free(qn_layouts *layouts)
{
    qn_names_free(&layouts->named);
}

qn_status qn_layout_define(qn_layouts *layouts, const char *name, qn_value *value,
                           qn_axis_order order)
{
    qn_graph_builder *b = layouts->builder;
    const char *kept = qn_arena_text(&b->model->arena, name, strlen(name));
    laid *l = qn_arena_alloc(&b->model->arena, sizeof *l);
    QN_TRY_ALLOC(b->ctx, kept);
    QN_TRY_ALLOC(b->ctx, l);
    l->forms[order] = value;
    return qn_names_set(&layouts->named, kept, l);
}

static qn_status find(laid **out, const qn_layouts *layouts, const char *name)
{
    *out = qn_names_get(&layouts->named, name);
    return *out ? QN_OK
                : qn_graph_builder_fail(layouts->builder, QN_E_FORMAT, "nothing computes '%s'",
                                        name);
}

/* ---- Axes ------------------------------------------------------------------------------------ */

int64_t qn_layout_axis(qn_axis_order order, int32_t rank, int64_t axis)
{
    const int64_t own = axis < 0 ? axis + rank : axis;
    if (order == QN_ORDER_OWN || rank < 3 || own == 0)
        return own;
    return own == rank - 1 ? 1 : own + 1;
}

void qn_layout_perm(int64_t *perm, int32_t rank, qn_axis_order to)
{
    for (int64_t own = 0; own < rank; own++) {
        const int64_t first = qn_layout_axis(QN_ORDER_CHANNELS_FIRST, rank, own);
        if (to == QN_ORDER_CHANNELS_FIRST)
            perm[first] = own;
        else
            perm[own] = first;
    }
}

void qn_perm_compose(int64_t *out, int32_t rank, const int64_t *first, const int64_t *second)
{
    for (int32_t i = 0; i < rank; i++)
        out[i] = first[second[i]];
}

void qn_layout_pads(int64_t *pads, int32_t rank, qn_axis_order order, const int64_t (*pairs)[2])
{
    for (int64_t own = 0; own < rank; own++) {
        const int64_t at = qn_layout_axis(order, rank, own);
        pads[at] = pairs[own][0];
        pads[rank + at] = pairs[own][1];
    }
}

/* ---- Both forms ------------------------------------------------------------------------------ */

static qn_status transpose(qn_value **out, qn_layouts *layouts, qn_value *value, qn_axis_order to)
{
    int64_t perm[QN_MAX_RANK];
    const int32_t rank = value->type.kind == QN_TYPE_TENSOR ? value->type.rank : -1;
    if (rank < 0)
        return qn_graph_builder_fail(
            layouts->builder, QN_E_UNSUPPORTED,
            "the rank of '%s' is not known, so its axes cannot be brought into order", value->name);
    *out = value;
    if (rank < 3)
        return QN_OK;
    qn_layout_perm(perm, rank, to);
    return qn_graph_build(out, layouts->builder, &qn_op_Transpose, QN_INPUTS(value),
                          QN_WITH(QN_A_INT_LIST("perm", perm, (size_t)rank)));
}

qn_status qn_layout_find(qn_value **out, qn_layouts *layouts, const char *name, qn_axis_order order)
{
    laid *l;
    QN_TRY(find(&l, layouts, name));
    if (!l->forms[order])
        QN_TRY(transpose(&l->forms[order], layouts, l->forms[!order], order));
    *out = l->forms[order];
    return QN_OK;
}

qn_status qn_layout_any(qn_value **out, qn_axis_order *order, qn_layouts *layouts, const char *name)
{
    laid *l;
    QN_TRY(find(&l, layouts, name));
    *order = l->forms[QN_ORDER_CHANNELS_FIRST] ? QN_ORDER_CHANNELS_FIRST : QN_ORDER_OWN;
    *out = l->forms[*order];
    return QN_OK;
}

/* Leading axes of 1, as broadcasting means them, in the framework's order. */
static qn_status widen(qn_value **value, qn_layouts *layouts, int32_t rank)
{
    int64_t leading[QN_MAX_RANK];
    qn_value *axes;
    const int32_t missing = rank - (*value)->type.rank;
    for (int32_t i = 0; i < missing; i++)
        leading[i] = i;
    QN_TRY(qn_graph_build_ints(&axes, layouts->builder, leading, (size_t)missing));
    return qn_graph_build(value, layouts->builder, &qn_op_Unsqueeze, QN_INPUTS(*value, axes),
                          QN_PLAIN);
}

static qn_status agree_one(qn_value **out, qn_layouts *layouts, const char *name, int32_t rank)
{
    qn_axis_order held;
    QN_TRY(qn_layout_any(out, &held, layouts, name));
    if ((*out)->type.rank == rank)
        return qn_layout_find(out, layouts, name, QN_ORDER_CHANNELS_FIRST);
    if ((*out)->type.rank == 0)
        return QN_OK;
    QN_TRY(qn_layout_find(out, layouts, name, QN_ORDER_OWN));
    QN_TRY(widen(out, layouts, rank));
    return transpose(out, layouts, *out, QN_ORDER_CHANNELS_FIRST);
}

qn_status qn_layout_agree(qn_value **out, qn_axis_order *order, qn_layouts *layouts,
                          const char *const *names, size_t count)
{
    int32_t rank = 0;
    qn_axis_order held;
    *order = QN_ORDER_OWN;
    for (size_t i = 0; i < count; i++) {
        QN_TRY(qn_layout_any(&out[i], &held, layouts, names[i]));
        if (out[i]->type.rank > rank)
            *order = QN_ORDER_OWN;
        rank = QN_MAX(rank, out[i]->type.rank);
        if (out[i]->type.rank == rank && rank >= 3 && held == QN_ORDER_CHANNELS_FIRST)
            *order = held;
    }
    for (size_t i = 0; i < count; i++)
        QN_TRY(*order == QN_ORDER_OWN ? qn_layout_find(&out[i], layouts, names[i], *order)
                                      : agree_one(&out[i], layouts, names[i], rank));
    return QN_OK;
}

/* ---- Windows --------------------------------------------------------------------------------- */

static int64_t span_of(const qn_slide *slide)
{
    return (slide->kernel - 1) * slide->dilation + 1;
}

void qn_same_padding(int64_t *begin, int64_t *end, const qn_slide *slide)
{
    const int64_t outputs = (slide->size + slide->stride - 1) / slide->stride;
    const int64_t total =
        QN_MAX((outputs - 1) * slide->stride + span_of(slide) - slide->size, INT64_C(0));
    *begin = total / 2;
    *end = total - *begin;
}

int64_t qn_ceil_padding(const qn_slide *slide, int64_t begin, int64_t end)
{
    const int64_t room = slide->size + begin + end - span_of(slide);
    int64_t outputs = (room + slide->stride - 1) / slide->stride + 1;
    if ((begin || end) && (outputs - 1) * slide->stride >= slide->size + begin)
        outputs--;
    return (outputs - 1) * slide->stride + span_of(slide) - slide->size - begin;
}
