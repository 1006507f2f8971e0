/* From a float graph and statistics to a graph with QuantizeLinear (Q) and DequantizeLinear (D)
 * nodes:
 *
 *   rules       which nodes compute with integers, which values are integers, which share parameters
 *   parameters  scale and zero point of every such value, from statistics; weights and biases
 *   insertion   the nodes themselves
 *
 * The graph is in the form that the passes leave (batch normalization folded, activations
 * recognized). */
#ifndef QN_QUANT_H
#define QN_QUANT_H

#include "ir/width.h"
#include "ops/op.h"
#include "quant/encodings.h"

/* ---- Targets: what an engine computes with integers, one row each ---------------------------- */

enum {
    QN_CAN_ADD = 1,
    QN_CAN_MUL = 2,
    QN_CAN_POOL = 4,
    QN_CAN_CONCAT = 8,
    QN_CAN_TABLE = 16,
    QN_CAN_SOFTMAX = 32,
    QN_CAN_NORM = 64,
    QN_CAN_RESIZE = 128,
    QN_CAN_MEAN = 256,
    /* MatMul of two activations */
    QN_CAN_PRODUCT = 512,
    /* Pass-through operators keep integers */
    QN_CAN_MOVE = 1024,
    /* Sigmoid and LeakyRelu, where other functions of one number are not */
    QN_CAN_SIGMOID = 2048,
    /* PRelu with a slope per channel */
    QN_CAN_PRELU = 4096,
    QN_CAN_ALL = 8191
};

/* What a target does with numbers of one width. */
typedef struct qn_profile_width {
    /* It computes with them as integers. */
    bool computed;
    /* A file that has them does not load. */
    bool refused;
    /* Of ranges; NULL: the best known. */
    const char *method;
} qn_profile_width;

typedef struct qn_profile {
    const char *name, *brief;
    /* Activations are signed and have zero point 0 */
    bool symmetric;
    /* Weights have a scale per output channel */
    bool per_channel;
    /* Those of ConvTranspose too */
    bool per_channel_transposed;
    /* All inputs of a Concat have its output's parameters */
    bool unify_concat;
    /* Relu and Clip that the integers' limits imply go away */
    bool drops_clips;
    /* Biases are int32 with a D; else float */
    bool bias_integer;
    /* Finds scales while running (--dynamic) */
    bool dynamic;
    /* Adds products of 8 bits in 16 on CPUs without VNNI */
    bool saturates;
    /* Pads averages with the integer 0, not the zero point */
    bool pads_with_zero;
    /* Knows QLinearConv and its kin */
    bool qoperators;
    /* Relu and Clip of any limits fit behind a product */
    bool any_clip;
    /* A product may be rounded behind the function that reads it */
    bool rounds_after_function;
    /* A convolution of integers may have a float result */
    bool float_result;
    /* QN_CAN_... */
    unsigned can;
    /* Least to write */
    int opset;
    /* A chip: all products are rounded, in fixed point (docs/numerics.md), up to the outputs, and
     * nothing stays float unless asked for */
    bool fixed_point;
    qn_profile_width widths[QN_WIDTHS];
} qn_profile;

bool qn_profile_computes(const qn_profile *profile, int bits);
/* The next width that it computes with beyond this one; 0: there is none. */
int qn_profile_wider(const qn_profile *profile, int bits);
/* The types of its integers. */
qn_dtype qn_profile_activation(const qn_profile *profile, int bits);
qn_dtype qn_profile_weight(const qn_profile *profile, int bits);

/* Engines, then chips. */
extern const qn_profile qn_profiles[];
extern const size_t qn_profiles_count;
/* A target, or a chip by its full name. Fails, naming those there are, where there is none. NULL:
 * the first. */
QN_MUST_CHECK qn_status qn_profile_find(const qn_profile **out, qn_context *ctx, const char *name);
/* NULL where there is no such chip. */
const qn_profile *qn_profile_find_chip(const char *name);

