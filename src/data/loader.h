/* A loader reads batches of samples ahead of their use, in threads. */
#ifndef QN_LOADER_H
#define QN_LOADER_H

#include "data/dataset.h"

typedef struct qn_loader qn_loader;

typedef struct qn_loader_options {
    /* The samples in the order wanted; NULL: `count` samples from `first` on. */
    const int64_t *samples;
    int64_t first, count;
    /* The number of samples in a batch; the last batch may be smaller. */
    int64_t batch;
    /* Fill the last batch up to this number of samples by repeating its last sample; 0: do not. */
    int64_t fill;
    /* The number of threads; 0: the machine's cores; negative: none, samples are read when asked
     * for. */
    int threads;
} qn_loader_options;

typedef struct qn_batch {
    /* The index of its first sample among those to load. */
    int64_t first;
    /* The number of samples without those that fill it up. */
    int64_t count;
    /* [n_inputs] samples, one behind the other; NULL where the data set does not feed the input. */
    void **data;
    /* [count] positions of their pictures. */
    qn_picture_place *places;
} qn_batch;

/* The data set must outlive the loader. */
QN_MUST_CHECK qn_status qn_loader_create(qn_loader **out, qn_context *ctx, const qn_dataset *data,
                                         size_t n_inputs, const qn_loader_options *options);
/* Gives the next batch, valid until the next call; NULL past the last. Where samples cannot be read
 * the call fails with the first of them, in the order of the samples. */
QN_MUST_CHECK qn_status qn_loader_next(const qn_batch **out, qn_loader *loader);
void qn_loader_free(qn_loader *loader);

#endif
