/* Reading JSON. jansson forgets where in the text an item stood; it is looked up again, by the way to the item,
 * when there is something to say of it. */
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "base/text.h"

struct qn_json_document {
    qn_context *ctx;
    const char *name; /* of the file */
    const char *text;
    size_t size;
    json_t *root;
    qn_map map;    /* of a file: the text */
    char *slim;    /* the text without what was left out; NULL: nothing was */
    size_t weight; /* bytes of the text that the parser makes something of */
    qn_arena arena;
};

/* ---- Where something stands in the text --------------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t skip_space(const qn_json_document *d, size_t at)
{
    while (at < d->size && is_space(d->text[at]))
        at++;
    return at;
}

/* Behind the string that begins at `at`. */
static size_t skip_string(const qn_json_document *d, size_t at)
{
    for (at++; at < d->size && d->text[at] != '"'; at++)
        at += d->text[at] == '\\';
    return QN_MIN(at + 1, d->size);
}

/* Behind the item that begins at `at`. */
static size_t skip_item(const qn_json_document *d, size_t at)
{
    size_t depth = 0;
    while (at < d->size) {
        const char c = d->text[at];
        if (depth == 0 && (c == ',' || c == ']' || c == '}' || is_space(c)))
            return at;
        depth += c == '[' || c == '{';
        if (c == ']' || c == '}')
            depth--;
        at = c == '"' ? skip_string(d, at) : at + 1;
        if (depth == 0 && (c == '"' || c == ']' || c == '}'))
            return at;
    }
    return at;
}

/* Behind a member's key and colon. */
static size_t skip_key(const qn_json_document *d, size_t at)
{
    at = skip_space(d, skip_string(d, at));
    return skip_space(d, QN_MIN(at + 1, d->size));
}

static size_t ordinal(const qn_json_place *place)
{
    size_t n = 0;
    json_t *object = (json_t *)(uintptr_t)place->parent->item;
    if (!place->key)
        return place->index;
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i), n++) {
        if (strcmp(json_object_iter_key(i), place->key) == 0)
            break;
    }
    return n;
}

static size_t offset_of(const qn_json_place *place)
{
    const qn_json_document *d = place->document;
    if (!place->parent)
        return skip_space(d, 0);
    size_t at = skip_space(d, offset_of(place->parent) + 1);
    for (size_t left = ordinal(place);; left--) {
        const size_t item = place->key ? skip_key(d, at) : at;
        if (left == 0)
            return QN_MIN(item, d->size);
        at = skip_space(d, skip_item(d, item));
        at = skip_space(d, QN_MIN(at + 1, d->size));
    }
}

/* Both from 1 on; columns count characters. */
static void position_of(long long *line, long long *column, const qn_json_document *d,
                        size_t offset)
{
    *line = *column = 1;
    for (size_t i = 0; i < QN_MIN(offset, d->size); i++) {
        if (d->text[i] == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)d->text[i] & 0xC0) != 0x80) {
            ++*column;
        }
    }
}

char *qn_json_excerpt(qn_arena *arena, const qn_json_place *place)
{
    const qn_json_document *d = place->document;
    const size_t start = offset_of(place), end = skip_item(d, start);
    char *out = qn_arena_alloc(arena, end + 1);
    size_t length = 0;
    for (size_t i = 0; out && i < end; i++) {
        const char c = d->text[i];
        if (i >= start || c == '\n')
            out[length++] = c;
        else if (((unsigned char)c & 0xC0) != 0x80)
            out[length++] = ' ';
    }
    if (out)
        out[length] = '\0';
    return out;
}

/* ---- Saying what is wrong ------------------------------------------------------------------------------------- */

/* "tensors["conv/1"].scale[3]"; what does not fit is left out. */
static void path_of(char *out, size_t size, const qn_json_place *place)
{
    if (!place->parent) {
        out[0] = 0;
        return;
    }
    path_of(out, size, place->parent);
    const size_t used = strlen(out);
    bool plain = place->key && place->key[0];
    for (const char *c = place->key; plain && *c; c++)
        plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
                *c == '_' || *c == '-';
    if (plain)
        snprintf(out + used, size - used, "%s%s", used ? "." : "", place->key);
    else if (place->key)
        snprintf(out + used, size - used, "[\"%s\"]", place->key);
    else
        snprintf(out + used, size - used, "[%zu]", place->index);
}

