/* Reading JSON. jansson forgets where in the text an item stood; it is looked up again, by the way
 * to the item, when there is something to say of it. */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"

struct qn_json_document {
    qn_context *ctx;
    /* The name of the file */
    const char *name;
    const char *text;
    size_t size;
    json_t *root;
    /* The text, of a file */
    qn_map map;
    /* The text without what was left out; NULL: nothing was */
    char *slim;
    /* Bytes of the text that the parser makes something of */
    size_t weight;
    qn_arena arena;
};

/* ---- Where something stands in the text ------------------------------------------------------ */

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

/* The place behind the string that begins at `at`. */
static size_t skip_string(const qn_json_document *d, size_t at)
{
    for (at++; at < d->size && d->text[at] != '"'; at++)
        at += d->text[at] == '\\';
    return QN_MIN(at + 1, d->size);
}

/* The place behind the item that begins at `at`. */
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

/* The place behind a member's key and colon. */
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

/* ---- Saying what is wrong -------------------------------------------------------------------- */

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

/* ---- Parsing --------------------------------------------------------------------------------- */

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

qn_context *qn_json_context(const qn_json_document *document)
{
    return document->ctx;
}

qn_json_place qn_json_root(const qn_json_document *document)
{
    return (qn_json_place){.document = document, .item = document->root};
}
