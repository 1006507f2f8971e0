/* Messages read from protobuf's wire format. */
#include <stdarg.h>
#include <stdio.h>

#include "proto/tree.h"

typedef struct frame {
    const qn_proto_field *field;
    size_t index;
} frame;

typedef struct reader {
    qn_proto_tree *tree;
    /* The begin of the whole input: offsets count from here */
    const uint8_t *begin;
    const uint8_t *at;
    /* path[depth].field is the field being read, or NULL */
    frame path[QN_PROTO_MAX_DEPTH + 1];
    int depth;
} reader;

/* ---- Failing --------------------------------------------------------------------------------- */

/* "graph.node[12].attribute[0]"; the schema's name at the root. A path longer than the text keeps
 * its beginning. */
static void path_text(char *out, size_t size, const reader *r)
{
    size_t used = (size_t)snprintf(out, size, "%s", r->tree->root.schema->name);
    for (int d = 0; d <= r->depth && used < size; d++) {
        const frame *f = &r->path[d];
        if (!f->field)
            break;
        const char *dot = d ? "." : "";
        used = d ? used : 0;
        const bool many = f->field->label != QN_PROTO_OPTIONAL && d < r->depth;
        used += (size_t)(many ? snprintf(out + used, size - used, "%s%s[%zu]", dot, f->field->name,
                                         f->index)
                              : snprintf(out + used, size - used, "%s%s", dot, f->field->name));
    }
}

static qn_status fail_at(const reader *r, const uint8_t *at, const char *format, ...)
    QN_PRINTF(3, 4);

