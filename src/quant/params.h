/* Computes scales and zero points from statistics. */
#ifndef QN_PARAMS_H
#define QN_PARAMS_H

#include "calib/calib.h"
#include "quant/weighted_node.h"

typedef struct qn_param_options {
    const qn_method *method;
    /* Only `percentile` counts; bits and symmetry follow the target. */
    qn_range_options range;
    /* Equalize the channels between convolutions (cross-layer equalization), see
     * smooth_channels.h. */
    bool equalize;
    /* Smooth the channels that matrix products read (SmoothQuant), see smooth_channels.h. */
    bool smooth_channels;
    /* Search for the range of weights with the least squared error. */
    bool clip_weights;
    /* Choose the range before a function by the error behind it, see function_range.c. */
    bool function_ranges;
    /* Method min_max was asked for by its name: 16 bits have no headroom either. */
    bool plain;
    /* The largest magnitude in ranges that LayerNormalization reads and writes; 0: no limit. */
    double norm_limit;
    /* Correct biases by what rounding the weights changes in the mean of the outputs. */
    bool correct_bias;
} qn_param_options;

/* The statistics of the channels of a node's input, after smoothing. */
typedef struct qn_input_channels {
    /* NULL: nothing is known. */
    const qn_stats_entry *entry;
    /* [channels]; NULL: the channels have no factors. */
    const float *factor;
} qn_input_channels;
double qn_input_channels_mean(const qn_input_channels *channels, int64_t channel);
/* The mean square of a channel. */
double qn_input_channels_power(const qn_input_channels *channels, int64_t channel);

/* The parameters of what a node multiplies its weights with; NULL: its input is float. Call it
 * after qn_quant_find_int8_readers. */
const qn_qparams *qn_params_of_input(const qn_quantizer *q, const qn_quant_node *node);
/* Finds the 16-bit roots that 8-bit nodes read too (read_as_int8). */
void qn_quant_find_int8_readers(qn_quantizer *q);

/* The scale as the nearest positive float that is normal. */
float qn_params_positive(double scale);
/* Scale and zero point for the float range [least, most], which must contain 0. */
void qn_params_from_range(qn_qparams *p, float least, float most, bool symmetric);
/* One scale for a whole constant that node n reads; numbers below n->mask_min are ignored, and one
 * number is represented exactly. */
QN_MUST_CHECK qn_status qn_params_of_constant(qn_qparams **out, const qn_quantizer *q,
                                              const qn_tensor *tensor, const qn_quant_node *n);
/* weights.c: sets qmin and qmax of weights: symmetric, and with reduced range as the table of
 * widths has it. */
void qn_params_weight_limits(qn_qparams *p, const qn_quantizer *q);
/* Parameters of weights in the layout that the target wants, with all scales 1. */
QN_MUST_CHECK qn_status qn_params_weight_template(qn_qparams **out, const qn_quantizer *q,
                                                  const qn_weighted_node *layer);
/* Scales of weights: one for each index of the layer's axis, or one for all. Where all weights of a
 * filter are 0 the scale stays 0 until qn_bias_settle or qn_params_replace_zero_scales (which sets
 * 1) chooses one. */
QN_MUST_CHECK qn_status qn_params_of_weights(qn_qparams **out, qn_quantizer *q,
                                             const qn_weighted_node *layer,
                                             const qn_param_options *options);
/* W or R of a recurrent node: one for each row of the gates, which directions share, or one. */
QN_MUST_CHECK qn_status qn_params_of_gates(qn_qparams **out, const qn_quantizer *q,
                                           const qn_tensor *w, const qn_quant_node *n);
void qn_params_replace_zero_scales(qn_qparams *p);
/* q = clamp(rint(x / s) + z), as docs/numerics.md defines it. */
int64_t qn_params_quantize(const qn_qparams *p, int64_t scale, float x);

/* Computes q->encodings from statistics; smoothed weights and corrected biases go into the graph on
 * the way. */
QN_MUST_CHECK qn_status qn_encodings_compute(qn_quantizer *q, const qn_stats *stats,
                                             const qn_param_options *options);

/* equalize.c: searches for factors of channels that lower the error, adds them to q->encodings and
 * applies them. The ranges of all roots must be chosen. */
QN_MUST_CHECK qn_status qn_equalize(qn_quantizer *q, const qn_stats *stats,
                                    const qn_param_options *options);

/* encodings.c: applies q->encodings, which may also come from a file, to the graph and the
 * quantizer's tables. Fails where a name or a count does not fit the graph. */
QN_MUST_CHECK qn_status qn_encodings_apply(qn_quantizer *q);

/* function_range.c: whether only functions of one number read the value, which has 8 bits and
 * shares its parameters with none; and the range with the least squared error behind those
 * functions. */
bool qn_range_is_before_function(const qn_quantizer *q, const qn_quant_value *root);
QN_MUST_CHECK qn_status qn_range_before_function(qn_range *range, const qn_quantizer *q,
                                                 const qn_quant_value *root,
                                                 const qn_stats_entry *entry);

/* bias.c: whether `x` or the weights `w` have 16 bits, so that biases need not fit int32 in units
 * of sx * sw. */
bool qn_params_is_int16(const qn_qparams *x, const qn_qparams *w);
/* bias.c: makes biases fit int32 (it raises weight scales where they would not) and, where asked,
 * finds how much rounding the weights changes the mean of the outputs. `x` are the parameters of
 * the input; NULL: it stays float. */
QN_MUST_CHECK qn_status qn_bias_settle(qn_layer_encoding *out, qn_quantizer *q,
                                       const qn_weighted_node *layer,
                                       const qn_input_channels *input, const qn_qparams *x,
                                       const qn_param_options *options);

#endif
