/* A node with constant weights (Conv, ConvTranspose, Gemm, MatMul, ...): where its filters and
 * channels lie in the weights, and where its bias is. */
#ifndef QN_WEIGHTED_NODE_H
#define QN_WEIGHTED_NODE_H

#include "quant/quant.h"

typedef struct qn_weighted_node {
    qn_node *node;
    /* float32, of any alignment. */
    const qn_tensor *w;
    /* The number of weights. */
    int64_t count;
    int64_t filters, channels, group;
    /* The taps of a convolution's kernel; 1 for a product. */
    int64_t kernel;
    /* Whether the first axis of w counts filters; else it counts channels. */
    bool filter_first;
    /* The axis of w that has a scale per index. */
    int32_t axis;
    /* The number of weights that follow each other with one index of the axis. */
    int64_t inner;
    /* The node that has the bias: the node itself or an Add behind it; NULL: there is no bias. */
    qn_node *bias_node;
    int32_t bias_slot;
} qn_weighted_node;

/* The number of weights below which threads are not worth their start. */
enum { QN_WEIGHTS_PER_THREAD = 1 << 14 };

/* Describes the node; false where it has no constant weights of two dimensions or more. */
bool qn_weighted_node_of(qn_weighted_node *out, qn_node *node);
/* The same for a node that becomes integer. */
bool qn_quant_weighted_node(qn_weighted_node *out, const qn_quant_node *n);
/* The filter and the input channel of weight i. */
static inline void qn_weight_position(const qn_weighted_node *m, int64_t i, int64_t *filter,
                                      int64_t *channel)
{
    const int64_t second = m->w->dims[1];
    const int64_t outer = i / (second * m->kernel), in = i / m->kernel % second;
    const int64_t other = outer / (m->w->dims[0] / m->group) * second + in;
    *filter = m->filter_first ? outer : other;
    *channel = m->filter_first ? other : outer;
}
/* The index of weight i's scale, where there is one per index of the axis. */
static inline int64_t qn_weight_scale_index(const qn_weighted_node *m, int64_t i)
{
    return i / m->inner % m->w->dims[m->axis];
}
/* The bias of a filter; 0 without one. */
double qn_weighted_node_bias(const qn_weighted_node *m, int64_t filter);
/* A copy of all weights as aligned floats; freed with qn_free. */
QN_MUST_CHECK qn_status qn_weighted_node_weights(float **out, const qn_weighted_node *m);
/* Puts a constant in the place of input `slot` of the node, under the old one's name (or
 * `name`). */
QN_MUST_CHECK qn_status qn_node_put_constant(qn_node *node, int32_t slot, const qn_tensor *tensor,
                                             const char *name);

#endif
