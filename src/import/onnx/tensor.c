/* ONNX tensors: raw and typed contents. */
#include <string.h>

#include "import/onnx/onnx.h"

/* From this size on contents stay where the file has them, at whatever address that is. */
enum { LARGE = 64 * 1024 };

qn_status qn_onnx_dims(qn_tensor *out, qn_onnx_import *import, const qn_proto_message *message,
                       uint32_t field)
{
    const size_t rank = qn_proto_count(message, field);
    if (rank > QN_MAX_RANK)
        return qn_fail(import->ctx, QN_E_UNSUPPORTED, "%zu dimensions are more than %d", rank,
                       QN_MAX_RANK);
    qn_proto_numbers numbers = qn_proto_numbers_of(message, field);
    out->rank = (int32_t)rank;
    for (size_t i = 0; qn_proto_next_int(&out->dims[i], &numbers); i++) {
        if (out->dims[i] < 0)
            return qn_fail(import->ctx, QN_E_FORMAT, "dimension %zu is %lld", i,
                           (long long)out->dims[i]);
    }
    size_t bytes;
    if (!qn_tensor_bytes(&bytes, out->dtype, out->rank, out->dims))
        return qn_fail(import->ctx, QN_E_FORMAT, "the dimensions multiply to more than memory has");
    return QN_OK;
}

/* ---- Raw bytes ------------------------------------------------------------------------------- */

/* Bytes of the contents in a file, where types below a byte are packed. */
static size_t packed_size(qn_dtype dtype, size_t count)
{
    const size_t bits = qn_dtype_get(dtype)->bits;
    return bits < 8 ? count / 8 * bits + (count % 8 * bits + 7) / 8 : count * (bits / 8);
}

static qn_status check_size(qn_onnx_import *import, size_t found, size_t wanted, const char *what)
{
    if (found != wanted)
        return qn_fail(import->ctx, QN_E_FORMAT, "%s has %zu where the dimensions ask for %zu",
                       what, found, wanted);
    return QN_OK;
}

/* Numbers that the file has one by one are gathered in the tree. */
static bool is_in_file(const qn_onnx_import *import, qn_string bytes)
{
    const uintptr_t begin = (uintptr_t)import->input.text, at = (uintptr_t)bytes.text;
    return at >= begin && at - begin < import->input.length;
}

/* Points to the bytes of a file, or to a copy where they are few and not aligned. */
static qn_status borrow(qn_tensor *out, qn_onnx_import *import, qn_string bytes)
{
    out->data = (void *)(uintptr_t)bytes.text;
    if (qn_tensor_is_aligned(out) || bytes.length >= LARGE)
        return QN_OK;
    out->data = qn_arena_copy(import->arena, bytes.text, bytes.length);
    QN_TRY_ALLOC(import->ctx, out->data);
    return QN_OK;
}

/* One element of `bits` < 8 from a stream that fills bytes from the low end; integers with a sign
 * are extended to 8 bits. */
static uint8_t take_bits(const uint8_t *bytes, size_t index, unsigned bits, bool is_signed)
{
    const size_t first = index * bits;
    unsigned code = bytes[first / 8] >> first % 8;
    if (first % 8 + bits > 8)
        code |= (unsigned)bytes[first / 8 + 1] << (8 - first % 8);
    code &= (1u << bits) - 1;
    const bool negative = is_signed && code >> (bits - 1);
    return (uint8_t)(negative ? code | ~0u << bits : code);
}

static qn_status unpack(qn_tensor *out, qn_onnx_import *import, const uint8_t *bytes, size_t count)
{
    const qn_dtype_info *info = qn_dtype_get(out->dtype);
    uint8_t *to = qn_arena_alloc(import->arena, count);
    QN_TRY_ALLOC(import->ctx, to);
    for (size_t i = 0; i < count; i++)
        to[i] = info->kind == QN_KIND_BOOL
                    ? bytes[i] != 0
                    : take_bits(bytes, i, info->bits, info->kind == QN_KIND_INT);
    out->data = to;
    return QN_OK;
}

static qn_status read_raw(qn_tensor *out, qn_onnx_import *import, qn_string bytes, size_t count)
{
    const qn_dtype_info *info = qn_dtype_get(out->dtype);
    QN_TRY(check_size(import, bytes.length, packed_size(out->dtype, count), "raw data in bytes"));
    if (info->bits < 8 || info->kind == QN_KIND_BOOL)
        return unpack(out, import, (const uint8_t *)bytes.text, count);
    return borrow(out, import, bytes);
}

/* ---- Typed fields ---------------------------------------------------------------------------- */

/* The field that holds elements of a type when they are not raw. */
static uint32_t typed_field(qn_dtype dtype)
{
    switch (dtype) {
    case QN_FLOAT32:
    case QN_COMPLEX64: return QN_ONNX_TENSOR_FLOAT_DATA;
    case QN_FLOAT64:
    case QN_COMPLEX128: return QN_ONNX_TENSOR_DOUBLE_DATA;
    case QN_INT64: return QN_ONNX_TENSOR_INT64_DATA;
    case QN_UINT32:
    case QN_UINT64: return QN_ONNX_TENSOR_UINT64_DATA;
    case QN_STRING: return QN_ONNX_TENSOR_STRING_DATA;
    default: return QN_ONNX_TENSOR_INT32_DATA;
    }
}

