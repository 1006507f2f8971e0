/* Functions of Python on lists, dictionaries and ranges. */
#include <string.h>

#include "import/pytorch/script_builtins.h"

static bool is_items(const qn_torch_value *value)
{
    return qn_torch_is_items(value) || value->kind == QN_TORCH_DICT;
}

/* A place in a list, counted from the end where it is negative. */
static qn_status place_in(size_t *out, const qn_script_run *run, const qn_torch_value *list,
                          const qn_torch_value *index)
{
    const int64_t count = (int64_t)list->list->count;
    int64_t at = index->kind == QN_TORCH_INT ? index->number : count;
    at += at < 0 ? count : 0;
    *out = (size_t)at;
    return at >= 0 && at < count ? QN_OK
                                 : qn_script_run_fail(run, QN_E_FORMAT, "an index out of a list");
}

qn_status qn_script_len(qn_torch_value *out, bool *done, qn_script_run *run,
                        qn_torch_value *const *a, size_t n)
{
    const qn_aten_argument arguments[2] = {{.value = *a[0]}, {.value = qn_torch_int(0)}};
    (void)n;
    *done = true;
    if (a[0]->kind == QN_TORCH_TENSOR)
        return qn_aten_run(out, run->t, "size", arguments, 2);
    if (a[0]->kind == QN_TORCH_TEXT)
        *out = qn_torch_int((int64_t)strlen(a[0]->text));
    else if (is_items(a[0]))
        *out = qn_torch_int((int64_t)(a[0]->list->count / (a[0]->kind == QN_TORCH_DICT ? 2 : 1)));
    else
        *done = false;
    return QN_OK;
}

qn_status qn_script_append(qn_torch_value *out, bool *done, qn_script_run *run,
                           qn_torch_value *const *a, size_t n)
{
    if (n < 2 || a[0]->kind != QN_TORCH_LIST)
        return QN_OK;
    *done = true;
    *out = *a[0];
    return qn_torch_push(a[0]->list, run->t->ctx, run->t->arena, a[1]);
}

qn_status qn_script_getitem(qn_torch_value *out, bool *done, qn_script_run *run,
                            qn_torch_value *const *a, size_t n)
{
    size_t at;
    if (n < 2 || !is_items(a[0]))
        return QN_OK;
    *done = true;
    if (a[0]->kind == QN_TORCH_DICT) {
        const qn_torch_value *found = qn_torch_get(a[0]->list, a[1]);
        if (!found)
            return qn_script_run_fail(run, QN_E_FORMAT, "a key that a dictionary does not have");
        *out = *found;
        return QN_OK;
    }
    QN_TRY(place_in(&at, run, a[0], a[1]));
    *out = a[0]->list->at[at];
    return QN_OK;
}

qn_status qn_script_setitem(qn_torch_value *out, bool *done, qn_script_run *run,
                            qn_torch_value *const *a, size_t n)
{
    size_t at;
    if (n < 3 || !is_items(a[0]))
        return QN_OK;
    *done = true;
    *out = *a[0];
    if (a[0]->kind == QN_TORCH_DICT)
        return qn_torch_set(a[0]->list, run->t->ctx, run->t->arena, a[1], a[2]);
    QN_TRY(place_in(&at, run, a[0], a[1]));
    a[0]->list->at[at] = *a[2];
    return QN_OK;
}

qn_status qn_script_contains(qn_torch_value *out, bool *done, qn_script_run *run,
                             qn_torch_value *const *a, size_t n)
{
    (void)run;
    if (n < 2 || !is_items(a[0]))
        return QN_OK;
    *done = true;
    *out = qn_torch_bool(a[0]->kind == QN_TORCH_DICT && qn_torch_get(a[0]->list, a[1]));
    for (size_t i = 0; qn_torch_is_items(a[0]) && i < a[0]->list->count; i++)
        out->truth = out->truth || qn_torch_equal(&a[0]->list->at[i], a[1]);
    return QN_OK;
}

