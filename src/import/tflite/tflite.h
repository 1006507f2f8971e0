/* TensorFlow Lite's models into graphs: what a file holds, and what the converters of operators
 * (operators.def) are given and call.
 *
 * A quantized tensor is kept as the integers that the file has. A converter takes the real numbers
 * of its inputs, which stand behind a DequantizeLinear then, and gives real numbers, which a
 * QuantizeLinear rounds to the tensor's integers: the form in which quantized ONNX files say it. An
 * operator that only moves numbers, with the same scale on both sides, is given the integers. */
#ifndef QN_TFLITE_H
#define QN_TFLITE_H

#include "import/layout.h"
#include "import/tflite/flatbuffer.h"
#include "import/tflite/schema.h"

/* ---- A file ---------------------------------------------------------------------------------- */

typedef struct tfl_tensor {
    /* A name that no other tensor of the file has. */
    const char *name;
    /* QN_UNDEFINED: a type that graphs have no elements of. */
    qn_dtype dtype;
    int32_t rank;
    /* -1: open. */
    int64_t dims[QN_MAX_RANK];
    /* The contents of a constant. */
    qn_string bytes;
    /* Two numbers in a byte, the lower half first, of which `bytes` has one in each. */
    bool packed;
    /* It keeps its contents from one run to the next. */
    bool variable;
    /* Something has its name in the graph. */
    bool known;
    /* What an operator gave. */
    qn_value *holder;
    /* The variable that a handle is of, or NULL. */
    const char *handle;
    /* A constant with its axes in another order, and which one is first there. */
    qn_value *turned;
    int64_t turned_first;
    /* Without items: not quantized. */
    qn_flat_list scales, zeros;
    int32_t axis;
    qn_flat_table sparsity;
} tfl_tensor;

/* A subgraph and its tensors. */
typedef struct tfl_scope {
    qn_flat_table table;
    tfl_tensor *tensors;
    size_t n_tensors;
    qn_layouts layouts;
} tfl_scope;

typedef struct tfl_reader {
    qn_graph_builder *b;
    qn_flat flat;
    qn_flat_list codes, subgraphs, buffers;
    /* Names of tensors so far. */
    qn_names taken;
    /* Name of a variable -> the qn_value that it has now. */
    qn_names variables;
    /* Tensors and operators that may still be read: no file has more than bytes, but one that gives
     * the same subgraph again and again. */
    size_t budget;
    int depth;
} tfl_reader;

/* ---- Operators ------------------------------------------------------------------------------- */

typedef struct tfl_op tfl_op;

/* An operator of the file at work. */
typedef struct tfl_layer {
    tfl_reader *reader;
    qn_graph_builder *b;
    qn_layouts *layouts;
    tfl_scope *scope;
    const tfl_op *row;
    /* NULL: left out. */
    tfl_tensor **in, **out;
    size_t n_in, n_out;
    qn_flat_table options;
    /* Options of an operator that is not built in. */
    qn_string custom;
    /* qn_tfl_take and qn_tfl_put mean the integers of quantized tensors. */
    bool raw;
} tfl_layer;

enum {
    /* All numbers of outputs stand in inputs of the same kind. */
    QN_TFL_MOVES = 1,
    /* The same, but 16-bit integers are not known to engines. */
    QN_TFL_MOVES_BYTES = 2,
    /* The parameters of the first input do not count, but those of the second. */
    QN_TFL_SECOND = 4
};

/* A row of operators.def. */
struct tfl_op {
    const char *name;
    int code;
    qn_status (*convert)(tfl_layer *l);
    /* What several operators differ in that share a converter; it may be NULL. */
    const qn_op *op;
    unsigned flags;
};

extern const tfl_op qn_tfl_ops[];
extern const size_t qn_tfl_ops_count;

/* Input or output i is there. */
static inline bool qn_tfl_has(const tfl_layer *l, size_t i)
{
    return i < l->n_in && l->in[i];
}
static inline int64_t qn_tfl_int(const tfl_layer *l, unsigned field, int64_t otherwise)
{
    return qn_flat_int(&l->options, field, 4, otherwise);
}
/* Enumerations and truths have a byte. */
static inline int64_t qn_tfl_byte(const tfl_layer *l, unsigned field)
{
    return qn_flat_int(&l->options, field, 1, 0);
}

