/* Quantizes a float graph: from the graph and statistics to a graph with QuantizeLinear (Q) and
 * DequantizeLinear (D) nodes, in three steps.
 *
 *   rules       which nodes compute in integers, which values are integers, which share parameters
 *   encodings   scale and zero point of every such value, from statistics; weights and biases
 *   insertion   the nodes themselves
 *
 * The passes have run: batch normalization is folded and activations are recognized. */
#ifndef QN_QUANT_H
#define QN_QUANT_H

#include "ir/width.h"
#include "ops/op.h"
#include "quant/encodings.h"

/* ---- Targets: what an engine computes in integers, one row each ------------------------------ */

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
    /* MatMul of two activations. */
    QN_CAN_PRODUCT = 512,
    /* Operators that only move numbers keep integers. */
    QN_CAN_MOVE = 1024,
    /* Sigmoid and LeakyRelu, for targets without tables for other functions. */
    QN_CAN_SIGMOID = 2048,
    /* PRelu with one slope per channel. */
    QN_CAN_PRELU = 4096,
    /* LSTM, GRU and RNN. */
    QN_CAN_RECURRENT = 8192,
    QN_CAN_ALL = 16383,
    /* Pow with a constant exponent. Its range is so wide that only a chip, which has nothing else,
     * makes integers of it. */
    QN_CAN_POW = 16384
};

/* What a target does with numbers of one width. */
typedef struct qn_profile_width {
    /* It computes with them as integers. */
    bool computed;
    /* A file that has them does not load. */
    bool refused;
    /* The method of ranges; NULL: the best known. */
    const char *method;
} qn_profile_width;

typedef struct qn_profile {
    const char *name, *brief;
    /* Activations are signed and have zero point 0. */
    bool symmetric;
    /* Weights have one scale per output channel. */
    bool per_channel;
    /* Weights of ConvTranspose have one scale per output channel too. */
    bool per_channel_transposed;
    /* All inputs of a Concat have the parameters of its output. */
    bool unify_concat;
    /* Relu and Clip disappear where the range of the integers implies them. */
    bool drops_clips;
    /* Biases are int32 with a D behind them; else they stay float. */
    bool bias_integer;
    /* The engine computes scales while it runs (option --dynamic). */
    bool dynamic;
    /* The engine adds pairs of 8-bit products in saturating 16 bits on CPUs without VNNI. */
    bool saturates;
    /* The engine pads averages with the integer 0 instead of the zero point. */
    bool pads_with_zero;
    /* The engine has QLinearConv and the other QOperators. */
    bool qoperators;
    /* Relu and Clip of any limits can be fused into the product before them. */
    bool any_clip;
    /* A product may be rounded only once, behind the function that reads it. */
    bool rounds_after_function;
    /* A convolution of integers may have a float result. */
    bool float_result;
    /* It runs what our planner plans, so that nodes may stay float which that would be faster
     * for. */
    bool planned;
    /* A set of QN_CAN_... flags. */
    unsigned can;
    /* The lowest opset to write. */
    int opset;
    /* A chip: every product is rounded in fixed point (docs/numerics.md), up to the outputs, and
     * nothing stays float unless asked for. */
    bool fixed_point;
    qn_profile_width widths[QN_WIDTHS];
} qn_profile;

bool qn_profile_computes(const qn_profile *profile, int bits);
/* The next width that it computes with beyond this one; 0: there is none. */
int qn_profile_wider(const qn_profile *profile, int bits);
/* The types of its integers. */
qn_dtype qn_profile_activation(const qn_profile *profile, int bits);
qn_dtype qn_profile_weight(const qn_profile *profile, int bits);

/* All targets: engines first, then chips. */
extern const qn_profile qn_profiles[];
extern const size_t qn_profiles_count;
/* Finds a target, or a chip by its full name; NULL finds the first target. Fails, listing the
 * names, where there is none. */
QN_MUST_CHECK qn_status qn_profile_find(const qn_profile **out, qn_context *ctx, const char *name);
/* Finds a chip; NULL where there is none of this name. */
const qn_profile *qn_profile_find_chip(const char *name);

/* ---- Settings -------------------------------------------------------------------------------- */

