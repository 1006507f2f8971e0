/* Everything that a quantization takes from data, in one place: with the float graph, the rules and
 * this the integer graph is determined. A scale file tells exactly this. What is computed in
 * between (moments, samples, errors) stays where it is used. */
#ifndef QN_ENCODINGS_H
#define QN_ENCODINGS_H

#include "calib/calib.h"
#include "ir/qparams.h"

/* Channels of a value that were made alike: channel c is divided by factor[c] where it is computed
 * (weights and bias of the node before it) and multiplied again where it is read (weights of the
 * nodes behind it). */
typedef struct qn_channel_factors {
    /* Of the value, as the node that computes it writes it */
    const char *name;
    int64_t channels;
    /* [channels], positive */
    float *factor;
} qn_channel_factors;

/* A value, for all that share its parameters. */
typedef struct qn_value_encoding {
    const char *name;
    /* That chose the range */
    const char *method;
    /* After balancing; what the file's integers reach is params */
    qn_range range;
    qn_qparams *params;
    /* Of 16 bits: of the same numbers in 8, for nodes that read those; NULL: there are none */
    qn_qparams *int8_params;
} qn_value_encoding;

/* A node with constant weights. */
typedef struct qn_layer_encoding {
    /* Of its first output: nodes need not have names */
    const char *name;
    /* Of the balanced weights */
    qn_qparams *weights;
    int64_t filters;
    /* [filters], added to the bias; NULL: none */
    float *correction;
} qn_layer_encoding;

typedef struct qn_encodings {
    /* In the order in which they are applied */
    qn_channel_factors *smoothed;
    size_t n_smoothed, smoothed_capacity;
    qn_value_encoding *values;
    size_t n_values;
    qn_layer_encoding *nodes;
    size_t n_nodes;
} qn_encodings;

#endif
