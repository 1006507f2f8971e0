/* Values of Python and PyTorch: lists, dictionaries, comparison. */
#include "import/pytorch/value.h"

#include <string.h>

enum { MOST_COMPARISONS = 256 };

const char *qn_torch_kind_name(qn_torch_kind kind)
{
    static const char *const names[] = {
        [QN_TORCH_NONE] = "None",         [QN_TORCH_BOOL] = "a truth",
        [QN_TORCH_INT] = "an integer",    [QN_TORCH_REAL] = "a number",
        [QN_TORCH_TEXT] = "a text",       [QN_TORCH_LIST] = "a list",
        [QN_TORCH_TUPLE] = "a tuple",     [QN_TORCH_DICT] = "a dictionary",
        [QN_TORCH_TENSOR] = "a tensor",   [QN_TORCH_SIZE] = "a size that depends on the input",
        [QN_TORCH_OBJECT] = "a module",   [QN_TORCH_STORAGE] = "a storage",
        [QN_TORCH_GLOBAL] = "a function",
    };
    return names[kind];
}

qn_status qn_torch_new_list(qn_torch_value *out, qn_context *ctx, qn_arena *arena,
                            qn_torch_kind kind)
{
    *out = (qn_torch_value){.kind = kind, .list = qn_arena_alloc(arena, sizeof *out->list)};
    QN_TRY_ALLOC(ctx, out->list);
    return QN_OK;
}

qn_status qn_torch_push(qn_torch_list *list, qn_context *ctx, qn_arena *arena,
                        const qn_torch_value *item)
{
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity ? list->capacity * 2 : 4;
        qn_torch_value *wide =
            qn_arena_widen(arena, list->at, list->count, capacity, sizeof *list->at);
        QN_TRY_ALLOC(ctx, wide);
        list->at = wide;
        list->capacity = capacity;
    }
    list->at[list->count++] = *item;
    return QN_OK;
}

qn_torch_value *qn_torch_get(const qn_torch_list *pairs, const qn_torch_value *key)
{
    for (size_t i = pairs->count / 2; i-- > 0;) {
        if (qn_torch_equal(&pairs->at[2 * i], key))
            return &pairs->at[2 * i + 1];
    }
    return NULL;
}

qn_torch_value *qn_torch_get_text(const qn_torch_list *pairs, const char *key)
{
    const qn_torch_value text = qn_torch_text(key);
    return qn_torch_get(pairs, &text);
}

qn_status qn_torch_set(qn_torch_list *pairs, qn_context *ctx, qn_arena *arena,
                       const qn_torch_value *key, const qn_torch_value *value)
{
    qn_torch_value *old = qn_torch_get(pairs, key);
    if (old) {
        *old = *value;
        return QN_OK;
    }
    QN_TRY(qn_torch_push(pairs, ctx, arena, key));
    return qn_torch_push(pairs, ctx, arena, value);
}

qn_status qn_torch_of(qn_torch_value *out, qn_context *ctx, qn_arena *arena, qn_value *value)
{
    *out = (qn_torch_value){.kind = QN_TORCH_TENSOR,
                            .tensor = qn_arena_alloc(arena, sizeof *out->tensor)};
    QN_TRY_ALLOC(ctx, out->tensor);
    out->tensor->value = value;
    return QN_OK;
}

static bool is_number(const qn_torch_value *value)
{
    return value->kind == QN_TORCH_BOOL || value->kind == QN_TORCH_INT ||
           value->kind == QN_TORCH_REAL;
}

static double as_real(const qn_torch_value *value)
{
    return value->kind == QN_TORCH_REAL  ? value->real
           : value->kind == QN_TORCH_INT ? (double)value->number
                                         : (double)value->truth;
}

/* Lists of a file can hold themselves: the number of comparisons has an end. */
static bool equal_within(const qn_torch_value *a, const qn_torch_value *b, int *left)
{
    if (--*left < 0)
        return false;
    if (a->kind == QN_TORCH_INT && b->kind == QN_TORCH_INT)
        return a->number == b->number;
    if (is_number(a) && is_number(b))
        return as_real(a) == as_real(b);
    if (a->kind != b->kind)
        return false;
    if (a->kind == QN_TORCH_TEXT || a->kind == QN_TORCH_GLOBAL)
        return strcmp(a->text, b->text) == 0;
    if (!qn_torch_is_items(a))
        return a->kind == QN_TORCH_NONE || a->object == b->object;
    bool same = a->list->count == b->list->count;
    for (size_t i = 0; same && i < a->list->count; i++)
        same = equal_within(&a->list->at[i], &b->list->at[i], left);
    return same;
}

bool qn_torch_equal(const qn_torch_value *a, const qn_torch_value *b)
{
    int left = MOST_COMPARISONS;
    return equal_within(a, b, &left);
}

static const qn_dtype dtypes[] = {
    [0] = QN_UINT8,   [1] = QN_INT8,      [2] = QN_INT16,       [3] = QN_INT32,
    [4] = QN_INT64,   [5] = QN_FLOAT16,   [6] = QN_FLOAT32,     [7] = QN_FLOAT64,
    [11] = QN_BOOL,   [15] = QN_BFLOAT16, [23] = QN_FLOAT8E5M2, [24] = QN_FLOAT8E4M3FN,
    [27] = QN_UINT16, [28] = QN_UINT32,   [29] = QN_UINT64,
};

qn_dtype qn_torch_dtype(int64_t number)
{
    return number >= 0 && (uint64_t)number < QN_COUNT_OF(dtypes) ? dtypes[number] : QN_UNDEFINED;
}

int64_t qn_torch_dtype_number(qn_dtype dtype)
{
    for (size_t i = 0; i < QN_COUNT_OF(dtypes); i++) {
        if (dtypes[i] == dtype)
            return (int64_t)i;
    }
    return -1;
}