/* ---- What is asked for ----------------------------------------------------------------------- */

typedef struct qn_quant_settings {
    const qn_profile *profile;
    /* 8 or 16, where no pattern says otherwise */
    int bits;
    /* Patterns, see pattern.h */
    const char *const *keep_float;
    size_t n_float;
    /* The last ones of these: found by measuring, not asked for */
    size_t n_sensitive;
    /* "PATTERN=8", "=16", "=w8a16"; the last that fits counts */
    const char *const *widths;
    size_t n_widths;
    /* The last ones of these: names of values, found by measuring */
    size_t n_searched_widths;
    /* Names of values whose range is all that was seen (min_max) */
    const char *const *min_max;
    size_t n_min_max;
    /* Widths and methods node by node, see mix.h; NULL: none */
    const struct qn_mix *mix;
    /* Activations are quantized while running */
    bool dynamic;
    /* Nothing that can be quantized is no failure */
    bool may_be_empty;
    /* Of a chip: else they are integers */
    bool real_outputs;
    /* Of the inputs, see inputs.h; one for all, or one for each */
    const char *const *input_types;
    size_t n_input_types;
    /* All that a Concat or ScatterND puts together has one scale */
    bool unify;
    /* Weights of 8 bits reach half as far, see qn_params_weight_limits */
    bool reduce_range;
    /* QN_NUMERICS_TABLE_BITS of ops/numerics.h; 0: tables have all numbers */
    int table_bits;
} qn_quant_settings;

/* ---- The quantizer: what is known of each node and value ------------------------------------- */

typedef enum qn_quant_class {
    QN_CLASS_FLOAT,
    /* Multiply-accumulate with constant weights, or of two activations */
    QN_CLASS_MAC,
    /* Add of a constant behind a MatMul: part of it */
    QN_CLASS_BIAS,
    /* Relu, Clip */
    QN_CLASS_CLIP,
    /* Inputs and output have parameters of their own */
    QN_CLASS_ELEMENTWISE,
    /* Output has the input's parameters */
    QN_CLASS_PASS_THROUGH,
    QN_CLASS_CONCAT
} qn_quant_class;

typedef struct qn_quant_node {
    qn_node *node;
    /* What it could be */
    qn_quant_class quant_class;
    /* What it is */
    bool integer;
    /* Of one number: a table */
    bool is_function;
    /* Inputs [0, n_data) that become integers */
    int32_t n_data;
    /* 8 or 16 */
    int bits;
    /* Of constant weights */
    int weight_bits;
    /* That chooses the range of what it writes; NULL: the same for all */
    const qn_method *method;
    /* Of a float node that could have been one of integers, or is computed much */
    const char *why;
    /* By a pattern */
    bool requested_float;
    /* The integers' limits do its work */
    bool dropped;
    /* Of an integer node with constant weights */
    qn_qparams *weights;
    /* Of the numbers that they are multiplied with */
    const qn_qparams *input;
    /* Of a constant mask that it adds, see qn_softmax_mask_min; 0: no limit */
    float mask_min;
} qn_quant_node;

typedef struct qn_quant_value {
    qn_value *value;
    /* Gets a Q and a D */
    bool integer;
    /* Of the tree of values that share parameters; itself: the root */
    int32_t parent;
    /* Of a root: the value whose statistics count */
    int32_t source;
    /* Of a root */
    int bits;
    /* Of an input that has one of its own; else QN_UNDEFINED */
    qn_dtype type;
    /* Of a root: `range` is chosen */
    bool ranged;
    /* Its range is what those that read it want, not all that is seen */
    bool range_by_readers;
    /* Goes nowhere else, see masks.h */
    bool before_softmax;
    /* Of a root: a mask pushes some of it down */
    bool masked;
    /* Of a masked root: the least number of the others */
    float unmasked_min;
    /* Of a root that is a mask: what is below does not count; 0: all does */
    float mask_min;
    /* Of a root: a chip's outputs, or only software reads it */
    bool ends;
    /* Of a root of 16 bits: nodes of 8 bits read it too */
    bool read_as_int8;
    /* Of a root: as the statistics have it, without factors */
    qn_range range;
    /* Of channels, that the value is divided by beside its statistics; NULL: none */
    float *factor;
    /* Of those channels */
    int32_t axis;
    /* Of a root */
    qn_value_encoding *encoding;
    /* What the file said of it; NULL: nothing */
    const qn_qparams *existing;
    /* Of a root: the constants, once they are made */
    qn_value *scale, *zero;
} qn_quant_value;

