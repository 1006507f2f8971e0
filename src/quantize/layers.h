/* The layers of a network that is being quantized: how sensitive the outputs are to each, and
 * models in which the most sensitive ones get more bits or stay float. */
#ifndef QN_LAYERS_H
#define QN_LAYERS_H

#include "quantize/search.h"

enum { QN_LAYER_FLOAT = 32 };

/* A multiply-accumulate node and what follows it up to the next ones. */
typedef struct qn_layer {
    const char *node;
    /* The values that its nodes write: patterns that fit them alone */
    const char **values;
    size_t n_values;
    /* Noise of the outputs with this layer quantized and all others float */
    double sensitivity;
    /* Multiply-accumulates and numbers written, of one sample */
    double work;
    /* The width that it has instead of the one asked for, or QN_LAYER_FLOAT; 0: as asked */
    int bits;
    /* The ranges of its values are all that was seen */
    bool min_max;
    /* The place among the layers in the network's order: layers may be sorted */
    size_t place;
} qn_layer;

/* The layer at place `to` reads what that at place `from` writes. */
typedef struct qn_layer_edge {
    int64_t from, to;
} qn_layer_edge;

typedef struct qn_layers {
    const qn_search *search;
    /* What the layers' bits are put into. */
    qn_quantize_settings asked;
    qn_layer *at;
    size_t count;
    qn_layer_edge *edges;
    size_t n_edges;
} qn_layers;

/* Finds the layers in the search's tables, as the rules left them: before its first model is made.
 * They live as long as its arena. */
QN_MUST_CHECK qn_status qn_layers_find(qn_layers *out, const qn_search *s);
/* Measures how sensitive the outputs are to each layer, on the samples that the search's check
 * uses. */
QN_MUST_CHECK qn_status qn_layers_measure(qn_layers *l, qn_output_check *check);
/* The most sensitive first; by name where two are alike. */
void qn_layers_sort(qn_layers *l);
/* Settings that say the layers' bits. */
QN_MUST_CHECK qn_status qn_layers_settings(qn_quantize_settings *out, const qn_layers *l);
/* A model with the bits that the layers have. */
QN_MUST_CHECK qn_status qn_layers_make(qn_quantized_model *out, const qn_layers *l);

#endif
