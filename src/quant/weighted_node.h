/* Multiply-accumulate nodes with constant weights: where their channels lie, and the integers made
 * of them. */
#ifndef QN_WEIGHTED_NODE_H
#define QN_WEIGHTED_NODE_H

#include "quant/quant.h"

typedef struct qn_weighted_node {
    qn_node *node;
    /* float32, at any address */
    const qn_tensor *w;
    /* Of weights */
    int64_t count;
    int64_t filters, channels, group;
    /* Taps of a convolution; 1 of a product */
    int64_t kernel;
    /* The first axis of w counts filters, else channels */
    bool filter_first;
    /* Of w that has a scale per index */
    int32_t axis;
    /* Weights behind one index of the axis */
    int64_t inner;
    /* Holds the bias: itself, an Add behind it, or NULL: none */
    qn_node *bias_node;
    int32_t bias_slot;
} qn_weighted_node;

/* Weights that one thread does by itself. */
enum { QN_WEIGHTS_PER_THREAD = 1 << 14 };

/* False where the node has no constant weights of two dimensions or more. */
bool qn_weighted_node_of(qn_weighted_node *out, qn_node *node);
/* The same of a node that becomes one of integers. */
bool qn_quant_weighted_node(qn_weighted_node *out, const qn_quant_node *n);
/* Filter and input channel of weight i. */
static inline void qn_weight_position(const qn_weighted_node *m, int64_t i, int64_t *filter,
                                      int64_t *channel)
{
    const int64_t second = m->w->dims[1];
    const int64_t outer = i / (second * m->kernel), in = i / m->kernel % second;
    const int64_t other = outer / (m->w->dims[0] / m->group) * second + in;
    *filter = m->filter_first ? outer : other;
    *channel = m->filter_first ? other : outer;
}
/* Index of the scale of weight i, where there is one per index of the axis. */
static inline int64_t qn_weight_scale_index(const qn_weighted_node *m, int64_t i)
{
    return i / m->inner % m->w->dims[m->axis];
}
/* The bias of a filter; 0 without one. */
double qn_weighted_node_bias(const qn_weighted_node *m, int64_t filter);
/* All weights as aligned floats, to be freed with qn_free. */
QN_MUST_CHECK qn_status qn_weighted_node_weights(float **out, const qn_weighted_node *m);
/* A constant that takes the place of input `slot` of the node, under the old one's name (or
 * `name`). */
QN_MUST_CHECK qn_status qn_node_put_constant(qn_node *node, int32_t slot, const qn_tensor *tensor,
                                             const char *name);

#endif