/* range(end), range(start, end, step): a list. */
qn_status qn_script_range(qn_torch_value *out, bool *done, qn_script_run *run,
                          qn_torch_value *const *a, size_t n)
{
    int64_t ends[3] = {0, 0, 1};
    for (size_t i = 0; i < n && i < 3; i++) {
        if (a[i]->kind != QN_TORCH_INT)
            return qn_script_run_fail(run, QN_E_UNSUPPORTED, "a loop as long as the input is");
        ends[n == 1 ? 1 : i] = a[i]->number;
    }
    *done = true;
    if (n == 1) {
        *out = *a[0];
        return QN_OK;
    }
    QN_TRY(qn_torch_new_list(out, run->t->ctx, run->t->arena, QN_TORCH_LIST));
    for (int64_t i = ends[0]; ends[2] && (ends[2] > 0 ? i < ends[1] : i > ends[1]);) {
        const qn_torch_value item = qn_torch_int(i);
        QN_TRY(qn_script_tick(run));
        QN_TRY(qn_torch_push(out->list, run->t->ctx, run->t->arena, &item));
        if (!qn_add_int64(&i, i, ends[2]))
            break;
    }
    return QN_OK;
}

/* [a] + [b] */
qn_status qn_script_add(qn_torch_value *out, bool *done, qn_script_run *run,
                        qn_torch_value *const *a, size_t n)
{
    qn_torch *t = run->t;
    if (n < 2 || a[0]->kind != a[1]->kind)
        return QN_OK;
    if (a[0]->kind == QN_TORCH_TEXT) {
        *done = true;
        *out = qn_torch_text(qn_arena_format(t->arena, "%s%s", a[0]->text, a[1]->text));
        QN_TRY_ALLOC(t->ctx, out->text);
        return QN_OK;
    }
    if (!qn_torch_is_items(a[0]))
        return QN_OK;
    *done = true;
    QN_TRY(qn_torch_new_list(out, t->ctx, t->arena, a[0]->kind));
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < a[k]->list->count; i++) {
            QN_TRY(qn_script_tick(run));
            QN_TRY(qn_torch_push(out->list, t->ctx, t->arena, &a[k]->list->at[i]));
        }
    }
    return QN_OK;
}

/* [a] * n */
qn_status qn_script_mul(qn_torch_value *out, bool *done, qn_script_run *run,
                        qn_torch_value *const *a, size_t n)
{
    qn_torch *t = run->t;
    if (n < 2 || a[0]->kind != QN_TORCH_LIST || a[1]->kind != QN_TORCH_INT)
        return QN_OK;
    *done = true;
    QN_TRY(qn_torch_new_list(out, t->ctx, t->arena, QN_TORCH_LIST));
    for (int64_t k = 0; k < a[1]->number && a[0]->list->count; k++) {
        for (size_t i = 0; i < a[0]->list->count; i++) {
            QN_TRY(qn_script_tick(run));
            QN_TRY(qn_torch_push(out->list, t->ctx, t->arena, &a[0]->list->at[i]));
        }
    }
    return QN_OK;
}

static int64_t end_of(const qn_torch_value *end, int64_t count, int64_t open)
{
    int64_t at = end->kind == QN_TORCH_INT ? end->number : open;
    at += at < 0 ? count : 0;
    return QN_MAX(QN_MIN(at, count), INT64_C(0));
}

/* A part of a list; slices of tensors are operators. */
qn_status qn_script_slice(qn_torch_value *out, bool *done, qn_script_run *run,
                          qn_torch_value *const *a, size_t n)
{
    qn_torch *t = run->t;
    static const qn_torch_value last = {.kind = QN_TORCH_NONE};
    if (!qn_torch_is_items(a[0]))
        return QN_OK;
    const int64_t count = (int64_t)a[0]->list->count;
    const int64_t step = n > 3 && a[3]->kind == QN_TORCH_INT ? a[3]->number : 1;
    *done = true;
    if (step < 1)
        return qn_script_run_fail(run, QN_E_UNSUPPORTED, "a list read backwards");
    QN_TRY(qn_torch_new_list(out, t->ctx, t->arena, a[0]->kind));
    const int64_t end = end_of(n > 2 ? a[2] : &last, count, count);
    for (int64_t i = end_of(a[1], count, 0); i < end; i += QN_MIN(step, count))
        QN_TRY(qn_torch_push(out->list, t->ctx, t->arena, &a[0]->list->at[i]));
    return QN_OK;
}

/* Whether any, or all, of a list is true; tensors are operators. */
static void search(qn_torch_value *out, bool *done, const qn_torch_value *list, bool wanted)
{
    bool truth;
    *done = qn_torch_is_items(list);
    *out = qn_torch_bool(!wanted);
    for (size_t i = 0; *done && i < list->list->count && out->truth != wanted; i++) {
        *done = qn_script_truth(&truth, &list->list->at[i]);
        out->truth = truth;
    }
}

