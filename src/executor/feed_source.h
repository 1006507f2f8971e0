/* The runs of a feed as a source of samples, from which several threads read at once. */
#ifndef QN_FEED_SOURCE_H
#define QN_FEED_SOURCE_H

#include "calib/calib.h"
#include "executor/feed.h"

/* The runs of a feed, one sample each unless the model fixes another batch, or random ones where
 * nothing is sampled. */
typedef struct qn_feed_source {
    qn_sample_source source;
    const qn_feed *feed;
    /* [slots, inputs] */
    qn_tensor *tensors;
    /* [slots, inputs], of those that are sampled */
    void **buffers;
    uint64_t seed;
} qn_feed_source;
/* Everything lives as long as the feed. */
QN_MUST_CHECK qn_status qn_feed_source_open(qn_feed_source *out, qn_feed *feed, const qn_plan *plan,
                                            int slots);

#endif
