/* Text that grows. */
#ifndef QN_TEXT_H
#define QN_TEXT_H

#include "base/base.h"

/* Like a report it remembers that memory was short; qn_text_take says so. */
typedef struct qn_text {
    qn_context *ctx;
    /* Not terminated */
    char *at;
    size_t length, capacity;
    bool failed;
} qn_text;

void qn_text_init(qn_text *text, qn_context *ctx);
void qn_text_add(qn_text *text, const char *bytes, size_t count);
void qn_text_fill(qn_text *text, char c, size_t count);
/* The text, terminated, for whoever frees it with qn_text_free; or QN_E_NOMEM and nothing left. */
QN_MUST_CHECK qn_status qn_text_take(char **out, qn_text *text);

/* Length of the UTF-8 sequence at bytes[0..count), or 0 where there is no valid one. */
size_t qn_utf8_length(const char *bytes, size_t count);
bool qn_text_is_utf8(const char *text);
/* The next letter of a text that comes from a file, as UTF-8, with "?" for all that a terminal
 * would obey; *text moves on. Returns its length. */
size_t qn_text_letter(const char **letter, const char **text);
/* The same for a whole text, in its place. */
void qn_text_clean(char *text);

#endif
