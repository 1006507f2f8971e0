/* Tensors and types: sizes, copies, comparisons. */
#include "ir/tensor.h"

#include <stdio.h>
#include <string.h>

bool qn_dim_same(qn_dim a, qn_dim b)
{
    if (a.value >= 0 || b.value >= 0)
        return a.value == b.value;
    return a.symbol && b.symbol && strcmp(a.symbol, b.symbol) == 0;
}

qn_type qn_type_tensor(qn_dtype dtype, int32_t rank, const int64_t *dims)
{
    qn_type type = {.kind = QN_TYPE_TENSOR, .dtype = dtype, .rank = rank};
    for (int32_t i = 0; i < rank; i++)
        type.dims[i] = qn_dim_of(dims[i]);
    return type;
}

qn_type qn_type_of(const qn_tensor *tensor)
{
    if (tensor->dtype == QN_SEQUENCE)
        return (qn_type){.kind = QN_TYPE_SEQUENCE};
    if (tensor->dtype == QN_NONE)
        return (qn_type){.kind = QN_TYPE_OPTIONAL};
    return qn_type_tensor(tensor->dtype, tensor->rank, tensor->dims);
}

bool qn_type_is_static(const qn_type *type, int64_t *dims)
{
    if (type->kind != QN_TYPE_TENSOR || type->dtype == QN_UNDEFINED || type->rank < 0)
        return false;
    for (int32_t i = 0; i < type->rank; i++) {
        if (type->dims[i].value < 0)
            return false;
        if (dims)
            dims[i] = type->dims[i].value;
    }
    return true;
}

/* snprintf behind what is there already; *at stays inside [0, size). */
static void append(char *out, size_t size, size_t *at, const char *text)
{
    const size_t length = strlen(text), room = size - 1 - *at;
    const size_t taken = QN_MIN(length, room);
    memcpy(out + *at, text, taken);
    *at += taken;
    out[*at] = 0;
}

static void append_tensor_type(char *out, size_t size, size_t *at, const qn_type *type)
{
    append(out, size, at, qn_dtype_name(type->dtype));
    append(out, size, at, "[");
    for (int32_t i = 0; i < type->rank; i++) {
        char number[32];
        snprintf(number, sizeof number, "%lld", (long long)type->dims[i].value);
        const char *symbol = type->dims[i].symbol ? type->dims[i].symbol : "?";
        append(out, size, at, i ? "," : "");
        append(out, size, at, type->dims[i].value >= 0 ? number : symbol);
    }
    append(out, size, at, type->rank < 0 ? "...]" : "]");
}

void qn_type_format(char *out, size_t size, const qn_type *type)
{
    static const char *const words[] = {[QN_TYPE_UNKNOWN] = "?",
                                        [QN_TYPE_TENSOR] = "",
                                        [QN_TYPE_SEQUENCE] = "sequence(",
                                        [QN_TYPE_OPTIONAL] = "optional(",
                                        [QN_TYPE_MAP] = "map("};
    size_t at = 0;
    int nested = 0;
    out[0] = 0;
    for (; type && type->kind != QN_TYPE_TENSOR; type = type->element) {
        append(out, size, &at, words[type->kind]);
        if (type->kind == QN_TYPE_UNKNOWN)
            break;
        nested++;
    }
    if (type && type->kind == QN_TYPE_TENSOR)
        append_tensor_type(out, size, &at, type);
    while (nested-- > 0)
        append(out, size, &at, ")");
}

bool qn_dims_count(int64_t *out, int32_t rank, const int64_t *dims)
{
    int64_t count = 1;
    bool empty = false;
    for (int32_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return false;
        empty = empty || dims[i] == 0;
        if (dims[i] != 0 && !qn_mul_int64(&count, count, dims[i]))
            return false;
    }
    *out = empty ? 0 : count;
    return true;
}

bool qn_tensor_bytes(size_t *out, qn_dtype dtype, int32_t rank, const int64_t *dims)
{
    int64_t count;
    return qn_dims_count(&count, rank, dims) &&
           qn_mul_size(out, (size_t)count, qn_dtype_size(dtype)) && *out <= PTRDIFF_MAX;
}

int64_t qn_tensor_count(const qn_tensor *tensor)
{
    int64_t count = 1;
    for (int32_t i = 0; i < tensor->rank; i++)
        count *= tensor->dims[i];
    return count;
}

void qn_dims_strides(int64_t *strides, int32_t rank, const int64_t *dims)
{
    int64_t stride = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= dims[i];
    }
}

bool qn_type_fits(const qn_type *type)
{
    int64_t known[QN_MAX_RANK];
    int32_t count = 0;
    size_t bytes;
    for (int32_t d = 0; type->kind == QN_TYPE_TENSOR && d < type->rank; d++) {
        if (type->dims[d].value >= 0)
            known[count++] = type->dims[d].value;
    }
    return qn_tensor_bytes(&bytes, type->dtype, count, known);
}

static qn_status fail_tensor(qn_context *ctx, size_t bytes, const qn_type *type)
{
    char text[256];
    qn_type_format(text, sizeof text, type);
    return qn_fail_bytes(ctx, bytes, "a tensor %s", text);
}

