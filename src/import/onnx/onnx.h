/* The parts of the ONNX importer, for each other. */
#ifndef QN_IMPORT_ONNX_H
#define QN_IMPORT_ONNX_H

#include "import/import.h"
#include "ops/op.h"
#include "proto/onnx_schema.h"

/* The opsets that a graph's nodes have in the file, by the nodes' numbers; 0: the latest. */
typedef struct qn_onnx_node_opsets {
    const qn_graph *graph;
    uint32_t *at;
    size_t room;
    struct qn_onnx_node_opsets *next;
} qn_onnx_node_opsets;

typedef struct qn_onnx_import {
    qn_context *ctx;
    /* What stays: the model's */
    qn_arena *arena;
    /* NULL when only a value is read */
    qn_model *model;
    /* The folder of external data; NULL: there is none. */
    const char *folder;
    /* The bytes of the file; they outlive the model, the tree does not */
    qn_string input;
    qn_proto_tree tree;
    /* Every name once, in the tree's arena */
    qn_names names;
    char *name_buffer;
    size_t name_capacity;
    /* External location -> map number + 1 */
    qn_names files;
    /* "domain:name:overload" -> FunctionProto */
    qn_names functions;
    /* The tables of all graphs, in the tree's arena: a ring in the order in which they were begun,
     * of which this is the last one begun or upgraded */
    qn_onnx_node_opsets *node_opsets;
    /* Nodes that came out of functions */
    size_t inlined;
    /* How deep functions and subgraphs lie in one another. */
    int depth;
    /* Stands for an optional input that a function's caller left out */
    qn_value absent;
} qn_onnx_import;

/* ---- Names and types (type.c) ----------------------------------------------------------- */

/* The name as terminated text, once for all its occurrences; lives as long as the import. */
QN_MUST_CHECK qn_status qn_onnx_name(const char **out, qn_onnx_import *import, qn_string name);
/* A copy that lives as long as the model; NULL when the text is empty. */
QN_MUST_CHECK qn_status qn_onnx_text(const char **out, qn_onnx_import *import, qn_string text);
/* The StringStringEntryProtos of a field. */
QN_MUST_CHECK qn_status qn_onnx_metadata(qn_metadata *out, qn_onnx_import *import,
                                         const qn_proto_message *message, uint32_t field);
QN_MUST_CHECK qn_status qn_onnx_type(qn_type *out, qn_onnx_import *import,
                                     const qn_proto_message *type);

/* ---- Tensors (tensor.c, sparse.c, external.c) --------------------------------- */

QN_MUST_CHECK qn_status qn_onnx_tensor(qn_tensor *out, qn_onnx_import *import,
                                       const qn_proto_message *tensor);
/* Dims of a tensor or sparse tensor, checked so that bytes and counts fit. */
QN_MUST_CHECK qn_status qn_onnx_dims(qn_tensor *out, qn_onnx_import *import,
                                     const qn_proto_message *message, uint32_t field);
/* A dense tensor from a SparseTensorProto. */
QN_MUST_CHECK qn_status qn_onnx_sparse(qn_tensor *out, qn_onnx_import *import,
                                       const qn_proto_message *sparse);
/* The bytes that the tensor's external_data names, `size` of them. */
QN_MUST_CHECK qn_status qn_onnx_external(qn_string *out, qn_onnx_import *import,
                                         const qn_proto_message *tensor, size_t size);

/* ---- Graphs (graph.c, order.c) ----------------------------------------------------- */

typedef struct qn_onnx_scope qn_onnx_scope;

/* A function being inlined. */
typedef struct qn_onnx_argument {
    const char *name;
    const qn_proto_message *attribute;
    /* Where a graph in it finds its values; NULL: a default of the function */
    qn_onnx_scope *scope;
} qn_onnx_argument;

typedef struct qn_onnx_call {
    const struct qn_onnx_call *caller;
    const qn_proto_message *function;
    /* What the names of inner values and nodes begin with. */
    const char *prefix;
    /* Outputs of the function -> their names at the caller's */
    qn_names renamed;
    qn_onnx_argument *arguments;
    size_t n_arguments;
} qn_onnx_call;

/* Where names have meaning: a graph, a subgraph, or a function's body (which shares its caller's
 * graph, not its names). */
struct qn_onnx_scope {
    qn_onnx_import *import;
    /* The scope that captured values of a subgraph come from. */
    qn_onnx_scope *parent;
    qn_graph *graph;
    qn_onnx_node_opsets *node_opsets;
    /* Name in the file -> qn_value */
    qn_names values;
    /* Name in the file -> ValueInfoProto */
    qn_names declared;
    const qn_opset *opsets;
    size_t n_opsets;
    /* The call whose attributes can be referred to */
    const qn_onnx_call *call;
    /* == call in the function's own body, NULL in subgraphs of it */
    const qn_onnx_call *body;
};

