/* What files of a framework look like. */
#include "import/detect.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/zip.h"

/* The part of a text that is searched for words. */
enum { MOST_TEXT = 64 * 1024 };

bool qn_detect_bytes(const qn_model_source *source, size_t at, const void *bytes, size_t size)
{
    return source->map.size >= at + size && memcmp(source->map.data + at, bytes, size) == 0;
}

static bool is_printable(uint8_t c)
{
    return (c >= ' ' && c != 0x7f) || c == '\n' || c == '\r' || c == '\t';
}

bool qn_detect_text(const qn_model_source *source)
{
    enum { ENOUGH = 64 };
    const size_t size = QN_MIN(source->map.size, (size_t)ENOUGH);
    for (size_t i = 0; i < size; i++) {
        if (!is_printable(source->map.data[i]))
            return false;
    }
    return size > 0;
}

static bool is_word(uint8_t c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool qn_detect_word(const qn_model_source *source, const char *word, char after)
{
    const uint8_t *text = source->map.data;
    const size_t length = strlen(word), size = QN_MIN(source->map.size, (size_t)MOST_TEXT);
    if (!qn_detect_text(source))
        return false;
    for (size_t i = 0; i + length <= size; i++) {
        if (memcmp(text + i, word, length) != 0 || (i > 0 && is_word(text[i - 1])))
            continue;
        size_t end = i + length;
        if (end < size && is_word(text[end]))
            continue;
        while (end < size && (text[end] == ' ' || text[end] == '\t'))
            end++;
        if (!after || (end < size && text[end] == (uint8_t)after))
            return true;
    }
    return false;
}

bool qn_detect_zipped(const qn_model_source *source, const char *ending)
{
    const size_t length = strlen(ending);
    qn_zip zip;
    qn_zip_entry entry;
    qn_zip_cursor cursor = {0, 0};
    bool more = qn_zip_is_archive(source->map.data, source->map.size) &&
                qn_zip_open(&zip, source->ctx, source->map.data, source->map.size) == QN_OK;
    while (more && qn_zip_next(&entry, &more, &cursor, &zip) == QN_OK && more) {
        if (entry.name.length >= length &&
            memcmp(entry.name.text + entry.name.length - length, ending, length) == 0)
            return true;
    }
    return false;
}

bool qn_detect_in_folder(const qn_model_source *source, const char *name)
{
    struct stat info;
    char path[4096];
    if (!source->is_folder ||
        snprintf(path, sizeof path, "%s/%s", source->path, name) >= (int)sizeof path)
        return false;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool qn_detect_ending(const qn_model_source *source, const char *ending)
{
    const size_t length = strlen(source->path), own = strlen(ending);
    return length >= own && strcmp(source->path + length - own, ending) == 0;
}

/* ---- Protocol buffers ------------------------------------------------------------------------ */

typedef struct wire_field {
    uint32_t number;
    int type;
    /* The bytes of a field that holds bytes */
    qn_string contents;
} wire_field;

static bool take_varint(uint64_t *out, qn_string *rest)
{
    enum { MOST_BYTES = 10 };
    *out = 0;
    for (unsigned i = 0; i < MOST_BYTES && rest->length; i++) {
        const uint8_t byte = (uint8_t)*rest->text;
        *out |= (uint64_t)(byte & 0x7f) << 7 * i;
        rest->text++;
        rest->length--;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool take_bytes(qn_string *out, qn_string *rest, uint64_t length)
{
    if (length > rest->length)
        return false;
    *out = (qn_string){rest->text, (size_t)length};
    rest->text += length;
    rest->length -= (size_t)length;
    return true;
}

/* False where the rest does not begin with a whole field. */
static bool take_field(wire_field *out, qn_string *rest)
{
    uint64_t tag, number;
    qn_string skipped;
    *out = (wire_field){.number = 0};
    if (!take_varint(&tag, rest) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX)
        return false;
    out->number = (uint32_t)(tag >> 3);
    out->type = (int)(tag & 7);
    switch (out->type) {
    case QN_WIRE_VARINT: return take_varint(&number, rest);
    case QN_WIRE_FIXED64: return take_bytes(&skipped, rest, 8);
    case QN_WIRE_FIXED32: return take_bytes(&skipped, rest, 4);
    case QN_WIRE_BYTES:
        return take_varint(&number, rest) && take_bytes(&out->contents, rest, number);
    default: return false;
    }
}

bool qn_detect_message(qn_string bytes, const qn_wire_rule *rules, size_t count)
{
    uint64_t seen = 0; /* a bit for each rule */
    wire_field field;
    if (bytes.length == 0)
        return false;
    while (bytes.length) {
        size_t r = 0;
        if (!take_field(&field, &bytes))
            return false;
        while (r < count && (rules[r].number != field.number || rules[r].type != field.type))
            r++;
        if (r == count)
            return false;
        seen |= UINT64_C(1) << r;
    }
    for (size_t r = 0; r < count; r++) {
        if (rules[r].must && !(seen >> r & 1))
            return false;
    }
    return true;
}

qn_string qn_detect_field(qn_string bytes, uint32_t number)
{
    wire_field field;
    while (bytes.length && take_field(&field, &bytes)) {
        if (field.number == number && field.type == QN_WIRE_BYTES)
            return field.contents;
    }
    return (qn_string){"", 0};
}
