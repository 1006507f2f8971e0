/* Strategies on their way: shared by strategies.c, which begins and ends, strategy_pass.c, which lists them and has the
 * float model run, and strategy_work.c, which makes and measures them. */
#ifndef QN_STRATEGIES_H
#define QN_STRATEGIES_H

#include "quantize/data_pass.h"
#include "quantize/float_pass.h"
#include "quantize/quantized_file.h"
#include "quantize/sample_cache.h"

typedef struct qn_strategy {
    const char *method; /* NULL: the best known */
    const char *mode;   /* what that is called */
    int64_t iteration;
    size_t pass; /* which of the statistics */
    const char *name, *folder, *path;
    qn_status status;
    char why[QN_ERROR_SIZE];
    double metric, error, loss;
} qn_strategy;

/* A model that was made, out of the job's hands. */
typedef struct qn_made_model {
    qn_model *quantized;
    qn_quantizer *quantizer;
    char *scale_text;
    bool mended, unchecked;
    qn_proof_row proof[QN_REFINEMENTS];
    qn_param_options params;
} qn_made_model;

typedef struct qn_strategies {
    qn_context *ctx;
    const qn_strategies_options *o;
    qn_model *model;
    qn_arena arena;
    const char *folder;
    qn_function function;
    const qn_function_row *row; /* NULL: not built in */
    qn_quantize_options base;   /* without method */
    qn_quantize_options own;    /* of the strategy at hand */
    qn_quantize_job j;
    qn_sample_cache *samples; /* of data that several strategies read */
    qn_float_pass pass;
    qn_pass_key key;
    const char *cache; /* NULL: none */
    const char *part;  /* of a float pass that is not finished; NULL: none */
    bool plain; /* one quantization with data, statistics or scales of files: the job does it all */
    qn_strategy *at;
    size_t count;
    const qn_strategy *best; /* so far */
    qn_made_model kept;      /* of it */
    int slot;                /* of the data's source, of those who work side by side */
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

/* ---- strategy_pass.c -------------------------------------------------------------------------------------------------- */

/* Names every pair of method and number of iterations, and the cache. */
QN_MUST_CHECK qn_status qn_strategies_list(qn_strategies *r);
/* Fills r->pass from the cache or by running the float model; what was kept of it serves all that measure later. */
QN_MUST_CHECK qn_status qn_strategies_float(qn_strategies *r);
qn_data_pass_options qn_strategies_data_pass(qn_strategies *r);
qn_executor_options qn_strategies_executor(qn_strategies *r, qn_execute stage, qn_model *model);

/* ---- strategy_work.c -------------------------------------------------------------------------------------------------- */

/* Makes and measures all; r->best and r->kept are set where one worked. */
QN_MUST_CHECK qn_status qn_strategies_try(qn_strategies *r);
/* Loss, then error, then the order they were asked for in; those that failed last. */
int qn_strategy_compare(const qn_strategy *a, const qn_strategy *b);
qn_quantized_file qn_strategies_file(const qn_strategies *r, const char *path);
/* Back into the job's hands, and out of everybody's. */
void qn_made_give(qn_quantize_job *j, qn_made_model *m);
void qn_made_drop(qn_strategies *r, qn_made_model *m);

#endif
