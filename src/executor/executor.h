/* The executor: a model between an infer function, which feeds it, and those who want to know what happened. */
#ifndef QN_EXECUTOR_H
#define QN_EXECUTOR_H

#include "calib/batch_runner.h"
#include "executor/baseline.h"
#include "executor/forward_log.h"
#include "model/prepare.h"

/* ---- The executor ------------------------------------------------------------------------------------------------ */

typedef enum qn_execute { QN_EXECUTE_FLOAT, QN_EXECUTE_QUANTIZED, QN_EXECUTE_INFER } qn_execute;

typedef struct qn_executor_options {
    qn_execute stage;
    qn_model *model;               /* float: after the passes */
    const qn_graph_options *graph; /* of its plans */
    const qn_function *function;
    int64_t iteration; /* the largest */
    const char *save_dir, *run_mode;
    const char *const *input_types; /* as of qn_quantize_options */
    size_t n_input_types;
    bool quiet;
    int threads; /* 0: the context's */
    qn_fingerprint print;
    qn_baseline *baseline; /* float: filled; quantized: compared with; else NULL */
    const int64_t *after;  /* float: forwards after which statistics are wanted, ascending */
    size_t n_after;
    qn_stats **stats;        /* [n_after] of the caller */
    const char *part;        /* float: file that a pass that was stopped goes on from; NULL: none */
    qn_fingerprint part_key; /* of all that it depends on */
    struct qn_item *tell;    /* gets what a built-in function has to tell; NULL: nobody asks */
} qn_executor_options;

struct qn_executor {
    qn_context *ctx;
    const qn_executor_options *options;
    qn_executor_facts facts;
    qn_arena arena;
    qn_value_info *inputs; /* as forward takes them */
    const qn_value **layers;
    qn_batch_runner *runner;
    qn_batch_inputs batch;
    qn_tensor *outputs; /* [n_outputs] of the last forward */
    void **buffers;     /* [n_outputs] */
    size_t *sizes;      /* of them */
    qn_tensor *parts;   /* [pieces * n_outputs] of a batch of several pieces */
    size_t *part_sizes; /* bytes that each has memory for */
    size_t n_parts;
    int64_t n_kept; /* pieces shown to options->baseline */
    int64_t forwards;
    qn_baseline_error error; /* quantized */
    bool stopped;            /* early */
    bool failed;             /* some call of it did */
    bool starved;            /* for want of memory: what is half made is not gone on with */
    qn_forward_log *log;     /* float, where it can be gone on from; else NULL */
    bool broken;             /* a forward ended in its midst: statistics are of no use */
};

/* What is done with the model in each stage. */
typedef struct qn_executor_stage {
    const char *name;
    bool observes;   /* collects statistics, keeps samples and outputs */
    bool may_stop;   /* early */
    qn_purpose plan; /* whose passes its plans get */
} qn_executor_stage;
const qn_executor_stage *qn_executor_stage_of(const qn_executor *e);
/* Writes the log, so that the pass can be gone on with after the last forward. (executor_forward.c) */
QN_MUST_CHECK qn_status qn_executor_write_log(qn_executor *e);

/* Calls the function with the model. *metric NaN where it gave none. Float: options->stats and options->baseline are filled;
 * quantized: *error (may be NULL) gets the outputs' error, NaN where there is none. */
QN_MUST_CHECK qn_status qn_execute_function(double *metric, double *error, qn_context *ctx,
                                            const qn_executor_options *options);

#endif
