/* Strings of .npy files: elements of one width, "<U5" with so many code points of 4 bytes and "|S5"
 * with so many bytes, filled up with zeros at the end. In memory they are UTF-8. */
#include <string.h>

#include "data/array.h"

/* ---- Reading --------------------------------------------------------------------------------- */

/* UTF-8 of a code point; returns its bytes, 0 where it is none. */
static size_t encode(char out[4], uint32_t code)
{
    static const uint32_t most[] = {0x7f, 0x7ff, 0xffff, 0x10ffff};
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    size_t more = 0;
    while (more < 4 && code > most[more])
        more++;
    if (more == 4 || (code >= 0xd800 && code < 0xe000))
        return 0;
    for (size_t i = more; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(lead[more] | code);
    return more + 1;
}

/* The element without the zeros at its end, into `to`; false where it is no text. */
static bool read_element(qn_string *out, char *to, const uint8_t *from, const qn_npy *npy)
{
    size_t units = npy->element / npy->unit;
    uint32_t code = 0;
    *out = (qn_string){to, 0};
    while (units > 0 && memcmp(from + (units - 1) * npy->unit, &code, npy->unit) == 0)
        units--;
    if (npy->unit == 1) {
        memcpy(to, from, units);
        out->length = units;
        return true;
    }
    for (size_t i = 0; i < units; i++) {
        memcpy(&code, from + i * npy->unit, sizeof code);
        const size_t length = encode(to + out->length, code);
        if (length == 0)
            return false;
        out->length += length;
    }
    return true;
}

qn_status qn_npy_read_strings(qn_array *array, const qn_npy *npy, const uint8_t *elements)
{
    qn_allocator *allocator = &array->ctx->allocator;
    const size_t count = (size_t)qn_tensor_count(&npy->tensor);
    qn_string *strings = NULL;
    /* UTF-8 takes no more bytes than the elements do. */
    if (npy->bytes <= SIZE_MAX - count * sizeof *strings)
        strings = qn_alloc_aligned(allocator, count * sizeof *strings + npy->bytes);
    if (!strings)
        return qn_fail_bytes(array->ctx, npy->bytes, "the array");
    char *text = (char *)(strings + count);
    for (size_t i = 0; i < count; i++) {
        const size_t at = i * npy->element;
        if (!read_element(&strings[i], text + at, elements + at, npy)) {
            qn_free_aligned(allocator, strings);
            return qn_fail(array->ctx, QN_E_FORMAT, "string %zu has a letter that is none", i);
        }
    }
    qn_free_aligned(allocator, array->block);
    array->block = strings;
    array->tensor.data = strings;
    return QN_OK;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* The code point at *at, which moves behind it; U+FFFD for bytes that are no UTF-8. */
static uint32_t decode(const char **at, const char *end)
{
    const uint8_t first = (uint8_t) * (*at)++;
    const size_t more = first < 0xc0 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    uint32_t code = first & (0x3fu >> more);
    if (first < 0x80)
        return first;
    if (more == 0 || (size_t)(end - *at) < more)
        return 0xfffd;
    for (size_t i = 0; i < more; i++) {
        if (((uint8_t)(*at)[i] & 0xc0) != 0x80)
            return 0xfffd;
        code = code << 6 | ((uint8_t)(*at)[i] & 0x3fu);
    }
    *at += more;
    return code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0xfffd : code;
}

size_t qn_npy_string_width(const qn_string *strings, int64_t count)
{
    size_t widest = 1; /* numpy has no width 0 */
    for (int64_t i = 0; i < count; i++) {
        const char *at = strings[i].text, *end = at ? at + strings[i].length : at;
        size_t width = 0;
        for (; at < end; width++)
            (void)decode(&at, end);
        widest = QN_MAX(widest, width);
    }
    return widest;
}

qn_status qn_npy_write_strings(qn_npy_writer *writer, const qn_string *strings, int64_t count)
{
    enum { PIECE = 256 };
    for (int64_t i = 0; i < count; i++) {
        const char *at = strings[i].text, *end = at ? at + strings[i].length : at;
        for (size_t done = 0; done < writer->width;) {
            uint32_t codes[PIECE];
            const size_t n = QN_MIN(writer->width - done, (size_t)PIECE);
            for (size_t k = 0; k < n; k++)
                codes[k] = at < end ? decode(&at, end) : 0;
            QN_TRY(qn_output_write(writer->file, codes, n * sizeof *codes));
            done += n;
        }
    }
    return QN_OK;
}