QN_MUST_CHECK qn_status qn_tfl_unsupported(const tfl_layer *l, const char *format, ...)
    QN_PRINTF(2, 3);
QN_MUST_CHECK qn_status qn_tfl_wrong(const tfl_layer *l, const char *format, ...) QN_PRINTF(2, 3);
/* Fails where the layer has fewer inputs, or one of the first `count` is left out. */
QN_MUST_CHECK qn_status qn_tfl_expect(const tfl_layer *l, size_t inputs, size_t outputs);

/* ---- Reading a file -------------------------------------------------------------------------- */

QN_MUST_CHECK qn_status qn_tfl_open(tfl_reader *r, qn_graph_builder *b, const qn_map *map);
void qn_tfl_close(tfl_reader *r);
/* The tensors of a subgraph. Closed in any case. */
QN_MUST_CHECK qn_status qn_tfl_scope_open(tfl_scope *out, tfl_reader *r, int64_t number);
void qn_tfl_scope_close(tfl_scope *scope);
/* The tensor of an index in a list of the file; NULL for -1. */
QN_MUST_CHECK qn_status qn_tfl_tensor(tfl_tensor **out, const tfl_scope *scope, int64_t index);
/* Converts all operators of the scope. */
QN_MUST_CHECK qn_status qn_tfl_convert(tfl_reader *r, tfl_scope *scope);
qn_type qn_tfl_type(const tfl_tensor *t);

/* ---- Values of tensors ----------------------------------------------------------------------- */

/* Several values of one kind; see the head. */
bool qn_tfl_is_quantized(const tfl_tensor *t);
/* Both have the same element type, scale and zero point. */
bool qn_tfl_is_alike(const tfl_tensor *a, const tfl_tensor *b);
float qn_tfl_scale(const tfl_tensor *t, size_t i);
int64_t qn_tfl_zero(const tfl_tensor *t, size_t i);

/* Makes a constant of a tensor that nothing stands for yet. */
QN_MUST_CHECK qn_status qn_tfl_hold(tfl_layer *l, tfl_tensor *t);
/* Input i as the file has it. */
QN_MUST_CHECK qn_status qn_tfl_raw(qn_value **out, tfl_layer *l, size_t i, qn_axis_order order);
/* Real numbers of a value that holds the tensor's; per axis where there are several scales. */
QN_MUST_CHECK qn_status qn_tfl_dequantize(qn_value **out, tfl_layer *l, qn_value *value,
                                          const tfl_tensor *t, int64_t axis);
/* The tensor's integers of real numbers. */
QN_MUST_CHECK qn_status qn_tfl_quantize(qn_value **out, tfl_layer *l, qn_value *value,
                                        const tfl_tensor *t);
/* The real numbers of input i. */
QN_MUST_CHECK qn_status qn_tfl_real(qn_value **out, tfl_layer *l, size_t i, qn_axis_order order);
/* What the converter works with: real numbers, or integers where l->raw. */
QN_MUST_CHECK qn_status qn_tfl_take(qn_value **out, tfl_layer *l, size_t i, qn_axis_order order);
/* The same for what reshapes it: the numbers stand in the file's order, the axes may not. */
QN_MUST_CHECK qn_status qn_tfl_take_flat(qn_value **out, tfl_layer *l, size_t i);
/* The same in the order that is there. */
QN_MUST_CHECK qn_status qn_tfl_take_any(qn_value **out, qn_axis_order *order, tfl_layer *l,
                                        size_t i);
/* The first `count` inputs, all in one order and of one rank. */
QN_MUST_CHECK qn_status qn_tfl_take_agreed(qn_value **out, qn_axis_order *order, tfl_layer *l,
                                           size_t count);
QN_MUST_CHECK qn_status qn_tfl_give_raw(tfl_layer *l, size_t o, qn_value *value,
                                        qn_axis_order order);
/* Output o from what the converter worked with. */
QN_MUST_CHECK qn_status qn_tfl_put(tfl_layer *l, size_t o, qn_value *value, qn_axis_order order);
/* The same behind an activation that the operator has. */
QN_MUST_CHECK qn_status qn_tfl_put_active(tfl_layer *l, qn_value *value, qn_axis_order order,
                                          int64_t activation);
