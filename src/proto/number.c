/* Numbers in the wire's form. */
#include <string.h>

#include "proto/tree.h"

int qn_proto_wire_type(qn_proto_kind kind)
{
    static const int types[] = {
        [QN_PROTO_INT32] = WIRE_VARINT,     [QN_PROTO_INT64] = WIRE_VARINT,
        [QN_PROTO_UINT32] = WIRE_VARINT,    [QN_PROTO_UINT64] = WIRE_VARINT,
        [QN_PROTO_SINT32] = WIRE_VARINT,    [QN_PROTO_SINT64] = WIRE_VARINT,
        [QN_PROTO_BOOL] = WIRE_VARINT,      [QN_PROTO_ENUM] = WIRE_VARINT,
        [QN_PROTO_FIXED32] = WIRE_FIXED32,  [QN_PROTO_FIXED64] = WIRE_FIXED64,
        [QN_PROTO_SFIXED32] = WIRE_FIXED32, [QN_PROTO_SFIXED64] = WIRE_FIXED64,
        [QN_PROTO_FLOAT] = WIRE_FIXED32,    [QN_PROTO_DOUBLE] = WIRE_FIXED64,
        [QN_PROTO_STRING] = WIRE_BYTES,     [QN_PROTO_BYTES] = WIRE_BYTES,
        [QN_PROTO_MESSAGE] = WIRE_BYTES,
    };
    return types[kind];
}

size_t qn_proto_varint_size(uint64_t value)
{
    size_t size = 1;
    while (value >>= 7)
        size++;
    return size;
}

size_t qn_proto_put_varint(uint8_t *out, uint64_t value)
{
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        out[size++] = (uint8_t)(value | 0x80);
    out[size++] = (uint8_t)value;
    return size;
}

static size_t put_fixed(uint8_t *out, uint64_t bits, size_t size)
{
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)(bits >> 8 * i);
    return size;
}

size_t qn_proto_put_number(uint8_t *out, qn_proto_kind kind, uint64_t bits)
{
    const int type = qn_proto_wire_type(kind);
    if (type != WIRE_VARINT)
        return put_fixed(out, bits, type == WIRE_FIXED32 ? 4 : 8);
    if (kind == QN_PROTO_SINT32 || kind == QN_PROTO_SINT64) /* zigzag: 0, -1, 1, -2, ... */
        bits = bits << 1 ^ (bits >> 63 ? UINT64_MAX : 0);
    return qn_proto_put_varint(out, bits);
}

static uint64_t sign_extend(uint64_t bits)
{
    return (uint64_t)(int64_t)(int32_t)(uint32_t)bits;
}

/* What the wire carries for `kind`, as the number that it means. */
static uint64_t normalize(qn_proto_kind kind, uint64_t bits)
{
    switch (kind) {
    case QN_PROTO_INT32:
    case QN_PROTO_ENUM:
    case QN_PROTO_SFIXED32: return sign_extend(bits);
    case QN_PROTO_UINT32: return (uint32_t)bits;
    case QN_PROTO_BOOL: return bits != 0;
    case QN_PROTO_SINT32: return sign_extend((uint32_t)bits >> 1 ^ (bits & 1 ? UINT32_MAX : 0));
    case QN_PROTO_SINT64: return bits >> 1 ^ (bits & 1 ? UINT64_MAX : 0);
    default: return bits;
    }
}

uint64_t qn_proto_take_number(const uint8_t **at, qn_proto_kind kind)
{
    const uint8_t *p = *at;
    uint64_t bits = 0;
    const int type = qn_proto_wire_type(kind);
    if (type == WIRE_VARINT) {
        for (unsigned shift = 0;; shift += 7) {
            bits |= (uint64_t)(*p & 0x7f) << shift;
            if (*p++ < 0x80)
                break;
        }
    } else {
        const size_t size = type == WIRE_FIXED32 ? 4 : 8;
        for (size_t i = 0; i < size; i++)
            bits |= (uint64_t)*p++ << 8 * i;
    }
    *at = p;
    return normalize(kind, bits);
}

uint64_t qn_proto_bits_of_real(qn_proto_kind kind, double value)
{
    if (kind == QN_PROTO_FLOAT) {
        const float narrow = (float)value;
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof bits);
        return bits;
    }
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

double qn_proto_real_of_bits(qn_proto_kind kind, uint64_t bits)
{
    if (kind == QN_PROTO_FLOAT) {
        const uint32_t narrow = (uint32_t)bits;
        float value;
        memcpy(&value, &narrow, sizeof value);
        return value;
    }
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