typedef struct qn_quant_settings {
    const qn_profile *profile;
    /* The width of nodes that no pattern names. */
    int bits;
    /* Patterns (see pattern.h) of the nodes that stay float. */
    const char *const *keep_float;
    size_t n_float;
    /* How many of the last patterns were found by measuring sensitivity instead of given by the
     * user. */
    size_t n_sensitive;
    /* How many before those are names of values that are slower in integers than in float. */
    size_t n_slow;
    /* Patterns with widths ("PATTERN=8", "=16", "=w8a16"); the last that fits a node counts. */
    const char *const *widths;
    size_t n_widths;
    /* How many of the last entries are names of values whose widths a search chose. */
    size_t n_searched_widths;
    /* Names of values whose range is all that was seen (method min_max). */
    const char *const *min_max;
    size_t n_min_max;
    /* Widths and methods of single nodes, see mix.h; NULL: none. */
    const struct qn_mix *mix;
    /* Activations are quantized while the model runs. */
    bool dynamic;
    /* A graph without anything to quantize is no failure. */
    bool may_be_empty;
    /* A chip's outputs are float; else they are integers. */
    bool real_outputs;
    /* Integer types of the model's inputs, see input_types.h: one for all inputs, or one for
     * each. */
    const char *const *input_types;
    size_t n_input_types;
    /* All values that a Concat or ScatterND joins share one scale. */
    bool unify;
    /* The width was asked for: scales that the model has do not keep theirs. */
    bool bits_asked;
    /* 8-bit weights use half of their range, see qn_params_weight_limits. */
    bool reduce_range;
    /* The steps of 16-bit tables as a power of two (QN_NUMERICS_TABLE_BITS); 0: a table has every
     * number. */
    int table_bits;
    /* What else changes the model, in the words of a caller; NULL: nothing. */
    const char *given;
} qn_quant_settings;

/* settings.c: the settings that options ask for. */
QN_MUST_CHECK qn_status qn_quant_settings_of(qn_quant_settings *out, qn_context *ctx,
                                             const qn_quantize_options *options);
/* The options that ask for the settings, as far as results tell them (`.result`); what makes no
 * difference to the result is zero. */
struct qn_param_options;
qn_quantize_options qn_quant_settings_options(const qn_quant_settings *settings,
                                              const struct qn_param_options *params);

/* ---- The quantizer: what is known of each node and value ------------------------------------- */

typedef enum qn_quant_class {
    QN_CLASS_FLOAT,
    /* Multiply-accumulate (Conv, Gemm, MatMul, ...) with constant weights, or of two
     * activations. */
    QN_CLASS_MAC,
    /* An Add of a constant behind a MatMul, which is the product's bias. */
    QN_CLASS_BIAS,
    /* Relu or Clip. */
    QN_CLASS_CLIP,
    /* An operator whose inputs and output have parameters of their own. */
    QN_CLASS_ELEMENTWISE,
    /* An operator that only moves numbers: its output has its input's parameters. */
    QN_CLASS_PASS_THROUGH,
    QN_CLASS_CONCAT,
    /* LSTM, GRU or RNN with constant weights: the states Y and Y_h have one encoding. */
    QN_CLASS_RECURRENT
} qn_quant_class;

typedef struct qn_quant_node {
    qn_node *node;
    /* The class that the operator and its attributes allow. */
    qn_quant_class quant_class;
    /* Whether the node computes in integers. */
    bool integer;
    /* Whether it is a function of one number, which becomes a table. */
    bool is_function;
    /* Inputs [0, n_data) become integers. */
    int32_t n_data;
    /* The width of the integers that it computes with. */
    int bits;
    /* The width of constant weights. */
    int weight_bits;
    /* The method that chooses the range of its output; NULL: the method of the whole
     * quantization. */
    const qn_method *method;
    /* The reason why a node stays float that could be integer or takes much time; else NULL. */
    const char *why;
    /* A pattern of the user keeps it float. */
    bool requested_float;
    /* The node disappears, since the range of the integers does its work. */
    bool dropped;
    /* The parameters of an integer node's constant weights. */
    qn_qparams *weights;
    /* The parameters of the input that the weights are multiplied with. */
    const qn_qparams *input;
    /* The limit for a constant mask that the node adds, see qn_softmax_mask_min; 0: no limit. */
    float mask_min;
} qn_quant_node;