QN_MUST_CHECK qn_status qn_onnx_opsets(qn_opset **out, size_t *count, qn_onnx_import *import,
                                       const qn_proto_message *message, uint32_t field);
/* 0 when the domain is not imported. */
int64_t qn_onnx_opset_version(const qn_onnx_scope *scope, const char *domain);

/* Fills graph->... of `scope` from a GraphProto. */
QN_MUST_CHECK qn_status qn_onnx_graph(qn_onnx_scope *scope, const qn_proto_message *graph);
/* The value of that name; captured from an outer graph where needed. NULL: there is none. */
QN_MUST_CHECK qn_status qn_onnx_find(qn_value **out, qn_onnx_scope *scope, const char *name);
/* Gives a value its name in the file; a name that has a value already is an error. */
QN_MUST_CHECK qn_status qn_onnx_define(qn_onnx_scope *scope, const char *name, qn_value *value);
/* A new value for a node's output, with its declared type. */
QN_MUST_CHECK qn_status qn_onnx_define_output(qn_value **out, qn_onnx_scope *scope,
                                              const char *name);
/* The name that a value or node of the scope gets in the graph. */
QN_MUST_CHECK qn_status qn_onnx_final_name(const char **out, const qn_onnx_scope *scope,
                                           const char *name);
/* Imports the nodes of a GraphProto or FunctionProto in topological order. */
QN_MUST_CHECK qn_status qn_onnx_nodes(qn_onnx_scope *scope, const qn_proto_message *message,
                                      uint32_t field);
/* order[0 .. count of the field): indices so that every node comes after those it reads from. Nodes
 * in order stay where they are. In the tree's arena. */
QN_MUST_CHECK qn_status qn_onnx_order(const size_t **out, qn_onnx_import *import,
                                      const qn_proto_message *message, uint32_t field);

/* Enters a function or subgraph; left with import->depth--. Files cannot make the stack
 * overflow. */
QN_MUST_CHECK qn_status qn_onnx_enter(qn_onnx_import *import);

/* ---- Nodes (node.c, attribute.c, function.c, upgrade.c) ------------------ */

QN_MUST_CHECK qn_status qn_onnx_node(qn_onnx_scope *scope, const qn_proto_message *node);
/* "Conv 'conv1'", or with the first output where the node has no name: for messages. */
typedef struct qn_onnx_label {
    char text[160];
} qn_onnx_label;
qn_onnx_label qn_onnx_node_label(const qn_proto_message *node);
/* The node's own name, else one made from operator and first output, as the graph gets it. */
QN_MUST_CHECK qn_status qn_onnx_node_name(const char **out, qn_onnx_scope *scope,
                                          const qn_proto_message *node);

/* An attribute of a node with references to a function's attributes resolved; attribute NULL: the
 * reference leads to nothing, as if it were absent. */
QN_MUST_CHECK qn_status qn_onnx_resolve(qn_onnx_argument *out, qn_onnx_scope *scope,
                                        const qn_proto_message *attribute);
/* Reads all attributes of the node in the file into node->attrs. */
QN_MUST_CHECK qn_status qn_onnx_attributes(qn_node *node, qn_onnx_scope *scope,
                                           const qn_proto_message *proto, int64_t version);
/* The contents of a Constant node. */
QN_MUST_CHECK qn_status qn_onnx_constant(qn_tensor *out, qn_onnx_scope *scope,
                                         const qn_proto_message *node);

/* NULL when the model has no such function. */
QN_MUST_CHECK qn_status qn_onnx_function(const qn_proto_message **out, qn_onnx_import *import,
                                         const qn_proto_message *node);
QN_MUST_CHECK qn_status qn_onnx_add_functions(qn_onnx_import *import);
QN_MUST_CHECK qn_status qn_onnx_inline(qn_onnx_scope *scope, const qn_proto_message *node,
                                       const qn_proto_message *function);

/* Gives the scope, whose graph is new, its node_opsets. */
QN_MUST_CHECK qn_status qn_onnx_begin_opsets(qn_onnx_scope *scope);
/* Notes the opset that a node of the scope's graph has in the file. */
QN_MUST_CHECK qn_status qn_onnx_set_opset(qn_onnx_scope *scope, const qn_node *node,
                                          int64_t version);
/* Brings every node from its opset to the latest form, and infers types on the way, since some
 * rules need them. */
QN_MUST_CHECK qn_status qn_onnx_upgrade(qn_onnx_import *import, qn_graph *graph);

#endif
