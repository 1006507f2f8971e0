/* The parts of the TensorFlow importer, for each other.
 *
 * A graph, main or function, is read into a scope: its nodes, and the names that their inputs go
 * by. Nodes are converted in the order in which they need each other, beginning from what is
 * wanted, so that what nobody needs (training, saving) is never looked at. A function is converted
 * where it is called, a loop once for each turn; both see what they are given under names of their
 * own. */
#ifndef QN_TENSORFLOW_H
#define QN_TENSORFLOW_H

#include "import/layout.h"
#include "import/tensorflow/schema.h"

typedef struct qn_tf_import qn_tf_import;
typedef struct qn_tf_scope qn_tf_scope;
typedef struct qn_tf_node qn_tf_node;
typedef struct qn_tf_variables qn_tf_variables;
typedef struct qn_tf_objects qn_tf_objects;

/* An operator of TensorFlow: a row of operators.def. */
typedef struct qn_tf_op {
    const char *name;
    qn_status (*convert)(qn_tf_node *node);
    /* The operator of ONNX, where a converter serves several. */
    const qn_op *as;
    /* The names of its outputs, as functions refer to them, where there are several: "y,mean"; a
     * list of tensors has one name. NULL: there is one. */
    const char *outputs;
} qn_tf_op;

/* NULL: nobody knows it. */
const qn_tf_op *qn_tf_op_find(const char *name);

struct qn_tf_node {
    qn_tf_import *import;
    qn_tf_scope *scope;
    /* As in the file; and with what the scope puts in front. */
    const char *own, *name;
    const char *type;
    /* NULL: an operator that is not known. */
    const qn_tf_op *op;
    const qn_proto_message *proto;
    /* What it reads, as values are called ("name", "name:1"), without control dependencies; and the
     * nodes that make it, NULL where it is given to the scope. */
    const char **in;
    qn_tf_node **from;
    size_t n_in;
    /* The number of the walk that has seen it, and the loop that it is a part of the frame of. */
    uint32_t seen;
    struct qn_tf_loop *loop;
    /* Why it cannot be read, which matters where what it computes is needed; NULL: it can. */
    const char *failure;
};

struct qn_tf_scope {
    qn_tf_import *import;
    const char *prefix;
    qn_tf_node *nodes;
    size_t n_nodes;
    /* Name in the file -> node */
    qn_names by_name;
    /* The function; NULL: the main graph */
    const qn_proto_message *function;
    uint32_t walks;
};

/* What a name can mean that is no value of the graph. */
typedef enum qn_tf_kind {
    /* Behind a branch that is never taken */
    QN_TF_DEAD,
    /* Behind a node that cannot be read */
    QN_TF_UNREAD,
    /* A variable of a SavedModel */
    QN_TF_VARIABLE,
    /* A list of tensors, or an array */
    QN_TF_LIST,
    /* Random numbers, of which a dropout makes something only while it is trained */
    QN_TF_RANDOM
} qn_tf_kind;

typedef struct qn_tf_thing {
    qn_tf_kind kind;
    /* The key of a variable in the checkpoint. */
    const char *key;
    /* The items of a list are names of values, NULL where there is none yet. */
    const char **items;
    size_t n_items;
    /* The type of elements, as far as the list says it */
    qn_type element;
    /* Random numbers lie in [low, high). */
    double low, high;
} qn_tf_thing;

struct qn_tf_import {
    qn_context *ctx;
    qn_model_source *source;
    const qn_model_load_options *options;
    qn_graph_builder builder;
    qn_layouts layouts;
    qn_proto_tree tree;
    /* Scratch, which ends with the import */
    qn_arena arena;
    /* Name -> FunctionDef */
    qn_names functions;
    /* Name -> qn_tf_thing */
    qn_names things;
    qn_tf_variables *variables;
    qn_tf_objects *objects;
    /* The nodes that the model begins with */
    qn_names starts;
    size_t n_shapes_used;
    int depth, turns;
    uint64_t made;
};

/* Reads a file into the import's tree: messages in their binary form, or as text. */
QN_MUST_CHECK qn_status qn_tf_parse(qn_tf_import *import, const qn_map *map);

/* ---- SavedModels (saved_model.c, objects.c, bundle.c) ---------------------------------------- */

