/* The tree of messages: built, and asked for fields. */
#include "proto/tree.h"

#include <assert.h>
#include <string.h>

void qn_proto_tree_init(qn_proto_tree *tree, qn_context *ctx, const qn_proto_schema *schema)
{
    memset(tree, 0, sizeof *tree);
    tree->ctx = ctx;
    qn_arena_init(&tree->arena, &ctx->allocator);
    tree->root.schema = schema;
}

void qn_proto_tree_free(qn_proto_tree *tree)
{
    qn_arena_free(&tree->arena);
    memset(&tree->root, 0, sizeof tree->root);
}

const qn_proto_field *qn_proto_field_find(const qn_proto_schema *schema, uint32_t number)
{
    size_t low = 0, high = schema->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (schema->fields[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    const bool found = low < schema->count && schema->fields[low].number == number;
    return found ? &schema->fields[low] : NULL;
}

/* ---- Slots ----------------------------------------------------------------------------------- */

static const qn_proto_slot *slot_find(const qn_proto_message *message, uint32_t number)
{
    if (!message)
        return NULL;
    assert(qn_proto_field_find(message->schema, number));
    for (uint32_t i = 0; i < message->count; i++) {
        if (message->slots[i].number >= number)
            return message->slots[i].number == number ? &message->slots[i] : NULL;
    }
    return NULL;
}

static qn_status slots_reserve(qn_proto_tree *tree, qn_proto_message *message)
{
    if (message->count < message->capacity)
        return QN_OK;
    const uint32_t capacity = message->capacity ? 2 * message->capacity : 4;
    qn_proto_slot *slots =
        qn_arena_widen(&tree->arena, message->slots, message->count, capacity, sizeof *slots);
    QN_TRY_ALLOC(tree->ctx, slots);
    message->slots = slots;
    message->capacity = capacity;
    return QN_OK;
}

/* The field's slot; a new one goes where the order by number wants it. */
static qn_status slot_open(qn_proto_slot **out, qn_proto_tree *tree, qn_proto_message *message,
                           const qn_proto_field *field)
{
    uint32_t at = message->count;
    while (at > 0 && message->slots[at - 1].number >= field->number)
        at--;
    if (at == message->count || message->slots[at].number != field->number) {
        QN_TRY(slots_reserve(tree, message));
        qn_proto_slot *slots = message->slots;
        memmove(slots + at + 1, slots + at, (message->count - at) * sizeof *slots);
        memset(slots + at, 0, sizeof *slots);
        slots[at].number = field->number;
        slots[at].row = (uint16_t)(field - message->schema->fields);
        message->count++;
    }
    *out = &message->slots[at];
    return QN_OK;
}

/* The items of a repeated slot, in a block with room for one more. */
static void *slot_grow(qn_proto_tree *tree, qn_proto_slot *slot, const void *items,
                       size_t item_size)
{
    const size_t capacity = slot->capacity_log2 ? (size_t)1 << slot->capacity_log2 : 0;
    const uint16_t log2 = (uint16_t)(slot->capacity_log2 ? slot->capacity_log2 + 1 : 1);
    if (slot->count < capacity)
        return (void *)(uintptr_t)items;
    void *grown = qn_arena_widen(&tree->arena, items, slot->count, (size_t)1 << log2, item_size);
    if (grown)
        slot->capacity_log2 = log2;
    return grown;
}

qn_status qn_proto_set_wire(qn_proto_tree *tree, qn_proto_message *message,
                            const qn_proto_field *field, uint64_t bits)
{
    qn_proto_slot *slot;
    assert(qn_proto_is_number(field->kind) && field->label == QN_PROTO_OPTIONAL);
    QN_TRY(slot_open(&slot, tree, message, field));
    slot->value.bits = bits;
    slot->count = 1;
    return QN_OK;
}

qn_status qn_proto_add_packed(qn_proto_tree *tree, qn_proto_message *message,
                              const qn_proto_field *field, qn_string packed, size_t count,
                              bool borrow)
{
    qn_proto_slot *slot;
    assert(qn_proto_is_number(field->kind) && field->label != QN_PROTO_OPTIONAL);
    QN_TRY(slot_open(&slot, tree, message, field));
    qn_string *span = &slot->value.span;
    if (borrow && span->length == 0) {
        *span = packed;
        slot->capacity_log2 = 0;
        slot->count = count;
        return QN_OK;
    }
    size_t capacity = slot->capacity_log2 ? (size_t)1 << slot->capacity_log2 : 0;
    size_t length;
    if (!qn_add_size(&length, span->length, packed.length) || length > SIZE_MAX / 4)
        return qn_fail_nomem(tree->ctx);
    if (length > capacity) {
        uint16_t log2 = 4;
        while ((size_t)1 << log2 < length)
            log2++;
        char *grown = qn_arena_alloc(&tree->arena, (size_t)1 << log2);
        QN_TRY_ALLOC(tree->ctx, grown);
        if (span->length)
            memcpy(grown, span->text, span->length);
        span->text = grown;
        slot->capacity_log2 = log2;
    }
    if (packed.length)
        memcpy((char *)(uintptr_t)span->text + span->length, packed.text, packed.length);
    span->length = length;
    slot->count += count;
    return QN_OK;
}

qn_status qn_proto_add_span(qn_proto_tree *tree, qn_proto_message *message,
                            const qn_proto_field *field, qn_string span)
{
    qn_proto_slot *slot;
    assert(field->kind == QN_PROTO_STRING || field->kind == QN_PROTO_BYTES);
    QN_TRY(slot_open(&slot, tree, message, field));
    if (field->label == QN_PROTO_OPTIONAL) {
        slot->value.span = span;
        slot->count = 1;
        return QN_OK;
    }
    qn_string *spans = slot_grow(tree, slot, slot->value.spans, sizeof *spans);
    QN_TRY_ALLOC(tree->ctx, spans);
    spans[slot->count++] = span;
    slot->value.spans = spans;
    return QN_OK;
}

qn_status qn_proto_open_message(qn_proto_message **out, size_t *index, qn_proto_tree *tree,
                                qn_proto_message *message, const qn_proto_field *field)
{
    qn_proto_slot *slot;
    assert(field->kind == QN_PROTO_MESSAGE);
    QN_TRY(slot_open(&slot, tree, message, field));
    *index = 0;
    if (field->label == QN_PROTO_OPTIONAL && slot->value.message) {
        *out = slot->value.message;
        return QN_OK;
    }
    qn_proto_message *added = qn_arena_alloc(&tree->arena, sizeof *added);
    QN_TRY_ALLOC(tree->ctx, added);
    added->schema = field->message;
    if (field->label == QN_PROTO_OPTIONAL) {
        slot->value.message = added;
        slot->count = 1;
    } else {
        qn_proto_message **messages =
            slot_grow(tree, slot, slot->value.messages, sizeof(qn_proto_message *));
        QN_TRY_ALLOC(tree->ctx, messages);
        slot->value.messages = messages;
        *index = slot->count;
        messages[slot->count++] = added;
    }
    *out = added;
    return QN_OK;
}

/* ---- Reading --------------------------------------------------------------------------------- */

bool qn_proto_has(const qn_proto_message *message, uint32_t number)
{
    return qn_proto_count(message, number) > 0;
}

size_t qn_proto_count(const qn_proto_message *message, uint32_t number)
{
    const qn_proto_slot *slot = slot_find(message, number);
    return slot ? slot->count : 0;
}

int64_t qn_proto_int(const qn_proto_message *message, uint32_t number, int64_t fallback)
{
    const qn_proto_slot *slot = slot_find(message, number);
    assert(!slot || !qn_proto_is_real(qn_proto_slot_field(message, slot)->kind));
    return slot && slot->count ? (int64_t)slot->value.bits : fallback;
}

double qn_proto_real(const qn_proto_message *message, uint32_t number, double fallback)
{
    const qn_proto_slot *slot = slot_find(message, number);
    if (!slot || !slot->count)
        return fallback;
    return qn_proto_real_of_bits(qn_proto_slot_field(message, slot)->kind, slot->value.bits);
}

qn_string qn_proto_string(const qn_proto_message *message, uint32_t number)
{
    const qn_proto_slot *slot = slot_find(message, number);
    return slot && slot->count ? slot->value.span : (qn_string){"", 0};
}

const qn_proto_message *qn_proto_get_message(const qn_proto_message *message, uint32_t number)
{
    const qn_proto_slot *slot = slot_find(message, number);
    return slot ? slot->value.message : NULL;
}

qn_string qn_proto_string_at(const qn_proto_message *message, uint32_t number, size_t index)
{
    const qn_proto_slot *slot = slot_find(message, number);
    assert(slot && index < slot->count);
    return slot->value.spans[index];
}

const qn_proto_message *qn_proto_message_at(const qn_proto_message *message, uint32_t number,
                                            size_t index)
{
    const qn_proto_slot *slot = slot_find(message, number);
    assert(slot && index < slot->count);
    return slot->value.messages[index];
}

qn_string qn_proto_packed(const qn_proto_message *message, uint32_t number)
{
    const qn_proto_slot *slot = slot_find(message, number);
    assert(!slot || qn_proto_slot_field(message, slot)->label != QN_PROTO_OPTIONAL);
    return slot ? slot->value.span : (qn_string){"", 0};
}

qn_proto_numbers qn_proto_numbers_of(const qn_proto_message *message, uint32_t number)
{
    const qn_string span = qn_proto_packed(message, number);
    const uint8_t *at = (const uint8_t *)span.text;
    const qn_proto_field *field = message ? qn_proto_field_find(message->schema, number) : NULL;
    return (qn_proto_numbers){at, at + span.length, field ? field->kind : QN_PROTO_INT64};
}

bool qn_proto_next_int(int64_t *out, qn_proto_numbers *numbers)
{
    if (numbers->at == numbers->end)
        return false;
    *out = (int64_t)qn_proto_take_number(&numbers->at, numbers->kind);
    return true;
}

bool qn_proto_next_real(double *out, qn_proto_numbers *numbers)
{
    if (numbers->at == numbers->end)
        return false;
    *out = qn_proto_real_of_bits(numbers->kind, qn_proto_take_number(&numbers->at, numbers->kind));
    return true;
}

/* ---- Building -------------------------------------------------------------------------------- */

static const qn_proto_field *field_of(const qn_proto_message *message, uint32_t number)
{
    const qn_proto_field *field = qn_proto_field_find(message->schema, number);
    assert(field);
    return field;
}

static qn_status add_bits(qn_proto_tree *tree, qn_proto_message *message,
                          const qn_proto_field *field, uint64_t bits)
{
    if (field->label == QN_PROTO_OPTIONAL)
        return qn_proto_set_wire(tree, message, field, bits);
    uint8_t bytes[QN_PROTO_MAX_VARINT];
    const size_t size = qn_proto_put_number(bytes, field->kind, bits);
    return qn_proto_add_packed(tree, message, field, (qn_string){(const char *)bytes, size}, 1,
                               false);
}

qn_status qn_proto_add_int(qn_proto_tree *tree, qn_proto_message *message, uint32_t number,
                           int64_t value)
{
    const qn_proto_field *field = field_of(message, number);
    assert(!qn_proto_is_real(field->kind));
    return add_bits(tree, message, field, (uint64_t)value);
}

qn_status qn_proto_add_real(qn_proto_tree *tree, qn_proto_message *message, uint32_t number,
                            double value)
{
    const qn_proto_field *field = field_of(message, number);
    assert(qn_proto_is_real(field->kind));
    return add_bits(tree, message, field, qn_proto_bits_of_real(field->kind, value));
}

qn_status qn_proto_add_string(qn_proto_tree *tree, qn_proto_message *message, uint32_t number,
                              qn_string value)
{
    return qn_proto_add_span(tree, message, field_of(message, number), value);
}

qn_status qn_proto_add_text(qn_proto_tree *tree, qn_proto_message *message, uint32_t number,
                            const char *text)
{
    return qn_proto_add_string(tree, message, number, (qn_string){text, strlen(text)});
}

qn_status qn_proto_add_message(qn_proto_message **out, qn_proto_tree *tree,
                               qn_proto_message *message, uint32_t number)
{
    size_t index;
    return qn_proto_open_message(out, &index, tree, message, field_of(message, number));
}
