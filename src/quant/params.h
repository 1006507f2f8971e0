/* Scales and zero points. */
#ifndef QN_PARAMS_H
#define QN_PARAMS_H

#include "calib/calib.h"
#include "quant/weighted_node.h"

typedef struct qn_param_options {
    const qn_method *method;
    /* Percentile counts; bits and symmetry follow the target */
    qn_range_options range;
    /* Channels between windows, see balance.h */
    bool equalize;
    /* Channels that matrices are multiplied with, likewise */
    bool smooth_channels;
    /* Search for the range of weights with the least error */
    bool clip_weights;
    /* The range before a function is what its result wants */
    bool function_ranges;
    /* Of what LayerNormalization reads and writes; 0: none */
    double norm_limit;
    /* Take back what rounded weights change in the mean */
    bool correct_bias;
} qn_param_options;

/* What is known of the channels of a node's input, after balancing. */
typedef struct qn_input_channels {
    /* NULL: nothing */
    const qn_stats_entry *entry;
    /* NULL: no factors */
    const float *factor;
} qn_input_channels;
double qn_input_channels_mean(const qn_input_channels *channels, int64_t channel);
/* The mean square. */
double qn_input_channels_power(const qn_input_channels *channels, int64_t channel);

/* Of the numbers that a node multiplies its weights with; NULL: they are float. After
 * qn_quant_find_int8_readers. */
const qn_qparams *qn_params_of_input(const qn_quantizer *q, const qn_quant_node *node);
/* Which roots of 16 bits are read in 8 too. */
void qn_quant_find_int8_readers(qn_quantizer *q);

/* As a float that is still normal. */
float qn_params_positive(double scale);
/* The integers of a float range, which must contain 0. */
void qn_params_from_range(qn_qparams *p, float least, float most, bool symmetric);
/* One scale for a whole constant that node n reads, without what is below n->mask_min; one number
 * is hit exactly. */
QN_MUST_CHECK qn_status qn_params_of_constant(qn_qparams **out, const qn_quantizer *q,
                                              const qn_tensor *tensor, const qn_quant_node *n);
/* weights.c: how far integers of weights reach: symmetric; with reduced range as far as the table
 * of widths says. */
void qn_params_weight_limits(qn_qparams *p, const qn_quantizer *q);
/* Parameters of weights as the target wants them, all scales 1. */
QN_MUST_CHECK qn_status qn_params_weight_template(qn_qparams **out, const qn_quantizer *q,
                                                  const qn_weighted_node *layer);
/* Scales of weights, one for each index of the layer's axis or one for all. Where all weights are 0
 * the scale is too, until qn_bias_settle or qn_params_replace_zero_scales, which makes it 1, has
 * chosen one. */
QN_MUST_CHECK qn_status qn_params_of_weights(qn_qparams **out, qn_quantizer *q,
                                             const qn_weighted_node *layer,
                                             const qn_param_options *options);
void qn_params_replace_zero_scales(qn_qparams *p);
/* q = clamp(rint(x / s) + z) as docs/numerics.md has it. */
int64_t qn_params_quantize(const qn_qparams *p, int64_t scale, float x);

/* Fills q->encodings from statistics, and applies what must be applied on the way. */
QN_MUST_CHECK qn_status qn_encodings_compute(qn_quantizer *q, const qn_stats *stats,
                                             const qn_param_options *options);

/* equalize.c: finds factors of channels that lower the error, keeps them in q->encodings and
 * applies them. The ranges of all roots are chosen. */
QN_MUST_CHECK qn_status qn_equalize(qn_quantizer *q, const qn_stats *stats,
                                    const qn_param_options *options);

/* derived.c: makes the graph and the quantizer's tables follow q->encodings, whose arrays may also
 * come from elsewhere (a file), in q->arena. Fails where a name or a count does not fit the
 * graph. */
QN_MUST_CHECK qn_status qn_encodings_apply(qn_quantizer *q);

/* through.c: whether only functions of one number read the value, which has 8 bits and shares its
 * parameters with none; and its range then: that with the least squared error behind the
 * functions. */
bool qn_range_is_before_function(const qn_quantizer *q, const qn_quant_value *root);
QN_MUST_CHECK qn_status qn_range_before_function(qn_range *range, const qn_quantizer *q,
                                                 const qn_quant_value *root,
                                                 const qn_stats_entry *entry);

/* bias.c: 16 bits on either side of the products of `x` and weights `w`: their biases need not fit
 * int32 in units of sx * sw. */
bool qn_params_is_int16(const qn_qparams *x, const qn_qparams *w);
/* bias.c: makes biases fit int32 (raises weight scales where they would not) and, where asked,
 * finds how much the rounding of the weights changes the mean of the outputs. `x` is of the input;
 * NULL: it stays float. */
QN_MUST_CHECK qn_status qn_bias_settle(qn_layer_encoding *out, qn_quantizer *q,
                                       const qn_weighted_node *layer,
                                       const qn_input_channels *input, const qn_qparams *x,
                                       const qn_param_options *options);

#endif
