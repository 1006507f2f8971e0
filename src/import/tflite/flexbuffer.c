/* A number out of a flexbuffer, every place checked. */
#include "import/tflite/flexbuffer.h"

#include <string.h>

enum { FLEX_INT = 1, FLEX_UINT = 2, FLEX_FLOAT = 3, FLEX_INDIRECT_INT = 6, FLEX_MAP = 9 };
enum { FLEX_INDIRECT_UINT = 7, FLEX_INDIRECT_FLOAT = 8, FLEX_BOOL = 26 };

/* Bytes from the begin on; what lies outside is 0. */
static uint64_t number_at(qn_string bytes, size_t at, size_t width)
{
    uint64_t value = 0;
    if (at > bytes.length || width > bytes.length - at)
        return 0;
    for (size_t i = 0; i < width; i++)
        value |= (uint64_t)(unsigned char)bytes.text[at + i] << (8 * i);
    return value;
}

/* What stands `offset` bytes in front of a place; past the end where there is no such place. */
static size_t behind(qn_string bytes, size_t at, size_t width)
{
    const uint64_t offset = number_at(bytes, at, width);
    return offset <= at ? at - (size_t)offset : bytes.length;
}

static double signed_number(uint64_t value, size_t width)
{
    const unsigned unused = 64 - 8 * (unsigned)width;
    return (double)((int64_t)(value << unused) >> unused);
}

static double real_number(uint64_t value, size_t width)
{
    const uint32_t bits = (uint32_t)value;
    double wide = 0;
    float narrow = 0;
    if (width == 8)
        memcpy(&wide, &value, sizeof wide);
    if (width == 4)
        memcpy(&narrow, &bits, sizeof narrow);
    return width == 8 ? wide : (double)narrow;
}

/* The number at a place of `width` bytes, whose type says how to read it: kind, and the width of
 * what it points to. */
static double read_number(qn_string bytes, size_t at, size_t width, unsigned type)
{
    const unsigned kind = type >> 2;
    if (kind == FLEX_INDIRECT_INT || kind == FLEX_INDIRECT_UINT || kind == FLEX_INDIRECT_FLOAT) {
        at = behind(bytes, at, width);
        width = (size_t)1 << (type & 3);
    }
    const uint64_t value = number_at(bytes, at, width);
    switch (kind) {
    case FLEX_INT:
    case FLEX_INDIRECT_INT: return signed_number(value, width);
    case FLEX_UINT:
    case FLEX_INDIRECT_UINT:
    case FLEX_BOOL: return (double)value;
    case FLEX_FLOAT:
    case FLEX_INDIRECT_FLOAT: return real_number(value, width);
    }
    return 0;
}

static bool is_key(qn_string bytes, size_t at, const char *key)
{
    const size_t length = strlen(key) + 1;
    return at <= bytes.length && length <= bytes.length - at &&
           memcmp(bytes.text + at, key, length) == 0;
}

/* A map stands behind the place of its keys, their width and its size; its numbers are followed by
 * their types. At the end of all are the map's offset, its type and the offset's width. */
double qn_flex_number(qn_string bytes, const char *key, double otherwise)
{
    if (bytes.length < 3)
        return otherwise;
    const size_t root = (unsigned char)bytes.text[bytes.length - 1];
    const unsigned type = (unsigned char)bytes.text[bytes.length - 2];
    if (type >> 2 != FLEX_MAP || root < 1 || root > 8 || bytes.length < 2 + root)
        return otherwise;
    const size_t width = (size_t)1 << (type & 3);
    const size_t map = behind(bytes, bytes.length - 2 - root, root);
    if (map >= bytes.length || map < 3 * width)
        return otherwise;
    const uint64_t count = number_at(bytes, map - width, width);
    const size_t key_width = (size_t)number_at(bytes, map - 2 * width, width);
    const size_t keys = behind(bytes, map - 3 * width, width);
    if (count > bytes.length / (width + 1) || key_width < 1 || key_width > 8)
        return otherwise;
    for (size_t i = 0; i < count; i++) {
        if (is_key(bytes, behind(bytes, keys + i * key_width, key_width), key))
            return read_number(bytes, map + i * width, width,
                               (unsigned)number_at(bytes, map + (size_t)count * width + i, 1));
    }
    return otherwise;
}
