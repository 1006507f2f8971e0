/* Runs batches of samples that a caller brings: the pieces of a batch go through one-thread
 * sessions side by side, as in qn_collect. A piece that is left over, or a batch of one piece, goes
 * through a session of all threads. Statistics, where they are collected, equal those of qn_collect
 * over the same pieces, bit for bit. */
#ifndef QN_BATCH_RUNNER_H
#define QN_BATCH_RUNNER_H

#include "calib/calib.h"

typedef struct qn_batch_runner qn_batch_runner;

typedef struct qn_batch_runner_options {
    /* The number of sessions side by side; 0: the context's threads. */
    int threads;
    /* Makes the plan for this number of threads; called at most once for 1 and once for all
     * threads. */
    qn_status (*plan)(void *user, qn_plan **out, int threads);
    void *user;
    size_t n_inputs;
    /* Collect statistics of the values that the plans observe. */
    bool collect;
    /* The axis of channels, as in qn_collect_options. */
    qn_axis_fn *axis;
    /* The fingerprint of the model, as in qn_collect_options. */
    qn_fingerprint model;
    /* Finish a batch that has begun, even when the context is cancelled. */
    bool whole;
} qn_batch_runner_options;

/* One batch. Both functions are called by several threads at once, each for another piece. */
typedef struct qn_batch_pieces {
    void *user;
    int64_t count;
    /* Collect nothing; only the outputs are wanted. */
    bool outputs_only;
    /* Sets the inputs of a piece, in the order of the model's; they stay valid until the same slot
     * asks for the next. Messages go to `ctx`. */
    qn_status (*read_inputs)(void *user, qn_context *ctx, int slot, int64_t piece,
                             qn_tensor *inputs);
    qn_status (*on_outputs)(void *user, qn_context *ctx, int64_t piece, const qn_session *session);
} qn_batch_pieces;

QN_MUST_CHECK qn_status qn_batch_runner_create(qn_batch_runner **out, qn_context *ctx,
                                               const qn_batch_runner_options *options);
/* Runs all pieces. Where several fail the message is that of the first. Statistics are unusable
 * after a failure. */
QN_MUST_CHECK qn_status qn_batch_runner_run(qn_batch_runner *runner, const qn_batch_pieces *pieces);
/* Gives the statistics of all runs so far; the caller frees them. */
QN_MUST_CHECK qn_status qn_batch_runner_stats(qn_stats **out, qn_batch_runner *runner);
/* Continues from statistics, which the runner takes over. */
void qn_batch_runner_restore(qn_batch_runner *runner, qn_stats *total);
void qn_batch_runner_free(qn_batch_runner *runner);

#endif
