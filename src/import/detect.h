/* What files of a framework look like: small questions that importers ask about a source before
 * anything is parsed. All answers are guesses from a few bytes; none fails. */
#ifndef QN_DETECT_H
#define QN_DETECT_H

#include "import/import.h"

/* Whether these bytes stand at that place of the file. */
bool qn_detect_bytes(const qn_model_source *source, size_t at, const void *bytes, size_t size);
/* Whether the file begins with printable text. */
bool qn_detect_text(const qn_model_source *source);
/* Whether a text has the word in its first part, whole and followed by `after`, with or without
 * blanks between; '\0': by anything. */
bool qn_detect_word(const qn_model_source *source, const char *word, char after);
/* Whether the file is a zip archive that has an entry whose name ends so. */
bool qn_detect_zipped(const qn_model_source *source, const char *ending);
/* Whether the source is a folder that has a file of that name. */
bool qn_detect_in_folder(const qn_model_source *source, const char *name);
bool qn_detect_ending(const qn_model_source *source, const char *ending);

/* ---- Protocol buffers ------------------------------------------------------------------------ */

enum { QN_WIRE_VARINT = 0, QN_WIRE_FIXED64 = 1, QN_WIRE_BYTES = 2, QN_WIRE_FIXED32 = 5 };

/* A field that a message may have, or must. */
typedef struct qn_wire_rule {
    uint32_t number;
    int type;
    bool must;
} qn_wire_rule;

/* Whether the bytes are a message of these fields, by ascending number, and no others. The contents
 * of fields are not looked at. */
bool qn_detect_message(qn_string bytes, const qn_wire_rule *rules, size_t count);
/* The contents of the first field of that number, which holds bytes; empty where there is none. */
qn_string qn_detect_field(qn_string bytes, uint32_t number);

#endif
