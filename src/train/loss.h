/* Losses, made of ordinary operators. */
#ifndef QN_TRAIN_LOSS_H
#define QN_TRAIN_LOSS_H

#include "train/settings.h"

typedef struct qn_train_loss {
    /* The labels, int64 [batch], an input of the graph that this adds; NULL: no labels */
    qn_value *labels;
    /* One number each: the loss, and how many samples of the batch have their largest score at
     * their label (NULL without labels) */
    qn_value *loss, *correct;
    int64_t classes;
} qn_train_loss;

/* The loss of `scores` [batch, classes, 1...], a result of the graph, all shapes known. A Softmax
 * at the end is looked through. `teacher` is what the float network gives for the same inputs,
 * or NULL. Where it is all that counts and the output is no such scores, the loss is the mean
 * square of the difference. */
QN_MUST_CHECK qn_status qn_train_loss_add(qn_train_loss *out, qn_graph *graph, qn_value *scores,
                                          qn_value *teacher, const qn_loss_settings *settings);

#endif
