/* Batches of training samples: in an order and with changes that depend on the seed, the epoch and
 * the sample alone, so that threads make no difference. */
#ifndef QN_TRAIN_BATCHES_H
#define QN_TRAIN_BATCHES_H

#include "data/loader.h"

typedef struct qn_batches_settings {
    int64_t batch;
    uint64_t seed;
    /* Pictures are moved by up to so many pixels, mirrored at their borders */
    int64_t crop;
    /* Every second picture is mirrored from left to right */
    bool flip;
    /* Contrast and brightness change by up to this share */
    double colour;
    int loaders;
} qn_batches_settings;

typedef struct qn_batches {
    qn_context *ctx;
    qn_batches_settings settings;
    qn_dataset *dataset;
    qn_value_info *infos;
    size_t n_inputs;
    int64_t count, per_epoch;
    int64_t epoch, next;
    /* [count] samples in the order of the epoch */
    int64_t *order;
    qn_loader *loader;
    /* The inputs and classes of the batch at hand. */
    qn_tensor *tensors;
    int64_t *labels;
    /* One picture */
    float *picture;
} qn_batches;

/* The samples for the inputs of `graph`, whose batch is open or of the size wanted. To be closed in
 * any case. */
QN_MUST_CHECK qn_status qn_batches_open(qn_batches *out, qn_context *ctx, qn_model *model,
                                        const qn_data_options *data,
                                        const qn_batches_settings *settings);
void qn_batches_close(qn_batches *batches);
/* All samples have a class below `classes`. */
QN_MUST_CHECK qn_status qn_batches_check_labels(const qn_batches *batches, int64_t classes);
/* The next batch is this one, counted from 0 on over all epochs. */
QN_MUST_CHECK qn_status qn_batches_seek(qn_batches *batches, int64_t batch);
/* Fills tensors and labels. Epochs follow each other; what is left of one behind its last whole
 * batch is not used. */
QN_MUST_CHECK qn_status qn_batches_next(qn_batches *batches);

#endif
