/* The state of a training on disk: everything that its next steps depend on. */
#ifndef QN_TRAIN_CHECKPOINT_H
#define QN_TRAIN_CHECKPOINT_H

#include "base/fingerprint.h"
#include "train/training.h"

/* Sums over the steps of an epoch so far. */
typedef struct qn_train_sums {
    double loss, correct;
    int64_t steps;
} qn_train_sums;

typedef struct qn_train_progress {
    /* Steps done */
    int64_t step;
    qn_train_sums now;
    /* Epochs that are done */
    qn_train_sums *epochs;
    int64_t n_epochs;
} qn_train_progress;

/* Written beside and renamed. `of` stands for the model, the data and the settings. */
QN_MUST_CHECK qn_status qn_checkpoint_save(qn_training *training, const char *path,
                                           qn_fingerprint of, const qn_train_progress *progress);
/* *found false where there is no such file; one of another training is an error. `epochs` has room
 * for `most`. */
QN_MUST_CHECK qn_status qn_checkpoint_load(bool *found, qn_training *training, const char *path,
                                           qn_fingerprint of, qn_train_progress *progress,
                                           int64_t most);

#endif
