/* Functions of Python and of the interpreter: of lists, dictionaries, texts and numbers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "import/pytorch/script_run.h"

typedef qn_status builtin_fn(qn_torch_value *out, bool *done, qn_script_run *run,
                             qn_torch_value *const *a, size_t n);

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

static qn_status do_len(qn_torch_value *out, bool *done, qn_script_run *run,
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

static qn_status do_append(qn_torch_value *out, bool *done, qn_script_run *run,
                           qn_torch_value *const *a, size_t n)
{
    if (n < 2 || a[0]->kind != QN_TORCH_LIST)
        return QN_OK;
    *done = true;
    *out = *a[0];
    return qn_torch_push(a[0]->list, run->t->ctx, run->t->arena, a[1]);
}

static qn_status do_getitem(qn_torch_value *out, bool *done, qn_script_run *run,
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

static qn_status do_setitem(qn_torch_value *out, bool *done, qn_script_run *run,
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

static qn_status do_contains(qn_torch_value *out, bool *done, qn_script_run *run,
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

static qn_status do_is(qn_torch_value *out, bool *done, qn_script_run *run,
                       qn_torch_value *const *a, size_t n)
{
    (void)run;
    if (n < 2)
        return QN_OK;
    *done = true;
    *out = qn_torch_bool(a[0]->kind == a[1]->kind && qn_torch_equal(a[0], a[1]));
    return QN_OK;
}

static qn_status do_isnot(qn_torch_value *out, bool *done, qn_script_run *run,
                          qn_torch_value *const *a, size_t n)
{
    QN_TRY(do_is(out, done, run, a, n));
    out->truth = !out->truth;
    return QN_OK;
}

static qn_status do_not(qn_torch_value *out, bool *done, qn_script_run *run,
                        qn_torch_value *const *a, size_t n)
{
    bool truth;
    (void)run;
    (void)n;
    *done = qn_script_truth(&truth, a[0]);
    *out = qn_torch_bool(!truth);
    return QN_OK;
}

/* Lists of sizes that may be equal: then the size that is not known stands for the answer, which
 * nobody knows either. */
static void compare_sizes(qn_torch_value *out, const qn_torch_list *a, const qn_torch_list *b)
{
    const qn_torch_value *open = NULL;
    for (size_t i = 0; a->count == b->count && i < a->count; i++) {
        if (a->at[i].kind == QN_TORCH_SIZE || b->at[i].kind == QN_TORCH_SIZE)
            open = a->at[i].kind == QN_TORCH_SIZE ? &a->at[i] : &b->at[i];
        else if (!qn_torch_equal(&a->at[i], &b->at[i]))
            return;
    }
    if (open)
        *out = *open;
}

/* Texts, lists and None; numbers and tensors are operators. */
static qn_status do_eq(qn_torch_value *out, bool *done, qn_script_run *run,
                       qn_torch_value *const *a, size_t n)
{
    (void)run;
    for (size_t i = 0; i < n; i++) {
        const qn_torch_kind kind = a[i]->kind;
        if (kind == QN_TORCH_TENSOR || kind == QN_TORCH_SIZE)
            return QN_OK;
    }
    if (n < 2)
        return QN_OK;
    *done = true;
    *out = qn_torch_bool(qn_torch_equal(a[0], a[1]));
    if (!out->truth && qn_torch_is_items(a[0]) && qn_torch_is_items(a[1]))
        compare_sizes(out, a[0]->list, a[1]->list);
    return QN_OK;
}

static qn_status do_ne(qn_torch_value *out, bool *done, qn_script_run *run,
                       qn_torch_value *const *a, size_t n)
{
    QN_TRY(do_eq(out, done, run, a, n));
    if (*done && out->kind == QN_TORCH_BOOL)
        out->truth = !out->truth;
    return QN_OK;
}

