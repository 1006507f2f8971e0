/* The graph: the one mutable thing between a file and a plan. Importers make it, passes and the
 * quantizer change it, exporters and the planner read it.
 *
 * Nodes stand in a list that is always in topological order: a node's inputs are produced before
 * it. Objects live in the model's arena; a removed object is unlinked, not freed. All edits go
 * through the functions below, which keep `producer` and `users` true. */
#ifndef QN_GRAPH_H
#define QN_GRAPH_H

#include "base/map.h"
#include "base/names.h"
#include "ir/tensor.h"

typedef struct qn_op qn_op;           /* src/ops/op.h */
typedef struct qn_qparams qn_qparams; /* quantization parameters of a value */
typedef struct qn_graph qn_graph;
typedef struct qn_node qn_node;
typedef struct qn_value qn_value;

typedef struct qn_metadata_entry {
    const char *key, *value;
} qn_metadata_entry;

/* What files say about a thing without changing its meaning. */
typedef struct qn_metadata {
    const qn_metadata_entry *at;
    size_t count;
} qn_metadata;

struct qn_value {
    /* The name is unique in its graph. */
    const char *name;
    /* It may be NULL. */
    const char *doc;
    qn_metadata metadata;
    qn_graph *graph;
    /* What inference knows by now; of a graph input, what the file says. */
    qn_type type;
    /* What the file says of the type, or NULL. */
    const qn_type *declared;
    /* The contents of a constant (initializer, folded node), else NULL. */
    const qn_tensor *data;
    /* The node that computes it; a graph input, constant or capture has none. */
    qn_node *producer;
    int32_t producer_slot;
    /* The nodes that read it, one entry per input slot; their order means nothing. */
    qn_node **users;
    size_t n_users, users_capacity;
    /* It stands in graph->inputs. */
    bool is_input;
    /* It stands in graph->outputs: it has a reader outside. */
    bool is_output;
    /* It stands for a value of the enclosing graph. */
    bool is_capture;
    /* The number is its place in graph->values for as long as it lives: tables of values are
     * indexed by it. */
    uint32_t number;
    /* The mark is scratch of the algorithm at work and means nothing between algorithms. */
    uint32_t mark;
    qn_qparams *qparams;
    /* What a parameter holds at first. A parameter is neither an input nor a constant: its
     * contents are a session's, whose caller reads and writes them between runs (run/session.h). No
     * pass or kernel looks into it, since `data` is NULL. */
    const qn_tensor *initial;
};

struct qn_node {
    /* The name is unique in its graph; it is made up when the file has none. */
    const char *name;
    /* It may be NULL. */
    const char *doc;
    qn_metadata metadata;
    const qn_op *op;
    /* The attributes are the operator's own struct, see op.h. */
    void *attrs;
    qn_graph *graph;
    qn_node *prev, *next;
    /* in[i] NULL: an optional input left out. Inputs from n_explicit on are the values that the
     * node's subgraphs capture from this graph (no duplicates). out[i] NULL: output not wanted. */
    int32_t n_in, n_explicit, n_out;
    qn_value **in, **out;
    /* Below graph->made.numbers, and the same until qn_graph_renumber: tables of nodes are indexed
     * by it. */
    uint32_t number;
    /* Scratch, as of a value. */
    uint32_t mark;
};

/* in[slot] of the owner node is seen inside the subgraph as `inner`. */
typedef struct qn_capture {
    qn_value *inner;
    int32_t slot;
} qn_capture;

/* What a graph has made so far. */
typedef struct qn_graph_counters {
    /* Names that were made up. */
    uint64_t names;
    /* Numbers of nodes, which are all below it. */
    uint32_t numbers;
} qn_graph_counters;

struct qn_graph {
    qn_context *ctx;
    /* The arena is the model's. */
    qn_arena *arena;
    qn_model *model;
    const char *name, *doc;
    qn_metadata metadata;
    /* The node that a subgraph belongs to, else NULL. */
    qn_node *owner;
    qn_node *first, *last;
    size_t n_nodes;
    qn_value **inputs, **outputs;
    size_t n_inputs, n_outputs, inputs_capacity, outputs_capacity;
    qn_capture *captures;
    size_t n_captures, captures_capacity;
    /* All values, removed ones too. */
    qn_value **values;
    size_t n_values, values_capacity;
    /* Values by their names. */
    qn_names by_name;
    /* Nodes by their names. */
    qn_names node_names;
    qn_graph_counters made;
};

typedef struct qn_opset {
    /* ONNX's own domain is "". */
    const char *domain;
    int64_t version;
} qn_opset;

/* What a file holds. Graphs are in the latest known form of every operator, whatever the opset they
 * were read from. */
struct qn_model {
    qn_context *ctx;
    atomic_int references;
    /* The model whose tensors a clone shares, kept alive by it; else NULL. */
    qn_model *origin;
    qn_arena arena;
    qn_graph *graph;
    /* It may be NULL. */
    const char *path;
    /* What the importer that read it is called; NULL: it was not read from a file. */
    const char *framework;
    int64_t ir_version, model_version;
    const char *producer, *producer_version, *domain, *doc;
    /* The opsets of the file. */
    qn_opset *opsets;
    size_t n_opsets;
    qn_metadata metadata;
    /* Mapped files that tensors point into */
    qn_map *maps;
    size_t n_maps, maps_capacity;
    /* Every graph of the model, for freeing */
    qn_graph **graphs;
    size_t n_graphs, graphs_capacity;
    /* Contents of large tensors made by passes, see qn_model_tensor */
    void **blocks;
    size_t n_blocks, blocks_capacity;
};

