/* The executor: a model between an infer function, which feeds it, and those who want to know what happened. */
#ifndef QN_EXECUTOR_H
#define QN_EXECUTOR_H

#include "calib/lanes.h"
#include "executor/forward_log.h"
#include "model/prepare.h"

/* ---- A batch (executor_inputs.c) ------------------------------------------------------------------------------ */

/* What a forward gives, as the model takes it: `pieces` runs one after the other. */
typedef struct qn_batch_inputs {
    qn_tensor *tensors; /* [n_inputs], converted; of all pieces */
    bool *split;        /* [n_inputs]: dim 0 is divided among the pieces */
    void **buffers;     /* [n_inputs], for what is converted */
    size_t *sizes;      /* of them, in bytes */
    int64_t pieces;
    int64_t rows; /* samples: dim 0 of the first input that is split, or that there is */
} qn_batch_inputs;

/* Checks and converts. `infos` [n_inputs] is what the model wants, -1 where it takes any size. */
QN_MUST_CHECK qn_status qn_batch_take(qn_batch_inputs *b, qn_context *ctx,
                                      const qn_value_info *infos, const qn_tensor *given,
                                      size_t n_inputs);
/* Inputs of a piece. */
void qn_batch_piece(qn_tensor *out, const qn_batch_inputs *b, size_t n_inputs, int64_t piece);
/* Tells other data apart: type and first bytes of the first sample. */
qn_fingerprint qn_batch_print(const qn_tensor *inputs, size_t n_inputs);

/* ---- What the float pass leaves behind (executor_kept.c) -------------------------------------------------------- */

typedef struct qn_baseline_piece {
    qn_fingerprint print; /* qn_batch_print */
    int64_t rows;
    float *values;   /* of all outputs, one behind the other; NULL: not kept */
    int64_t *counts; /* [n_outputs] */
} qn_baseline_piece;

typedef struct qn_baseline {
    qn_context *ctx;
    size_t n_inputs, n_outputs;
    qn_tensor *samples; /* [n_samples * n_inputs]: the first ones, for those who measure later */
    int64_t n_samples, most_samples, room;
    size_t sample_bytes;
    qn_baseline_piece *pieces; /* outputs of the first ones */
    int64_t n_pieces, most_pieces;
    int64_t forwards; /* of the function */
    double metric;    /* that it gave */
    qn_source source; /* of the samples */
} qn_baseline;

enum { QN_BASELINE_SAMPLES = 16 };
void qn_baseline_init(qn_baseline *kept, qn_context *ctx, size_t n_inputs, size_t n_outputs);
/* Room for the outputs of at most `count` pieces (0: any number), each of `bytes`: as many as a limit allows. */
QN_MUST_CHECK qn_status qn_baseline_reserve(qn_baseline *kept, int64_t count, size_t bytes);
/* Keeps outputs as piece `i`; from any thread, each for another one. `inputs` NULL: nobody will ask whether they are
 * the same again. */
QN_MUST_CHECK qn_status qn_baseline_keep_outputs(qn_baseline *kept, qn_context *ctx, int64_t i,
                                                 const qn_tensor *inputs,
                                                 const qn_tensor *const *outputs);
/* Keeps the inputs of the next sample, as long as some are wanted. */
QN_MUST_CHECK qn_status qn_baseline_keep_inputs(qn_baseline *kept, const qn_tensor *inputs);
/* After the last one. */
void qn_baseline_finish(qn_baseline *kept);
/* Takes one that was never made (all zero) too. */
void qn_baseline_free(qn_baseline *kept);

/* How far outputs are from those kept. */
typedef struct qn_baseline_error {
    const qn_baseline *kept;
    const qn_model *model;  /* whose outputs come */
    double *error, *signal; /* [n_outputs]: sum |fixed - float|, sum |float| */
    int64_t place;          /* kept piece that the next forward begins with */
    double *running;        /* the error after every forward that was compared */
    size_t n_running, capacity;
    bool other; /* the data was not that of the float pass */
} qn_baseline_error;

QN_MUST_CHECK qn_status qn_baseline_error_init(qn_baseline_error *e, const qn_baseline *kept,
                                               const qn_model *model);
/* Adds the error of piece `i`, if it was kept: outputs of that piece alone. */
void qn_baseline_measure(double *error, double *signal, const qn_baseline_error *e, int64_t i,
                         const qn_tensor *const *outputs);
/* Adds what qn_baseline_measure found in a forward. */
QN_MUST_CHECK qn_status qn_baseline_error_add(qn_baseline_error *e, const double *error,
                                              const double *signal);
/* The same for a whole forward, whose inputs must be those of the float pass. */
QN_MUST_CHECK qn_status qn_baseline_compare(qn_baseline_error *e, const qn_batch_inputs *batch,
                                            const qn_tensor *outputs);
/* sum |fixed - float| / sum |float| of the worst output; NaN: nothing was compared. */
double qn_baseline_error_value(const qn_baseline_error *e);
/* Whether it changed by less than a hundredth over the last tenth of the iterations. */
bool qn_baseline_error_settled(const qn_baseline_error *e, int64_t iteration);
void qn_baseline_error_free(qn_baseline_error *e);

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
    qn_baseline *kept;    /* float: filled; fixed: compared with; else NULL */
    const int64_t *after; /* float: forwards after which statistics are wanted, ascending */
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
    qn_lanes *lanes;
    qn_batch_inputs batch;
    qn_tensor *outputs; /* [n_outputs] of the last forward */
    void **buffers;     /* [n_outputs] */
    size_t *sizes;      /* of them */
    qn_tensor *parts;   /* [pieces * n_outputs] of a batch of several pieces */
    size_t *part_sizes; /* bytes that each has memory for */
    size_t n_parts;
    int64_t kept; /* pieces shown to options->kept */
    int64_t forwards;
    qn_baseline_error error; /* fixed */
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

/* Calls the function with the model. *metric NaN where it gave none. Float: options->stats and options->kept are filled;
 * fixed: *error (may be NULL) gets the outputs' error, NaN where there is none. */
QN_MUST_CHECK qn_status qn_execute_function(double *metric, double *error, qn_context *ctx,
                                            const qn_executor_options *options);

#endif