/* What makes the integers tell more, beside the choice of ranges. */
typedef enum qn_refinement {
    QN_REFINE_EQUALIZATION,
    QN_REFINE_SMOOTHING,
    QN_REFINE_CLIPPING,
    QN_REFINE_BIAS,
    QN_REFINEMENTS
} qn_refinement;

/* Layers that it changed, and what it changes: sums over the layers of noise power relative to the
 * signal's, estimated from statistics. Weight clipping and bias correction each tell that part of
 * the noise that they lower. */
typedef struct qn_refined {
    int64_t layers;
    double before, after;
} qn_refined;

typedef struct qn_quantizer {
    qn_context *ctx;
    /* Being changed */
    qn_model *model;
    qn_graph *graph;
    qn_arena arena;
    qn_quant_settings settings;
    qn_quant_node *nodes;
    size_t n_nodes;
    qn_quant_value *values;
    size_t n_values;
    /* Once it is: see params.h */
    qn_encodings encodings;
    /* Of its values have the parameters that the file gave */
    size_t n_existing;
    /* By qn_encodings_compute */
    qn_refined refined[QN_REFINEMENTS];
} qn_quantizer;

/* Applies the rules to the model's main graph, whose types are inferred. The strings of the
 * settings must outlive it. Fails where a pattern matches nothing, or nothing is left to
 * quantize. */
QN_MUST_CHECK qn_status qn_quantizer_create(qn_quantizer **out, qn_model *model,
                                            const qn_quant_settings *settings);
void qn_quantizer_free(qn_quantizer *q);
/* Fills the tables of a quantizer being created. (rules.c) */
QN_MUST_CHECK qn_status qn_rules_apply(qn_quantizer *q);
/* Add of a constant row to the product of a matrix: its bias. (rules.c) */
bool qn_rule_is_bias(const qn_node *node);
/* The node that this one is part of, as a Relu is of the convolution before it; NULL: it is none.
 * (rules.c) */
qn_quant_node *qn_rule_before(const qn_quantizer *q, const qn_quant_node *n);
/* Makes node->mark and value->mark places in q's tables; others may use the marks in between. */
void qn_quantizer_number(qn_quantizer *q);
/* After qn_quantizer_number. */
qn_quant_node *qn_quant_node_of(const qn_quantizer *q, const qn_node *node);
qn_quant_value *qn_quant_value_of(const qn_quantizer *q, const qn_value *value);
qn_quant_value *qn_quant_root(const qn_quantizer *q, const qn_quant_value *value);
/* The type of its integers. */
qn_dtype qn_quant_dtype(const qn_quantizer *q, const qn_quant_value *root);
/* What the node's operator could be, what the target must be able to do (*can), and how many of its
 * inputs are data. */
qn_quant_class qn_rule_quant_class(unsigned *can, int32_t *n_data, const qn_node *node);
/* Input i of an integer node that is an integer, constant or not. */
bool qn_quant_is_data(const qn_quant_node *node, int32_t i);
/* Reads 16 bits as 8 there. Moves and Concat have the width of what they move. */
bool qn_quant_reads_int8(const qn_quantizer *q, const qn_quant_node *node, int32_t i);

#endif