/* ---- Making ---------------------------------------------------------------------------------- */

QN_MUST_CHECK qn_status qn_model_create(qn_model **out, qn_context *ctx);
/* One more reference; qn_model_free lets go of one, and the last one frees. */
qn_model *qn_model_retain(qn_model *model);
/* Says something in the model's metadata; what the key said before is gone. `key` outlives the
 * model, `value` is copied. */
QN_MUST_CHECK qn_status qn_model_set_metadata(qn_model *model, const char *key, const char *value);
/* NULL: it does not say. */
const char *qn_model_metadata(const qn_model *model, const char *key);
/* The version of the domain's operators that the model imports; 0: it imports none. */
int64_t qn_model_opset(const qn_model *model, const char *domain);
/* `domain` outlives the model; version 0: the model does not import it any more. */
QN_MUST_CHECK qn_status qn_model_set_opset(qn_model *model, const char *domain, int64_t version);
/* A tensor whose contents (not zeroed) can be given back before the model ends: for weights that a
 * pass computes and a backend packs. */
QN_MUST_CHECK qn_status qn_model_tensor(qn_tensor **out, qn_model *model, const qn_type *type);
/* The contents will not be read again through this model: memory of qn_model_tensor is freed, pages
 * of mapped files leave the resident set. */
void qn_model_release(qn_model *model, const qn_tensor *tensor);
/* An empty graph that lives as long as the model. */
QN_MUST_CHECK qn_status qn_graph_create(qn_graph **out, qn_model *model, const char *name);

/* A value called `name`; NULL or a name that is taken gets a unique one derived from it. */
QN_MUST_CHECK qn_status qn_value_create(qn_value **out, qn_graph *graph, const char *name);
/* A constant; `data` must live as long as the model (its arena or its maps). */
QN_MUST_CHECK qn_status qn_value_constant(qn_value **out, qn_graph *graph, const char *name,
                                          const qn_tensor *data);
/* A parameter that holds a copy of `initial`, which must live as long as the model, in each session
 * at first. */
QN_MUST_CHECK qn_status qn_value_parameter(qn_value **out, qn_graph *graph, const char *name,
                                           const qn_tensor *initial);
/* Makes a constant a parameter. */
void qn_value_make_parameter(qn_value *value);
/* Constants of int64 (rank 1) and of one float32 (rank 0), which rewrites need all the time. */
QN_MUST_CHECK qn_status qn_value_ints(qn_value **out, qn_graph *graph, const int64_t *values,
                                      size_t count);
QN_MUST_CHECK qn_status qn_value_float(qn_value **out, qn_graph *graph, float value);

/* A node at the end of the list, with zeroed attributes (qn_node_create of op.h sets defaults) and
 * all slots NULL. */
QN_MUST_CHECK qn_status qn_graph_add_node(qn_node **out, qn_graph *graph, const char *name,
                                          int32_t n_in, int32_t n_out);
QN_MUST_CHECK qn_status qn_graph_add_input(qn_graph *graph, qn_value *value);
QN_MUST_CHECK qn_status qn_graph_add_output(qn_graph *graph, qn_value *value);
/* The graph has no outputs any more. */
void qn_graph_clear_outputs(qn_graph *graph);
/* Makes `inner` of the subgraph stand for in[slot] of its owner. */
QN_MUST_CHECK qn_status qn_graph_add_capture(qn_graph *graph, qn_value *inner, int32_t slot);

/* Numbers the nodes from 0 on in the order of the list; made.numbers is n_nodes then. Whoever keeps
 * a table by numbers of a graph is the only one who may. */
void qn_graph_renumber(qn_graph *graph);

/* ---- Looking --------------------------------------------------------------------------------- */

/* NULL when there is none. */
qn_value *qn_graph_value(const qn_graph *graph, const char *name);
qn_node *qn_graph_node(const qn_graph *graph, const char *name);
/* The one node that reads the value, when exactly one slot does and no graph output; else NULL. */
qn_node *qn_value_only_user(const qn_value *value);

/* ---- Editing --------------------------------------------------------------------------------- */

/* Puts `value` (NULL allowed) into an input slot. */
QN_MUST_CHECK qn_status qn_node_set_input(qn_node *node, int32_t slot, qn_value *value);
/* Adds an input slot at the end. */
QN_MUST_CHECK qn_status qn_node_add_input(qn_node *node, qn_value *value);
/* Makes `count` input slots; those cut off are let go, new ones are NULL. Not with captures. */
QN_MUST_CHECK qn_status qn_node_resize_inputs(qn_node *node, int32_t count);
/* Makes `node` the producer of `value`, which must have none. */
void qn_node_set_output(qn_node *node, int32_t slot, qn_value *value);
/* Changes the place in the list; `before` NULL: to the end. */
void qn_node_move(qn_node *node, qn_node *before);
/* Unlinks a node; its outputs lose their producer, its inputs a user. */
void qn_node_remove(qn_node *node);
/* Every reader of `old`, graph outputs included, reads `fresh` from now on. Where `old` is a graph
 * output its name goes over to `fresh`, so that the graph's outputs keep their names; that is not
 * possible, and *done is false, when `fresh` is a graph input, output, capture or constant. */
QN_MUST_CHECK qn_status qn_value_replace(bool *done, qn_value *old, qn_value *fresh);
QN_MUST_CHECK qn_status qn_value_rename(qn_value *value, const char *name);
/* A number is put behind a name that is taken. */
QN_MUST_CHECK qn_status qn_node_rename(qn_node *node, const char *name);

#endif
