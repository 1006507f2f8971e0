/* Samples that are read once and kept, as many as a limit allows: for those who run the same data again and again. */
#ifndef QN_REMEMBER_H
#define QN_REMEMBER_H

#include <stdatomic.h>

#include "calib/calib.h"

typedef struct qn_remember {
    qn_source source; /* for whoever reads */
    qn_context *ctx;
    const qn_source *inner;
    size_t n_inputs;
    _Atomic(qn_tensor *) *samples; /* [count], each [n_inputs]; NULL: not kept */
    atomic_size_t bytes;
} qn_remember;

QN_MUST_CHECK qn_status qn_remember_open(qn_remember *out, qn_context *ctx, const qn_source *inner,
                                         size_t n_inputs);
/* Takes one that was never opened (all zero) too. */
void qn_remember_close(qn_remember *r);

#endif
