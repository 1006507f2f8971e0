/* The inside of Caffe's importer: a network of layers, the blobs of weights, and what converters of
 * layers (operators.def) work with. Every blob has a known rank, and known dims but for those that
 * detection makes. */
#ifndef QN_CAFFE_H
#define QN_CAFFE_H

#include "import/builder.h"
#include "import/caffe/schema.h"

/* Numbers of a layer as the file of weights has them. */
typedef struct qn_caffe_blob {
    /* QN_FLOAT32, QN_FLOAT64 or QN_FLOAT16 */
    qn_dtype dtype;
    int32_t rank;
    int64_t dims[QN_MAX_RANK];
    qn_string bytes;
} qn_caffe_blob;

/* The blobs of a layer; the name is "" where it has none. */
typedef struct qn_caffe_weights {
    const char *name, *type;
    const qn_caffe_blob *blobs;
    size_t count;
} qn_caffe_weights;

/* A file of weights, by layer; it lives in the model's arena and the mapped file. */
typedef struct qn_caffe_file {
    const char *path;
    qn_names by_name;
    /* Layers without a name, in their order. */
    qn_caffe_weights *nameless;
    size_t n_nameless, next_nameless;
} qn_caffe_file;

typedef struct qn_caffe_texts {
    const char **at;
    size_t count;
} qn_caffe_texts;

typedef struct qn_caffe_layer {
    const char *name, *type;
    qn_caffe_texts bottoms, tops;
    const qn_proto_message *message;
    const qn_caffe_weights *weights;
    bool is_named;
} qn_caffe_layer;

/* What becomes an output in the end: a top that no layer reads. */
typedef struct qn_caffe_open {
    const char *name;
    bool is_read;
} qn_caffe_open;

typedef struct qn_caffe_net {
    qn_context *ctx;
    qn_graph_builder builder;
    const qn_model_load_options *options;
    qn_proto_tree text;
    qn_caffe_file file;
    /* Blobs that come from cut layers. */
    qn_names cut;
    /* Name of a shared parameter -> its qn_caffe_blob. */
    qn_names shared;
    qn_caffe_open *open;
    size_t n_open, open_capacity;
    /* Shapes of the options that are used up. */
    size_t next_shape;
    /* DIGITS keeps all its networks in one file; the one to be deployed is taken. */
    bool has_deploy_stage;
} qn_caffe_net;

/* A row of operators.def. */
typedef qn_status (*qn_caffe_convert)(qn_caffe_net *net, const qn_caffe_layer *layer);

/* ---- The network (net.c, input.c, weights.c) ------------------------------------------------- */

/* The layers that are kept, in order. */
QN_MUST_CHECK qn_status qn_caffe_read_layers(qn_caffe_layer **layers, size_t *count,
                                             qn_caffe_net *net);
/* Whether layers of the type bring data, and only for training. */
bool qn_caffe_brings_data(const qn_caffe_layer *layer);
/* Whether the layer is for training only: it measures. */
bool qn_caffe_measures(const qn_caffe_layer *layer);
/* Python's proposal layer of Faster R-CNN. */
bool qn_caffe_is_python_proposal(const qn_caffe_layer *layer);
/* `input:` with its dims, of old networks. */
QN_MUST_CHECK qn_status qn_caffe_add_inputs(qn_caffe_net *net);
/* The first top of a layer that brings data becomes an input; the others are cut. */
QN_MUST_CHECK qn_status qn_caffe_add_data(qn_caffe_net *net, const qn_caffe_layer *layer);
/* Notes that the name is a blob from now on; `value` NULL: it has one already. */
QN_MUST_CHECK qn_status qn_caffe_add_top(qn_caffe_net *net, const char *name);

/* Opens the file of weights that the options name, or that lies beside the network. */
QN_MUST_CHECK qn_status qn_caffe_open_weights(qn_caffe_net *net, const char *path);
void qn_caffe_close_weights(qn_caffe_net *net);
/* Gives every layer its blobs. */
QN_MUST_CHECK qn_status qn_caffe_assign_weights(qn_caffe_net *net, qn_caffe_layer *layers,
                                                size_t count);
/* One blob of the binary form. `what` is its place, for messages. */
QN_MUST_CHECK qn_status qn_caffe_read_blob(qn_caffe_blob *out, qn_context *ctx,
                                           const qn_proto_message *message, const char *what);

/* ---- For converters (layer.c) ---------------------------------------------------------------- */

/* Fails as qn_graph_builder_fail does. */
#define QN_CAFFE_FAIL(net, ...) qn_graph_builder_fail(&(net)->builder, QN_E_FORMAT, __VA_ARGS__)
#define QN_CAFFE_REFUSE(net, ...)                                                                  \
    qn_graph_builder_fail(&(net)->builder, QN_E_UNSUPPORTED, __VA_ARGS__)

