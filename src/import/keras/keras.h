/* The parts of the Keras importer, for each other. A model is its configuration (JSON) and its
 * weights (HDF5); layers are converted call by call, models in models are entered. */
#ifndef QN_KERAS_H
#define QN_KERAS_H

#include "base/hdf5.h"
#include "base/json.h"
#include "import/layout.h"
#include "import/tensorflow/window.h"

typedef struct qn_keras_import qn_keras_import;
typedef struct qn_keras_call qn_keras_call;
typedef struct qn_keras_layer qn_keras_layer;

/* What becomes of the mask of a layer's input. */
typedef enum qn_keras_mask_rule {
    /* There is none behind the layer, or its converter says which. */
    QN_KERAS_MASK_NONE,
    QN_KERAS_MASK_KEPT,
    /* Those of all inputs are one. */
    QN_KERAS_MASK_MERGED,
    QN_KERAS_MASK_JOINED
} qn_keras_mask_rule;

/* A class of layers: a row of layers.def. */
typedef struct qn_keras_op {
    const char *name;
    qn_status (*convert)(qn_keras_call *call);
    /* The operator of ONNX, where a converter serves several. */
    const qn_op *as;
    qn_keras_mask_rule mask;
} qn_keras_op;

const qn_keras_op *qn_keras_op_find(const char *name);

/* Where the weights of layers lie: under a path of their own each (Keras 3), or in the order of the
 * layer's list of names (.h5). */
struct qn_keras_layer {
    const char *name, *type;
    const qn_keras_op *op;
    /* The whole of the layer's configuration, and its `config`. */
    qn_json_place place, config;
    /* Keras 3 has a group of the layer; .h5 files have datasets that are its weights. */
    const char *group;
    const char **sets;
    size_t n_sets;
    /* The number that references give to its first use: that of a model is 1 in Keras 2, where its
     * making was one before. */
    int64_t first_call;
};

struct qn_keras_import {
    qn_context *ctx;
    qn_model_source *source;
    const qn_model_load_options *options;
    qn_graph_builder builder;
    qn_layouts layouts;
    qn_arena arena;
    qn_hdf5 *file;
    qn_json_document *document;
    /* The map that the weights are in; of an archive the part that is the HDF5 file. */
    qn_map weights;
    void *block;
    /* The group of .h5 files that has the layers; NULL: paths as Keras 3 has them. */
    const char *groups;
    /* Keras 3: path, with '/' and without the names of containers -> the path in the file. */
    qn_names paths;
    /* Name -> the picture that it is the flattened form of. */
    qn_names flat;
    /* Name -> qn_value, which of its steps count. */
    qn_names masks;
    int version, depth;
    /* Layers of a model so far by the names that Keras counts. */
    size_t n_shapes_used;
    uint64_t made;
};

/* One use of a layer. */
struct qn_keras_call {
    qn_keras_import *import;
    const qn_keras_layer *layer;
    /* Names of values: what it is given, and what it makes. */
    const char **in;
    size_t n_in;
    const char *out;
    /* The value that is given as a mask; NULL: none is named. */
    const char *mask;
    /* Keywords of the call; item NULL: none. */
    qn_json_place keywords;
    /* The use in the configuration, whose item is NULL in a sequence. */
    qn_json_place node;
};

/* ---- Models (model.c, links.c) --------------------------------------------------------------- */

/* Where a model's layers have their weights. */
typedef struct qn_keras_scope {
    /* What names of its values begin with, and the path of its weights. */
    const char *prefix, *group;
    /* The names of the datasets that are its weights, in .h5 files of a model in a model. */
    const char **sets;
    size_t n_sets;
} qn_keras_scope;

/* Converts a model that is given these values (none: it makes the inputs of the whole); *outs are
 * the names of its results. */
typedef struct qn_keras_ends {
    const char **at;
    size_t count;
} qn_keras_ends;
QN_MUST_CHECK qn_status qn_keras_model(qn_keras_ends *outs, qn_keras_import *import,
                                       const qn_json_place *model, const qn_keras_scope *scope,
                                       const qn_keras_ends *ins);
