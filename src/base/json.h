/* JSON values: the one place that knows jansson. */
#ifndef QN_JSON_H
#define QN_JSON_H

#include "base/base.h"

typedef struct json_t qn_json;

/* NULL when memory is short. Bytes of a text that are no UTF-8 become U+FFFD, numbers that are none
 * null. */
qn_json *qn_json_object(void);
qn_json *qn_json_array(void);
qn_json *qn_json_text(qn_context *ctx, const char *text);
qn_json *qn_json_int(int64_t value);
qn_json *qn_json_real(double value); /* 9 digits of it are written */
qn_json *qn_json_float(float value); /* as few digits as read back to the same float */
qn_json *qn_json_bool(bool value);
/* Takes `value`, also on failure: false when it is NULL or memory is short. */
bool qn_json_set(qn_json *object, const char *key, qn_json *value);
bool qn_json_push(qn_json *array, qn_json *value);
/* The document, indented and with a newline at the end; freed with qn_text_free. */
QN_MUST_CHECK qn_status qn_json_write(char **out, qn_context *ctx, const qn_json *json);
/* Writes it without any blank or newline. */
QN_MUST_CHECK qn_status qn_json_write_line(char **out, qn_context *ctx, const qn_json *json);
void qn_json_free(qn_json *json);

/* ---- Reading ------------------------------------------------------------------------------------
 * Whatever is wrong with a document, its text or what it says, is reported with file, line, column
 * and the way to the item: "scales.json:12:17: tensors.conv1.scale[3]: is a text, not a number".
 * Status QN_E_FORMAT. */

enum { QN_JSON_DEPTH = 64, QN_JSON_BYTES = 64 << 20, QN_JSON_SLIM_BYTES = 512 << 20 };

typedef struct qn_json_document qn_json_document;

/* The text must outlive the document; `name` is for messages. An object with the same key twice is
 * refused, and so is a text larger or nested deeper than the limits. */
QN_MUST_CHECK qn_status qn_json_read(qn_json_document **out, qn_context *ctx, const void *data,
                                     size_t size, const char *name);
QN_MUST_CHECK qn_status qn_json_load(qn_json_document **out, qn_context *ctx, const char *path);
/* A large file whose members of this key nobody wants: 0 stands for them, and only what is left has
 * to be within the limit, which is larger. Files of up to 2 GiB. */
QN_MUST_CHECK qn_status qn_json_load_without(qn_json_document **out, qn_context *ctx,
                                             const char *path, const char *key);
void qn_json_document_free(qn_json_document *document);

/* An item and the way to it. It points to the place that it was found from, which must live as
 * long. */
typedef struct qn_json_place {
    const qn_json_document *document;
    const qn_json *item;
    /* The place that it lies in; NULL: it is the whole document. */
    const struct qn_json_place *parent;
    /* The key in an object; NULL: it lies in a list. */
    const char *key;
    /* The index in a list. */
    size_t index;
} qn_json_place;

/* The context that it was read with, which has the messages. */
qn_context *qn_json_context(const qn_json_document *document);
qn_json_place qn_json_root(const qn_json_document *document);
/* A message about the item. Returns `status`. */
QN_MUST_CHECK qn_status qn_json_fail(const qn_json_place *place, qn_status status,
                                     const char *format, ...) QN_PRINTF(3, 4);

/* "scales.json:12:17: tensors.conv1.scale[3]". Returns `out`. */
const char *qn_json_where(char *out, size_t size, const qn_json_place *place);
/* The item's text in `arena`, behind as many lines and blanks as it has before it: as a document of
 * its own it stands where it stood. NULL when memory is short. */
char *qn_json_excerpt(qn_arena *arena, const qn_json_place *place);

bool qn_json_is_null(const qn_json_place *place);
bool qn_json_is_object(const qn_json_place *place);
bool qn_json_is_text(const qn_json_place *place);
bool qn_json_is_bool(const qn_json_place *place);
bool qn_json_is_int(const qn_json_place *place);

/* False where there is none (or no object). */
bool qn_json_find(qn_json_place *out, const qn_json_place *object, const char *key);
/* The same for a member that must be there. */
QN_MUST_CHECK qn_status qn_json_member(qn_json_place *out, const qn_json_place *object,
                                       const char *key);
QN_MUST_CHECK qn_status qn_json_members(size_t *count, const qn_json_place *object);
/* All members in the order of the text: *iterator begins as NULL; false past the last. */
bool qn_json_next(qn_json_place *out, const qn_json_place *object, void **iterator);
/* Fails at a member whose key is none of these (the last is NULL). */
QN_MUST_CHECK qn_status qn_json_only(const qn_json_place *object, const char *const *keys);
bool qn_json_is_list(const qn_json_place *place);
QN_MUST_CHECK qn_status qn_json_length(size_t *count, const qn_json_place *list);
qn_json_place qn_json_element(const qn_json_place *list, size_t i);

/* The text lives as long as the document. */
QN_MUST_CHECK qn_status qn_json_get_text(const char **out, const qn_json_place *place);
/* The text of a member that must be there; and a copy of it. */
QN_MUST_CHECK qn_status qn_json_member_text(const char **out, const qn_json_place *object,
                                            const char *key);
QN_MUST_CHECK qn_status qn_json_member_copy(const char **out, qn_arena *arena,
                                            const qn_json_place *object, const char *key);
QN_MUST_CHECK qn_status qn_json_get_int(int64_t *out, const qn_json_place *place, int64_t least,
                                        int64_t most);
QN_MUST_CHECK qn_status qn_json_get_bool(bool *out, const qn_json_place *place);
QN_MUST_CHECK qn_status qn_json_get_double(double *out, const qn_json_place *place);
/* What qn_json_float wrote reads back as the same float. */
QN_MUST_CHECK qn_status qn_json_get_float(float *out, const qn_json_place *place);

#endif
