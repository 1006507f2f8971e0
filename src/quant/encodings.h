/* Everything that a quantization takes from data, in one place: with the float graph, the rules and this
 * the integer graph is determined. A scale file tells exactly this. What is computed in between (moments,
 * samples, errors) stays where it is used. */
#ifndef QN_ENCODINGS_H
#define QN_ENCODINGS_H

#include "calib/calib.h"
#include "ir/qparams.h"

/* Channels of a value that were made alike: channel c is divided by factor[c] where it is computed (weights and
 * bias of the node before it) and multiplied again where it is read (weights of the nodes behind it). */
typedef struct qn_channel_factors {
    const char *name; /* of the value, as the node that computes it writes it */
    int64_t channels;
    float *factor; /* [channels], positive */
} qn_channel_factors;

/* A value, for all that share its parameters. */
typedef struct qn_value_encoding {
    const char *name;
    const char *method; /* that chose the range */
    qn_range range;     /* after balancing; what the file's integers reach is params */
    qn_qparams *params;
    qn_qparams *
        int8_params; /* of 16 bits: of the same numbers in 8, for nodes that read those; NULL: there are none */
} qn_value_encoding;

/* A node with constant weights. */
typedef struct qn_layer_encoding {
    const char *name;    /* of its first output: nodes need not have names */
    qn_qparams *weights; /* of the balanced weights */
    int64_t filters;
    float *correction; /* [filters], added to the bias; NULL: none */
} qn_layer_encoding;

typedef struct qn_encodings {
    qn_channel_factors *smoothed; /* in the order in which they are applied */
    size_t n_smoothed, smoothed_capacity;
    qn_value_encoding *values;
    size_t n_values;
    qn_layer_encoding *nodes;
    size_t n_nodes;
} qn_encodings;

#endif
