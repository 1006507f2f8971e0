/* What the tests of src/proto share: a schema with every kind, a sink into memory. */
#ifndef QN_PROTO_TEST_H
#define QN_PROTO_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/proto.h"

static const qn_proto_enum_value colour_values[] = {{"RED", 0}, {"GREEN", 1}, {"ODD", -7}};
static const qn_proto_enum colours = {colour_values, QN_COUNT_OF(colour_values)};

enum {
    ALL_INT32 = 1,
    ALL_BYTES = 16,
    ALL_CHILD = 17,
    ALL_INT32S = 101,
    ALL_FLOATS = 113,
    ALL_STRINGS = 115,
    ALL_CHILDREN = 117,
    ALL_PACKED_INT32S = 2001,
    ALL_PACKED_DOUBLES = 2014
};

static const qn_proto_schema all;

/* Field number n: kind n - 1; + 100: repeated; + 2000: packed. */
#define ROW(kind, name, base)                                                                      \
    {                                                                                              \
        name, base + QN_PROTO_##kind + 1, QN_PROTO_##kind,                                         \
            base == 0     ? QN_PROTO_OPTIONAL                                                      \
            : base == 100 ? QN_PROTO_REPEATED                                                      \
                          : QN_PROTO_PACKED,                                                       \
            QN_PROTO_##kind == QN_PROTO_MESSAGE ? &all : NULL,                                     \
            QN_PROTO_##kind == QN_PROTO_ENUM ? &colours : NULL                                     \
    }
#define NUMBER_ROWS(prefix, base)                                                                  \
    ROW(INT32, prefix "int32", base), ROW(INT64, prefix "int64", base),                            \
        ROW(UINT32, prefix "uint32", base), ROW(UINT64, prefix "uint64", base),                    \
        ROW(SINT32, prefix "sint32", base), ROW(SINT64, prefix "sint64", base),                    \
        ROW(BOOL, prefix "bool", base), ROW(ENUM, prefix "enum", base),                            \
        ROW(FIXED32, prefix "fixed32", base), ROW(FIXED64, prefix "fixed64", base),                \
        ROW(SFIXED32, prefix "sfixed32", base), ROW(SFIXED64, prefix "sfixed64", base),            \
        ROW(FLOAT, prefix "float", base), ROW(DOUBLE, prefix "double", base)

static const qn_proto_field all_fields[] = {
    NUMBER_ROWS("", 0),         ROW(STRING, "string", 0),     ROW(BYTES, "bytes", 0),
    ROW(MESSAGE, "child", 0),   NUMBER_ROWS("r_", 100),       ROW(STRING, "r_string", 100),
    ROW(BYTES, "r_bytes", 100), ROW(MESSAGE, "r_child", 100), NUMBER_ROWS("p_", 2000),
};
static const qn_proto_schema all = {"All", all_fields, QN_COUNT_OF(all_fields)};

typedef struct memory {
    uint8_t data[1 << 16];
    size_t size;
    /* Largest piece in one write */
    size_t direct;
} memory;

static inline qn_status memory_write(void *user, const void *data, size_t size)
{
    memory *m = user;
    assert_true(size <= sizeof m->data - m->size);
    memcpy(m->data + m->size, data, size);
    m->size += size;
    m->direct = QN_MAX(m->direct, size);
    return QN_OK;
}

static inline qn_proto_sink memory_sink(memory *m)
{
    m->size = 0;
    m->direct = 0;
    return (qn_proto_sink){memory_write, m};
}

static inline qn_context *context_new(void)
{
    qn_context *ctx;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    return ctx;
}

static inline uint64_t random_next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 24 ^ *state << 40;
}

/* Numbers of all sizes, so that varints have all lengths. */
static inline int64_t random_int(uint64_t *state, qn_proto_kind kind)
{
    const uint64_t bits = random_next(state) >> random_next(state) % 64;
    switch (kind) {
    case QN_PROTO_BOOL: return bits & 1;
    case QN_PROTO_UINT32:
    case QN_PROTO_FIXED32: return (uint32_t)bits;
    case QN_PROTO_INT64:
    case QN_PROTO_SINT64:
    case QN_PROTO_SFIXED64:
        return random_next(state) & 1 ? -(int64_t)(bits >> 1) : (int64_t)(bits >> 1);
    case QN_PROTO_UINT64:
    case QN_PROTO_FIXED64: return (int64_t)bits;
    default: return (int32_t)(uint32_t)bits;
    }
}

static inline void random_fill(qn_proto_tree *tree, qn_proto_message *message, uint64_t *state,
                               int depth)
{
    static const char text[] = "\"quoted\" \\ \n\t\r 'x' \001\177\200\377 plain /path:0";
    for (int i = 0; i < 12; i++) {
        const qn_proto_field *f = &all_fields[random_next(state) % QN_COUNT_OF(all_fields)];
        qn_proto_message *child;
        const size_t start = random_next(state) % sizeof text;
        const qn_string piece = {text + start, random_next(state) % (sizeof text - start)};
        switch (f->kind) {
        case QN_PROTO_STRING:
        case QN_PROTO_BYTES:
            assert_int_equal(qn_proto_add_string(tree, message, f->number, piece), QN_OK);
            break;
        case QN_PROTO_MESSAGE:
            if (depth == 4)
                break;
            assert_int_equal(qn_proto_add_message(&child, tree, message, f->number), QN_OK);
            random_fill(tree, child, state, depth + 1);
            break;
        case QN_PROTO_FLOAT:
        case QN_PROTO_DOUBLE: {
            const double real = (double)random_int(state, QN_PROTO_INT64) / 4096.0;
            assert_int_equal(qn_proto_add_real(tree, message, f->number, real), QN_OK);
            break;
        }
        default:
            assert_int_equal(qn_proto_add_int(tree, message, f->number, random_int(state, f->kind)),
                             QN_OK);
        }
    }
}

#endif
