/* Text that grows. */
#include "base/text.h"

#include <string.h>

void qn_text_init(qn_text *text, qn_context *ctx)
{
    *text = (qn_text){.ctx = ctx};
}

static char *text_room(qn_text *text, size_t count)
{
    size_t wanted;
    char *grown = NULL;
    if (!text->failed && qn_add_size(&wanted, text->length, count))
        grown = qn_grow(text->ctx, text->at, &text->capacity, wanted, 1);
    if (!grown) {
        text->failed = true;
        return NULL;
    }
    text->at = grown;
    text->length = wanted;
    return grown + wanted - count;
}

void qn_text_add(qn_text *text, const char *bytes, size_t count)
{
    char *room = text_room(text, count);
    if (room && count)
        memcpy(room, bytes, count);
}

void qn_text_fill(qn_text *text, char c, size_t count)
{
    char *room = text_room(text, count);
    if (room)
        memset(room, c, count);
}

qn_status qn_text_take(char **out, qn_text *text)
{
    qn_text_add(text, "", 1);
    *out = text->failed ? NULL : text->at;
    if (!text->failed)
        return QN_OK;
    qn_free(text->ctx, text->at);
    return qn_fail_nomem(text->ctx);
}

void qn_text_free(qn_context *ctx, char *text)
{
    qn_free(ctx, text);
}

/* Forms of two to four bytes: bits that the first byte has, and the least code that needs the form
 * (a longer form than needed is not valid). */
size_t qn_utf8_length(const char *bytes, size_t count)
{
    static const struct {
        uint8_t mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    const uint8_t *b = (const uint8_t *)bytes;
    for (size_t f = 0; f < QN_COUNT_OF(forms) && f < count; f++) {
        if ((b[0] & forms[f].mask) != forms[f].lead)
            continue;
        uint32_t code = b[0] & (uint8_t)~forms[f].mask;
        for (size_t i = 1; i <= f; i++) {
            if ((b[i] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (b[i] & 0x3f);
        }
        const bool surrogate = code >= 0xd800 && code < 0xe000;
        return code >= forms[f].least && code < 0x110000 && !surrogate ? f + 1 : 0;
    }
    return 0;
}

/* Control characters of ASCII, and those of Latin-1 (U+0080 to U+009F), which terminals know
 * too. */
static bool is_obeyed(const char *letter, size_t length)
{
    const uint8_t *b = (const uint8_t *)letter;
    return b[0] < 0x20 || b[0] == 0x7f || (length == 2 && b[0] == 0xc2 && b[1] < 0xa0);
}

bool qn_text_is_utf8(const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        const size_t length = qn_utf8_length(text, left);
        if (length == 0)
            return false;
        text += length;
        left -= length;
    }
    return true;
}

size_t qn_text_letter(const char **letter, const char **text)
{
    const size_t length = qn_utf8_length(*text, strnlen(*text, 4));
    const bool shown = length > 0 && !is_obeyed(*text, length);
    *letter = shown ? *text : "?";
    *text += QN_MAX(length, 1);
    return shown ? length : 1;
}

void qn_text_clean(char *text)
{
    const char *from = text, *letter;
    while (*from) {
        const size_t length = qn_text_letter(&letter, &from);
        memmove(text, letter, length);
        text += length;
    }
    *text = '\0';
}