static void where_at(char *out, size_t size, const qn_json_place *place, size_t offset)
{
    char path[512];
    long long line, column;
    const qn_json_document *d = place->document;
    path_of(path, sizeof path, place);
    position_of(&line, &column, d, offset);
    snprintf(out, size, "%s:%lld:%lld%s%s", d->name, line, column, path[0] ? ": " : "", path);
}

const char *qn_json_where(char *out, size_t size, const qn_json_place *place)
{
    where_at(out, size, place, offset_of(place));
    return out;
}

static qn_status fail_at(const qn_json_place *place, qn_status status, size_t offset,
                         const char *message)
{
    char where[QN_ERROR_SIZE];
    where_at(where, sizeof where, place, offset);
    return qn_fail(place->document->ctx, status, "%s: %s", where, message);
}

qn_status qn_json_fail(const qn_json_place *place, qn_status status, const char *format, ...)
{
    char message[QN_ERROR_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return fail_at(place, status, offset_of(place), message);
}

static const char *kind_of(const qn_json *item)
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",  [JSON_STRING] = "a text",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };
    return kinds[json_typeof(item)];
}

static qn_status fail_kind(const qn_json_place *place, const char *wanted)
{
    return qn_json_fail(place, QN_E_FORMAT, "is %s, not %s", kind_of(place->item), wanted);
}

/* ---- Parsing -------------------------------------------------------------------------------------------------- */

/* The parser goes down the stack with every level. */
static qn_status check_depth(const qn_json_document *d)
{
    size_t depth = 0;
    for (size_t i = 0; i < d->size;) {
        const char c = d->text[i];
        depth += c == '[' || c == '{';
        if (depth > QN_JSON_DEPTH)
            return fail_at(&(qn_json_place){.document = d}, QN_E_FORMAT, i,
                           "lists and objects are nested too deep");
        if ((c == ']' || c == '}') && depth > 0)
            depth--;
        i = c == '"' ? skip_string(d, i) : i + 1;
    }
    return QN_OK;
}

static qn_status parse(qn_json_document *d)
{
    json_error_t error;
    const size_t most = d->slim ? QN_JSON_SLIM_BYTES : QN_JSON_BYTES;
    const size_t weight = d->slim ? d->weight : d->size;
    if (weight > most || d->size > INT32_MAX)
        return qn_fail(d->ctx, QN_E_FORMAT, "%s: %zu bytes are too many: %zu are the most", d->name,
                       weight, most);
    if (d->size >= 3 && memcmp(d->text, "\xef\xbb\xbf", 3) == 0) { /* some editors begin so */
        d->text += 3;
        d->size -= 3;
    }
    QN_TRY(check_depth(d));
    d->root = json_loadb(d->text ? d->text : "", d->size, JSON_REJECT_DUPLICATES, &error);
    if (d->root)
        return QN_OK;
    if (json_error_code(&error) == json_error_out_of_memory)
        return qn_fail_nomem(d->ctx);
    /* The last character that was read. */
    return fail_at(&(qn_json_place){.document = d}, QN_E_FORMAT,
                   error.position > 0 ? (size_t)error.position - 1 : 0, error.text);
}

static qn_status document_create(qn_json_document **out, qn_context *ctx, const char *name)
{
    qn_json_document *d = qn_alloc_zero(ctx, 1, sizeof *d);
    *out = d;
    QN_TRY_ALLOC(ctx, d);
    d->ctx = ctx;
    qn_arena_init(&d->arena, &ctx->allocator);
    d->name = qn_arena_text(&d->arena, name, strlen(name));
    QN_TRY_ALLOC(ctx, d->name);
    return QN_OK;
}