static qn_status fail_at(const reader *r, const uint8_t *at, const char *format, ...)
{
    char path[512], what[160];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    path_text(path, sizeof path, r);
    return qn_fail(r->tree->ctx, QN_E_FORMAT, "%s: %s at offset %zu", path, what,
                   (size_t)(at - r->begin));
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

/* Moves behind a varint and gives its value. */
static qn_status take_varint(uint64_t *out, reader *r, const uint8_t *end)
{
    const uint8_t *start = r->at;
    uint64_t value = 0;
    for (unsigned i = 0; i < QN_PROTO_MAX_VARINT; i++) {
        if (r->at == end)
            return fail_at(r, start, "the input ends inside a number");
        const uint8_t byte = *r->at++;
        value |= (uint64_t)(byte & 0x7f) << 7 * i;
        if (byte < 0x80) {
            *out = value;
            return QN_OK;
        }
    }
    return fail_at(r, start, "a number has more than %d bytes", QN_PROTO_MAX_VARINT);
}

static qn_status skip_fixed(reader *r, const uint8_t *end, size_t size)
{
    if ((size_t)(end - r->at) < size)
        return fail_at(r, r->at, "the input ends inside a number");
    r->at += size;
    return QN_OK;
}

/* A length and that many bytes. */
static qn_status take_span(qn_string *out, reader *r, const uint8_t *end)
{
    const uint8_t *start = r->at;
    uint64_t length = 0;
    QN_TRY(take_varint(&length, r, end));
    if (length > (size_t)(end - r->at))
        return fail_at(r, start, "length %llu runs past the end", (unsigned long long)length);
    *out = (qn_string){(const char *)r->at, (size_t)length};
    r->at += length;
    return QN_OK;
}

static qn_status take_tag(uint32_t *number, int *type, reader *r, const uint8_t *end)
{
    const uint8_t *start = r->at;
    uint64_t tag = 0;
    QN_TRY(take_varint(&tag, r, end));
    if (tag >> 3 == 0 || tag >> 3 >= UINT32_C(1) << 29)
        return fail_at(r, start, "%llu is no field number", (unsigned long long)(tag >> 3));
    *number = (uint32_t)(tag >> 3);
    *type = (int)(tag & 7);
    return QN_OK;
}

static qn_status skip_field(reader *r, uint32_t number, int type, const uint8_t *end);

/* Groups are an old form of messages: fields up to an end mark of the same number. */
static qn_status skip_group(reader *r, uint32_t group, const uint8_t *end)
{
    if (r->depth == QN_PROTO_MAX_DEPTH)
        return fail_at(r, r->at, "messages lie more than %d deep", QN_PROTO_MAX_DEPTH);
    r->depth++;
    r->path[r->depth].field = NULL;
    for (;;) {
        const uint8_t *start = r->at;
        uint32_t number = 0;
        int type = 0;
        QN_TRY(take_tag(&number, &type, r, end));
        if (type == WIRE_END) {
            if (number != group)
                return fail_at(r, start, "group %u ends as group %u", (unsigned)group,
                               (unsigned)number);
            r->depth--;
            return QN_OK;
        }
        QN_TRY(skip_field(r, number, type, end));
    }
}

static qn_status skip_field(reader *r, uint32_t number, int type, const uint8_t *end)
{
    uint64_t value;
    qn_string span = {NULL, 0};
    switch (type) {
    case WIRE_VARINT: return take_varint(&value, r, end);
    case WIRE_FIXED64: return skip_fixed(r, end, 8);
    case WIRE_BYTES: return take_span(&span, r, end);
    case WIRE_GROUP: return skip_group(r, number, end);
    case WIRE_FIXED32: return skip_fixed(r, end, 4);
    default: return fail_at(r, r->at, "field %u has wire type %d", (unsigned)number, type);
    }
}

/* ---- Fields ---------------------------------------------------------------------------------- */

/* Checks a packed array and counts its numbers. */
static qn_status count_packed(size_t *out, reader *r, qn_proto_kind kind, qn_string packed)
{
    const int type = qn_proto_wire_type(kind);
    if (type != WIRE_VARINT) {
        const size_t size = type == WIRE_FIXED32 ? 4 : 8;
        if (packed.length % size != 0)
            return fail_at(r, (const uint8_t *)packed.text,
                           "%zu packed bytes are no multiple of %zu", packed.length, size);
        *out = packed.length / size;
        return QN_OK;
    }
    const uint8_t *behind = r->at;
    const uint8_t *end = (const uint8_t *)packed.text + packed.length;
    size_t count = 0;
    uint64_t value;
    for (r->at = (const uint8_t *)packed.text; r->at < end; count++)
        QN_TRY(take_varint(&value, r, end));
    r->at = behind;
    *out = count;
    return QN_OK;
}

static qn_status read_number(reader *r, qn_proto_message *message, const qn_proto_field *field,
                             int type, const uint8_t *end)
{
    const uint8_t *start = r->at;
    QN_TRY(skip_field(r, field->number, type, end));
    if (field->label == QN_PROTO_OPTIONAL)
        return qn_proto_set_wire(r->tree, message, field,
                                 qn_proto_take_number(&start, field->kind));
    const qn_string one = {(const char *)start, (size_t)(r->at - start)};
    return qn_proto_add_packed(r->tree, message, field, one, 1, false);
}

static qn_status read_packed(reader *r, qn_proto_message *message, const qn_proto_field *field,
                             const uint8_t *end)
{
    qn_string packed = {NULL, 0};
    size_t count = 0;
    QN_TRY(take_span(&packed, r, end));
    QN_TRY(count_packed(&count, r, field->kind, packed));
    return qn_proto_add_packed(r->tree, message, field, packed, count, true);
}

static qn_status read_fields(reader *r, qn_proto_message *message, const uint8_t *end);

static qn_status read_message(reader *r, qn_proto_message *message, const qn_proto_field *field,
                              const uint8_t *end)
{
    qn_string span = {NULL, 0};
    qn_proto_message *sub;
    QN_TRY(take_span(&span, r, end));
    if (r->depth == QN_PROTO_MAX_DEPTH)
        return fail_at(r, r->at, "messages lie more than %d deep", QN_PROTO_MAX_DEPTH);
    QN_TRY(qn_proto_open_message(&sub, &r->path[r->depth].index, r->tree, message, field));
    r->depth++;
    r->at = (const uint8_t *)span.text;
    QN_TRY(read_fields(r, sub, r->at + span.length));
    r->depth--;
    return QN_OK;
}

static qn_status read_field(reader *r, qn_proto_message *message, const qn_proto_field *field,
                            int type, const uint8_t *end)
{
    const int wanted = qn_proto_wire_type(field->kind);
    const bool number = qn_proto_is_number(field->kind);
    if (number && type == WIRE_BYTES && field->label != QN_PROTO_OPTIONAL)
        return read_packed(r, message, field, end);
    if (type != wanted)
        return fail_at(r, r->at, "wire type %d instead of %d", type, wanted);
    if (number)
        return read_number(r, message, field, type, end);
    if (field->kind == QN_PROTO_MESSAGE)
        return read_message(r, message, field, end);
    qn_string span = {NULL, 0};
    QN_TRY(take_span(&span, r, end));
    return qn_proto_add_span(r->tree, message, field, span);
}

static qn_status read_fields(reader *r, qn_proto_message *message, const uint8_t *end)
{
    while (r->at < end) {
        uint32_t number = 0;
        int type = 0;
        r->path[r->depth].field = NULL;
        QN_TRY(take_tag(&number, &type, r, end));
        const qn_proto_field *field = qn_proto_field_find(message->schema, number);
        r->path[r->depth].field = field;
        /* A field that only texts are expected to have is skipped like one that nobody knows. */
        const bool known = field && (field->kind != QN_PROTO_MESSAGE || field->message);
        QN_TRY(known ? read_field(r, message, field, type, end) : skip_field(r, number, type, end));
    }
    return QN_OK;
}

qn_status qn_proto_parse_wire(qn_proto_tree *tree, const void *data, size_t size)
{
    if (size == 0) /* data may be NULL */
        return QN_OK;
    reader r = {.tree = tree, .begin = data, .at = data};
    return read_fields(&r, &tree->root, r.begin + size);
}