QN_MUST_CHECK qn_status qn_tf_saved_model(qn_tf_import *import);

/* The meta graph of a checkpoint (.meta), with the variables beside it. */
QN_MUST_CHECK qn_status qn_tf_checkpoint(qn_tf_import *import);

/* Variables: a table of what there is (PREFIX.index), and files of contents (PREFIX.data-...). */
QN_MUST_CHECK qn_status qn_tf_variables_open(qn_tf_variables **out, qn_tf_import *import,
                                             const char *prefix);
void qn_tf_variables_close(qn_tf_variables *variables);
bool qn_tf_variables_has(const qn_tf_variables *variables, const char *key);
QN_MUST_CHECK qn_status qn_tf_variables_read(qn_value **out, qn_tf_import *import, const char *key);
/* The only text of a tensor of texts; empty where there is none. */
QN_MUST_CHECK qn_status qn_tf_variables_text(qn_string *out, qn_tf_import *import, const char *key);

/* Number of an object of the SavedModel, or the name of a variable -> its key; see objects.c. */
struct qn_tf_objects {
    const char **keys;
    size_t count;
    /* Names that several variables have mean none of them where calls tell them apart. */
    qn_names by_name, by_node;
    qn_proto_tree checkpoint;
};
QN_MUST_CHECK qn_status qn_tf_objects_match(qn_tf_objects *out, qn_tf_import *import,
                                            const qn_proto_message *saved);
/* What functions captured tells which variables the nodes are that the graph calls them with. */
QN_MUST_CHECK qn_status qn_tf_objects_bind(qn_tf_scope *main, const qn_proto_message *saved);
/* NULL: the file does not have the function. */
const qn_proto_message *qn_tf_concrete(const qn_proto_message *saved, const char *name);
void qn_tf_objects_free(qn_tf_objects *objects);

/* ---- Ends (ends.c) --------------------------------------------------------------------------- */

/* What a model gives: the names of values in the main graph, and what they are called. */
typedef struct qn_tf_ends {
    const char **values, **names;
    size_t count;
} qn_tf_ends;

/* The nodes that the options name, or the only one that nothing reads. */
QN_MUST_CHECK qn_status qn_tf_find_ends(qn_tf_ends *out, qn_tf_scope *main);
/* Makes inputs of the nodes that the options name, or of the placeholders that are needed. */
QN_MUST_CHECK qn_status qn_tf_make_inputs(qn_tf_scope *main, const qn_tf_ends *ends);
/* An input of the model, with what the options say of its shape and order. */
QN_MUST_CHECK qn_status qn_tf_input(qn_tf_import *import, const char *name, const char *value,
                                    qn_type *type);
QN_MUST_CHECK qn_status qn_tf_make_outputs(qn_tf_import *import, const qn_tf_ends *ends);

/* ---- Scopes (scope.c, order.c) --------------------------------------------------------------- */

/* The nodes of a GraphDef or FunctionDef, in field `nodes`. */
QN_MUST_CHECK qn_status qn_tf_scope_open(qn_tf_scope **out, qn_tf_import *import,
                                         const qn_proto_message *message, uint32_t nodes,
                                         const char *prefix);
void qn_tf_scope_close(qn_tf_scope *scope);
/* The node that computes what a name of the file means ("name:1", "^name"), with the port; NULL. */
qn_tf_node *qn_tf_scope_node(const qn_tf_scope *scope, const char *reference);
/* What values of the name of the file are called. */
QN_MUST_CHECK qn_status qn_tf_scope_value(const char **out, const qn_tf_scope *scope,
                                          qn_string reference);
/* Functions of a GraphDef's library, by name. */
QN_MUST_CHECK qn_status qn_tf_add_functions(qn_tf_import *import, const qn_proto_message *graph);
/* Converts the nodes that these values need. `within`: the loop whose turn this is, or NULL. */
QN_MUST_CHECK qn_status qn_tf_run(qn_tf_scope *scope, const char *const *wanted, size_t count,
                                  struct qn_tf_loop *within);
/* Enters a function or loop; left with import->depth--. */
QN_MUST_CHECK qn_status qn_tf_enter(qn_tf_import *import);
/* Names of values that a function is given. */
typedef struct qn_tf_arguments {
    const char *const *at;
    size_t count;
} qn_tf_arguments;
/* Converts a function for the node that calls it; gives the names of its results. What the function
 * calls its values gets the prefix. */
