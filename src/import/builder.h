/* What importers of frameworks make a graph with: nodes in ONNX's latest form, layer by layer,
 * under the names of the framework.
 *
 *     QN_TRY_OR_DONE(qn_graph_builder_open(&b, source, "Caffe"));
 *     for each layer {
 *         qn_graph_builder_layer(&b, name, type);
 *         QN_TRY_OR_DONE(qn_graph_builder_settle(&b, convert(&b, layer), tops, n_tops));
 *     }
 *     QN_TRY_OR_DONE(qn_graph_builder_finish(&b));
 *
 * and in `convert`
 *
 *     QN_TRY(qn_graph_build_find(&x, b, "data"));
 *     QN_TRY(qn_graph_build(&y, b, &qn_op_Conv, QN_INPUTS(x, w),
 *                           QN_WITH(QN_A_INTS("strides", 2, 2))));
 *     QN_TRY(qn_graph_build_define(b, "conv1", y));
 *
 * A node is inferred when it is made, so that the shapes of what follows can be asked for. Messages
 * begin with the layer. */
#ifndef QN_BUILDER_H
#define QN_BUILDER_H

#include "import/import.h"
#include "ops/op.h"

typedef struct qn_unsupported qn_unsupported;

typedef struct qn_graph_builder {
    qn_context *ctx;
    qn_model *model;
    qn_graph *graph;
    /* What people call the framework. */
    const char *title;
    /* Name in the framework -> qn_value. */
    qn_names named;
    /* The layer at work. */
    const char *layer, *type;
    /* Layers that cannot be read. */
    qn_unsupported *unsupported;
    size_t n_unsupported, unsupported_capacity;
} qn_graph_builder;

/* ---- The whole ------------------------------------------------------------------------------- */

/* Begins a model, which keeps the source's map. Closed in any case. */
QN_MUST_CHECK qn_status qn_graph_builder_open(qn_graph_builder *b, qn_model_source *source,
                                              const char *title);
/* Takes the finished model; it is freed with the builder otherwise. */
qn_model *qn_graph_builder_take(qn_graph_builder *b);
void qn_graph_builder_close(qn_graph_builder *b);

/* What is made from here on belongs to this layer; both texts outlive the builder. */
void qn_graph_builder_layer(qn_graph_builder *b, const char *name, const char *type);
/* What came of the layer. QN_E_UNSUPPORTED is noted with its message, the layer's outputs become
 * values of unknown type, and the import goes on, so that all such layers are found; other failures
 * are passed up, but where layers before were unsupported, whose outputs may be the cause, as all
 * of those. */
QN_MUST_CHECK qn_status qn_graph_builder_settle(qn_graph_builder *b, qn_status status,
                                                const char *const *outputs, size_t n_outputs);
/* Fails where layers are unsupported: each is logged as a warning, and the message names as many as
 * it has room for. */
QN_MUST_CHECK qn_status qn_graph_builder_finish(qn_graph_builder *b);
/* Fails with "layer 'conv1' (Convolution): ..." in front of the message. */
QN_MUST_CHECK qn_status qn_graph_builder_fail(const qn_graph_builder *b, qn_status status,
                                              const char *format, ...) QN_PRINTF(3, 4);

/* ---- Names ----------------------------------------------------------------------------------- */

/* From now on the framework's name means this value. Layers that work in place define a name
 * again. */
QN_MUST_CHECK qn_status qn_graph_build_define(qn_graph_builder *b, const char *name,
                                              qn_value *value);
/* Fails where nothing has the name. */
QN_MUST_CHECK qn_status qn_graph_build_find(qn_value **out, const qn_graph_builder *b,
                                            const char *name);
bool qn_graph_build_has(const qn_graph_builder *b, const char *name);
/* An input of the model, and the value of that name as an output, which keeps its name whoever had
 * it before. */
QN_MUST_CHECK qn_status qn_graph_build_input(qn_value **out, qn_graph_builder *b, const char *name,
                                             const qn_type *type);
QN_MUST_CHECK qn_status qn_graph_build_output(qn_graph_builder *b, const char *name);