static qn_status finish(qn_json_document **out, qn_json_document *d, qn_status status)
{
    if (status == QN_OK)
        status = parse(d);
    if (status == QN_OK)
        *out = d;
    else
        qn_json_document_free(d);
    return status;
}

qn_status qn_json_read(qn_json_document **out, qn_context *ctx, const void *data, size_t size,
                       const char *name)
{
    qn_json_document *d;
    *out = NULL;
    const qn_status status = document_create(&d, ctx, name);
    if (status == QN_OK) {
        d->text = data;
        d->size = size;
    }
    return finish(out, d, status);
}

static qn_status open_file(qn_json_document **out, qn_context *ctx, const char *path)
{
    QN_TRY(document_create(out, ctx, path));
    QN_TRY(qn_map_open(&(*out)->map, ctx, path));
    (*out)->text = (const char *)(*out)->map.data;
    (*out)->size = (*out)->map.size;
    return QN_OK;
}

qn_status qn_json_load(qn_json_document **out, qn_context *ctx, const char *path)
{
    qn_json_document *d = NULL;
    *out = NULL;
    const qn_status status = open_file(&d, ctx, path);
    return finish(out, d, status);
}

/* Where the value of the member begins whose key stands at `at`, if it is this one; else 0. */
static size_t value_of(const qn_json_document *d, size_t at, size_t end, const char *key)
{
    const size_t length = strlen(key);
    if (end - at != length + 2 || memcmp(d->text + at + 1, key, length) != 0)
        return 0;
    const size_t colon = skip_space(d, end);
    return colon < d->size && d->text[colon] == ':' ? skip_space(d, colon + 1) : 0;
}

/* 0 and blanks in the place of every value of `key`: all else stands where it stood. */
static qn_status make_slim(qn_json_document *d, const char *key)
{
    d->slim = qn_alloc(d->ctx, d->size + 1);
    QN_TRY_ALLOC(d->ctx, d->slim);
    memcpy(d->slim, d->text ? d->text : "", d->size);
    d->weight = d->size;
    for (size_t at = 0; at < d->size;) {
        if (d->text[at] != '"') {
            at++;
            continue;
        }
        const size_t end = skip_string(d, at), value = value_of(d, at, end, key);
        at = value ? QN_MAX(skip_item(d, value), value) : end;
        if (value >= d->size || !value)
            continue;
        for (size_t i = value; i < at; i++)
            d->slim[i] = i == value ? '0' : d->text[i] == '\n' ? '\n' : ' ';
        d->weight -= at - value;
    }
    d->text = d->slim;
    return QN_OK;
}

qn_status qn_json_load_without(qn_json_document **out, qn_context *ctx, const char *path,
                               const char *key)
{
    qn_json_document *d = NULL;
    *out = NULL;
    qn_status status = open_file(&d, ctx, path);
    if (status == QN_OK)
        status = make_slim(d, key);
    return finish(out, d, status);
}

void qn_json_document_free(qn_json_document *document)
{
    if (!document)
        return;
    qn_context *ctx = document->ctx;
    json_decref(document->root);
    qn_map_close(&document->map);
    qn_free(ctx, document->slim);
    qn_arena_free(&document->arena);
    qn_free(ctx, document);
}

/* ---- Items ------------------------------------------------------------------------------------------------------ */

qn_json_place qn_json_root(const qn_json_document *document)
{
    return (qn_json_place){.document = document, .item = document->root};
}

bool qn_json_find(qn_json_place *out, const qn_json_place *object, const char *key)
{
    *out = (qn_json_place){.document = object->document,
                           .item = json_object_get(object->item, key),
                           .parent = object,
                           .key = key};
    return out->item != NULL;
}

qn_status qn_json_member(qn_json_place *out, const qn_json_place *object, const char *key)
{
    if (!json_is_object(object->item))
        return fail_kind(object, "an object");
    if (!qn_json_find(out, object, key))
        return qn_json_fail(object, QN_E_FORMAT, "has no \"%s\"", key);
    return QN_OK;
}

qn_status qn_json_members(size_t *count, const qn_json_place *object)
{
    if (!json_is_object(object->item))
        return fail_kind(object, "an object");
    *count = json_object_size(object->item);
    return QN_OK;
}