/* The layer's parameters, NULL where it has none: all defaults. */
const qn_proto_message *qn_caffe_param(const qn_caffe_layer *layer, uint32_t number);
/* Bottom i, whose rank is known. */
QN_MUST_CHECK qn_status qn_caffe_in(qn_value **out, qn_caffe_net *net, const qn_caffe_layer *layer,
                                    size_t i);
/* The value becomes top i; a layer may have fewer tops. */
QN_MUST_CHECK qn_status qn_caffe_out(qn_caffe_net *net, const qn_caffe_layer *layer, size_t i,
                                     qn_value *value);
static inline int64_t qn_caffe_dim(const qn_value *value, int64_t axis)
{
    return value->type.dims[axis].value;
}
/* -rank..rank-1 to 0..rank-1. */
QN_MUST_CHECK qn_status qn_caffe_axis(int64_t *axis, qn_caffe_net *net, int64_t rank);
/* Product of the dims [first, end), all of which must be known. */
QN_MUST_CHECK qn_status qn_caffe_count(int64_t *out, qn_caffe_net *net, const qn_value *value,
                                       int64_t first, int64_t end);
/* Fails where the number is not in least..most. */
QN_MUST_CHECK qn_status qn_caffe_check(qn_caffe_net *net, const char *what, int64_t value,
                                       int64_t least, int64_t most);
/* Dims, windows and counts of layers are not larger. */
enum { QN_CAFFE_MOST = 1 << 30 };

/* Blob i as a constant of these dims. Blobs of networks of the first version have four dims, and
 * writers differ in axes of 1: a shape that differs in those only will do. */
QN_MUST_CHECK qn_status qn_caffe_constant(qn_value **out, qn_caffe_net *net,
                                          const qn_caffe_layer *layer, size_t i, int32_t rank,
                                          const int64_t *dims);
/* The same of a different arrangement: the numbers' shape in the file, and the constant's, which
 * has as many. */
QN_MUST_CHECK qn_status qn_caffe_constant_as(qn_value **out, qn_caffe_net *net,
                                             const qn_caffe_layer *layer, size_t i,
                                             const qn_type *stored, const qn_type *wanted);
/* The same as floats in the model's arena. */
QN_MUST_CHECK qn_status qn_caffe_floats(float **out, qn_caffe_net *net, const qn_caffe_layer *layer,
                                        size_t i, int64_t count);
static inline bool qn_caffe_has_blob(const qn_caffe_layer *layer, size_t i)
{
    return layer->weights && i < layer->weights->count;
}

/* Nodes without attributes, of one and two inputs, and with a real number as the second. */
QN_MUST_CHECK qn_status qn_caffe_op1(qn_value **out, qn_caffe_net *net, const qn_op *op,
                                     qn_value *x);
QN_MUST_CHECK qn_status qn_caffe_op2(qn_value **out, qn_caffe_net *net, const qn_op *op,
                                     qn_value *x, qn_value *y);
QN_MUST_CHECK qn_status qn_caffe_op_real(qn_value **out, qn_caffe_net *net, const qn_op *op,
                                         qn_value *x, double y);
QN_MUST_CHECK qn_status qn_caffe_reshape(qn_value **out, qn_caffe_net *net, qn_value *x,
                                         int32_t rank, const int64_t *dims);
/* [begin, end) of one axis. */
QN_MUST_CHECK qn_status qn_caffe_slice(qn_value **out, qn_caffe_net *net, qn_value *x, int64_t axis,
                                       int64_t begin, int64_t end);
/* A reduction over the axes [first, end). */
QN_MUST_CHECK qn_status qn_caffe_reduce(qn_value **out, qn_caffe_net *net, const qn_op *op,
                                        qn_value *x, const int64_t *range, bool keep);
QN_MUST_CHECK qn_status qn_caffe_concat(qn_value **out, qn_caffe_net *net, qn_value *const *parts,
                                        size_t count, int64_t axis);
QN_MUST_CHECK qn_status qn_caffe_transpose(qn_value **out, qn_caffe_net *net, qn_value *x,
                                           const int64_t *perm);
QN_MUST_CHECK qn_status qn_caffe_cast(qn_value **out, qn_caffe_net *net, qn_value *x,
                                      qn_dtype dtype);

/* ---- Mean images (mean.c) -------------------------------------------------------------------- */

/* Room for the means of all channels as text, "104/117/123". */
enum { QN_CAFFE_MEAN_TEXT = 512 };

bool qn_caffe_is_mean(qn_string file);
QN_MUST_CHECK qn_status qn_caffe_read_mean(char out[QN_CAFFE_MEAN_TEXT], qn_context *ctx,
                                           const void *data, size_t size);
/* The means are those of a file that a network names, in the network's folder; empty where there is
 * none that can be read. */
void qn_caffe_find_mean(char out[QN_CAFFE_MEAN_TEXT], qn_context *ctx, const char *network,
                        qn_string name);

#define CAFFE_OP(name, convert, brief) qn_status convert(qn_caffe_net *, const qn_caffe_layer *);
#include "import/caffe/operators.def"
#undef CAFFE_OP

#endif