/* ---- Nodes ----------------------------------------------------------------------------------- */

/* An attribute by ONNX's name; words of enumerations are strings. */
typedef struct qn_graph_build_attr {
    const char *name;
    qn_attr_kind kind;
    int64_t number;
    float real;
    const char *text;
    const int64_t *ints;
    const float *reals;
    size_t count;
    /* A tensor, graph or type; of a list of strings a qn_strings whose texts outlive the model */
    const void *object;
} qn_graph_build_attr;

typedef struct qn_graph_build_attrs {
    const qn_graph_build_attr *at;
    size_t count;
} qn_graph_build_attrs;

/* NULL: an optional input left out. */
typedef struct qn_graph_build_inputs {
    qn_value *const *at;
    size_t count;
} qn_graph_build_inputs;

#define QN_INPUTS(...)                                                                             \
    (qn_graph_build_inputs)                                                                        \
    {                                                                                              \
        (qn_value *const[]){__VA_ARGS__},                                                          \
            sizeof((qn_value *const[]){__VA_ARGS__}) / sizeof(qn_value *)                          \
    }
#define QN_WITH(...)                                                                               \
    (qn_graph_build_attrs)                                                                         \
    {                                                                                              \
        (const qn_graph_build_attr[]){__VA_ARGS__},                                                \
            sizeof((const qn_graph_build_attr[]){__VA_ARGS__}) / sizeof(qn_graph_build_attr)       \
    }
#define QN_PLAIN ((qn_graph_build_attrs){NULL, 0})
#define QN_A_INT(id, value)                                                                        \
    {                                                                                              \
        .name = (id), .kind = QN_ATTR_INT, .number = (value)                                       \
    }
#define QN_A_REAL(id, value)                                                                       \
    {                                                                                              \
        .name = (id), .kind = QN_ATTR_FLOAT, .real = (value)                                       \
    }
#define QN_A_TEXT(id, value)                                                                       \
    {                                                                                              \
        .name = (id), .kind = QN_ATTR_STRING, .text = (value)                                      \
    }
#define QN_A_INT_LIST(id, values, n)                                                               \
    {                                                                                              \
        .name = (id), .kind = QN_ATTR_INTS, .ints = (values), .count = (n)                         \
    }
#define QN_A_INTS(id, ...)                                                                         \
    QN_A_INT_LIST(id, ((const int64_t[]){__VA_ARGS__}),                                            \
                  sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* A node with one output. Attributes that the operator's latest form lacks, or has in another kind,
 * are programming errors. */
QN_MUST_CHECK qn_status qn_graph_build(qn_value **out, qn_graph_builder *b, const qn_op *op,
                                       qn_graph_build_inputs inputs, qn_graph_build_attrs attrs);
/* A node with several outputs. */
QN_MUST_CHECK qn_status qn_graph_build_several(qn_value **out, size_t n_out, qn_graph_builder *b,
                                               const qn_op *op, qn_graph_build_inputs inputs,
                                               qn_graph_build_attrs attrs);

/* ---- Constants ------------------------------------------------------------------------------- */

/* Numbers that a file holds, `size` bytes in the machine's order, which the type's dims must ask
 * for. They stay where they are, but where they are few and not aligned: the file, or whatever they
 * lie in, lives as long as the model. */
QN_MUST_CHECK qn_status qn_graph_build_constant(qn_value **out, qn_graph_builder *b,
                                                const char *name, const qn_type *type,
                                                qn_string bytes);
/* Copies: a list of integers (rank 1), a list of reals (rank 1), and one real (rank 0). */
QN_MUST_CHECK qn_status qn_graph_build_ints(qn_value **out, qn_graph_builder *b,
                                            const int64_t *values, size_t count);
QN_MUST_CHECK qn_status qn_graph_build_reals(qn_value **out, qn_graph_builder *b,
                                             const float *values, size_t count);
QN_MUST_CHECK qn_status qn_graph_build_real(qn_value **out, qn_graph_builder *b, float value);

#endif