QN_MUST_CHECK qn_status qn_tf_call(const char ***results, size_t *n_results, qn_tf_node *node,
                                   const char *function, const char *prefix,
                                   const qn_tf_arguments *arguments);
/* The nodes that values need, in the order in which they need each other; freed with qn_free. */
QN_MUST_CHECK qn_status qn_tf_needed(qn_tf_node ***out, size_t *n_out, qn_tf_scope *scope,
                                     const char *const *wanted, size_t count);

/* ---- Names ----------------------------------------------------------------------------------- */

/* The name means what the other one means. */
QN_MUST_CHECK qn_status qn_tf_alias(qn_tf_import *import, const char *name, const char *as);
QN_MUST_CHECK qn_status qn_tf_set_thing(qn_tf_import *import, const char *name,
                                        const qn_tf_thing *thing);
qn_tf_thing *qn_tf_get_thing(const qn_tf_import *import, const char *name);
bool qn_tf_is(const qn_tf_import *import, const char *name, qn_tf_kind kind);
/* The name of an output of the node; in the import's arena. NULL when memory is short. */
const char *qn_tf_output_name(const qn_tf_node *node, size_t port);
/* A name that nothing else has, for values between nodes. NULL when memory is short. */
const char *qn_tf_fresh(qn_tf_import *import);

/* ---- Values of a node (node.c) --------------------------------------------------------------- */

QN_MUST_CHECK qn_status qn_tf_fail(const qn_tf_node *node, qn_status status, const char *format,
                                   ...) QN_PRINTF(3, 4);
/* Input i with its axes as TensorFlow has them, with channels first, and as it is held. */
QN_MUST_CHECK qn_status qn_tf_in(qn_value **out, const qn_tf_node *node, size_t i);
QN_MUST_CHECK qn_status qn_tf_in_order(qn_value **out, const qn_tf_node *node, size_t i,
                                       qn_axis_order order);
QN_MUST_CHECK qn_status qn_tf_in_any(qn_value **out, qn_axis_order *order, const qn_tf_node *node,
                                     size_t i);
/* The same with a known rank, or QN_E_UNSUPPORTED. */
QN_MUST_CHECK qn_status qn_tf_in_ranked(qn_value **out, qn_axis_order *order,
                                        const qn_tf_node *node, size_t i);
/* All inputs in one order, for what broadcasts them. */
QN_MUST_CHECK qn_status qn_tf_in_agreed(qn_value **out, qn_axis_order *order,
                                        const qn_tf_node *node, size_t first, size_t count);
QN_MUST_CHECK qn_status qn_tf_out(qn_tf_node *node, size_t port, qn_value *value,
                                  qn_axis_order order);
/* Output 0 is what input 0 is. */
QN_MUST_CHECK qn_status qn_tf_pass(qn_tf_node *node);

/* The contents of an input: NULL where they are not known. */
QN_MUST_CHECK qn_status qn_tf_known(const qn_tensor **out, const qn_tf_node *node, size_t i);
/* Integers of a small input; fails where they are not known, or more than `capacity`. */
QN_MUST_CHECK qn_status qn_tf_ints(int64_t *out, size_t *count, const qn_tf_node *node, size_t i,
                                   size_t capacity);
QN_MUST_CHECK qn_status qn_tf_int(int64_t *out, const qn_tf_node *node, size_t i);
QN_MUST_CHECK qn_status qn_tf_real(double *out, const qn_tf_node *node, size_t i);
bool qn_tf_has_ints(const qn_tf_node *node, size_t i);
/* Replaces a small value by a constant where all that it is computed from is constant. */
QN_MUST_CHECK qn_status qn_tf_fold(qn_value **value, qn_tf_import *import);

/* Whether an input is random numbers, and what the node makes of them (random.c). */
bool qn_tf_has_random(const qn_tf_node *node);
QN_MUST_CHECK qn_status qn_tf_with_random(qn_tf_node *node);

/* ---- Attributes ------------------------------------------------------------------------------ */