qn_status qn_script_all(qn_torch_value *out, bool *done, qn_script_run *run,
                        qn_torch_value *const *a, size_t n)
{
    (void)run;
    (void)n;
    search(out, done, a[0], false);
    return QN_OK;
}

qn_status qn_script_any(qn_torch_value *out, bool *done, qn_script_run *run,
                        qn_torch_value *const *a, size_t n)
{
    (void)run;
    (void)n;
    search(out, done, a[0], true);
    return QN_OK;
}

/* The numbers of a list; tensors are operators. */
qn_status qn_script_sum(qn_torch_value *out, bool *done, qn_script_run *run,
                        qn_torch_value *const *a, size_t n)
{
    if (n != 1 || !qn_torch_is_items(a[0]))
        return QN_OK;
    *done = true;
    *out = qn_torch_int(0);
    for (size_t i = 0; *done && i < a[0]->list->count; i++) {
        const qn_torch_value pair[2] = {*out, a[0]->list->at[i]};
        QN_TRY(qn_torch_arithmetic(out, done, run->t, "add", pair, 2));
    }
    return QN_OK;
}

/* A copy of a list, so that it can be written to alone. */
qn_status qn_script_list(qn_torch_value *out, bool *done, qn_script_run *run,
                         qn_torch_value *const *a, size_t n)
{
    qn_torch *t = run->t;
    if (n == 0 || !is_items(a[0]))
        return QN_OK;
    *done = true;
    QN_TRY(qn_torch_new_list(out, t->ctx, t->arena,
                             a[0]->kind == QN_TORCH_TUPLE ? QN_TORCH_LIST : a[0]->kind));
    for (size_t i = 0; i < a[0]->list->count; i++)
        QN_TRY(qn_torch_push(out->list, t->ctx, t->arena, &a[0]->list->at[i]));
    return QN_OK;
}

/* Every second of a dictionary's list, from the key or the value on. */
static qn_status every_second(qn_torch_value *out, qn_script_run *run, const qn_torch_value *dict,
                              size_t from)
{
    qn_torch *t = run->t;
    QN_TRY(qn_torch_new_list(out, t->ctx, t->arena, QN_TORCH_LIST));
    for (size_t i = from; i < dict->list->count; i += 2)
        QN_TRY(qn_torch_push(out->list, t->ctx, t->arena, &dict->list->at[i]));
    return QN_OK;
}

qn_status qn_script_keys(qn_torch_value *out, bool *done, qn_script_run *run,
                         qn_torch_value *const *a, size_t n)
{
    (void)n;
    *done = a[0]->kind == QN_TORCH_DICT;
    return *done ? every_second(out, run, a[0], 0) : QN_OK;
}

qn_status qn_script_values(qn_torch_value *out, bool *done, qn_script_run *run,
                           qn_torch_value *const *a, size_t n)
{
    (void)n;
    *done = a[0]->kind == QN_TORCH_DICT;
    return *done ? every_second(out, run, a[0], 1) : QN_OK;
}

qn_status qn_script_dict(qn_torch_value *out, bool *done, qn_script_run *run,
                         qn_torch_value *const *a, size_t n)
{
    (void)a;
    *done = n == 0;
    return *done ? qn_torch_new_list(out, run->t->ctx, run->t->arena, QN_TORCH_DICT) : QN_OK;
}

/* start + i step */
qn_status qn_script_derive(qn_torch_value *out, bool *done, qn_script_run *run,
                           qn_torch_value *const *a, size_t n)
{
    int64_t number;
    if (n < 3 || a[0]->kind != QN_TORCH_INT || a[1]->kind != QN_TORCH_INT ||
        a[2]->kind != QN_TORCH_INT || !qn_mul_int64(&number, a[0]->number, a[2]->number) ||
        !qn_add_int64(&number, number, a[1]->number))
        return qn_script_run_fail(run, QN_E_UNSUPPORTED, "a loop as long as the input is");
    *done = true;
    *out = qn_torch_int(number);
    return QN_OK;
}

qn_status qn_script_range_length(qn_torch_value *out, bool *done, qn_script_run *run,
                                 qn_torch_value *const *a, size_t n)
{
    qn_torch_value list;
    QN_TRY(qn_script_range(&list, done, run, a, n));
    *out = qn_torch_int(qn_torch_is_items(&list) ? (int64_t)list.list->count : 0);
    return QN_OK;
}
