/* Samples that are read once and kept, as many as a limit allows: for those who run the same data
 * again and again. */
#ifndef QN_SAMPLE_CACHE_H
#define QN_SAMPLE_CACHE_H

#include <stdatomic.h>

#include "calib/calib.h"

typedef struct qn_sample_cache {
    /* The source for whoever reads */
    qn_sample_source source;
    qn_context *ctx;
    const qn_sample_source *inner;
    size_t n_inputs;
    /* Samples from this one on are not kept; qn_sample_cache_open says all are. */
    int64_t most;
    /* [count], each [n_inputs]; NULL: not kept */
    _Atomic(qn_tensor *) *samples;
    atomic_size_t bytes;
} qn_sample_cache;

QN_MUST_CHECK qn_status qn_sample_cache_open(qn_sample_cache *out, qn_context *ctx,
                                             const qn_sample_source *inner, size_t n_inputs);
/* Takes one that was never opened (all zero) too. */
void qn_sample_cache_close(qn_sample_cache *r);

#endif
