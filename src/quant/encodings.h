/* Encodings: every number that a quantization takes from data. The float graph, the rules and the
 * encodings determine the integer graph completely, and a scale file holds exactly these. What is
 * computed on the way (moments, samples, errors) stays where it is used. */
#ifndef QN_ENCODINGS_H
#define QN_ENCODINGS_H

#include "calib/calib.h"
#include "ir/qparams.h"

/* Factors that equalize or smooth the channels of one value: channel c is divided by factor[c]
 * where it is computed (weights and bias of the node before it) and multiplied by it again where it
 * is read (weights of the nodes behind it). */
typedef struct qn_channel_factors {
    /* The name of the value, as the node that computes it writes it. */
    const char *name;
    int64_t channels;
    /* [channels], all positive. */
    float *factor;
} qn_channel_factors;

/* The encoding of one value, which also holds for all values that share its parameters. */
typedef struct qn_value_encoding {
    const char *name;
    /* The name of the method that chose the range. */
    const char *method;
    /* The float range, after channels were smoothed; the range that the integers cover follows from
     * params. */
    qn_range range;
    qn_qparams *params;
    /* Parameters of the same numbers in 8 bits, for 8-bit nodes that read a 16-bit value; NULL: no
     * node does. */
    qn_qparams *int8_params;
} qn_value_encoding;

/* The encoding of a node with constant weights. */
typedef struct qn_layer_encoding {
    /* The name of the node's first output, since nodes need not have names. */
    const char *name;
    /* Parameters of the weights, after channels were smoothed. */
    qn_qparams *weights;
    int64_t filters;
    /* [filters], the bias correction that is added to the bias; NULL: there is none. */
    float *correction;
} qn_layer_encoding;

typedef struct qn_encodings {
    /* Factors of channels, in the order in which they are applied. */
    qn_channel_factors *smoothed;
    size_t n_smoothed, smoothed_capacity;
    qn_value_encoding *values;
    size_t n_values;
    qn_layer_encoding *nodes;
    size_t n_nodes;
} qn_encodings;

#endif