/* Converts one use of a layer, models and wrappers included. */
QN_MUST_CHECK qn_status qn_keras_convert(qn_keras_call *call);

/* A reference to what a call of a layer gave. */
typedef struct qn_keras_link {
    const char *layer;
    int64_t call, tensor;
} qn_keras_link;
typedef struct qn_keras_links {
    qn_keras_link *at;
    size_t count, capacity;
    /* What is given by keyword */
    qn_json_place keywords;
    /* The keyword `mask`; layer NULL: none. */
    qn_keras_link mask;
} qn_keras_links;
/* All references below an item, in their order, as any version of Keras writes them. */
QN_MUST_CHECK qn_status qn_keras_find_links(qn_keras_links *out, qn_keras_import *import,
                                            const qn_json_place *place);

/* ---- Weights (weights.c) --------------------------------------------------------------------- */

QN_MUST_CHECK qn_status qn_keras_index_weights(qn_keras_import *import);
/* Finds the weights of a layer; `counted`: its name among those of its class, for Keras 3. */
QN_MUST_CHECK qn_status qn_keras_place_weights(qn_keras_layer *layer, qn_keras_import *import,
                                               const qn_keras_scope *scope, const char *counted);
/* Weight number `i` below `part` of the layer's group ("cell"; "": its own), which is number `flat`
 * of all of the layer. */
typedef struct qn_keras_weight_id {
    const char *part;
    size_t i, flat;
} qn_keras_weight_id;
QN_MUST_CHECK qn_status qn_keras_weight(qn_value **out, const qn_keras_call *call,
                                        qn_keras_weight_id id);
/* Number `i` of a layer without parts. */
QN_MUST_CHECK qn_status qn_keras_own_weight(qn_value **out, const qn_keras_call *call, size_t i);

/* ---- Configuration (config.c) ---------------------------------------------------------------- */

/* The member; false where there is none, or null. */
bool qn_keras_find(qn_json_place *out, const qn_json_place *object, const char *key);
int64_t qn_keras_int(const qn_keras_call *call, const char *key, int64_t fallback);
double qn_keras_real(const qn_keras_call *call, const char *key, double fallback);
bool qn_keras_bool(const qn_keras_call *call, const char *key, bool fallback);
const char *qn_keras_text(const qn_keras_call *call, const char *key, const char *fallback);
bool qn_keras_is(const qn_keras_call *call, const char *key, const char *word);
/* Numbers of a list, nested lists included, or one number for all `count`; false: there are none,
 * or others. */
bool qn_keras_ints(int64_t *out, size_t count, const qn_keras_call *call, const char *key);
/* A list of any length; false: there is none. */
bool qn_keras_int_list(int64_t *out, size_t *count, const qn_keras_call *call, const char *key,
                       size_t capacity);
bool qn_keras_real_list(float *out, size_t *count, const qn_keras_call *call, const char *key,
                        size_t capacity);
/* Keras's words of dims, where the batch may be null. */
QN_MUST_CHECK qn_status qn_keras_shape(qn_type *out, const qn_json_place *list);
bool qn_keras_channels_first(const qn_keras_call *call);

/* ---- Values (call.c) ------------------------------------------------------------------------- */

QN_MUST_CHECK qn_status qn_keras_fail(const qn_keras_call *call, qn_status status,
                                      const char *format, ...) QN_PRINTF(3, 4);
const char *qn_keras_fresh(qn_keras_import *import);
QN_MUST_CHECK qn_status qn_keras_in(qn_value **out, const qn_keras_call *call, size_t i,
                                    qn_axis_order order);
QN_MUST_CHECK qn_status qn_keras_in_any(qn_value **out, qn_axis_order *order,
                                        const qn_keras_call *call, size_t i);