/* range(end), range(start, end, step): a list. */
static qn_status do_range(qn_torch_value *out, bool *done, qn_script_run *run,
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
static qn_status do_add(qn_torch_value *out, bool *done, qn_script_run *run,
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
static qn_status do_mul(qn_torch_value *out, bool *done, qn_script_run *run,
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
static qn_status do_slice(qn_torch_value *out, bool *done, qn_script_run *run,
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

/* Whether all of a list is true; tensors are operators. */
static qn_status do_all(qn_torch_value *out, bool *done, qn_script_run *run,
                        qn_torch_value *const *a, size_t n)
{
    bool truth;
    (void)run;
    (void)n;
    *done = qn_torch_is_items(a[0]);
    *out = qn_torch_bool(true);
    for (size_t i = 0; *done && i < a[0]->list->count; i++) {
        *done = qn_script_truth(&truth, &a[0]->list->at[i]);
        out->truth = out->truth && truth;
    }
    return QN_OK;
}

/* A copy of a list, so that it can be written to alone. */
static qn_status do_list(qn_torch_value *out, bool *done, qn_script_run *run,
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

static qn_status do_keys(qn_torch_value *out, bool *done, qn_script_run *run,
                         qn_torch_value *const *a, size_t n)
{
    (void)n;
    *done = a[0]->kind == QN_TORCH_DICT;
    return *done ? every_second(out, run, a[0], 0) : QN_OK;
}

static qn_status do_values(qn_torch_value *out, bool *done, qn_script_run *run,
                           qn_torch_value *const *a, size_t n)
{
    (void)n;
    *done = a[0]->kind == QN_TORCH_DICT;
    return *done ? every_second(out, run, a[0], 1) : QN_OK;
}

static qn_status do_dict(qn_torch_value *out, bool *done, qn_script_run *run,
                         qn_torch_value *const *a, size_t n)
{
    (void)a;
    *done = n == 0;
    return *done ? qn_torch_new_list(out, run->t->ctx, run->t->arena, QN_TORCH_DICT) : QN_OK;
}

/* A number as it is, or the one that a tensor holds. */
static qn_status do_number(qn_torch_value *out, bool *done, qn_script_run *run,
                           qn_torch_value *const *a, size_t n)
{
    const qn_aten_argument argument = {.value = *a[0]};
    (void)n;
    *done = true;
    *out = *a[0];
    return a[0]->kind == QN_TORCH_TENSOR ? qn_aten_run(out, run->t, "item", &argument, 1) : QN_OK;
}

static qn_status do_int(qn_torch_value *out, bool *done, qn_script_run *run,
                        qn_torch_value *const *a, size_t n)
{
    QN_TRY(do_number(out, done, run, a, n));
    if (out->kind == QN_TORCH_REAL && fabs(out->real) < 9e18)
        *out = qn_torch_int((int64_t)out->real);
    else if (out->kind == QN_TORCH_BOOL)
        *out = qn_torch_int(out->truth);
    return QN_OK;
}

static qn_status do_float(qn_torch_value *out, bool *done, qn_script_run *run,
                          qn_torch_value *const *a, size_t n)
{
    QN_TRY(do_number(out, done, run, a, n));
    if (out->kind == QN_TORCH_INT)
        *out = qn_torch_real((double)out->number);
    return QN_OK;
}

static qn_status do_bool(qn_torch_value *out, bool *done, qn_script_run *run,
                         qn_torch_value *const *a, size_t n)
{
    bool truth;
    (void)run;
    (void)n;
    *done = true;
    *out = *a[0];
    if (qn_script_truth(&truth, a[0]))
        *out = qn_torch_bool(truth);
    return QN_OK;
}

/* A number is rounded; tensors are operators. */
static qn_status round_number(qn_torch_value *out, bool *done, const qn_torch_value *a,
                              double (*way)(double))
{
    *done = a->kind == QN_TORCH_REAL || a->kind == QN_TORCH_INT;
    *out = *a;
    if (a->kind == QN_TORCH_REAL && fabs(a->real) < 9e18)
        *out = qn_torch_int((int64_t)way(a->real));
    return QN_OK;
}

static qn_status do_floor(qn_torch_value *out, bool *done, qn_script_run *run,
                          qn_torch_value *const *a, size_t n)
{
    (void)run;
    (void)n;
    return round_number(out, done, a[0], floor);
}

static qn_status do_ceil(qn_torch_value *out, bool *done, qn_script_run *run,
                         qn_torch_value *const *a, size_t n)
{
    (void)run;
    (void)n;
    return round_number(out, done, a[0], ceil);
}

static qn_status do_nothing(qn_torch_value *out, bool *done, qn_script_run *run,
                            qn_torch_value *const *a, size_t n)
{
    (void)run;
    (void)a;
    (void)n;
    *done = true;
    *out = QN_TORCH_NOTHING;
    return QN_OK;
}

static qn_status do_false(qn_torch_value *out, bool *done, qn_script_run *run,
                          qn_torch_value *const *a, size_t n)
{
    (void)run;
    (void)a;
    (void)n;
    *done = true;
    *out = qn_torch_bool(false);
    return QN_OK;
}

static qn_status do_same(qn_torch_value *out, bool *done, qn_script_run *run,
                         qn_torch_value *const *a, size_t n)
{
    (void)run;
    (void)n;
    *done = true;
    *out = *a[0];
    return QN_OK;
}

/* What a message says is of no use. */
static qn_status do_format(qn_torch_value *out, bool *done, qn_script_run *run,
                           qn_torch_value *const *a, size_t n)
{
    (void)run;
    (void)a;
    (void)n;
    *done = true;
    *out = qn_torch_text("");
    return QN_OK;
}

static qn_status do_raise(qn_torch_value *out, bool *done, qn_script_run *run,
                          qn_torch_value *const *a, size_t n)
{
    (void)out;
    (void)done;
    return qn_script_run_fail(run, QN_E_UNSUPPORTED, "it refuses this input%s%s",
                              n && a[0]->kind == QN_TORCH_TEXT && *a[0]->text ? ": " : "",
                              n && a[0]->kind == QN_TORCH_TEXT ? a[0]->text : "");
}

/* PyTorch's number of the type. */
static qn_status do_dtype(qn_torch_value *out, bool *done, qn_script_run *run,
                          qn_torch_value *const *a, size_t n)
{
    qn_value *value;
    (void)n;
    if (a[0]->kind != QN_TORCH_TENSOR)
        return QN_OK;
    *done = true;
    QN_TRY(qn_torch_tensor_value(&value, run->t, a[0]->tensor));
    *out = qn_torch_int(qn_torch_dtype_number(qn_dtype_of(value)));
    return QN_OK;
}

static qn_status do_is_floating(qn_torch_value *out, bool *done, qn_script_run *run,
                                qn_torch_value *const *a, size_t n)
{
    QN_TRY(do_dtype(out, done, run, a, n));
    if (*done)
        *out = qn_torch_bool(qn_dtype_is_float(qn_torch_dtype(out->number)));
    return QN_OK;
}

static qn_status do_getattr(qn_torch_value *out, bool *done, qn_script_run *run,
                            qn_torch_value *const *a, size_t n)
{
    if (n < 2 || a[1]->kind != QN_TORCH_TEXT)
        return QN_OK;
    *done = true;
    return qn_script_field(out, run, a[0], a[1]->text);
}

/* start + i step */
static qn_status do_derive(qn_torch_value *out, bool *done, qn_script_run *run,
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

static qn_status do_range_length(qn_torch_value *out, bool *done, qn_script_run *run,
                                 qn_torch_value *const *a, size_t n)
{
    qn_torch_value list;
    QN_TRY(do_range(&list, done, run, a, n));
    *out = qn_torch_int(qn_torch_is_items(&list) ? (int64_t)list.list->count : 0);
    return QN_OK;
}

static const struct {
    const char *name;
    builtin_fn *run;
    /* Fewer arguments are no call of it. */
    size_t least;
} builtins[] = {
    {"len", do_len, 1},
    {"append", do_append, 2},
    {"__getitem__", do_getitem, 2},
    {"_set_item", do_setitem, 3},
    {"__contains__", do_contains, 2},
    {"__is__", do_is, 2},
    {"__isnot__", do_isnot, 2},
    {"__not__", do_not, 1},
    {"eq", do_eq, 2},
    {"ne", do_ne, 2},
    {"range", do_range, 1},
    {"__range_length", do_range_length, 3},
    {"__derive_index", do_derive, 3},
    {"add", do_add, 2},
    {"mul", do_mul, 2},
    {"slice", do_slice, 2},
    {"all", do_all, 1},
    {"list", do_list, 1},
    {"copy", do_list, 1},
    {"keys", do_keys, 1},
    {"values", do_values, 1},
    {"dict", do_dict, 0},
    {"int", do_int, 1},
    {"Int", do_int, 1},
    {"IntImplicit", do_int, 1},
    {"float", do_float, 1},
    {"Float", do_float, 1},
    {"FloatImplicit", do_float, 1},
    {"bool", do_bool, 1},
    {"Bool", do_bool, 1},
    {"ScalarImplicit", do_number, 1},
    {"ImplicitTensorToNum", do_number, 1},
    {"floor", do_floor, 1},
    {"ceil", do_ceil, 1},
    {"warn", do_nothing, 0},
    {"device", do_nothing, 0},
    {"layout", do_nothing, 0},
    {"Print", do_nothing, 0},
    {"print", do_nothing, 0},
    {"set_grad_enabled", do_nothing, 0},
    {"is_cuda", do_false, 0},
    {"is_quantized", do_false, 0},
    {"is_mkldnn", do_false, 0},
    {"is_nested", do_false, 0},
    {"is_sparse", do_false, 0},
    {"is_grad_enabled", do_false, 0},
    {"is_autocast_enabled", do_false, 0},
    {"is_autocast_cpu_enabled", do_false, 0},
    {"is_scripting", do_false, 0},
    {"is_complex", do_false, 0},
    {"requires_grad", do_false, 0},
    {"data", do_same, 1},
    {"unchecked_unwrap_optional", do_same, 1},
    {"_unwrap_optional", do_same, 1},
    {"wait", do_same, 1},
    {"type", do_format, 0},
    {"format", do_format, 0},
    {"str", do_format, 0},
    {"percentFormat", do_format, 0},
    {"RaiseException", do_raise, 0},
    {"raise_exception", do_raise, 0},
    {"dtype", do_dtype, 1},
    {"is_floating_point", do_is_floating, 1},
    {"getattr", do_getattr, 2},
};

/* Lists that are handed over stay the caller's: what is appended to them is seen there. */
qn_status qn_script_builtin(qn_torch_value *out, bool *done, qn_script_run *run, const char *name,
                            qn_aten_argument *arguments, size_t count)
{
    qn_torch_value *values[QN_ATEN_PARAMETERS];
    *done = false;
    for (size_t i = 0; i < count && i < QN_ATEN_PARAMETERS; i++)
        values[i] = &arguments[i].value;
    for (size_t i = 0; i < QN_COUNT_OF(builtins); i++) {
        if (strcmp(builtins[i].name, name) == 0 && count >= builtins[i].least)
            return builtins[i].run(out, done, run, values, QN_MIN(count, QN_ATEN_PARAMETERS));
    }
    return QN_OK;
}
