/* The one driver of quantizations: a list of strategies (a method and a number of iterations each)
 * of which the best one is the result; a list of one is what most people ask for.
 *
 *     qn_quantize_job_open ─► data ─► qn_strategies_list ─► statistics ─► qn_strategies_try
 *     ─► report, files
 *
 * All strategies share the input of the job and one float pass. Shared by strategies.c, which
 * begins and ends, strategy_pass.c, which lists them and finds the statistics, and strategy_work.c,
 * which makes and measures them. */
#ifndef QN_STRATEGIES_H
#define QN_STRATEGIES_H

#include "quantize/data_pass.h"
#include "quantize/float_pass.h"
#include "quantize/quantized_file.h"
#include "quantize/search.h"

typedef struct qn_strategy {
    /* NULL: the best known; and what that is called, once the model is made. */
    const char *method, *mode;
    /* The widths of its nodes. */
    char bits[QN_WIDTHS * 4];
    int64_t iteration;
    /* Which of the statistics. */
    size_t pass;
    const char *name, *folder, *path;
    qn_status status;
    char why[QN_ERROR_SIZE];
    /* The loss is how far the metric is from the float model's, in percent of that; the change is
     * that with a sign, NaN where there are no metrics. */
    double metric, error, loss, change;
    /* Calls of the model by an infer function. */
    int64_t forwards;
} qn_strategy;

/* What strategies are compared on: as many forwards of an infer function as the first of them did
 * before it was told to stop, and the float model's metric on these. */
typedef struct qn_compared_forwards {
    /* 0: no strategy was measured yet. */
    int64_t count;
    double metric;
} qn_compared_forwards;

/* Where a float pass is kept. */
typedef struct qn_pass_files {
    qn_pass_key key;
    /* NULL: none. */
    const char *cache;
    /* The file of a float pass that is not finished; NULL: none. */
    const char *part;
} qn_pass_files;

typedef struct qn_strategies {
    qn_context *ctx;
    const qn_strategies_options *o;
    qn_model *model;
    qn_arena arena;
    /* The folder that all is written into; NULL: nothing is. */
    const char *folder;
    qn_function function;
    /* NULL: not built in. */
    const qn_function_row *row;
    /* The options of all strategies, but for the method. */
    qn_quantize_options base;
    qn_quantize_job job;
    qn_float_pass pass;
    qn_pass_files files;
    /* Each is run on all data and reported with its loss; else there is one, and it is the result
     * as it is. */
    bool judged;
    qn_compared_forwards compared;
    qn_strategy *at;
    size_t count;
    /* So far, and what was made of it. */
    const qn_strategy *best;
    qn_quantize_result result;
    /* Somebody wants to read it. */
    bool reported;
    qn_report *report;
} qn_strategies;

/* Whether data are read and run side by side, without a function. */
static inline bool qn_strategies_read_data(const qn_strategies *r)
{
    return r->row && !r->row->run;
}

static inline int64_t qn_strategies_batch(const qn_strategies *r)
{
    return r->function.batch_size > 0 ? r->function.batch_size : 1;
}

/* ---- strategy_pass.c ------------------------------------------------------------------------- */

/* Names every pair of method and number of iterations, and the cache. The data are open. */
QN_MUST_CHECK qn_status qn_strategies_list(qn_strategies *r);
/* Whether statistics come from running the float model: not those of files, nor where all scales
 * are known. */
bool qn_strategies_need_pass(const qn_strategies *r);
/* Fills r->pass: from a file of statistics, from the cache, or by running the float model; what was
 * kept of that serves all that measure later. */
QN_MUST_CHECK qn_status qn_strategies_statistics(qn_strategies *r);
qn_data_pass_options qn_strategies_data_pass(qn_strategies *r);
qn_executor_options qn_strategies_executor(qn_strategies *r, qn_execute stage, qn_model *model);

/* ---- strategy_work.c ------------------------------------------------------------------------- */

/* What the strategy's model is made from; *own get its options, and must live as long. */
qn_quantize_input qn_strategies_input(const qn_strategies *r, const qn_strategy *s,
                                      qn_quantize_options *own);
/* Makes and measures all; r->best and r->result are set where one worked. */
QN_MUST_CHECK qn_status qn_strategies_try(qn_strategies *r);
/* What is better than float before what is worse, then loss, error, and the order they were asked
 * for in; those that failed last. */
int qn_strategy_compare(const qn_strategy *a, const qn_strategy *b);
qn_quantized_file qn_strategies_file(const qn_strategies *r, const char *path,
                                     const qn_quant_settings *settings);

#endif
