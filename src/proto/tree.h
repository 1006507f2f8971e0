/* The inside of a message tree, for the readers and writers of this room. */
#ifndef QN_PROTO_TREE_H
#define QN_PROTO_TREE_H

#include "proto/proto.h"

/* All values of one field. Which member of the union is used follows from kind and label:
 *   optional number          bits (integers sign-extended; a float's or double's own bits)
 *   repeated number          span: the packed wire bytes, borrowed while capacity_log2 is 0
 *   optional string, bytes   span
 *   repeated string, bytes   spans
 *   message                  message, messages */
struct qn_proto_slot {
    uint32_t number;
    /* The row of the schema's fields. */
    uint16_t row;
    uint16_t capacity_log2;
    size_t count;
    union {
        uint64_t bits;
        qn_string span;
        qn_string *spans;
        qn_proto_message *message;
        qn_proto_message **messages;
    } value;
};

/* Wire types of the encoding. */
enum {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_GROUP = 3,
    WIRE_END = 4,
    WIRE_FIXED32 = 5
};

enum { QN_PROTO_MAX_VARINT = 10 };

/* VARINT, FIXED32, FIXED64 or BYTES. */
int qn_proto_wire_type(qn_proto_kind kind);
static inline bool qn_proto_is_number(qn_proto_kind kind)
{
    return kind < QN_PROTO_STRING;
}
static inline bool qn_proto_is_real(qn_proto_kind kind)
{
    return kind == QN_PROTO_FLOAT || kind == QN_PROTO_DOUBLE;
}

/* NULL when the schema has no such field. */
const qn_proto_field *qn_proto_field_find(const qn_proto_schema *schema, uint32_t number);
static inline const qn_proto_field *qn_proto_slot_field(const qn_proto_message *message,
                                                        const qn_proto_slot *slot)
{
    return &message->schema->fields[slot->row];
}

/* Sets an optional number from what the wire carries. */
QN_MUST_CHECK qn_status qn_proto_set_wire(qn_proto_tree *tree, qn_proto_message *message,
                                          const qn_proto_field *field, uint64_t bits);
/* Adds `count` numbers in packed form to a repeated field. `borrow`: the bytes outlive the tree. */
QN_MUST_CHECK qn_status qn_proto_add_packed(qn_proto_tree *tree, qn_proto_message *message,
                                            const qn_proto_field *field, qn_string packed,
                                            size_t count, bool borrow);
QN_MUST_CHECK qn_status qn_proto_add_span(qn_proto_tree *tree, qn_proto_message *message,
                                          const qn_proto_field *field, qn_string span);
/* *index: of the message in its field. */
QN_MUST_CHECK qn_status qn_proto_open_message(qn_proto_message **out, size_t *index,
                                              qn_proto_tree *tree, qn_proto_message *message,
                                              const qn_proto_field *field);

/* One number in the wire's form; returns its size, at most QN_PROTO_MAX_VARINT. */
size_t qn_proto_put_number(uint8_t *out, qn_proto_kind kind, uint64_t bits);
size_t qn_proto_put_varint(uint8_t *out, uint64_t value);
size_t qn_proto_varint_size(uint64_t value);
/* Reads the number at *at, which was checked before, and moves behind it; bits as in a slot. */
uint64_t qn_proto_take_number(const uint8_t **at, qn_proto_kind kind);

/* Integer <-> float by bits. */
uint64_t qn_proto_bits_of_real(qn_proto_kind kind, double value);
double qn_proto_real_of_bits(qn_proto_kind kind, uint64_t bits);

#endif
