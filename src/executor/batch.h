/* What one forward of an infer function gives, as the model takes it. */
#ifndef QN_BATCH_H
#define QN_BATCH_H

#include "base/fingerprint.h"
#include "ir/tensor.h"

typedef struct qn_batch_scale {
    float scale;
    int64_t zero;
} qn_batch_scale;

/* What a forward gives, as the model takes it: `pieces` runs one after the other. */
typedef struct qn_batch_inputs {
    /* [n_inputs], converted; of all pieces */
    qn_tensor *tensors;
    /* [n_inputs]: dim 0 is divided among the pieces */
    bool *split;
    /* [n_inputs], for what is converted */
    void **buffers;
    /* Their sizes in bytes */
    size_t *sizes;
    /* [n_inputs]: inputs of integers that floats are quantized for; scale 0: it takes what
     * converts. NULL: all do */
    qn_batch_scale *scales;
    /* Somebody was told that numbers were rounded to the input's type. */
    bool noted;
    int64_t pieces;
    /* Samples: dim 0 of the first input that is split, or that there is */
    int64_t rows;
} qn_batch_inputs;

/* Checks and converts. `infos` [n_inputs] is what the model wants, -1 where it takes any size. */
QN_MUST_CHECK qn_status qn_batch_take(qn_batch_inputs *b, qn_context *ctx,
                                      const qn_value_info *infos, const qn_tensor *given,
                                      size_t n_inputs);
/* Inputs of a piece. */
void qn_batch_piece(qn_tensor *out, const qn_batch_inputs *b, size_t n_inputs, int64_t piece);
/* Tells other data apart: type and first bytes of the first sample. */
qn_fingerprint qn_batch_print(const qn_tensor *inputs, size_t n_inputs);

#endif