QN_MUST_CHECK qn_status qn_keras_out(qn_keras_call *call, qn_value *value, qn_axis_order order);
/* The result is what it is given. */
QN_MUST_CHECK qn_status qn_keras_same(qn_keras_call *call);
QN_MUST_CHECK qn_status qn_keras_alias(qn_keras_import *import, const char *name, const char *as);
/* The order in which [N, C, spatial...] stands. */
qn_axis_order qn_keras_order(const qn_keras_call *call);
/* The activation that `key` names, applied to a value; channels stand at `axis`. */
QN_MUST_CHECK qn_status qn_keras_activate(qn_value **value, qn_keras_call *call, const char *key,
                                          int64_t axis);
/* The name of a class as groups are called: "SeparableConv2D" is "separable_conv2d". NULL when
 * memory is short. */
const char *qn_keras_small_letters(qn_keras_import *import, const char *type);
/* Another shape with its batch, as functions say it; not done: the layer says none. */
QN_MUST_CHECK qn_status qn_keras_reshape_to(qn_keras_call *call, bool *done);
/* A function by its name, in a value's place. */
QN_MUST_CHECK qn_status qn_keras_function(qn_value **value, qn_keras_call *call, const char *name,
                                          int64_t axis);

/* ---- Masks (mask.c) -------------------------------------------------------------------------- */

/* Which steps of input i count, bool [N, T]; NULL: all. */
qn_value *qn_keras_mask(const qn_keras_call *call, size_t i);
/* The mask of what the call gives; NULL: none. */
QN_MUST_CHECK qn_status qn_keras_set_mask(const qn_keras_call *call, qn_value *mask);
/* What becomes of masks, as the layer's row says. */
QN_MUST_CHECK qn_status qn_keras_pass_mask(qn_keras_call *call);
/* The mask of an Embedding, where it is asked for. */
QN_MUST_CHECK qn_status qn_keras_mask_of_words(qn_keras_call *call, qn_value *words);

/* A sequence whose steps that count stand one behind the other. */
typedef struct qn_keras_steps {
    qn_value *mask;
    /* How many count, int32 [N], and how many before each step, int64 [N, T]. */
    qn_value *lengths, *before;
} qn_keras_steps;
/* What stands where a step does not count: the state before it, or behind it, or zeros. */
typedef struct qn_keras_gaps {
    bool backward, zeros;
} qn_keras_gaps;
/* [N, T, D] with the steps that count first; and back, of the states [N, T, H]. */
QN_MUST_CHECK qn_status qn_keras_steps_front(qn_keras_steps *steps, qn_value **x,
                                             qn_keras_import *import, qn_value *mask);
QN_MUST_CHECK qn_status qn_keras_steps_back(qn_value **y, const qn_keras_steps *steps,
                                            qn_keras_import *import, qn_keras_gaps gaps);

/* Nodes with constants, as they come up everywhere. */
QN_MUST_CHECK qn_status qn_keras_number(qn_value **out, qn_keras_import *import, double number,
                                        qn_dtype dtype);
QN_MUST_CHECK qn_status qn_keras_with_ints(qn_value **value, qn_keras_import *import,
                                           const qn_op *op, const int64_t *ints, size_t count);
QN_MUST_CHECK qn_status qn_keras_permute(qn_value **value, qn_keras_import *import,
                                         const int64_t *perm, size_t count);
QN_MUST_CHECK qn_status qn_keras_two(qn_value **out, qn_keras_import *import, const qn_op *op,
                                     qn_value *a, qn_value *b);
QN_MUST_CHECK qn_status qn_keras_part(qn_value **value, qn_keras_import *import, int64_t axis,
                                      int64_t begin, int64_t end);

/* ---- Converters: rows of layers.def ---------------------------------------------------------- */

#define KERAS_LAYER(name, convert, as, mask, brief)                                                \
    QN_MUST_CHECK qn_status convert(qn_keras_call *call);
#include "import/keras/layers.def"
#undef KERAS_LAYER

enum {
    QN_KERAS_LAYERS = 0
#define KERAS_LAYER(name, convert, as, mask, brief) +1
#include "import/keras/layers.def"
#undef KERAS_LAYER
};
extern const qn_framework_op qn_keras_layers[QN_KERAS_LAYERS];

#endif
