/* Lists of tensors and arrays: while a model is read they are lists of names. An array is one that
 * all who hold it see change; a list is copied when it changes. */
#include <string.h>

#include "import/tensorflow/tensorflow.h"

enum { MOST_ITEMS = 1 << 16 };

/* ---- Making ---------------------------------------------------------------------------------- */

static qn_status make_list(qn_tf_thing *out, const qn_tf_node *node, int64_t count)
{
    if (count < 0 || count > MOST_ITEMS)
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "a list of %lld tensors", (long long)count);
    *out = (qn_tf_thing){.kind = QN_TF_LIST, .n_items = (size_t)count};
    out->items = qn_arena_array(&node->import->arena, (size_t)count + 1, sizeof *out->items);
    QN_TRY_ALLOC(node->import->ctx, out->items);
    return QN_OK;
}

static qn_status list_of(qn_tf_thing **out, const qn_tf_node *node, size_t i)
{
    *out = i < node->n_in ? qn_tf_get_thing(node->import, node->in[i]) : NULL;
    if (!*out || (*out)->kind != QN_TF_LIST)
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "input %zu is no list of tensors", i);
    return QN_OK;
}

/* A name that stays what this one means now. */
static qn_status keep(const char **out, const qn_tf_node *node, const char *name)
{
    *out = qn_tf_fresh(node->import);
    QN_TRY_ALLOC(node->import->ctx, *out);
    return qn_tf_alias(node->import, *out, name);
}

static qn_status index_of(size_t *out, const qn_tf_node *node, size_t i, const qn_tf_thing *list)
{
    int64_t index;
    QN_TRY(qn_tf_int(&index, node, i));
    if (index < 0 || index >= (int64_t)list->n_items)
        return qn_tf_fail(node, QN_E_FORMAT, "item %lld of %zu", (long long)index, list->n_items);
    *out = (size_t)index;
    return QN_OK;
}

/* Makes items of the rows of a value: those of these numbers, or all in their order. */
static qn_status unstack(qn_tf_thing *list, const qn_tf_node *node, size_t value_at,
                         const int64_t *numbers)
{
    qn_value *x, *row, *at;
    qn_tf_import *import = node->import;
    QN_TRY(qn_tf_in(&x, node, value_at));
    if (x->type.rank < 1 || x->type.dims[0].value != (int64_t)list->n_items)
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "%zu items of a tensor whose first axis is %lld",
                          list->n_items,
                          x->type.rank < 1 ? -1LL : (long long)x->type.dims[0].value);
    for (size_t i = 0; i < list->n_items; i++) {
        const char *name = qn_tf_fresh(import);
        const int64_t to = numbers ? numbers[i] : (int64_t)i;
        QN_TRY_ALLOC(import->ctx, name);
        if (to < 0 || to >= (int64_t)list->n_items)
            return qn_tf_fail(node, QN_E_FORMAT, "item %lld of %zu", (long long)to, list->n_items);
        QN_TRY(qn_tf_number(&at, import, (double)i, QN_INT64));
        QN_TRY(qn_graph_build(&row, &import->builder, &qn_op_Gather, QN_INPUTS(x, at),
                              QN_WITH(QN_A_INT("axis", 0))));
        QN_TRY(qn_layout_define(&import->layouts, name, row, QN_ORDER_OWN));
        list->items[to] = name;
    }
    return QN_OK;
}

/* All items, or those of the numbers, joined along an axis: a new first one, or the one there. */
static qn_status join(qn_tf_node *node, const qn_tf_thing *list, const int64_t *numbers,
                      size_t count, bool stacked)
{
    qn_value **rows, *y;
    qn_tf_import *import = node->import;
    rows = qn_arena_array(&import->arena, count + 1, sizeof(qn_value *));
    QN_TRY_ALLOC(import->ctx, rows);
    for (size_t i = 0; i < count; i++) {
        const int64_t from = numbers ? numbers[i] : (int64_t)i;
        if (from < 0 || from >= (int64_t)list->n_items || !list->items[from])
            return qn_tf_fail(node, QN_E_UNSUPPORTED, "item %lld was never written",
                              (long long)from);
        QN_TRY(qn_layout_find(&rows[i], &import->layouts, list->items[from], QN_ORDER_OWN));
        if (stacked)
            QN_TRY(qn_tf_unsqueeze(&rows[i], import, (const int64_t[]){0}, 1));
    }
    if (count == 0)
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "an empty list");
    QN_TRY(qn_graph_build(&y, &import->builder, &qn_op_Concat, (qn_graph_build_inputs){rows, count},
                          QN_WITH(QN_A_INT("axis", 0))));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}

static qn_status out_count(qn_tf_node *node, const qn_tf_thing *list)
{
    qn_value *y;
    QN_TRY(qn_tf_number(&y, node->import, (double)list->n_items, QN_INT32));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

/* Outputs: the array, and what says that it was changed. */
qn_status qn_tf_array(qn_tf_node *node)
{
    int64_t size;
    qn_tf_thing list;
    const char *flow = qn_tf_output_name(node, 1);
    QN_TRY_ALLOC(node->import->ctx, flow);
    QN_TRY(qn_tf_int(&size, node, 0));
    QN_TRY(make_list(&list, node, size));
    QN_TRY(qn_tf_set_thing(node->import, node->name, &list));
    return qn_tf_alias(node->import, flow, node->name);
}

qn_status qn_tf_array_scatter(qn_tf_node *node)
{
    int64_t *numbers;
    size_t count;
    qn_tf_thing *list;
    QN_TRY(list_of(&list, node, 0));
    numbers = qn_arena_array(&node->import->arena, list->n_items + 1, sizeof *numbers);
    QN_TRY_ALLOC(node->import->ctx, numbers);
    QN_TRY(qn_tf_ints(numbers, &count, node, 1, list->n_items));
    if (count != list->n_items)
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "%zu of %zu items are written", count,
                          list->n_items);
    QN_TRY(unstack(list, node, 2, numbers));
    return qn_tf_alias(node->import, node->name, node->in[0]);
}

