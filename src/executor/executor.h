/* The executor: a model between an infer function, which feeds it, and those who want to know what
 * happened. */
#ifndef QN_EXECUTOR_H
#define QN_EXECUTOR_H

#include "calib/batch_runner.h"
#include "executor/baseline.h"
#include "executor/forward_log.h"
#include "model/prepare.h"

/* ---- The executor ---------------------------------------------------------------------------- */

/* QN_EXECUTE_AGAIN is the float model once more, up to where a quantized one was stopped. */
typedef enum qn_execute {
    QN_EXECUTE_FLOAT,
    QN_EXECUTE_QUANTIZED,
    QN_EXECUTE_AGAIN,
    QN_EXECUTE_INFER
} qn_execute;

typedef struct qn_executor_options {
    qn_execute stage;
    /* Float: after the passes, which the float stages do not repeat */
    qn_model *model;
    /* The options of its plans */
    const qn_graph_options *graph;
    const qn_function *function;
    /* The largest */
    int64_t iteration;
    const char *save_dir, *run_mode;
    /* The types that qn_quantize_options asks for */
    const char *const *input_types;
    size_t n_input_types;
    bool quiet;
    /* Forwards after which the function is told to stop; 0: once the error has settled. */
    int64_t stop_after;
    /* Gets how many forwards there were; may be NULL. */
    int64_t *forwards;
    /* 0: the context's */
    int threads;
    qn_fingerprint print;
    /* Float: filled; quantized: compared with; else NULL */
    qn_baseline *baseline;
    /* Float: forwards after which statistics are wanted, ascending */
    const int64_t *after;
    size_t n_after;
    /* [n_after] of the caller */
    qn_stats **stats;
    /* Float: file that a pass that was stopped goes on from; NULL: none */
    const char *part;
    /* The print of all that it depends on */
    qn_fingerprint part_key;
    /* Gets what a built-in function has to tell; NULL: nobody asks */
    struct qn_item *report;
} qn_executor_options;

struct qn_executor {
    qn_context *ctx;
    const qn_executor_options *options;
    qn_executor_facts facts;
    qn_arena arena;
    /* The inputs as forward takes them */
    qn_value_info *inputs;
    const qn_value **layers;
    qn_batch_runner *runner;
    qn_batch_inputs batch;
    /* [n_outputs] of the last forward */
    qn_tensor *outputs;
    /* [n_outputs] */
    void **buffers;
    /* Their sizes */
    size_t *sizes;
    /* [pieces * n_outputs] of a batch of several pieces */
    qn_tensor *parts;
    /* Bytes that each has memory for */
    size_t *part_sizes;
    size_t n_parts;
    /* Pieces shown to options->baseline */
    int64_t n_kept;
    int64_t forwards;
    /* Quantized */
    qn_baseline_error error;
    /* Early */
    bool stopped;
    /* Some call of it did */
    bool failed;
    /* Memory was short: what is half made is not gone on with */
    bool starved;
    /* Float, where it can be gone on from; else NULL */
    qn_forward_log *log;
    /* A forward ended in its midst: statistics are of no use */
    bool broken;
};

/* What is done with the model in each stage. */
typedef struct qn_executor_stage {
    const char *name;
    /* Collects statistics, keeps samples and outputs */
    bool observes;
    /* The model has been through its passes. */
    bool passed;
    /* Early */
    bool may_stop;
    /* The purpose whose passes its plans get */
    qn_purpose plan;
} qn_executor_stage;
const qn_executor_stage *qn_executor_stage_of(const qn_executor *e);
/* Writes the log, so that the pass can be gone on with after the last forward.
 * (forward.c) */
QN_MUST_CHECK qn_status qn_executor_write_log(qn_executor *e);

/* Calls the function with the model. *metric NaN where it gave none. Float: options->stats and
 * options->baseline are filled; quantized: *error (may be NULL) gets the outputs' error, NaN where
 * there is none. */
QN_MUST_CHECK qn_status qn_execute_function(double *metric, double *error, qn_context *ctx,
                                            const qn_executor_options *options);

#endif
