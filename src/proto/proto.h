/* Protocol buffers without generated code: schema tables, a tree of messages, and the wire and text
 * formats between a tree and bytes.
 *
 *     qn_proto_tree tree;
 *     qn_proto_tree_init(&tree, ctx, &qn_onnx_model_schema);
 *     QN_TRY_OR_DONE(qn_proto_parse_wire(&tree, map.data, map.size));
 *     const qn_proto_message *graph = qn_proto_get_message(&tree.root, QN_ONNX_MODEL_GRAPH);
 *     for (size_t i = 0; i < qn_proto_count(graph, QN_ONNX_GRAPH_NODE); i++)
 *         ... qn_proto_string(qn_proto_message_at(graph, QN_ONNX_GRAPH_NODE, i), QN_ONNX_NODE_NAME)
 *
 * A tree borrows: strings, bytes and packed arrays point into the parsed input (or wherever the
 * builder took them from), which must outlive the tree. Parsing costs time and memory by the number
 * of fields, not of bytes: it never looks into strings, bytes and packed fixed-size numbers. All
 * checks happen while parsing, so reading a parsed tree cannot fail. */
#ifndef QN_PROTO_H
#define QN_PROTO_H

#include "base/base.h"
#include "base/map.h"

/* ---- Schema ---------------------------------------------------------------------------------- */

typedef enum qn_proto_kind {
    QN_PROTO_INT32,
    QN_PROTO_INT64,
    QN_PROTO_UINT32,
    QN_PROTO_UINT64,
    QN_PROTO_SINT32,
    QN_PROTO_SINT64,
    QN_PROTO_BOOL,
    QN_PROTO_ENUM,
    QN_PROTO_FIXED32,
    QN_PROTO_FIXED64,
    QN_PROTO_SFIXED32,
    QN_PROTO_SFIXED64,
    QN_PROTO_FLOAT,
    QN_PROTO_DOUBLE,
    QN_PROTO_STRING,
    QN_PROTO_BYTES,
    QN_PROTO_MESSAGE
} qn_proto_kind;

/* Repeated numbers are read in both encodings; PACKED is how they are written. */
typedef enum qn_proto_label {
    QN_PROTO_OPTIONAL,
    QN_PROTO_REPEATED,
    QN_PROTO_PACKED
} qn_proto_label;

typedef struct qn_proto_schema qn_proto_schema;

typedef struct qn_proto_enum_value {
    const char *name;
    int32_t number;
} qn_proto_enum_value;

typedef struct qn_proto_enum {
    const qn_proto_enum_value *values;
    size_t count;
} qn_proto_enum;

typedef struct qn_proto_field {
    const char *name;
    uint32_t number;
    qn_proto_kind kind;
    qn_proto_label label;
    /* The schema of a message; NULL: a lenient text may have the field, which is skipped. */
    const qn_proto_schema *message;
    /* The names of an enumeration, which the text format needs. */
    const qn_proto_enum *names;
} qn_proto_field;

struct qn_proto_schema {
    const char *name;
    /* The fields by ascending number. */
    const qn_proto_field *fields;
    size_t count;
};

/* ---- Tree ------------------------------------------------------------------------------------ */

/* Messages may lie this deep in one another; deeper input is refused. */
#define QN_PROTO_MAX_DEPTH 100

typedef struct qn_proto_slot qn_proto_slot; /* one field that is present, with all its values */

typedef struct qn_proto_message {
    const qn_proto_schema *schema;
    /* The fields that are present, by ascending number. */
    qn_proto_slot *slots;
    uint32_t count;
    uint32_t capacity;
    /* Set by qn_proto_write_wire */
    size_t wire_size;
} qn_proto_message;

typedef struct qn_proto_tree {
    qn_context *ctx;
    qn_arena arena;
    qn_proto_message root;
    /* Many programs write such texts, each with fields of its own: one that the schema lacks is
     * skipped with a warning, a word may stand for a string, and a string for a message that begins
     * with one. */
    bool is_lenient;
} qn_proto_tree;

void qn_proto_tree_init(qn_proto_tree *tree, qn_context *ctx, const qn_proto_schema *schema);
void qn_proto_tree_free(qn_proto_tree *tree);

