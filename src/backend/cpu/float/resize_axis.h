/* Taps of Resize along H and W of [N, C, H, W], worked out when a plan is made. */
#ifndef QN_CPU_RESIZE_AXIS_H
#define QN_CPU_RESIZE_AXIS_H

#include "ops/resize.h"
#include "run/backend.h"

/* Inputs roi, scales and sizes of the node stand from `roi` on. Only H and W change, by nearest or
 * linear, in a way that constants say. */
bool qn_resize_is_plain(const qn_node *node, int32_t roi, const qn_tensor *in,
                        const qn_tensor *out);

typedef struct qn_resize_taps_of {
    int32_t taps;
    /* [out, taps]. */
    int64_t *index;
    float *weight;
} qn_resize_taps_of;
/* Makes the taps for input 0 and output 0 of the claim's first node. */
QN_MUST_CHECK qn_status qn_resize_axis_make(qn_resize_taps_of *out, const qn_claim *claim,
                                            int32_t roi, int32_t axis);

#endif
