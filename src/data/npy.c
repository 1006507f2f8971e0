/* numpy's array files. Layout of a .npy file:
 *     "\x93NUMPY", major, minor, length of the header (2 bytes; 4 from version 2 on), header, elements
 * The header is a Python dictionary of exactly three entries:
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), } */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "data/array.h"

typedef struct cursor {
    qn_context *ctx;
    const char *at, *end;
} cursor;

/* ---- Header ---------------------------------------------------------------------------------- */

static void skip_blanks(cursor *c)
{
    while (c->at < c->end && isspace((unsigned char)*c->at))
        c->at++;
}

/* Takes the word when it comes next. */
static bool take(cursor *c, const char *word)
{
    const size_t length = strlen(word);
    skip_blanks(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

static bool take_quoted(cursor *c, char *out, size_t size)
{
    skip_blanks(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return false;
    const char quote = *c->at++;
    const char *end = memchr(c->at, quote, (size_t)(c->end - c->at));
    if (!end || (size_t)(end - c->at) >= size)
        return false;
    memcpy(out, c->at, (size_t)(end - c->at));
    out[end - c->at] = 0;
    c->at = end + 1;
    return true;
}

static bool take_int(cursor *c, int64_t *out)
{
    int64_t value = 0;
    bool good = false;
    skip_blanks(c);
    for (; c->at < c->end && isdigit((unsigned char)*c->at); c->at++) {
        good = qn_mul_int64(&value, value, 10) && qn_add_int64(&value, value, *c->at - '0');
        if (!good)
            return false;
    }
    take(c, "L"); /* Python 2 wrote long numbers so */
    *out = value;
    return good;
}

static qn_status bad_header(const cursor *c, const char *what)
{
    return qn_fail(c->ctx, QN_E_FORMAT, "not a valid .npy header: %s", what);
}

static qn_status take_shape(cursor *c, qn_tensor *out)
{
    out->rank = 0;
    if (!take(c, "("))
        return bad_header(c, "the shape is no tuple");
    while (!take(c, ")")) {
        if (out->rank == QN_MAX_RANK)
            return qn_fail(c->ctx, QN_E_UNSUPPORTED, "arrays of more than %d dimensions",
                           QN_MAX_RANK);
        if (!take_int(c, &out->dims[out->rank++]))
            return bad_header(c, "a dimension is no number");
        if (!take(c, ",") && !(c->at < c->end && *c->at == ')'))
            return bad_header(c, "the shape does not end");
    }
    return QN_OK;
}

/* "U5", "S5": strings of so many code points or bytes. */
static bool take_string_type(qn_npy *out, const char *descr)
{
    cursor c = {.at = descr + 2, .end = descr + strlen(descr)};
    int64_t count, bytes;
    out->unit = descr[1] == 'U' ? 4 : 1;
    if (!strchr("US", descr[1]) || !take_int(&c, &count) || c.at != c.end || count == 0 ||
        !qn_mul_int64(&bytes, count, (int64_t)out->unit))
        return false;
    out->tensor.dtype = QN_STRING;
    out->element = (size_t)bytes;
    out->swapped = *descr == '>' && out->unit > 1;
    return true;
}

/* "<f4" and the like; the byte order does not count for single bytes. */
static qn_status take_type(cursor *c, qn_npy *out)
{
    char descr[32];
    if (!take_quoted(c, descr, sizeof descr))
        return qn_fail(c->ctx, QN_E_UNSUPPORTED, "arrays with fields cannot be read");
    for (int d = 0; *descr && d < QN_DTYPE_COUNT; d++) {
        const qn_dtype_info *info = qn_dtype_get((qn_dtype)d);
        if (!info->npy || strcmp(info->npy + 1, descr + 1) != 0 || !strchr("<>|=", *descr))
            continue;
        out->tensor.dtype = (qn_dtype)d;
        out->element = info->size;
        out->unit = info->kind == QN_KIND_COMPLEX ? info->size / 2 : info->size;
        out->swapped = *descr == '>' && info->size > 1;
        return QN_OK;
    }
    if (strlen(descr) > 2 && strchr("<>|=", *descr) && take_string_type(out, descr))
        return QN_OK;
    return qn_fail(c->ctx, QN_E_UNSUPPORTED, "elements of type '%s' cannot be read", descr);
}

static qn_status take_entry(cursor *c, qn_npy *out, unsigned *seen)
{
    char key[32];
    if (!take_quoted(c, key, sizeof key) || !take(c, ":"))
        return bad_header(c, "no key");
    if (strcmp(key, "descr") == 0) {
        *seen |= 1;
        return take_type(c, out);
    }
    if (strcmp(key, "shape") == 0) {
        *seen |= 2;
        return take_shape(c, &out->tensor);
    }
    if (strcmp(key, "fortran_order") == 0) {
        *seen |= 4;
        out->fortran = take(c, "True");
        return out->fortran || take(c, "False") ? QN_OK : bad_header(c, "fortran_order is no bool");
    }
    return bad_header(c, "unknown key");
}

static qn_status parse_header(cursor *c, qn_npy *out)
{
    unsigned seen = 0;
    if (!take(c, "{"))
        return bad_header(c, "no dictionary");
    while (!take(c, "}")) {
        QN_TRY(take_entry(c, out, &seen));
        if (!take(c, ",") && !(c->at < c->end && *c->at == '}'))
            return bad_header(c, "the dictionary does not end");
    }
    return seen == 7 ? QN_OK : bad_header(c, "descr, fortran_order or shape is missing");
}

qn_status qn_npy_parse(qn_npy *out, qn_context *ctx, const uint8_t *file, size_t size)
{
    static const uint8_t magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    *out = (qn_npy){.bytes = 0};
    if (size < 12 || memcmp(file, magic, sizeof magic) != 0)
        return qn_fail(ctx, QN_E_FORMAT, "not a .npy file");
    const unsigned version = file[6];
    const size_t begin = version == 1 ? 10 : 12;
    size_t length = (size_t)file[8] | (size_t)file[9] << 8;
    if (version < 1 || version > 3)
        return qn_fail(ctx, QN_E_UNSUPPORTED, "version %u of the .npy format", version);
    if (version > 1)
        length |= (size_t)file[10] << 16 | (size_t)file[11] << 24;
    if (length > size - begin)
        return qn_fail(ctx, QN_E_FORMAT, "the file ends inside the .npy header");
    const char *header = (const char *)file + begin;
    cursor c = {ctx, header, header + length};
    QN_TRY(parse_header(&c, out));
    const qn_tensor *t = &out->tensor;
    int64_t count, bytes;
    if (!qn_tensor_bytes(&out->bytes, t->dtype, t->rank, t->dims) ||
        !qn_dims_count(&count, t->rank, t->dims) ||
        !qn_mul_int64(&bytes, count, (int64_t)out->element))
        return qn_fail(ctx, QN_E_FORMAT, "the dimensions of the array overflow");
    out->bytes = (size_t)bytes;
    out->data = file + begin + length;
    if (out->bytes > size - begin - length)
        return qn_fail(ctx, QN_E_FORMAT, "the file ends after %zu of %zu bytes of elements",
                       size - begin - length, out->bytes);
    return QN_OK;
}

/* ---- Elements -------------------------------------------------------------------------------- */

/* Numbers of `size` bytes, the other way round. */
static void copy_swapped(uint8_t *to, const uint8_t *from, size_t bytes, size_t size)
{
    for (size_t i = 0; i < bytes; i += size) {
        for (size_t b = 0; b < size; b++)
            to[i + b] = from[i + size - 1 - b];
    }
}

/* Copies elements from Fortran order to row-major order. */
static void copy_fortran(uint8_t *to, const uint8_t *from, const qn_tensor *shape, size_t size)
{
    int64_t at[QN_MAX_RANK] = {0}, strides[QN_MAX_RANK];
    const int64_t count = qn_tensor_count(shape);
    int64_t stride = 1;
    for (int32_t d = 0; d < shape->rank; d++) {
        strides[d] = stride;
        stride *= shape->dims[d];
    }
    for (int64_t i = 0, source = 0; i < count; i++) {
        memcpy(to + (size_t)i * size, from + (size_t)source * size, size);
        for (int32_t d = shape->rank - 1; d >= 0; d--) {
            source += strides[d];
            if (++at[d] < shape->dims[d])
                break;
            source -= strides[d] * shape->dims[d];
            at[d] = 0;
        }
    }
}

static qn_status own_copy(qn_array *array, const qn_npy *npy)
{
    /* Swapping and reordering go through a second block where both are needed. */
    uint8_t *block = qn_alloc_aligned(&array->ctx->allocator, npy->bytes);
    uint8_t *swapped =
        npy->swapped && npy->fortran ? qn_alloc_aligned(&array->ctx->allocator, npy->bytes) : NULL;
    if (!block || (npy->swapped && npy->fortran && !swapped)) {
        qn_free_aligned(&array->ctx->allocator, block);
        qn_free_aligned(&array->ctx->allocator, swapped);
        return qn_fail_bytes(array->ctx, npy->bytes, "the array");
    }
    const uint8_t *from = npy->data;
    if (npy->swapped) {
        copy_swapped(swapped ? swapped : block, from, npy->bytes, npy->unit);
        from = swapped;
    }
    if (npy->fortran)
        copy_fortran(block, from, &npy->tensor, npy->element);
    else if (!npy->swapped)
        memcpy(block, from, npy->bytes);
    qn_free_aligned(&array->ctx->allocator, swapped);
    qn_free_aligned(&array->ctx->allocator, array->block);
    array->block = block;
    array->tensor.data = block;
    return QN_OK;
}

/* A byte of a bool that is neither 0 nor 1. */
static bool has_odd_bools(const qn_npy *npy)
{
    bool odd = false;
    for (size_t i = 0; npy->tensor.dtype == QN_BOOL && i < npy->bytes; i++)
        odd = odd || npy->data[i] > 1;
    return odd;
}

qn_status qn_npy_read(qn_array *array, const uint8_t *file, size_t size)
{
    qn_npy npy;
    QN_TRY(qn_npy_parse(&npy, array->ctx, file, size));
    if (has_odd_bools(&npy))
        return qn_fail(array->ctx, QN_E_FORMAT, "a bool is neither 0 nor 1");
    array->tensor = npy.tensor;
    array->tensor.data = (void *)(uintptr_t)npy.data;
    const bool strings = npy.tensor.dtype == QN_STRING;
    if (npy.fortran || npy.swapped || (!strings && !qn_tensor_is_aligned(&array->tensor)))
        QN_TRY(own_copy(array, &npy));
    return strings ? qn_npy_read_strings(array, &npy, array->tensor.data) : QN_OK;
}

/* ---- Writing --------------------------------------------------------------------------------- */

qn_dtype qn_npy_stored_type(qn_dtype dtype)
{
    const qn_dtype_info *info = qn_dtype_get(dtype);
    if (info->npy)
        return dtype;
    switch (info->kind) {
    case QN_KIND_FLOAT: return QN_FLOAT32;
    case QN_KIND_INT: return QN_INT8;
    case QN_KIND_UINT: return QN_UINT8;
    default: return QN_UNDEFINED;
    }
}

/* The whole beginning of the file, padded so that the elements start at a multiple of 64. */
static size_t format_header(char *out, size_t size, const qn_tensor *shape, const char *descr)
{
    enum { BEGIN = 10, ALIGNMENT = 64 };
    int length = snprintf(out + BEGIN, size - BEGIN,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int32_t d = 0; d < shape->rank; d++)
        length += snprintf(out + BEGIN + length, size - BEGIN - (size_t)length,
                           d == 0 && shape->rank == 1 ? "%lld," : (d ? ", %lld" : "%lld"),
                           (long long)shape->dims[d]);
    length += snprintf(out + BEGIN + length, size - BEGIN - (size_t)length, "), }");
    size_t total = BEGIN + (size_t)length;
    while ((total + 1) % ALIGNMENT != 0)
        out[total++] = ' ';
    out[total++] = '\n';
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)((total - BEGIN) & 0xff);
    out[9] = (char)((total - BEGIN) >> 8);
    return total;
}

qn_status qn_npy_open(qn_npy_writer *out, qn_context *ctx, const char *path, const qn_tensor *shape)
{
    char header[1024], strings[32];
    const bool text = shape->dtype == QN_STRING;
    *out = (qn_npy_writer){.ctx = ctx, .dtype = shape->dtype};
    out->stored = text ? QN_STRING : qn_npy_stored_type(shape->dtype);
    if (out->stored == QN_UNDEFINED)
        return qn_fail(ctx, QN_E_UNSUPPORTED, "%s: a .npy file cannot hold %s", path,
                       qn_dtype_name(shape->dtype));
    if (text)
        out->width = qn_npy_string_width(shape->data, qn_tensor_count(shape));
    snprintf(strings, sizeof strings, "<U%zu", out->width);
    const size_t size = format_header(header, sizeof header, shape,
                                      text ? strings : qn_dtype_get(out->stored)->npy);
    QN_TRY(qn_output_open(&out->file, ctx, path));
    const qn_status status = qn_output_write(out->file, header, size);
    if (status != QN_OK)
        qn_npy_discard(out);
    return status;
}

static qn_status write_widened(qn_npy_writer *writer, const void *data, int64_t count)
{
    enum { PIECE = 1024 };
    double numbers[PIECE];
    char stored[PIECE * 8];
    for (int64_t i = 0; i < count; i += PIECE) {
        const int64_t n = QN_MIN(count - i, PIECE);
        qn_load_f64(numbers, writer->dtype, data, i, n);
        qn_store_f64(stored, writer->stored, 0, numbers, n);
        QN_TRY(qn_output_write(writer->file, stored, (size_t)n * qn_dtype_size(writer->stored)));
    }
    return QN_OK;
}

qn_status qn_npy_write(qn_npy_writer *writer, const void *data, int64_t count)
{
    if (writer->dtype == QN_STRING)
        return qn_npy_write_strings(writer, data, count);
    if (writer->stored != writer->dtype)
        return write_widened(writer, data, count);
    return qn_output_write(writer->file, data, (size_t)count * qn_dtype_size(writer->dtype));
}

qn_status qn_npy_commit(qn_npy_writer *writer)
{
    qn_output_file *file = writer->file;
    writer->file = NULL;
    return qn_output_commit(file);
}

void qn_npy_discard(qn_npy_writer *writer)
{
    qn_output_discard(writer->file);
    writer->file = NULL;
}