qn_status qn_tf_array_read(qn_tf_node *node)
{
    size_t index = 0;
    qn_tf_thing *list;
    QN_TRY(list_of(&list, node, 0));
    QN_TRY(index_of(&index, node, 1, list));
    if (!list->items[index])
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "item %zu was never written", index);
    return qn_tf_alias(node->import, node->name, list->items[index]);
}

qn_status qn_tf_array_write(qn_tf_node *node)
{
    size_t index = 0;
    qn_tf_thing *list;
    if (node->n_in < 3)
        return qn_tf_fail(node, QN_E_FORMAT, "it has %zu inputs", node->n_in);
    QN_TRY(list_of(&list, node, 0));
    QN_TRY(index_of(&index, node, 1, list));
    QN_TRY(keep(&list->items[index], node, node->in[2]));
    return qn_tf_alias(node->import, node->name, node->in[0]);
}

qn_status qn_tf_array_gather(qn_tf_node *node)
{
    int64_t *numbers;
    size_t count;
    qn_tf_thing *list;
    QN_TRY(list_of(&list, node, 0));
    numbers = qn_arena_array(&node->import->arena, list->n_items + 1, sizeof *numbers);
    QN_TRY_ALLOC(node->import->ctx, numbers);
    QN_TRY(qn_tf_ints(numbers, &count, node, 1, list->n_items));
    return join(node, list, numbers, count, true);
}

qn_status qn_tf_array_size(qn_tf_node *node)
{
    qn_tf_thing *list;
    QN_TRY(list_of(&list, node, 0));
    return out_count(node, list);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

qn_status qn_tf_list_from_tensor(qn_tf_node *node)
{
    qn_tf_thing list;
    qn_value *x;
    QN_TRY(qn_tf_in(&x, node, 0));
    QN_TRY(make_list(&list, node, x->type.rank > 0 ? x->type.dims[0].value : -1));
    QN_TRY(unstack(&list, node, 0, NULL));
    return qn_tf_set_thing(node->import, node->name, &list);
}

qn_status qn_tf_list_reserve(qn_tf_node *node)
{
    int64_t count;
    qn_tf_thing list;
    QN_TRY(qn_tf_int(&count, node, 1));
    QN_TRY(make_list(&list, node, count));
    return qn_tf_set_thing(node->import, node->name, &list);
}

qn_status qn_tf_list_empty(qn_tf_node *node)
{
    qn_tf_thing list;
    QN_TRY(make_list(&list, node, 0));
    return qn_tf_set_thing(node->import, node->name, &list);
}

/* A copy of input 0 with another number of items. */
static qn_status copy_list(qn_tf_thing *out, const qn_tf_node *node, int64_t more)
{
    qn_tf_thing *list;
    QN_TRY(list_of(&list, node, 0));
    QN_TRY(make_list(out, node, (int64_t)list->n_items + more));
    memcpy(out->items, list->items, QN_MIN(list->n_items, out->n_items) * sizeof *list->items);
    return QN_OK;
}

qn_status qn_tf_list_set(qn_tf_node *node)
{
    size_t index = 0;
    qn_tf_thing list;
    if (node->n_in < 3)
        return qn_tf_fail(node, QN_E_FORMAT, "it has %zu inputs", node->n_in);
    QN_TRY(copy_list(&list, node, 0));
    QN_TRY(index_of(&index, node, 1, &list));
    QN_TRY(keep(&list.items[index], node, node->in[2]));
    return qn_tf_set_thing(node->import, node->name, &list);
}

qn_status qn_tf_list_push(qn_tf_node *node)
{
    qn_tf_thing list;
    if (node->n_in < 2)
        return qn_tf_fail(node, QN_E_FORMAT, "it has %zu inputs", node->n_in);
    QN_TRY(copy_list(&list, node, 1));
    QN_TRY(keep(&list.items[list.n_items - 1], node, node->in[1]));
    return qn_tf_set_thing(node->import, node->name, &list);
}

qn_status qn_tf_list_pop(qn_tf_node *node)
{
    qn_tf_thing list, *whole;
    const char *item = qn_tf_output_name(node, 1);
    QN_TRY_ALLOC(node->import->ctx, item);
    QN_TRY(list_of(&whole, node, 0));
    QN_TRY(copy_list(&list, node, -1));
    if (!whole->items[list.n_items])
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "the last item was never written");
    QN_TRY(qn_tf_alias(node->import, item, whole->items[list.n_items]));
    return qn_tf_set_thing(node->import, node->name, &list);
}

qn_status qn_tf_list_stack(qn_tf_node *node)
{
    qn_tf_thing *list;
    QN_TRY(list_of(&list, node, 0));
    return join(node, list, NULL, list->n_items, true);
}

qn_status qn_tf_list_concat(qn_tf_node *node)
{
    qn_tf_thing *list;
    QN_TRY(list_of(&list, node, 0));
    return join(node, list, NULL, list->n_items, false);
}