bool qn_json_next(qn_json_place *out, const qn_json_place *object, void **iterator)
{
    json_t *item = (json_t *)(uintptr_t)object->item;
    *iterator = *iterator ? json_object_iter_next(item, *iterator) : json_object_iter(item);
    if (!*iterator)
        return false;
    *out = (qn_json_place){.document = object->document,
                           .item = json_object_iter_value(*iterator),
                           .parent = object,
                           .key = json_object_iter_key(*iterator)};
    return true;
}

qn_status qn_json_only(const qn_json_place *object, const char *const *keys)
{
    qn_json_place member;
    size_t count;
    QN_TRY(qn_json_members(&count, object));
    for (void *i = NULL; qn_json_next(&member, object, &i);) {
        size_t k = 0;
        while (keys[k] && strcmp(keys[k], member.key) != 0)
            k++;
        if (!keys[k])
            return qn_json_fail(&member, QN_E_FORMAT, "nothing of this name is known here");
    }
    return QN_OK;
}

qn_status qn_json_length(size_t *count, const qn_json_place *list)
{
    if (!json_is_array(list->item))
        return fail_kind(list, "a list");
    *count = json_array_size(list->item);
    return QN_OK;
}

qn_json_place qn_json_element(const qn_json_place *list, size_t i)
{
    return (qn_json_place){.document = list->document,
                           .item = json_array_get(list->item, i),
                           .parent = list,
                           .index = i};
}

bool qn_json_is_object(const qn_json_place *place)
{
    return json_is_object(place->item);
}

bool qn_json_is_text(const qn_json_place *place)
{
    return json_is_string(place->item);
}

bool qn_json_is_bool(const qn_json_place *place)
{
    return json_is_boolean(place->item);
}

bool qn_json_is_int(const qn_json_place *place)
{
    return json_is_integer(place->item);
}

bool qn_json_is_list(const qn_json_place *place)
{
    return json_is_array(place->item);
}

qn_status qn_json_get_text(const char **out, const qn_json_place *place)
{
    if (!json_is_string(place->item))
        return fail_kind(place, "a text");
    *out = json_string_value(place->item);
    return QN_OK;
}

qn_status qn_json_member_text(const char **out, const qn_json_place *object, const char *key)
{
    qn_json_place item = *object;
    QN_TRY(qn_json_member(&item, object, key));
    return qn_json_get_text(out, &item);
}

qn_status qn_json_member_copy(const char **out, qn_arena *arena, const qn_json_place *object,
                              const char *key)
{
    const char *text = NULL;
    QN_TRY(qn_json_member_text(&text, object, key));
    *out = qn_arena_text(arena, text, strlen(text));
    QN_TRY_ALLOC(object->document->ctx, *out);
    return QN_OK;
}

qn_status qn_json_get_int(int64_t *out, const qn_json_place *place, int64_t least, int64_t most)
{
    const int64_t value = json_integer_value(place->item);
    if (!json_is_integer(place->item))
        return fail_kind(place, "a whole number");
    if (value < least || value > most)
        return qn_json_fail(place, QN_E_FORMAT, "is %lld: it must be from %lld to %lld",
                            (long long)value, (long long)least, (long long)most);
    *out = value;
    return QN_OK;
}

qn_status qn_json_get_bool(bool *out, const qn_json_place *place)
{
    if (!json_is_boolean(place->item))
        return fail_kind(place, "true or false");
    *out = json_is_true(place->item);
    return QN_OK;
}

qn_status qn_json_get_double(double *out, const qn_json_place *place)
{
    if (!json_is_number(place->item))
        return fail_kind(place, "a number");
    *out = json_number_value(place->item);
    return QN_OK;
}

qn_status qn_json_get_float(float *out, const qn_json_place *place)
{
    double value = 0;
    QN_TRY(qn_json_get_double(&value, place));
    *out = (float)value;
    if (!isfinite(*out))
        return qn_json_fail(place, QN_E_FORMAT, "is too large for a float");
    return QN_OK;
}
