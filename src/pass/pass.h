/* Rewrites of graphs that keep what is computed. One row in passes.def makes a pass known to the
 * plan, to `quench convert` and to `quench inspect`. */
#ifndef QN_PASS_H
#define QN_PASS_H

#include "ops/op.h"

/* What a graph is rewritten for; passes.def says which passes serve which. */
typedef enum qn_purpose {
    /* To be planned and run, as the file means it */
    QN_PURPOSE_RUN,
    /* To be observed and quantized: calibrate and quant see the same values */
    QN_PURPOSE_QUANTIZE,
    /* To be written as a file */
    QN_PURPOSE_CONVERT,
    QN_PURPOSES
} qn_purpose;
extern const char *const qn_purpose_names[QN_PURPOSES];

/* What a pass works with. */
typedef struct qn_pass_context {
    qn_context *ctx;
    qn_graph *graph;
    /* Leave QuantizeLinear and DequantizeLinear as they are */
    bool keep_quantization;
    /* Qdq-to-integer: only into operators that ONNX Runtime has too */
    bool ort_only;
    /* The pass counts what it did */
    int64_t changes;
} qn_pass_context;

typedef struct qn_pass {
    /* "fold-constants" */
    const char *name;
    /* One line for help and docs */
    const char *brief;
    qn_status (*run)(qn_pass_context *self);
} qn_pass;

#define QN_PASS(id, also, run, quantize, convert) extern const qn_pass qn_pass_##id;
#include "pass/passes.def"
#undef QN_PASS

/* In the order in which they run. */
extern const qn_pass *const qn_passes[];
extern const size_t qn_passes_count;
bool qn_pass_serves(size_t pass, qn_purpose purpose);
/* Whether the text is "all", a pass's name or an older name of one. */
bool qn_passes_know(const char *text);
/* Whether the texts name the pass (an index of qn_passes), by its own or its older name, or are
 * "all". */
bool qn_pass_is_skipped(size_t pass, const char *const *skip, size_t n_skip);

/* Is told of each node that a pass added, changed or removed, one pass after the other. */
typedef struct qn_pass_observer {
    void *user;
    void (*changed)(void *user, const qn_pass *pass, const char *what, const char *node,
                    const qn_op *op);
} qn_pass_observer;

typedef struct qn_pass_options {
    /* Names of passes to leave out, or "all"; an unknown one is an error */
    const char *const *skip;
    size_t n_skip;
    /* QuantizeLinear and its kin stay unless it is to run */
    qn_purpose purpose;
    /* NULL: nobody looks */
    const qn_pass_observer *observer;
} qn_pass_options;

/* Fails where the options name a pass that does not exist; qn_passes_run does so too. */
QN_MUST_CHECK qn_status qn_passes_check(qn_context *ctx, const qn_pass_options *options);
/* Runs the passes of the purpose over the graphs of the model, again and again until none changes
 * anything. Types are inferred on entry and stay so. changes (may be NULL) has one count per pass,
 * in the table's order. */
QN_MUST_CHECK qn_status qn_passes_run(qn_model *model, const qn_pass_options *options,
                                      int64_t *changes);

#endif
