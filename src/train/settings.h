/* How a network is trained: what qn_train_options says, and what the room's parts take of it. */
#ifndef QN_TRAIN_SETTINGS_H
#define QN_TRAIN_SETTINGS_H

#include "ir/graph.h"

typedef struct qn_optimizer_settings {
    /* One of qn_optimizers */
    const char *name;
    double momentum, decay;
    /* The norm that all gradients together have at most; 0: any */
    double max_norm;
} qn_optimizer_settings;

typedef struct qn_loss_settings {
    /* The share of a label that is spread over all classes */
    double smoothing;
    /* The weight of the KL divergence from the float network, and the temperature of both; weight
     * 0: labels alone, 1: no labels at all */
    double distillation, temperature;
} qn_loss_settings;

#endif
