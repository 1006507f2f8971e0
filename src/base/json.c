/* JSON values and files, over jansson. */
#include "base/json.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"

enum { DIGITS = 9 };

qn_json *qn_json_object(void)
{
    return json_object();
}

qn_json *qn_json_array(void)
{
    return json_array();
}

qn_json *qn_json_text(qn_context *ctx, const char *text)
{
    json_t *plain = json_string(text);
    if (plain)
        return plain;
    qn_text repaired;
    char *valid;
    qn_text_init(&repaired, ctx);
    for (size_t left = strlen(text); left > 0;) {
        const size_t length = qn_utf8_length(text, left);
        if (length)
            qn_text_add(&repaired, text, length);
        else
            qn_text_add(&repaired, "\xef\xbf\xbd", 3);
        text += QN_MAX(length, 1);
        left -= QN_MAX(length, 1);
    }
    if (qn_text_take(&valid, &repaired) != QN_OK)
        return NULL;
    plain = json_string(valid);
    qn_text_free(ctx, valid);
    return plain;
}

qn_json *qn_json_int(int64_t value)
{
    return json_integer(value);
}

qn_json *qn_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* The text of a float has at most 9 digits, so those of the double next to it are the same. */
qn_json *qn_json_float(float value)
{
    char text[QN_NUMBER_SIZE];
    double nearest = (double)value;
    qn_number_format_float(text, value);
    qn_number_parse(&nearest, text, strlen(text));
    return qn_json_real(nearest);
}

qn_json *qn_json_bool(bool value)
{
    return json_boolean(value);
}

bool qn_json_set(qn_json *object, const char *key, qn_json *value)
{
    return json_object_set_new(object, key, value) == 0;
}

bool qn_json_push(qn_json *array, qn_json *value)
{
    return json_array_append_new(array, value) == 0;
}

static int add_to_text(const char *bytes, size_t count, void *user)
{
    qn_text *text = user;
    qn_text_add(text, bytes, count);
    return text->failed ? -1 : 0;
}

static qn_status write_as(char **out, qn_context *ctx, const qn_json *json, size_t flags,
                          const char *end)
{
    qn_text text;
    qn_text_init(&text, ctx);
    if (json_dump_callback(json, add_to_text, &text, flags | JSON_REAL_PRECISION(DIGITS)) != 0)
        text.failed = true;
    qn_text_add(&text, end, strlen(end));
    return qn_text_take(out, &text);
}

qn_status qn_json_write(char **out, qn_context *ctx, const qn_json *json)
{
    return write_as(out, ctx, json, JSON_INDENT(2), "\n");
}

qn_status qn_json_write_line(char **out, qn_context *ctx, const qn_json *json)
{
    return write_as(out, ctx, json, JSON_COMPACT, "");
}

void qn_json_free(qn_json *json)
{
    json_decref(json);
}
