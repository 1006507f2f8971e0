/* Sessions side by side, for those who come with a batch at a time: its pieces go through sessions
 * of one thread each, as in qn_collect, and a piece that is left over, or all that there is,
 * through a session of all threads. Statistics, where they are collected, are those that qn_collect
 * would have of the same pieces, bit for bit. */
#ifndef QN_BATCH_RUNNER_H
#define QN_BATCH_RUNNER_H

#include "calib/calib.h"

typedef struct qn_batch_runner qn_batch_runner;

typedef struct qn_batch_runner_options {
    /* Lanes; 0: the context's threads */
    int threads;
    /* Makes the plan for so many threads; called at most once for 1 and once for all. */
    qn_status (*plan)(void *user, qn_plan **out, int threads);
    void *user;
    size_t n_inputs;
    /* What the plans observe */
    bool collect;
    /* As of qn_collect_options */
    qn_axis_fn *axis;
    /* Likewise */
    qn_fingerprint model;
    /* A batch that is begun is run to its end, though it be cancelled */
    bool whole;
} qn_batch_runner_options;

/* A batch. Both functions are called by several threads at once, each for another piece. */
typedef struct qn_batch_pieces {
    void *user;
    int64_t count;
    /* Only the outputs are wanted: nothing is collected */
    bool outputs_only;
    /* Inputs in the order of the model's; they stay valid until the same slot asks for the next.
     * Messages go to `ctx`. */
    qn_status (*read_inputs)(void *user, qn_context *ctx, int slot, int64_t piece,
                             qn_tensor *inputs);
    qn_status (*on_outputs)(void *user, qn_context *ctx, int64_t piece, const qn_session *session);
} qn_batch_pieces;

QN_MUST_CHECK qn_status qn_batch_runner_create(qn_batch_runner **out, qn_context *ctx,
                                               const qn_batch_runner_options *options);
/* All pieces; of several that fail the first one's message. Statistics are unusable after a
 * failure. */
QN_MUST_CHECK qn_status qn_batch_runner_run(qn_batch_runner *runner, const qn_batch_pieces *pieces);
/* Statistics of all runs up to now; the caller frees them. */
QN_MUST_CHECK qn_status qn_batch_runner_stats(qn_stats **out, qn_batch_runner *runner);
/* Goes on from statistics, which it takes. */
void qn_batch_runner_restore(qn_batch_runner *runner, qn_stats *total);
void qn_batch_runner_free(qn_batch_runner *runner);

#endif
