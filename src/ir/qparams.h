/* How the integers of a value stand for real numbers: x = (q - zero) * scale. */
#ifndef QN_QPARAMS_H
#define QN_QPARAMS_H

#include "ir/graph.h"

struct qn_qparams {
    qn_dtype dtype;
    int32_t axis;  /* with one scale per index; -1: one scale for all */
    int64_t count; /* of scales */
    float *scale;
    int64_t *zero;
    int64_t qmin, qmax; /* integers in use; a type may have one more (-128) */
};

/* Parameters with all scales 1 and zero points 0. */
QN_MUST_CHECK qn_status qn_qparams_create(qn_qparams **out, qn_context *ctx, qn_arena *arena,
                                          qn_dtype dtype, int64_t count);
bool qn_qparams_equal(const qn_qparams *a, const qn_qparams *b);

#endif
