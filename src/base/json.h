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
qn_json *qn_json_real(double value);
qn_json *qn_json_bool(bool value);
/* Takes `value`, also on failure: false when it is NULL or memory is short. */
bool qn_json_set(qn_json *object, const char *key, qn_json *value);
bool qn_json_push(qn_json *array, qn_json *value);
/* The document, indented and with a newline at the end; freed with qn_text_free. */
QN_MUST_CHECK qn_status qn_json_write(char **out, qn_context *ctx, const qn_json *json);
void qn_json_free(qn_json *json);

#endif
