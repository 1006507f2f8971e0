/* What calibration of a model goes by, for those who quantize it. */
#ifndef QN_CALIBRATE_H
#define QN_CALIBRATE_H

#include "api/feed.h"
#include "calib/calib.h"

/* The values of a graph (passes done) that a quantized one would carry: floats that are no constants, except
 * those that are only cut off at once by a Relu or Clip. A qn_observe_fn. */
bool qn_observe_default(const void *user, const qn_value *value);
/* The dimension of a value that counts channels, as its neighbours see it. A qn_axis_fn. */
int32_t qn_axis_default(const void *user, const qn_value *value);

/* The runs of a feed, one sample each unless the model fixes another batch, or random ones where nothing is
 * sampled. */
typedef struct qn_feed_source {
    qn_source source;
    const qn_feed *feed;
    qn_tensor *tensors; /* [slots, inputs] */
    void **buffers;     /* [slots, inputs], of those that are sampled */
    uint64_t seed;
} qn_feed_source;
/* Everything lives as long as the feed. */
QN_MUST_CHECK qn_status qn_feed_source_open(qn_feed_source *out, qn_feed *feed, const qn_plan *plan,
                                            int slots);

#endif
