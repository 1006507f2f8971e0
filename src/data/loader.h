/* Batches of samples, read by threads ahead of whoever takes them. */
#ifndef QN_LOADER_H
#define QN_LOADER_H

#include "data/dataset.h"

typedef struct qn_loader qn_loader;

typedef struct qn_loader_options {
    /* Which ones, in this order; NULL: from `first` on */
    const int64_t *samples;
    int64_t first, count;
    /* Samples of a batch; the last one may be smaller */
    int64_t batch;
    /* The last batch is filled up to so many with its last sample; 0: not */
    int64_t fill;
    /* 0: as many as the machine has cores; negative: none, samples are read when asked for */
    int threads;
} qn_loader_options;

typedef struct qn_batch {
    /* Place of its first sample among those to load */
    int64_t first;
    /* Without those that fill it up */
    int64_t count;
    /* [n_inputs]: samples one behind the other; NULL where the data set has none */
    void **data;
    /* [count] of their pictures */
    qn_picture_place *places;
} qn_batch;

/* The data set must outlive the loader. */
QN_MUST_CHECK qn_status qn_loader_create(qn_loader **out, qn_context *ctx, const qn_dataset *data,
                                         size_t n_inputs, const qn_loader_options *options);
/* The next batch, valid until the next call; NULL past the last. A sample that cannot be read is a
 * failure of its batch, the first of them in the order of the samples. */
QN_MUST_CHECK qn_status qn_loader_next(const qn_batch **out, qn_loader *loader);
void qn_loader_free(qn_loader *loader);

#endif
