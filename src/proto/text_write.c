/* Messages written in protobuf's text format. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "proto/sink.h"
#include "proto/tree.h"

static qn_status put_text(qn_proto_output *output, const char *text)
{
    return qn_proto_put(output, text, strlen(text));
}

static qn_status put_indent(qn_proto_output *output, int depth)
{
    for (int i = 0; i < depth; i++)
        QN_TRY(put_text(output, "  "));
    return QN_OK;
}

static const char *enum_name(const qn_proto_enum *names, int64_t number)
{
    for (size_t i = 0; names && i < names->count; i++) {
        if (names->values[i].number == number)
            return names->values[i].name;
    }
    return NULL;
}

static qn_status put_number(qn_proto_output *output, const qn_proto_field *field, uint64_t bits)
{
    char text[QN_NUMBER_SIZE];
    const char *name = enum_name(field->names, (int64_t)bits);
    switch (field->kind) {
    case QN_PROTO_FLOAT:
        return put_text(
            output, qn_number_format_float(text, (float)qn_proto_real_of_bits(field->kind, bits)));
    case QN_PROTO_DOUBLE:
        return put_text(output,
                        qn_number_format_double(text, qn_proto_real_of_bits(field->kind, bits)));
    case QN_PROTO_BOOL: return put_text(output, bits ? "true" : "false");
    case QN_PROTO_UINT64:
    case QN_PROTO_FIXED64: snprintf(text, sizeof text, "%" PRIu64, bits); break;
    default: snprintf(text, sizeof text, "%" PRId64, (int64_t)bits); break;
    }
    return put_text(output, field->kind == QN_PROTO_ENUM && name ? name : text);
}

static qn_status put_string(qn_proto_output *output, qn_string string)
{
    static const char letters[] = "nrt\"'\\", meanings[] = "\n\r\t\"'\\";
    QN_TRY(put_text(output, "\""));
    for (size_t i = 0; i < string.length; i++) {
        const unsigned char c = (unsigned char)string.text[i];
        const char *meaning = c ? strchr(meanings, c) : NULL;
        char escape[8] = {'\\', meaning ? letters[meaning - meanings] : 0};
        if (!meaning && c >= ' ' && c < 0x7f)
            snprintf(escape, sizeof escape, "%c", c);
        else if (!meaning)
            snprintf(escape, sizeof escape, "\\%03o", c);
        QN_TRY(put_text(output, escape));
    }
    return put_text(output, "\"");
}

static qn_status put_fields(qn_proto_output *output, const qn_proto_message *message, int depth);

static qn_status put_message(qn_proto_output *output, const qn_proto_message *message, int depth)
{
    QN_TRY(put_text(output, " {\n"));
    QN_TRY(put_fields(output, message, depth + 1));
    QN_TRY(put_indent(output, depth));
    return put_text(output, "}");
}

/* One value of the slot; repeated numbers are taken from *packed in turn. */
static qn_status put_value(qn_proto_output *output, const qn_proto_field *field,
                           const qn_proto_slot *slot, size_t index, const uint8_t **packed)
{
    const bool many = field->label != QN_PROTO_OPTIONAL;
    QN_TRY(put_text(output, ": "));
    if (qn_proto_is_number(field->kind))
        return put_number(output, field,
                          many ? qn_proto_take_number(packed, field->kind) : slot->value.bits);
    return put_string(output, many ? slot->value.spans[index] : slot->value.span);
}

static qn_status put_slot(qn_proto_output *output, const qn_proto_field *field,
                          const qn_proto_slot *slot, int depth)
{
    const bool many = field->label != QN_PROTO_OPTIONAL;
    const bool numbers = many && qn_proto_is_number(field->kind);
    const uint8_t *packed = numbers ? (const uint8_t *)slot->value.span.text : NULL;
    for (size_t i = 0; i < slot->count; i++) {
        QN_TRY(put_indent(output, depth));
        QN_TRY(put_text(output, field->name));
        if (field->kind == QN_PROTO_MESSAGE)
            QN_TRY(
                put_message(output, many ? slot->value.messages[i] : slot->value.message, depth));
        else
            QN_TRY(put_value(output, field, slot, i, &packed));
        QN_TRY(put_text(output, "\n"));
    }
    return QN_OK;
}

static qn_status put_fields(qn_proto_output *output, const qn_proto_message *message, int depth)
{
    for (uint32_t i = 0; i < message->count; i++) {
        const qn_proto_slot *slot = &message->slots[i];
        QN_TRY(put_slot(output, qn_proto_slot_field(message, slot), slot, depth));
    }
    return QN_OK;
}

qn_status qn_proto_write_text(qn_proto_tree *tree, qn_proto_sink sink)
{
    qn_proto_output output;
    qn_status status;
    QN_TRY(qn_proto_output_open(&output, tree->ctx, sink));
    QN_TRY_OR_DONE(put_fields(&output, &tree->root, 0));
    QN_TRY_OR_DONE(qn_proto_output_flush(&output));
done:
    qn_proto_output_close(&output);
    return status;
}