/* The integers of input i, a constant or what is known of shapes: as many as *count, at most
 * capacity. *known is false where they are not known. */
QN_MUST_CHECK qn_status qn_tfl_ints(int64_t *out, size_t *count, bool *known, tfl_layer *l,
                                    size_t i);
/* They must be known. */
QN_MUST_CHECK qn_status qn_tfl_known_ints(int64_t *out, size_t *count, tfl_layer *l, size_t i);
enum { QN_TFL_MAX_INTS = 64 };
/* Input i as int64, of rank 1. */
QN_MUST_CHECK qn_status qn_tfl_indices(qn_value **out, tfl_layer *l, size_t i);
int32_t qn_tfl_rank(const qn_value *value);
int64_t qn_tfl_dim(const qn_value *value, int64_t axis);

/* ---- Nodes that several converters make ------------------------------------------------------ */

QN_MUST_CHECK qn_status qn_tfl_unary(qn_value **y, tfl_layer *l, const qn_op *op, qn_value *x);
QN_MUST_CHECK qn_status qn_tfl_binary(qn_value **y, tfl_layer *l, const qn_op *op, qn_value *a,
                                      qn_value *b);
/* The second operand is one number, of the type of x. */
QN_MUST_CHECK qn_status qn_tfl_with(qn_value **y, tfl_layer *l, const qn_op *op, qn_value *x,
                                    double number);
/* One number of that type. */
QN_MUST_CHECK qn_status qn_tfl_number(qn_value **y, tfl_layer *l, qn_dtype dtype, double number);
QN_MUST_CHECK qn_status qn_tfl_cast(qn_value **y, tfl_layer *l, qn_value *x, qn_dtype dtype);
QN_MUST_CHECK qn_status qn_tfl_transpose(qn_value **y, tfl_layer *l, qn_value *x,
                                         const int64_t *perm, size_t rank);
/* The same for weights: a constant is copied at once, and once, so that its file's pages need not
 * stay in memory beside the copy. */
QN_MUST_CHECK qn_status qn_tfl_turn(qn_value **y, tfl_layer *l, tfl_tensor *t, qn_value *x,
                                    const int64_t *perm);
QN_MUST_CHECK qn_status qn_tfl_reshape(qn_value **y, tfl_layer *l, qn_value *x, const int64_t *dims,
                                       size_t rank);
QN_MUST_CHECK qn_status qn_tfl_clip(qn_value **y, tfl_layer *l, qn_value *x, double low,
                                    double high);
/* An operator whose further input is a list of axes: Squeeze, Unsqueeze, sums and means. */
QN_MUST_CHECK qn_status qn_tfl_along(qn_value **y, tfl_layer *l, const qn_op *op, qn_value *x,
                                     const int64_t *axes, size_t count);
QN_MUST_CHECK qn_status qn_tfl_activate(qn_value **y, tfl_layer *l, qn_value *x,
                                        int64_t activation);

/* -rank .. rank - 1 to 0 .. rank - 1. */
QN_MUST_CHECK qn_status qn_tfl_axis(int64_t *axis, const tfl_layer *l, int32_t rank);
/* Input i as a bias of the product of inputs x and w, one number for each channel; NULL: there is
 * none. */
QN_MUST_CHECK qn_status qn_tfl_bias(qn_value **out, tfl_layer *l, size_t i, size_t x, size_t w);
/* Integers of the bias i by the scale that the file gives them. */
QN_MUST_CHECK qn_status qn_tfl_bias_by_scale(qn_value **out, tfl_layer *l, size_t i);
/* Where the weights (input w) are integers and x is real, LiteRT rounds x to integers of 8 bits,
 * with a scale for each index of the first axis: symmetric, or with a zero point. */
QN_MUST_CHECK qn_status qn_tfl_round_input(qn_value **out, tfl_layer *l, qn_value *x, size_t w,
                                           bool with_zero);
/* A shape that is constant, or else the one that the file says of the first output. */
QN_MUST_CHECK qn_status qn_tfl_sizes(int64_t *out, size_t *count, tfl_layer *l, size_t i);

/* ---- Converters ------------------------------------------------------------------------------ */

#define QN_TFLITE(code, name, convert, op, flags, brief) qn_status qn_tfl_##convert(tfl_layer *l);
#include "import/tflite/operators.def"
#undef QN_TFLITE

#endif
