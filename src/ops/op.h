/* What an operator is: one `const qn_op` object, named by its row in ops.def. Everything that the
 * rest of the house knows of an operator is in this struct, kinds of operators are in kinds.h.
 *
 * The graph holds every node in one form, that of opset QN_LATEST_OPSET. Nodes of older files are
 * brought there by the operator's `versions` rules, and taken back by them for writing. */
#ifndef QN_OP_H
#define QN_OP_H

#include <limits.h>
#include <stdarg.h>

#include "ir/graph.h"

#define QN_LATEST_OPSET 23

/* ---- Attributes ------------------------------------------------------------------------------ */

typedef enum qn_attr_kind {
    /* The field is an int64_t. */
    QN_ATTR_INT,
    /* The field is a float. */
    QN_ATTR_FLOAT,
    /* The field is a const char *, NULL when absent. */
    QN_ATTR_STRING,
    /* The field is an int64_t, an index into `words`; files have a string. */
    QN_ATTR_ENUM,
    /* The field is a qn_ints. */
    QN_ATTR_INTS,
    /* The field is a qn_floats. */
    QN_ATTR_FLOATS,
    /* The field is a qn_strings. */
    QN_ATTR_STRINGS,
    /* The field is a const qn_tensor *, NULL when absent. */
    QN_ATTR_TENSOR,
    /* The field is a qn_graph *, NULL when absent. */
    QN_ATTR_GRAPH,
    /* The field is a const qn_type *, NULL when absent. */
    QN_ATTR_TYPE
} qn_attr_kind;

/* `at` NULL: the attribute is absent (an empty list has a pointer and count 0). */
typedef struct qn_ints {
    const int64_t *at;
    size_t count;
} qn_ints;
typedef struct qn_floats {
    const float *at;
    size_t count;
} qn_floats;
typedef struct qn_strings {
    const qn_string *at;
    size_t count;
} qn_strings;

/* One field of an operator's attribute struct. An attribute that the latest form no longer has
 * stays in the table, with the opset that dropped it in `until`; the upgrade rule moves it to where
 * it lives now and sets it back to its default, so that it is not written again. */
typedef struct qn_attr_spec {
    const char *name;
    qn_attr_kind kind;
    size_t offset;
    /* The default of an integer; of an enumeration the index of its word. */
    int64_t int_default;
    float float_default;
    const char *string_default;
    /* The words of an enumeration, ending with NULL. */
    const char *const *words;
    /* The opset that brought it; older forms mean its default. */
    int since;
    /* The opset that dropped it; 0: it is still there. */
    int until;
    /* The opset from which on it must be given; 1: always, 0: it is optional. */
    int required;
} qn_attr_spec;

#define QN_ABSENT INT64_MIN /* default of an int attribute whose absence means something */

/* Further members may follow: QN_INT_ATTR(attrs, ceil_mode, 0, .since = 10). */
#define QN_INT_ATTR(type, field, ...)                                                              \
    {                                                                                              \
        .name = #field, .kind = QN_ATTR_INT, .offset = offsetof(type, field),                      \
        .int_default = __VA_ARGS__                                                                 \
    }
#define QN_FLOAT_ATTR(type, field, ...)                                                            \
    {                                                                                              \
        .name = #field, .kind = QN_ATTR_FLOAT, .offset = offsetof(type, field),                    \
        .float_default = __VA_ARGS__                                                               \
    }
#define QN_STRING_ATTR(type, field, ...)                                                           \
    {                                                                                              \
        .name = #field, .kind = QN_ATTR_STRING, .offset = offsetof(type, field),                   \
        .string_default = __VA_ARGS__                                                              \
    }
#define QN_ENUM_ATTR(type, field, value, ...)                                                      \
    {                                                                                              \
        .name = #field, .kind = QN_ATTR_ENUM, .offset = offsetof(type, field),                     \
        .int_default = (value), .words = __VA_ARGS__                                               \
    }
/* Lists, tensors, graphs and types: absent by default. The third is INTS, FLOATS, STRINGS, ... */
#define QN_ATTR(type, field, ...)                                                                  \
    {                                                                                              \
        .name = #field, .offset = offsetof(type, field), .kind = QN_ATTR_##__VA_ARGS__             \
    }

/* ---- Inputs and outputs ---------------------------------------------------------------------- */

enum {
    /* The port may be left out. */
    QN_OPTIONAL = 1,
    /* The last port stands for any number of inputs or outputs. */
    QN_VARIADIC = 2
};

/* Inputs with the same letter have the same element type; '\0' is bound to nothing. A variadic port
 * with a letter binds all of its inputs. A wrong type is refused before `infer` is called. */