const qn_proto_message *qn_tf_attr(const qn_tf_node *node, const char *name);
int64_t qn_tf_attr_int(const qn_tf_node *node, const char *name, int64_t fallback);
double qn_tf_attr_real(const qn_tf_node *node, const char *name, double fallback);
bool qn_tf_attr_bool(const qn_tf_node *node, const char *name, bool fallback);
qn_dtype qn_tf_attr_dtype(const qn_tf_node *node, const char *name, qn_dtype fallback);
bool qn_tf_attr_is(const qn_tf_node *node, const char *name, const char *word);
/* A list of integers; false where there is none, or it is longer than `capacity`. */
bool qn_tf_attr_ints(int64_t *out, size_t *count, const qn_tf_node *node, const char *name,
                     size_t capacity);
/* The name of a function; NULL where there is none. */
const char *qn_tf_attr_function(const qn_tf_node *node, const char *name);

/* ---- Tensors (tensor.c) ---------------------------------------------------------------------- */

/* QN_UNDEFINED: none that we have. */
qn_dtype qn_tf_dtype(int64_t number);
/* False where the rank is unknown. */
QN_MUST_CHECK qn_status qn_tf_shape(qn_type *out, qn_tf_import *import,
                                    const qn_proto_message *shape);
QN_MUST_CHECK qn_status qn_tf_tensor(qn_value **out, qn_tf_import *import, const char *name,
                                     const qn_proto_message *tensor);

/* ---- Small things that converters make ------------------------------------------------------- */

QN_MUST_CHECK qn_status qn_tf_cast(qn_value **value, qn_tf_import *import, qn_dtype dtype);
/* A constant of one number of the type that `like` has. */
QN_MUST_CHECK qn_status qn_tf_number(qn_value **out, qn_tf_import *import, double number,
                                     qn_dtype dtype);
QN_MUST_CHECK qn_status qn_tf_reshape(qn_value **value, qn_tf_import *import, const int64_t *dims,
                                      size_t count);
QN_MUST_CHECK qn_status qn_tf_squeeze(qn_value **value, qn_tf_import *import, const int64_t *axes,
                                      size_t count);
QN_MUST_CHECK qn_status qn_tf_unsqueeze(qn_value **value, qn_tf_import *import, const int64_t *axes,
                                        size_t count);
/* Transposes; nothing where the order stays. */
QN_MUST_CHECK qn_status qn_tf_permute(qn_value **value, qn_tf_import *import, const int64_t *perm,
                                      size_t count);
/* value[:, begin:end] along an axis. */
QN_MUST_CHECK qn_status qn_tf_part(qn_value **value, qn_tf_import *import, int64_t axis,
                                   int64_t begin, int64_t end);
/* The shape of a value as int64, constant where it is known. */
QN_MUST_CHECK qn_status qn_tf_shape_of(qn_value **out, qn_tf_import *import, qn_value *value);

/* The order in which a value of rank `rank` is held once the axes of `gone` (by TensorFlow's
 * order) are taken out of it; false: in neither. */
bool qn_tf_order_without(qn_axis_order *order, int32_t rank, const bool *gone);
/* Input i in an order in which these axes can be taken out of it; the order of the result, and
 * where the axes stand. */
QN_MUST_CHECK qn_status qn_tf_in_without(qn_value **out, qn_axis_order *result, int64_t *axes,
                                         size_t count, const qn_tf_node *node, size_t i);
/* Negative axes are counted from the end; fails for those out of range. */
QN_MUST_CHECK qn_status qn_tf_axis(int64_t *axis, const qn_tf_node *node, int32_t rank);

/* ---- Loops (loop.c) -------------------------------------------------------------------------- */

typedef struct qn_tf_loop {
    const char *frame;
    qn_tf_node **merges;
    size_t n_merges, merges_capacity;
    /* Values that enter and stay the same, and those that change. */
    qn_tf_node **enters;
    size_t n_enters, enters_capacity;
    qn_tf_node **exits;
    size_t n_exits, exits_capacity;
    qn_tf_node *condition;
    /* The walk for which it ran last */
    uint32_t walk;
} qn_tf_loop;

/* Finds the loops of the scope. */
QN_MUST_CHECK qn_status qn_tf_loops_find(qn_tf_scope *scope);

/* ---- Converters: rows of operators.def ------------------------------------------------------- */

#define TF_OP(name, convert, as, outputs, brief) QN_MUST_CHECK qn_status convert(qn_tf_node *node);
#include "import/tensorflow/operators.def"
#undef TF_OP

#endif