static qn_status read_strings(qn_tensor *out, qn_onnx_import *import,
                              const qn_proto_message *tensor, size_t count)
{
    const size_t found = qn_proto_count(tensor, QN_ONNX_TENSOR_STRING_DATA);
    QN_TRY(check_size(import, found, count, "string data in elements"));
    qn_string *strings = qn_arena_array(import->arena, count, sizeof *strings);
    QN_TRY_ALLOC(import->ctx, strings);
    for (size_t i = 0; i < count; i++)
        strings[i] = qn_proto_string_at(tensor, QN_ONNX_TENSOR_STRING_DATA, i);
    out->data = strings;
    return QN_OK;
}

/* Two or four elements to a number, below 8 bits; one in all other types. */
static size_t elements_per_number(qn_dtype dtype)
{
    const size_t bits = qn_dtype_get(dtype)->bits;
    return bits == 4 || bits == 2 ? 8 / bits : 1;
}

static void store_number(uint8_t *to, size_t size, int64_t value)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)((uint64_t)value >> 8 * i);
}

static qn_status read_integers(qn_tensor *out, qn_onnx_import *import,
                               const qn_proto_message *tensor, size_t count)
{
    const uint32_t field = typed_field(out->dtype);
    const size_t per = elements_per_number(out->dtype), size = qn_dtype_size(out->dtype);
    const size_t numbers_wanted = count / per + (count % per != 0);
    QN_TRY(
        check_size(import, qn_proto_count(tensor, field), numbers_wanted, "typed data in numbers"));
    uint8_t *to = qn_arena_array(import->arena, numbers_wanted, size);
    QN_TRY_ALLOC(import->ctx, to);
    qn_proto_numbers numbers = qn_proto_numbers_of(tensor, field);
    int64_t value;
    for (size_t i = 0; qn_proto_next_int(&value, &numbers); i++)
        store_number(to + i * size, size, value);
    if (per > 1 || out->dtype == QN_BOOL)
        return unpack(out, import, to, count);
    out->data = to;
    return QN_OK;
}

static qn_status read_typed(qn_tensor *out, qn_onnx_import *import, const qn_proto_message *tensor,
                            size_t count)
{
    const qn_dtype_info *info = qn_dtype_get(out->dtype);
    const uint32_t field = typed_field(out->dtype);
    if (out->dtype == QN_STRING)
        return read_strings(out, import, tensor, count);
    if (field != QN_ONNX_TENSOR_FLOAT_DATA && field != QN_ONNX_TENSOR_DOUBLE_DATA)
        return read_integers(out, import, tensor, count);
    const qn_string packed = qn_proto_packed(tensor, field);
    QN_TRY(check_size(import, packed.length, count * info->size, "typed data in bytes"));
    if (is_in_file(import, packed))
        return borrow(out, import, packed);
    out->data = qn_arena_copy(import->arena, packed.text, packed.length);
    QN_TRY_ALLOC(import->ctx, out->data);
    return QN_OK;
}

static bool has_typed(const qn_proto_message *tensor)
{
    static const uint32_t fields[] = {QN_ONNX_TENSOR_FLOAT_DATA,  QN_ONNX_TENSOR_DOUBLE_DATA,
                                      QN_ONNX_TENSOR_INT32_DATA,  QN_ONNX_TENSOR_INT64_DATA,
                                      QN_ONNX_TENSOR_UINT64_DATA, QN_ONNX_TENSOR_STRING_DATA};
    bool found = false;
    for (size_t i = 0; !found && i < QN_COUNT_OF(fields); i++)
        found = qn_proto_count(tensor, fields[i]) > 0;
    return found;
}

/* ---- Tensors --------------------------------------------------------------------------------- */

qn_status qn_onnx_tensor(qn_tensor *out, qn_onnx_import *import, const qn_proto_message *tensor)
{
    const int64_t dtype = qn_proto_int(tensor, QN_ONNX_TENSOR_DATA_TYPE, QN_UNDEFINED);
    *out = (qn_tensor){.dtype = QN_UNDEFINED};
    if (dtype <= QN_UNDEFINED || dtype >= QN_SEQUENCE)
        return qn_fail(import->ctx, QN_E_UNSUPPORTED, "element type %lld is not known",
                       (long long)dtype);
    if (qn_proto_has(tensor, QN_ONNX_TENSOR_SEGMENT))
        return qn_fail(import->ctx, QN_E_UNSUPPORTED, "tensors in segments are not supported");
    out->dtype = (qn_dtype)dtype;
    QN_TRY(qn_onnx_dims(out, import, tensor, QN_ONNX_TENSOR_DIMS));
    const size_t count = (size_t)qn_tensor_count(out);
    const bool raw = qn_proto_has(tensor, QN_ONNX_TENSOR_RAW_DATA);
    const bool external =
        qn_proto_int(tensor, QN_ONNX_TENSOR_DATA_LOCATION, 0) == QN_ONNX_LOCATION_EXTERNAL;
    if (out->dtype == QN_STRING && (raw || external))
        return qn_fail(import->ctx, QN_E_FORMAT, "strings cannot be raw data");
    if (raw && has_typed(tensor))
        return qn_fail(import->ctx, QN_E_FORMAT,
                       "raw data and typed data are both there; only one of them can count");
    qn_string bytes = qn_proto_string(tensor, QN_ONNX_TENSOR_RAW_DATA);
    if (external)
        QN_TRY(qn_onnx_external(&bytes, import, tensor, packed_size(out->dtype, count)));
    if (external || raw)
        return read_raw(out, import, bytes, count);
    return read_typed(out, import, tensor, count);
}