typedef struct qn_port {
    const char *name;
    char letter;
    /* QN_SET_... */
    uint32_t types;
    unsigned flags;
} qn_port;

/* ---- Inference: what is known of the outputs ------------------------------------------------- */

typedef struct qn_infer qn_infer;
struct qn_infer {
    qn_context *ctx;
    /* Elements and nested types of the outputs are allocated here. */
    qn_arena *arena;
    const qn_node *node;
    const void *attrs;
    int32_t n_in, n_out;
    /* An input is NULL where it is left out. */
    const qn_type *const *in;
    /* Contents of inputs that are constant, else NULL */
    const qn_tensor *const *data;
    /* The types to be filled, unknown at first; NULL where an output is not wanted. */
    qn_type *const *out;
    /* Infers a subgraph of the node from the types of its inputs (in->n_inputs of them); its
     * captures are taken care of. NULL where the caller cannot. */
    qn_status (*graph)(qn_infer *self, qn_graph *body, const qn_type *inputs);
};

/* ---- Evaluation: the reference kernels ----------------------------------------------------------
 * Plain C, for every type that the ports allow; the oracle for every faster kernel. Outputs have
 * their type, dims and memory when the kernel is called (from `infer` with all inputs known),
 * unless the operator says QN_OP_ALLOCATES: then the kernel asks for each with qn_eval_output.
 * Inputs and outputs never overlap. */

typedef struct qn_eval qn_eval;
struct qn_eval {
    qn_context *ctx;
    const qn_node *node;
    const void *attrs;
    int32_t n_in, n_out;
    /* An input is NULL where it is left out. */
    const qn_tensor *const *in;
    /* An output is NULL where it is not wanted. */
    qn_tensor *const *out;
    /* Memory that lives as long as the outputs, and memory that ends with the call; both 64-byte
     * aligned, not zeroed, NULL when short. */
    void *(*keep)(qn_eval *self, size_t size);
    void *(*scratch)(qn_eval *self, size_t size);
    /* Runs a subgraph of the node. `inputs` has one per graph input; captures are taken care of.
     * `outputs` (one per graph output) stay valid until the same subgraph runs again. */
    qn_status (*graph)(qn_eval *self, const qn_graph *body, const qn_tensor *const *inputs,
                       const qn_tensor **outputs);
};

/* ---- Quantization: how an integer network treats the operator -------------------------------- */

typedef enum qn_quant_rule {
    /* Stays float */
    QN_QUANT_FLOAT,
    /* Multiply-accumulate: quantized inputs, wide sum, requantized output */
    QN_QUANT_MAC,
    /* Moves elements: output has the input's parameters */
    QN_QUANT_PASS,
    /* Element-wise with parameters of its own on each side */
    QN_QUANT_ELEMENT,
    /* Unary function: a look-up table */
    QN_QUANT_TABLE,
    /* Computes with shapes and indices; never quantized */
    QN_QUANT_SHAPE,
    /* A quantization operator itself */
    QN_QUANT_ALREADY
} qn_quant_rule;
/* All numbers of its outputs stand in its inputs (or are the number that a Pad fills up with): an
 * operator of QN_QUANT_PASS whose attributes do not make it compute. */
bool qn_moves_numbers(const qn_node *node);

/* ---- Versions -----------------------------------------------------------------------------------
 * A rule for a change of form that came with opset `opset`: `upgrade` brings a node from the form
 * before it to the form since; `downgrade` takes it back, or fails with QN_E_UNSUPPORTED naming
 * what the older form cannot say. NULL: nothing to do in that direction. Rules stand in ascending
 * order. Both may insert nodes before or after the node, or remove it (then *node becomes NULL). */
typedef struct qn_version_rule {
    int opset;
    qn_status (*upgrade)(qn_node **node);
    qn_status (*downgrade)(qn_node **node);
} qn_version_rule;

#define QN_NO_OPSET INT_MAX /* of a type rule: no opset has it, only graphs inside quench do */

/* Element types (QN_SET_...) that came with an opset: downgrading a node that has one fails. Types
 * that were new to all of ONNX then (bfloat16 in 13) need no row: versions.c has them. The rule is
 * not about ports that take nothing else (indices, beside data that may have been integers later
 * only). */
typedef struct qn_type_rule {
    int opset;
    uint32_t types;
} qn_type_rule;

/* Brings a node as a file of opset `from` of the operator's domain has it into the latest form. The
 * types of its inputs should be inferred already: some rules need a rank. */
QN_MUST_CHECK qn_status qn_node_upgrade(qn_node **node, int from);
/* Takes a node of the latest form to that of opset `to`. Nodes that a rule inserts stand next to it
 * in the list, in the latest form. */