qn_status qn_tensor_create(qn_tensor **out, qn_context *ctx, qn_arena *arena, const qn_type *type)
{
    qn_tensor *tensor = qn_arena_alloc(arena, sizeof *tensor);
    QN_TRY_ALLOC(ctx, tensor);
    size_t bytes;
    if (!qn_type_is_static(type, tensor->dims) ||
        !qn_tensor_bytes(&bytes, type->dtype, type->rank, tensor->dims)) {
        char text[256];
        qn_type_format(text, sizeof text, type);
        return qn_fail(ctx, QN_E_INVALID, "no tensor can have the type %s", text);
    }
    tensor->dtype = type->dtype;
    tensor->rank = type->rank;
    tensor->data = qn_arena_alloc(arena, bytes);
    if (!tensor->data)
        return fail_tensor(ctx, bytes, type);
    *out = tensor;
    return QN_OK;
}

static qn_status copy_sequence(qn_tensor *out, qn_context *ctx, qn_arena *arena,
                               const qn_sequence *sequence)
{
    qn_sequence *copy = qn_arena_alloc(arena, sizeof *copy);
    QN_TRY_ALLOC(ctx, copy);
    copy->count = sequence->count;
    copy->items = qn_arena_array(arena, (size_t)sequence->count, sizeof *copy->items);
    QN_TRY_ALLOC(ctx, copy->items);
    for (int64_t i = 0; i < sequence->count; i++)
        QN_TRY(qn_tensor_copy(&copy->items[i], ctx, arena, &sequence->items[i]));
    out->data = copy;
    return QN_OK;
}

static qn_status copy_strings(qn_string *strings, qn_context *ctx, qn_arena *arena, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        strings[i].text = qn_arena_text(arena, strings[i].text, strings[i].length);
        QN_TRY_ALLOC(ctx, strings[i].text);
    }
    return QN_OK;
}

qn_status qn_tensor_copy(qn_tensor *out, qn_context *ctx, qn_arena *arena, const qn_tensor *tensor)
{
    *out = *tensor;
    if (tensor->dtype == QN_SEQUENCE)
        return copy_sequence(out, ctx, arena, tensor->data);
    size_t bytes;
    if (tensor->dtype == QN_NONE)
        return QN_OK;
    if (!qn_tensor_bytes(&bytes, tensor->dtype, tensor->rank, tensor->dims))
        return qn_fail_nomem(ctx);
    out->data = qn_arena_copy(arena, tensor->data, bytes);
    QN_TRY_ALLOC(ctx, out->data);
    if (tensor->dtype == QN_STRING)
        return copy_strings(out->data, ctx, arena, qn_tensor_count(tensor));
    return QN_OK;
}

bool qn_tensor_is_aligned(const qn_tensor *tensor)
{
    /* A complex number is a pair of floats. */
    const size_t size = qn_dtype_size(tensor->dtype);
    const size_t unit = qn_dtype_get(tensor->dtype)->kind == QN_KIND_COMPLEX ? size / 2 : size;
    return tensor->dtype == QN_STRING || unit == 0 || (uintptr_t)tensor->data % unit == 0;
}

static bool strings_equal(const qn_string *a, const qn_string *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const size_t length =
            a[i].length; /* without any the text may be NULL, which memcmp must not see */
        if (length != b[i].length || (length && memcmp(a[i].text, b[i].text, length) != 0))
            return false;
    }
    return true;
}

bool qn_tensor_equal(const qn_tensor *a, const qn_tensor *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    if (a->dtype == QN_NONE)
        return true;
    if (a->dtype == QN_SEQUENCE) {
        const qn_sequence *x = a->data, *y = b->data;
        bool same = x->count == y->count;
        for (int64_t i = 0; same && i < x->count; i++)
            same = qn_tensor_equal(&x->items[i], &y->items[i]);
        return same;
    }
    for (int32_t i = 0; i < a->rank; i++) {
        if (a->dims[i] != b->dims[i])
            return false;
    }
    const int64_t count = qn_tensor_count(a);
    if (a->dtype == QN_STRING)
        return strings_equal(a->data, b->data, count);
    return count == 0 || memcmp(a->data, b->data, (size_t)count * qn_dtype_size(a->dtype)) == 0;
}

/* Numbers whose bits, without the sign, are at least these: infinity has 0x7f800000, NaN more. */
static bool has_bits(const qn_tensor *tensor, uint32_t least)
{
    const int64_t count = tensor->dtype == QN_FLOAT32 ? qn_tensor_count(tensor) : 0;
    const char *data = tensor->data;
    uint32_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, data + (size_t)i * sizeof bits, sizeof bits);
        most = QN_MAX(most, bits & UINT32_C(0x7fffffff));
    }
    return most >= least;
}

bool qn_tensor_has_nan(const qn_tensor *tensor)
{
    return has_bits(tensor, UINT32_C(0x7f800001));
}

bool qn_tensor_is_finite(const qn_tensor *tensor)
{
    return !has_bits(tensor, UINT32_C(0x7f800000));
}
