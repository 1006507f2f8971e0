/* Optimizers: nodes that compute what a parameter becomes. */
#ifndef QN_TRAIN_OPTIMIZER_H
#define QN_TRAIN_OPTIMIZER_H

#include "train/settings.h"

/* A parameter that a run changes: what it holds after the run is `next`. */
typedef struct qn_train_update {
    qn_value *parameter, *next;
} qn_train_update;

typedef struct qn_train_updates {
    qn_train_update *at;
    size_t count, capacity;
} qn_train_updates;

QN_MUST_CHECK qn_status qn_train_updates_add(qn_train_updates *updates, qn_graph *graph,
                                             qn_value *parameter, qn_value *next);

/* The names of optimizers: "sgd", "adam", ...; NULL past the last. */
const char *qn_optimizer_name(size_t i);

/* What the step is computed with: inputs of the graph, one number each. */
typedef struct qn_train_inputs {
    qn_value *rate, *step;
} qn_train_inputs;

/* Adds one step for parameters[count] with these gradients (NULL: none, it stays as it is), whose
 * updates and those of the optimizer's own parameters are added to `updates`. Weights decay, lists
 * of numbers (biases, the scales of norms) do not. */
QN_MUST_CHECK qn_status qn_optimizer_add(qn_train_updates *updates, qn_graph *graph,
                                         qn_train_inputs inputs, qn_train_update *by, size_t count,
                                         const qn_optimizer_settings *settings);

#endif
