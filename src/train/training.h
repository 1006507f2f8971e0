/* A network that learns: its graph with loss, gradients and optimizer, planned, and the session
 * that holds its parameters. */
#ifndef QN_TRAINING_H
#define QN_TRAINING_H

#include "train/network.h"
#include "train/settings.h"

typedef struct qn_training_settings {
    qn_optimizer_settings optimizer;
    qn_loss_settings loss;
    /* Samples of a step, and the shapes of the inputs with them; threads 0: the context's */
    int64_t batch;
    const qn_input_shape *shapes;
    size_t n_shapes;
    int threads;
    /* NULL: the fastest */
    const char *backend;
    /* The output that has the scores; NULL: the first */
    const char *output;
} qn_training_settings;

typedef struct qn_training {
    qn_context *ctx;
    /* The network as it is written: passes done, nothing of training in it */
    qn_model *base;
    qn_plan *plan;
    qn_session *session;
    /* Inputs of a step: the model's, then labels where there are any, rate, step */
    size_t n_inputs, n_model_inputs;
    bool has_labels;
    int64_t classes;
    /* Names of what changes in a step, in the order of the outputs, which begin with the loss and,
     * with labels, the number of samples that were right */
    const char **names;
    size_t n_names;
    int64_t batch;
} qn_training;

QN_MUST_CHECK qn_status qn_training_create(qn_training **out, qn_context *ctx, qn_model *model,
                                           const qn_training_settings *settings);
void qn_training_free(qn_training *training);

typedef struct qn_training_result {
    double loss;
    /* Samples whose largest score stood at their label */
    double correct;
} qn_training_result;

/* One step with a batch: the model's inputs, labels[batch] (NULL where none are wanted), the
 * learning rate, and the number of the step, from 1 on. A loss that is no number fails with
 * QN_E_INVALID and changes nothing. */
typedef struct qn_training_batch {
    const qn_tensor *inputs;
    const int64_t *labels;
    double rate;
    int64_t step;
} qn_training_batch;
QN_MUST_CHECK qn_status qn_training_step(qn_training_result *out, qn_training *training,
                                         const qn_training_batch *batch);

/* The network with what it has learned: a clone of `base`. */
QN_MUST_CHECK qn_status qn_training_model(qn_model **out, qn_training *training);

#endif
