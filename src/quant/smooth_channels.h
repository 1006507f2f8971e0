/* Factors of channels: channel c of a value is divided by factor[c] in the weights of the node that
 * computes it, and multiplied again in the weights of those that read it. In between stand only
 * operators for which a positive factor may be drawn out of a channel. The float results stay what
 * they are; what changes is how well integers tell them. */
#ifndef QN_SMOOTH_CHANNELS_H
#define QN_SMOOTH_CHANNELS_H

#include "quant/weighted_node.h"

/* A value that carries the factors, or a product that takes them in: factor c belongs to the
 * channels [first + c * repeat, first + (c + 1) * repeat) of the axis. */
typedef struct qn_smooth_member {
    qn_value *value;
    /* That multiplies with its weights; NULL: the value only passes */
    qn_node *reader;
    int32_t axis;
    int64_t first, repeat;
} qn_smooth_member;

enum { QN_SMOOTH_MEMBERS_MAX = 64 };

/* Where the factors of a value act. */
typedef struct qn_smooth_region {
    qn_value *value;
    int64_t channels;
    /* LayerNormalization that computes the value; NULL: `layer` does */
    qn_node *norm;
    qn_weighted_node layer;
    /* The value itself first */
    qn_smooth_member values[QN_SMOOTH_MEMBERS_MAX];
    qn_smooth_member readers[QN_SMOOTH_MEMBERS_MAX];
    size_t n_values, n_readers;
    /* By a Clip on the way: what it cuts off must not become smaller */
    bool limited;
} qn_smooth_region;

/* False where the value's channels cannot have factors. */
bool qn_smooth_region_of(qn_smooth_region *out, qn_value *value);

/* Changes the weights, and the factors that q->values tell. Fails where the graph cannot take them.
 * The balance is not kept in q->encodings. */
QN_MUST_CHECK qn_status qn_smooth_apply(qn_quantizer *q, const qn_channel_factors *balance);

#endif