typedef struct qn_quant_value {
    qn_value *value;
    /* Whether the value becomes an integer, between a Q and a D. */
    bool integer;
    /* The index of the parent in the tree of values that share parameters; a root is its own
     * parent. */
    int32_t parent;
    /* For a root: the index of the value whose statistics count. */
    int32_t source;
    /* The width of a root. */
    int bits;
    /* For an input with an integer type of its own: that type; else QN_UNDEFINED. */
    qn_dtype type;
    /* For a root: whether `range` is chosen. */
    bool ranged;
    /* Its range was chosen by the nodes that read it and is smaller than what was seen. */
    bool range_by_readers;
    /* Whether it leads to nothing but a Softmax, see softmax_masks.h. */
    bool before_softmax;
    /* For a root: a mask moves some of its elements far down. */
    bool masked;
    /* For a masked root: the least of the elements that are not masked. */
    float unmasked_min;
    /* For a root that is a mask: elements below do not count; 0: all count. */
    float mask_min;
    /* For a root: it is an output of a chip, or only nodes that run in software read it. */
    bool ends;
    /* For a 16-bit root: 8-bit nodes read it too. */
    bool read_as_int8;
    /* For a root: its range by the statistics, before channels were smoothed. */
    qn_range range;
    /* [channels] factors that the channels were divided by after the statistics were taken; NULL:
     * none. */
    float *factor;
    /* The axis of those channels. */
    int32_t axis;
    /* For a root: its encoding. */
    qn_value_encoding *encoding;
    /* The parameters that the file already has; NULL: none. */
    const qn_qparams *existing;
    /* For a root: the constants, once they are inserted. */
    qn_value *scale, *zero;
} qn_quant_value;

/* The refinements that improve accuracy beside the choice of ranges, and that reports count. */
typedef enum qn_refinement {
    QN_REFINE_EQUALIZATION,
    QN_REFINE_SMOOTHING,
    QN_REFINE_CLIPPING,
    QN_REFINE_BIAS,
    QN_REFINEMENTS
} qn_refinement;

/* The layers that a refinement changed, and the noise that it changed: sums over these layers of
 * noise power relative to the signal's, estimated from statistics. Weight clipping and bias
 * correction each count only the part of the noise that they lower. */
typedef struct qn_refined {
    int64_t layers;
    double before, after;
} qn_refined;

typedef struct qn_quantizer {
    qn_context *ctx;
    /* The model that is being changed. */
    qn_model *model;
    qn_graph *graph;
    qn_arena arena;
    qn_quant_settings settings;
    qn_quant_node *nodes;
    size_t n_nodes;
    qn_quant_value *values;
    size_t n_values;
    /* What statistics or a file gave, see params.h. */
    qn_encodings encodings;
    /* How many values have parameters from the file. */
    size_t n_existing;
    /* What each refinement did; set by qn_encodings_compute. */
    qn_refined refined[QN_REFINEMENTS];
} qn_quantizer;

/* Creates a quantizer and applies the rules to the model's main graph, whose types are inferred.
 * The strings of the settings must outlive it. Fails where a pattern matches nothing, or nothing is
 * left to quantize. */
QN_MUST_CHECK qn_status qn_quantizer_create(qn_quantizer **out, qn_model *model,
                                            const qn_quant_settings *settings);
void qn_quantizer_free(qn_quantizer *q);
/* rules.c: fills the tables of a quantizer that is being created. */
QN_MUST_CHECK qn_status qn_rules_apply(qn_quantizer *q);
/* rules.c: whether the node is an Add of a constant row to a matrix product: its bias. */
bool qn_rule_is_bias(const qn_node *node);
/* rules.c: the node that this one is fused into, as a Relu into the convolution before it; NULL:
 * none. */
qn_quant_node *qn_rule_before(const qn_quantizer *q, const qn_quant_node *n);
/* The tables go by the numbers of nodes and values. Of what was not there when the quantizer was
 * made nothing is known: all such have one empty entry. */
qn_quant_node *qn_quant_node_of(const qn_quantizer *q, const qn_node *node);
qn_quant_value *qn_quant_value_of(const qn_quantizer *q, const qn_value *value);
qn_quant_value *qn_quant_root(const qn_quantizer *q, const qn_quant_value *value);
/* shared_params.c: finds the values that share parameters, a part of the rules. */
void qn_quant_share(qn_quantizer *q);
/* The type of a root's integers. */
qn_dtype qn_quant_dtype(const qn_quantizer *q, const qn_quant_value *root);
/* The class of the node's operator, the QN_CAN_... flags that the target needs for it, and the
 * number of its data inputs. */
qn_quant_class qn_rule_quant_class(unsigned *can, int32_t *n_data, const qn_node *node);
/* Whether input i of an integer node is an integer, constant or not. */
bool qn_quant_is_data(const qn_quant_node *node, int32_t i);
/* Whether the node reads input i in 8 bits though the value has 16. Nodes that move numbers, and
 * Concat, have the width of what they move. */
bool qn_quant_reads_int8(const qn_quantizer *q, const qn_quant_node *node, int32_t i);
/* Whether no value becomes an integer. */
bool qn_quantizer_is_empty(const qn_quantizer *q);
/* Whether the node that writes the value of this name computes in integers. */
bool qn_quantizer_writes_integer(const qn_quantizer *q, const char *name);

#endif
