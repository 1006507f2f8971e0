/* Messages read from protobuf's text format. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "proto/tree.h"

typedef struct parser {
    qn_proto_tree *tree;
    const char *begin;
    const char *at;
    const char *end;
    int depth;
} parser;

static qn_status fail_at(const parser *p, const char *at, const char *format, ...) QN_PRINTF(3, 4);

static qn_status fail_at(const parser *p, const char *at, const char *format, ...)
{
    char what[256];
    size_t line = 1, column = 1;
    for (const char *c = p->begin; c < at; c++) {
        column = *c == '\n' ? 1 : column + 1;
        line += *c == '\n';
    }
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return qn_fail(p->tree->ctx, QN_E_FORMAT, "line %zu, column %zu: %s", line, column, what);
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

static void skip_space(parser *p)
{
    while (p->at < p->end && (isspace((unsigned char)*p->at) || *p->at == '#')) {
        if (*p->at == '#') {
            while (p->at < p->end && *p->at != '\n')
                p->at++;
        } else {
            p->at++;
        }
    }
}

/* The next character that is no space or comment; 0 at the end. */
static char peek(parser *p)
{
    skip_space(p);
    return p->at < p->end ? *p->at : 0;
}

static bool accept(parser *p, char c)
{
    const bool here = c != 0 && peek(p) == c;
    p->at += here;
    return here;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Letters, digits and '_'; empty when something else stands here. */
static qn_string take_word(parser *p)
{
    skip_space(p);
    const char *start = p->at;
    while (p->at < p->end && is_word(*p->at))
        p->at++;
    return (qn_string){start, (size_t)(p->at - start)};
}

/* A number with its sign; empty when something else stands here. */
static qn_string take_number(parser *p)
{
    skip_space(p);
    const char *start = p->at;
    if (p->at < p->end && *p->at == '-')
        p->at++;
    const char *digits = p->at;
    while (p->at < p->end) {
        const bool exponent_sign = (*p->at == '-' || *p->at == '+') && p->at > digits &&
                                   (p->at[-1] == 'e' || p->at[-1] == 'E');
        if (!is_word(*p->at) && *p->at != '.' && !exponent_sign)
            break;
        p->at++;
    }
    return (qn_string){start, (size_t)(p->at - start)};
}

static bool string_is(qn_string string, const char *text)
{
    return string.length == strlen(text) && memcmp(string.text, text, string.length) == 0;
}

/* For "%.*s" in messages. */
static int shown(qn_string string)
{
    return (int)QN_MIN(string.length, 60);
}

/* ---- Strings --------------------------------------------------------------------------------- */

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    const int low = tolower((unsigned char)c);
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : 99;
}

/* At most `longest` digits of `base`; returns how many there were. */
static int take_digits(uint32_t *out, parser *p, int base, int longest)
{
    int count = 0;
    *out = 0;
    for (; count < longest && p->at < p->end && digit_value(*p->at) < base; count++)
        *out = *out * (uint32_t)base + (uint32_t)digit_value(*p->at++);
    return count;
}

static size_t put_utf8(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const int extra = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead[extra] | code >> 6 * extra);
    for (int i = 1; i <= extra; i++)
        out[i] = (char)(0x80 | (code >> 6 * (extra - i) & 0x3f));
    return (size_t)extra + 1;
}

/* What follows a backslash; it never takes more bytes than its text. */
static qn_status take_escape(char *out, size_t *size, parser *p)
{
    static const char letters[] = "abfnrtv\\'\"?", meanings[] = "\a\b\f\n\r\t\v\\'\"?";
    const char *start = p->at - 1;
    const char c = p->at < p->end ? *p->at : 0;
    const char *letter = c ? strchr(letters, c) : NULL;
    uint32_t code;
    if (letter) {
        p->at++;
        out[(*size)++] = meanings[letter - letters];
        return QN_OK;
    }
    if (c >= '0' && c <= '7') {
        take_digits(&code, p, 8, 3);
        if (code > 0xff)
            return fail_at(p, start, "an octal escape is larger than a byte");
        out[(*size)++] = (char)code;
        return QN_OK;
    }
    p->at += p->at < p->end;
    if ((c == 'x' || c == 'X') && take_digits(&code, p, 16, 2) > 0) {
        out[(*size)++] = (char)code;
        return QN_OK;
    }
    const int digits = c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits && take_digits(&code, p, 16, digits) == digits && code < 0x110000) {
        *size += put_utf8(out + *size, code);
        return QN_OK;
    }
    return fail_at(p, start, "unknown escape in a string");
}