/* ---- Reading a tree -----------------------------------------------------------------------------
 * Fields are named by number. Asking with the wrong kind or for a number that the schema lacks is a
 * programming error. `message` may be NULL: a message in which nothing is present. */

bool qn_proto_has(const qn_proto_message *message, uint32_t number);
/* Values of a repeated field; 0 or 1 for an optional one. */
size_t qn_proto_count(const qn_proto_message *message, uint32_t number);

/* Optional fields. */
int64_t qn_proto_int(const qn_proto_message *message, uint32_t number, int64_t fallback);
double qn_proto_real(const qn_proto_message *message, uint32_t number, double fallback);
qn_string qn_proto_string(const qn_proto_message *message, uint32_t number); /* absent: "" */
const qn_proto_message *qn_proto_get_message(const qn_proto_message *message, uint32_t number);

/* Repeated fields; index < count. */
qn_string qn_proto_string_at(const qn_proto_message *message, uint32_t number, size_t index);
const qn_proto_message *qn_proto_message_at(const qn_proto_message *message, uint32_t number,
                                            size_t index);

/* Repeated numbers, one after the other. */
typedef struct qn_proto_numbers {
    const uint8_t *at;
    const uint8_t *end;
    qn_proto_kind kind;
} qn_proto_numbers;

qn_proto_numbers qn_proto_numbers_of(const qn_proto_message *message, uint32_t number);
/* False, and *out untouched, at the end. An unsigned 64-bit number keeps its bits. */
bool qn_proto_next_int(int64_t *out, qn_proto_numbers *numbers);
bool qn_proto_next_real(double *out, qn_proto_numbers *numbers);
/* The packed bytes of a repeated number field: for FLOAT and DOUBLE an array in little-endian order
 * that may lie at any address. */
qn_string qn_proto_packed(const qn_proto_message *message, uint32_t number);

/* ---- Building a tree ----------------------------------------------------------------------------
 * A repeated field gets one value more; an optional field is set, or set again. Only numbers are
 * copied. */

QN_MUST_CHECK qn_status qn_proto_add_int(qn_proto_tree *tree, qn_proto_message *message,
                                         uint32_t number, int64_t value);
QN_MUST_CHECK qn_status qn_proto_add_real(qn_proto_tree *tree, qn_proto_message *message,
                                          uint32_t number, double value);
QN_MUST_CHECK qn_status qn_proto_add_string(qn_proto_tree *tree, qn_proto_message *message,
                                            uint32_t number, qn_string value);
/* Zero-terminated text. */
QN_MUST_CHECK qn_status qn_proto_add_text(qn_proto_tree *tree, qn_proto_message *message,
                                          uint32_t number, const char *text);
/* A new empty message, or the one that an optional field already has. */
QN_MUST_CHECK qn_status qn_proto_add_message(qn_proto_message **out, qn_proto_tree *tree,
                                             qn_proto_message *message, uint32_t number);

/* ---- Formats --------------------------------------------------------------------------------- */

/* Adds the fields of the input to the tree's root. Fields that the schema lacks are skipped. Errors
 * name the path of the field and the byte offset. */
QN_MUST_CHECK qn_status qn_proto_parse_wire(qn_proto_tree *tree, const void *data, size_t size);
/* The same from text; errors name line and column, and a field that the schema lacks is one. */
QN_MUST_CHECK qn_status qn_proto_parse_text(qn_proto_tree *tree, const char *text, size_t length);

/* Where written bytes go. */
typedef struct qn_proto_sink {
    qn_status (*write)(void *user, const void *data, size_t size);
    void *user;
} qn_proto_sink;

qn_proto_sink qn_proto_sink_file(qn_output_file *file);

/* Bytes of the message in wire format. */
size_t qn_proto_wire_size(qn_proto_message *message);
/* Fields go out by ascending number. Small pieces are collected, large spans are handed to the sink
 * from where they lie. */
QN_MUST_CHECK qn_status qn_proto_write_wire(qn_proto_tree *tree, qn_proto_sink sink);
QN_MUST_CHECK qn_status qn_proto_write_text(qn_proto_tree *tree, qn_proto_sink sink);

#endif