QN_MUST_CHECK qn_status qn_node_downgrade(qn_node **node, int to);

/* ---- The operator ---------------------------------------------------------------------------- */

enum {
    /* Output shapes depend on contents: the kernel allocates */
    QN_OP_ALLOCATES = 1,
    /* Two runs differ, or it has an effect: never folded or merged */
    QN_OP_RANDOM = 2,
    /* Inputs 0 and 1 may be swapped */
    QN_OP_COMMUTES = 4,
    /* Output element i depends on the (broadcast) input elements i only */
    QN_OP_ELEMENTWISE = 8,
    /* Output elements are copies of elements of input 0 */
    QN_OP_MOVES = 16
};

struct qn_op {
    /* ONNX's */
    const char *name;
    /* "" (ONNX's own), "com.microsoft", "quench" (internal, never in files) */
    const char *domain;
    /* First opset that has it */
    int since;
    /* Opset that dropped it; 0: still there. Its upgrade rule replaces it. */
    int until;
    const qn_port *in, *out;
    /* Ports */
    int n_in, n_out;
    const qn_attr_spec *attrs;
    size_t n_attrs, attrs_size;
    const qn_version_rule *versions;
    size_t n_versions;
    const qn_type_rule *type_rules;
    size_t n_type_rules;
    unsigned flags;
    qn_quant_rule quant;
    qn_status (*infer)(qn_infer *self);
    qn_status (*eval)(qn_eval *self);
    /* Multiply-accumulates of one run with these (known) types; NULL: none worth counting. */
    int64_t (*macs)(const qn_infer *self);
    /* One line for `quench ops` and the docs */
    const char *brief;
};

#define QN_PORTS(field, array) .field = (array), .n_##field = (int)QN_COUNT_OF(array)
#define QN_ATTRS(array, type)                                                                      \
    .attrs = (array), .n_attrs = QN_COUNT_OF(array), .attrs_size = sizeof(type)
#define QN_VERSIONS(array) .versions = (array), .n_versions = QN_COUNT_OF(array)
#define QN_TYPE_RULES(array) .type_rules = (array), .n_type_rules = QN_COUNT_OF(array)

#define QN_OP(id) extern const qn_op qn_op_##id;
#include "ops/ops.def"
#undef QN_OP

/* All operators, sorted by domain, then name. */
extern const qn_op *const qn_ops[];
extern const size_t qn_ops_count;
/* NULL when nobody knows it. "ai.onnx" is another name of "". */
const qn_op *qn_op_find(const char *domain, const char *name);

/* ---- Nodes of an operator (node.c) ----------------------------------------------------------- */

/* A node with default attributes and empty slots at the end of the list, as importers need it. */
QN_MUST_CHECK qn_status qn_node_add(qn_node **out, qn_graph *graph, const qn_op *op,
                                    const char *name, int32_t n_in, int32_t n_out);
/* A node with default attributes before `before` (NULL: at the end of the list). */
QN_MUST_CHECK qn_status qn_node_create(qn_node **out, qn_graph *graph, const qn_op *op,
                                       qn_node *before);
/* The everyday rewrite: a node with these inputs and one fresh output value. `name` NULL: made
 * up. */
typedef struct qn_node_spec {
    const qn_op *op;
    const char *name;
    qn_node *before;
    qn_value *in[8];
    int32_t n_in;
} qn_node_spec;
QN_MUST_CHECK qn_status qn_node_build(qn_node **out, qn_graph *graph, const qn_node_spec *spec);

/* The attribute of that name in opset `version`; a kind that changed has a row before and one
 * after. */
const qn_attr_spec *qn_op_attr(const qn_op *op, const char *name, int64_t version);
/* The field of node->attrs that the spec describes. */
void *qn_attr_field(const qn_node *node, const qn_attr_spec *spec);
void qn_attr_set_default(void *attrs, const qn_attr_spec *spec);
bool qn_attr_is_default(const void *attrs, const qn_attr_spec *spec);
/* The node's subgraph number i, in the order of the attribute table; NULL past the last. */
qn_graph *qn_node_subgraph(const qn_node *node, size_t i);

/* Fails with "node 'conv1' (Conv): ..." in front of the message. */
QN_MUST_CHECK qn_status qn_node_fail(const qn_node *node, qn_status status, const char *format, ...)
    QN_PRINTF(3, 4);
/* Where the node's graph has another context than the caller, or none. */
QN_MUST_CHECK qn_status qn_node_vfail(qn_context *ctx, const qn_node *node, qn_status status,
                                      const char *format, va_list args) QN_PRINTF(4, 0);

#endif
