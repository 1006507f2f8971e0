/* Passes rewrite graphs and keep what they compute. One row in passes.def makes a pass known to the
 * plan, to `quench convert` and to `quench inspect`. */
#ifndef QN_PASS_H
#define QN_PASS_H

#include "ops/op.h"

/* The purpose of a rewritten graph; passes.def says which passes serve which purpose. */
typedef enum qn_purpose {
    /* The graph is planned and run, as its file means it. */
    QN_PURPOSE_RUN,
    /* The graph is observed and quantized; `calibrate` and `quant` see the same values. */
    QN_PURPOSE_QUANTIZE,
    /* The graph is written as a file. */
    QN_PURPOSE_CONVERT,
    /* The graph is planned and run while its parameters change. */
    QN_PURPOSE_TRAIN,
    /* The graph is searched for what keeps it from running as integers. */
    QN_PURPOSE_LINT,
    QN_PURPOSES
} qn_purpose;
extern const char *const qn_purpose_names[QN_PURPOSES];

/* The graph that a pass changes, and its options. */
typedef struct qn_pass_context {
    qn_context *ctx;
    qn_graph *graph;
    /* QuantizeLinear and DequantizeLinear stay as they are. */
    bool keep_quantization;
    /* For qdq-to-integer: use only operators that ONNX Runtime has too. */
    bool ort_only;
    /* The number of changes, which the pass counts. */
    int64_t changes;
} qn_pass_context;

typedef struct qn_pass {
    /* "fold-constants" */
    const char *name;
    /* One line for help and docs */
    const char *brief;
    qn_status (*run)(qn_pass_context *self);
} qn_pass;

#define QN_PASS(id, also, run, quantize, convert, train, lint) extern const qn_pass qn_pass_##id;
#include "pass/passes.def"
#undef QN_PASS

/* All passes, in the order in which they run. */
extern const qn_pass *const qn_passes[];
extern const size_t qn_passes_count;
bool qn_pass_serves(size_t pass, qn_purpose purpose);
/* Whether the text is "all", a pass's name or an older name of one. */
bool qn_passes_know(const char *text);
/* Whether the texts name the pass (an index of qn_passes), by its own or its older name, or are
 * "all". */
bool qn_pass_is_skipped(size_t pass, const char *const *skip, size_t n_skip);

/* A function that is called for each node that a pass added, changed or removed. */
typedef struct qn_pass_observer {
    void *user;
    void (*changed)(void *user, const qn_pass *pass, const char *what, const char *node,
                    const qn_op *op);
} qn_pass_observer;

typedef struct qn_pass_options {
    /* Names of passes to leave out, or "all"; an unknown name is an error. */
    const char *const *skip;
    size_t n_skip;
    /* Unless it is QN_PURPOSE_RUN, QuantizeLinear and DequantizeLinear stay. */
    qn_purpose purpose;
    /* The observer; NULL: none. */
    const qn_pass_observer *observer;
} qn_pass_options;

/* Fails where the options name a pass that does not exist; qn_passes_run does so too. */
QN_MUST_CHECK qn_status qn_passes_check(qn_context *ctx, const qn_pass_options *options);
/* Runs the passes of the purpose over the graphs of the model until none changes anything. Types
 * are inferred before and after. changes (may be NULL) gets one count per pass, in the table's
 * order. */
QN_MUST_CHECK qn_status qn_passes_run(qn_model *model, const qn_pass_options *options,
                                      int64_t *changes);

#endif
