/* The layers of a network that is being quantized: how much harm each does, and models in which the most harmful ones
 * get more bits or stay float. */
#ifndef QN_LAYERS_H
#define QN_LAYERS_H

#include "quantize/output_check.h"

/* A multiply-accumulate node and what follows it up to the next ones. */
typedef struct qn_layer {
    const char *node;
    const char **values; /* that its nodes write: patterns that fit them alone */
    size_t n_values;
    double harm;  /* noise of the outputs with this layer quantized and all others float */
    double work;  /* multiply-accumulates and numbers written, of one sample */
    int bits;     /* 16, 32: float; 0: as asked */
    bool uncut;   /* the ranges of its values are all that was seen */
    size_t place; /* among the layers in the network's order: layers may be sorted */
} qn_layer;

/* The layer at place `to` reads what that at place `from` writes. */
typedef struct qn_layer_edge {
    int64_t from, to;
} qn_layer_edge;

typedef struct qn_layers {
    qn_quantize_job *j;
    qn_quant_settings asked;
    qn_layer *at;
    size_t count;
    qn_layer_edge *edges;
    size_t n_edges;
} qn_layers;

/* Of a job whose tables are as the rules left them, for the settings that it has. */
QN_MUST_CHECK qn_status qn_layers_find(qn_layers *out, qn_quantize_job *j);
/* Measures the harm of each layer. */
QN_MUST_CHECK qn_status qn_layers_measure(qn_layers *l, const qn_output_check *original);
/* Gives the job settings that say the layers' bits. */
QN_MUST_CHECK qn_status qn_layers_set(qn_layers *l);
/* Makes the job's model with the bits that the layers have. */
QN_MUST_CHECK qn_status qn_layers_make(qn_layers *l);

#endif
