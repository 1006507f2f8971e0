/* Two passes: sizes from the leaves up, kept in the messages, then the bytes in order. */
#include "proto/sink.h"
#include "proto/tree.h"

static size_t tag_size(uint32_t number)
{
    return qn_proto_varint_size((uint64_t)number << 3);
}

/* A tag, a length and the bytes. */
static size_t block_size(uint32_t number, size_t length)
{
    return tag_size(number) + qn_proto_varint_size(length) + length;
}

static size_t number_slot_size(const qn_proto_field *field, const qn_proto_slot *slot)
{
    uint8_t bytes[QN_PROTO_MAX_VARINT];
    switch (field->label) {
    case QN_PROTO_OPTIONAL:
        return tag_size(field->number) + qn_proto_put_number(bytes, field->kind, slot->value.bits);
    case QN_PROTO_REPEATED: return slot->count * tag_size(field->number) + slot->value.span.length;
    default: return slot->count ? block_size(field->number, slot->value.span.length) : 0;
    }
}

static size_t slot_size(const qn_proto_field *field, qn_proto_slot *slot)
{
    if (qn_proto_is_number(field->kind))
        return number_slot_size(field, slot);
    const bool many = field->label != QN_PROTO_OPTIONAL;
    size_t size = 0;
    for (size_t i = 0; i < slot->count; i++) {
        if (field->kind != QN_PROTO_MESSAGE) {
            const qn_string *span = many ? &slot->value.spans[i] : &slot->value.span;
            size += block_size(field->number, span->length);
        } else {
            qn_proto_message *sub = many ? slot->value.messages[i] : slot->value.message;
            size += block_size(field->number, qn_proto_wire_size(sub));
        }
    }
    return size;
}

size_t qn_proto_wire_size(qn_proto_message *message)
{
    size_t size = 0;
    for (uint32_t i = 0; i < message->count; i++) {
        qn_proto_slot *slot = &message->slots[i];
        size += slot_size(qn_proto_slot_field(message, slot), slot);
    }
    message->wire_size = size;
    return size;
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static qn_status put_varint(qn_proto_output *output, uint64_t value)
{
    uint8_t bytes[QN_PROTO_MAX_VARINT];
    return qn_proto_put(output, bytes, qn_proto_put_varint(bytes, value));
}

static qn_status put_tag(qn_proto_output *output, uint32_t number, int type)
{
    return put_varint(output, (uint64_t)number << 3 | (unsigned)type);
}

static qn_status put_block(qn_proto_output *output, uint32_t number, qn_string span)
{
    QN_TRY(put_tag(output, number, WIRE_BYTES));
    QN_TRY(put_varint(output, span.length));
    return qn_proto_put(output, span.text, span.length);
}

static qn_status put_numbers(qn_proto_output *output, const qn_proto_field *field,
                             const qn_proto_slot *slot)
{
    const int type = qn_proto_wire_type(field->kind);
    uint8_t bytes[QN_PROTO_MAX_VARINT];
    if (field->label == QN_PROTO_OPTIONAL) {
        QN_TRY(put_tag(output, field->number, type));
        return qn_proto_put(output, bytes,
                            qn_proto_put_number(bytes, field->kind, slot->value.bits));
    }
    if (field->label == QN_PROTO_PACKED)
        return slot->count ? put_block(output, field->number, slot->value.span) : QN_OK;
    const uint8_t *at = (const uint8_t *)slot->value.span.text;
    for (size_t i = 0; i < slot->count; i++) {
        const uint8_t *start = at;
        (void)qn_proto_take_number(&at, field->kind);
        QN_TRY(put_tag(output, field->number, type));
        QN_TRY(qn_proto_put(output, start, (size_t)(at - start)));
    }
    return QN_OK;
}

static qn_status put_fields(qn_proto_output *output, const qn_proto_message *message);

static qn_status put_message(qn_proto_output *output, uint32_t number,
                             const qn_proto_message *message)
{
    QN_TRY(put_tag(output, number, WIRE_BYTES));
    QN_TRY(put_varint(output, message->wire_size));
    return put_fields(output, message);
}

static qn_status put_slot(qn_proto_output *output, const qn_proto_field *field,
                          const qn_proto_slot *slot)
{
    if (qn_proto_is_number(field->kind))
        return put_numbers(output, field, slot);
    const bool many = field->label != QN_PROTO_OPTIONAL;
    for (size_t i = 0; i < slot->count; i++) {
        if (field->kind == QN_PROTO_MESSAGE)
            QN_TRY(put_message(output, field->number,
                               many ? slot->value.messages[i] : slot->value.message));
        else
            QN_TRY(
                put_block(output, field->number, many ? slot->value.spans[i] : slot->value.span));
    }
    return QN_OK;
}

static qn_status put_fields(qn_proto_output *output, const qn_proto_message *message)
{
    for (uint32_t i = 0; i < message->count; i++) {
        const qn_proto_slot *slot = &message->slots[i];
        QN_TRY(put_slot(output, qn_proto_slot_field(message, slot), slot));
    }
    return QN_OK;
}

qn_status qn_proto_write_wire(qn_proto_tree *tree, qn_proto_sink sink)
{
    qn_proto_output output;
    qn_status status;
    QN_TRY(qn_proto_output_open(&output, tree->ctx, sink));
    (void)qn_proto_wire_size(&tree->root);
    QN_TRY_OR_DONE(put_fields(&output, &tree->root));
    QN_TRY_OR_DONE(qn_proto_output_flush(&output));
done:
    qn_proto_output_close(&output);
    return status;
}
