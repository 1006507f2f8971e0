/* Channel smoothing (SmoothQuant) and cross-layer equalization: channel c of a value is divided by
 * factor[c] in the weights of the node that computes it, and multiplied by it again in the weights
 * of the nodes that read it. Only operators that commute with a positive factor per channel stand
 * in between. The float results stay the same; what improves is how well integers represent
 * them. */
#ifndef QN_SMOOTH_CHANNELS_H
#define QN_SMOOTH_CHANNELS_H

#include "quant/weighted_node.h"

/* One place that a factor reaches: a value whose channels are scaled, or a node whose weights take
 * the factors in. Factor c belongs to the channels [first + c * repeat, first + (c + 1) * repeat)
 * of the axis. */
typedef struct qn_smooth_member {
    qn_value *value;
    /* The node that multiplies with its weights; NULL: the value only passes on. */
    qn_node *reader;
    int32_t axis;
    int64_t first, repeat;
} qn_smooth_member;

enum { QN_SMOOTH_MEMBERS_MAX = 64 };

/* All places that the factors of one value reach. */
typedef struct qn_smooth_region {
    qn_value *value;
    int64_t channels;
    /* The LayerNormalization that computes the value; NULL: `layer` computes it. */
    qn_node *norm;
    qn_weighted_node layer;
    /* The scaled values, the value itself first. */
    qn_smooth_member values[QN_SMOOTH_MEMBERS_MAX];
    qn_smooth_member readers[QN_SMOOTH_MEMBERS_MAX];
    size_t n_values, n_readers;
    /* A Clip lies in between: factors must not make its limits smaller. */
    bool limited;
} qn_smooth_region;

/* Finds the places for a value; false where its channels cannot have factors. */
bool qn_smooth_region_of(qn_smooth_region *out, qn_value *value);

/* Applies the factors to the weights and to the factors in q->values. Fails where the graph cannot
 * take them. The factors are not added to q->encodings. */
QN_MUST_CHECK qn_status qn_smooth_apply(qn_quantizer *q, const qn_channel_factors *factors);

#endif