/* One quoted piece, appended to out. */
static qn_status take_quoted(char *out, size_t *size, parser *p)
{
    const char *start = p->at;
    const char quote = *p->at++;
    while (p->at < p->end && *p->at != quote && *p->at != '\n') {
        const char c = *p->at++;
        if (c == '\\')
            QN_TRY(take_escape(out, size, p));
        else
            out[(*size)++] = c;
    }
    if (p->at == p->end || *p->at != quote)
        return fail_at(p, start, "this string has no end");
    p->at++;
    return QN_OK;
}

/* Moves behind all adjacent quoted pieces without looking at escapes. */
static void skip_strings(parser *p)
{
    for (char quote = peek(p); quote == '"' || quote == '\''; quote = peek(p)) {
        for (p->at++; p->at < p->end && *p->at != quote; p->at++)
            p->at += *p->at == '\\' && p->at + 1 < p->end;
        p->at += p->at < p->end;
    }
}

static qn_status read_string(qn_string *out, parser *p)
{
    const char first = peek(p);
    const char *start = p->at;
    if (first != '"' && first != '\'') {
        *out = p->tree->is_lenient ? take_word(p) : (qn_string){"", 0};
        return out->length ? QN_OK : fail_at(p, start, "a string in quotes is expected");
    }
    skip_strings(p);
    char *text = qn_arena_alloc(&p->tree->arena, (size_t)(p->at - start));
    QN_TRY_ALLOC(p->tree->ctx, text);
    size_t size = 0;
    p->at = start;
    do
        QN_TRY(take_quoted(text, &size, p));
    while (peek(p) == '"' || peek(p) == '\'');
    *out = (qn_string){text, size};
    return QN_OK;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static bool digits_to_magnitude(uint64_t *out, qn_string digits)
{
    const bool hex = digits.length > 2 && digits.text[0] == '0' && (digits.text[1] | 32) == 'x';
    const bool octal = !hex && digits.length > 1 && digits.text[0] == '0';
    const uint64_t base = hex ? 16 : octal ? 8 : 10;
    uint64_t value = 0;
    for (size_t i = hex ? 2 : 0; i < digits.length; i++) {
        const uint64_t digit = (uint64_t)digit_value(digits.text[i]);
        if (digit >= base || value > (UINT64_MAX - digit) / base)
            return false;
        value = value * base + digit;
    }
    *out = value;
    return digits.length > 0;
}

/* The largest magnitude of a kind, for a negative or another number. */
static uint64_t largest(qn_proto_kind kind, bool negative)
{
    switch (kind) {
    case QN_PROTO_BOOL: return negative ? 0 : 1;
    case QN_PROTO_UINT32:
    case QN_PROTO_FIXED32: return negative ? 0 : UINT32_MAX;
    case QN_PROTO_UINT64:
    case QN_PROTO_FIXED64: return negative ? 0 : UINT64_MAX;
    case QN_PROTO_INT64:
    case QN_PROTO_SINT64:
    case QN_PROTO_SFIXED64: return (uint64_t)INT64_MAX + negative;
    default: return (uint64_t)INT32_MAX + negative;
    }
}

static bool word_to_enum(uint64_t *out, const qn_proto_field *field, qn_string word)
{
    for (size_t i = 0; field->names && i < field->names->count; i++) {
        if (string_is(word, field->names->values[i].name)) {
            *out = (uint64_t)(int64_t)field->names->values[i].number;
            return true;
        }
    }
    return false;
}

static bool word_to_bool(uint64_t *out, qn_string word)
{
    const bool yes = string_is(word, "true") || string_is(word, "True") || string_is(word, "t");
    *out = yes;
    return yes || string_is(word, "false") || string_is(word, "False") || string_is(word, "f");
}

static qn_status read_integer(uint64_t *out, parser *p, const qn_proto_field *field)
{
    const qn_string word = take_number(p);
    const bool negative = word.length > 0 && word.text[0] == '-';
    if (field->kind == QN_PROTO_ENUM && word_to_enum(out, field, word))
        return QN_OK;
    if (field->kind == QN_PROTO_BOOL && word_to_bool(out, word))
        return QN_OK;
    uint64_t value;
    if (!digits_to_magnitude(&value, (qn_string){word.text + negative, word.length - negative}) ||
        value > largest(field->kind, negative))
        return fail_at(p, word.text, "\"%.*s\" is no value for %s", shown(word), word.text,
                       field->name);
    *out = negative ? 0 - value : value;
    return QN_OK;
}

static qn_status read_real(uint64_t *out, parser *p, const qn_proto_field *field)
{
    qn_string word = take_number(p);
    double value;
    if (!qn_number_parse(&value, word.text, word.length)) {
        const bool suffix = word.length > 1 && (word.text[word.length - 1] | 32) == 'f';
        if (!suffix || !qn_number_parse(&value, word.text, word.length - 1))
            return fail_at(p, word.text, "\"%.*s\" is no value for %s", shown(word), word.text,
                           field->name);
    }
    *out = qn_proto_bits_of_real(field->kind, value);
    return QN_OK;
}

static qn_status read_number(parser *p, qn_proto_message *message, const qn_proto_field *field)
{
    uint64_t bits = 0;
    uint8_t bytes[QN_PROTO_MAX_VARINT];
    QN_TRY(qn_proto_is_real(field->kind) ? read_real(&bits, p, field)
                                         : read_integer(&bits, p, field));
    if (field->label == QN_PROTO_OPTIONAL)
        return qn_proto_set_wire(p->tree, message, field, bits);
    const size_t size = qn_proto_put_number(bytes, field->kind, bits);
    return qn_proto_add_packed(p->tree, message, field, (qn_string){(const char *)bytes, size}, 1,
                               false);
}

/* ---- Fields ---------------------------------------------------------------------------------- */

static qn_status read_fields(parser *p, qn_proto_message *message, char closer);

/* The string that stands for the first field of a message. */
static qn_status read_short_message(parser *p, qn_proto_message *message,
                                    const qn_proto_field *field)
{
    qn_proto_message *sub;
    qn_string string;
    size_t index;
    QN_TRY(read_string(&string, p));
    QN_TRY(qn_proto_open_message(&sub, &index, p->tree, message, field));
    return qn_proto_add_span(p->tree, sub, &field->message->fields[0], string);
}

static qn_status read_message(parser *p, qn_proto_message *message, const qn_proto_field *field)
{
    qn_proto_message *sub;
    size_t index;
    const char first = peek(p);
    if (p->tree->is_lenient && (first == '"' || first == '\'') &&
        field->message->fields[0].kind == QN_PROTO_STRING)
        return read_short_message(p, message, field);
    const char closer = accept(p, '{') ? '}' : accept(p, '<') ? '>' : 0;
    if (!closer)
        return fail_at(p, p->at, "%s is a message: '{' is expected", field->name);
    if (p->depth == QN_PROTO_MAX_DEPTH)
        return fail_at(p, p->at, "messages lie more than %d deep", QN_PROTO_MAX_DEPTH);
    QN_TRY(qn_proto_open_message(&sub, &index, p->tree, message, field));
    p->depth++;
    QN_TRY(read_fields(p, sub, closer));
    p->depth--;
    return QN_OK;
}

static qn_status read_value(parser *p, qn_proto_message *message, const qn_proto_field *field)
{
    qn_string string;
    if (field->kind == QN_PROTO_MESSAGE)
        return read_message(p, message, field);
    if (qn_proto_is_number(field->kind))
        return read_number(p, message, field);
    QN_TRY(read_string(&string, p));
    return qn_proto_add_span(p->tree, message, field, string);
}

static qn_status read_list(parser *p, qn_proto_message *message, const qn_proto_field *field)
{
    if (accept(p, ']'))
        return QN_OK;
    do
        QN_TRY(read_value(p, message, field));
    while (accept(p, ','));
    return accept(p, ']') ? QN_OK : fail_at(p, p->at, "']' is expected");
}

static qn_status skip_value(parser *p);

static qn_status skip_fields(parser *p, char closer)
{
    if (p->depth == QN_PROTO_MAX_DEPTH)
        return fail_at(p, p->at, "messages lie more than %d deep", QN_PROTO_MAX_DEPTH);
    p->depth++;
    while (!accept(p, closer)) {
        const qn_string name = take_word(p);
        if (name.length == 0)
            return fail_at(p, p->at, "a field name is expected");
        QN_TRY(skip_value(p));
    }
    p->depth--;
    return QN_OK;
}

/* Moves behind the value of any field, with the ':' before it and the ',' behind it. */
static qn_status skip_value(parser *p)
{
    const bool listed = (accept(p, ':'), accept(p, '['));
    bool more = !listed || !accept(p, ']');
    while (more) {
        const char first = peek(p);
        if (accept(p, '{') || accept(p, '<'))
            QN_TRY(skip_fields(p, first == '{' ? '}' : '>'));
        else if (first == '"' || first == '\'')
            skip_strings(p);
        else if (take_number(p).length == 0)
            return fail_at(p, p->at, "a value is expected");
        more = listed && accept(p, ',');
        if (listed && !more && !accept(p, ']'))
            return fail_at(p, p->at, "']' is expected");
    }
    (void)(accept(p, ',') || accept(p, ';'));
    return QN_OK;
}

static const qn_proto_field *field_by_name(const qn_proto_schema *schema, qn_string name)
{
    for (size_t i = 0; i < schema->count; i++) {
        if (string_is(name, schema->fields[i].name))
            return &schema->fields[i];
    }
    return NULL;
}

static qn_status read_field(parser *p, qn_proto_message *message)
{
    const qn_string name = take_word(p);
    if (name.length == 0)
        return fail_at(p, p->at, "a field name is expected");
    const qn_proto_field *field = field_by_name(message->schema, name);
    if (!field && p->tree->is_lenient)
        qn_log(p->tree->ctx, QN_LOG_WARN, "'%.*s' of %s is not known and has no effect",
               shown(name), name.text, message->schema->name);
    if (p->tree->is_lenient && (!field || (field->kind == QN_PROTO_MESSAGE && !field->message)))
        return skip_value(p);
    if (!field)
        return fail_at(p, name.text, "%s has no field \"%.*s\"", message->schema->name, shown(name),
                       name.text);
    const bool optional = field->label == QN_PROTO_OPTIONAL;
    if (optional && qn_proto_has(message, field->number))
        return fail_at(p, name.text, "%s is set a second time", field->name);
    if (!accept(p, ':') && field->kind != QN_PROTO_MESSAGE)
        return fail_at(p, p->at, "':' is expected behind %s", field->name);
    QN_TRY(!optional && accept(p, '[') ? read_list(p, message, field)
                                       : read_value(p, message, field));
    (void)(accept(p, ',') || accept(p, ';'));
    return QN_OK;
}

/* Fields up to `closer`, or up to the end where closer is 0. */
static qn_status read_fields(parser *p, qn_proto_message *message, char closer)
{
    while (peek(p) != closer) {
        if (p->at == p->end)
            return fail_at(p, p->at, "the text ends where '%c' is expected", closer);
        QN_TRY(read_field(p, message));
    }
    p->at += closer != 0;
    return QN_OK;
}

qn_status qn_proto_parse_text(qn_proto_tree *tree, const char *text, size_t length)
{
    if (length == 0) /* text may be NULL */
        return QN_OK;
    parser p = {tree, text, text, text + length, 0};
    QN_TRY(read_fields(&p, &tree->root, 0));
    return p.at == p.end ? QN_OK : fail_at(&p, p.at, "a field name is expected");
}
