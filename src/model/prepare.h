/* A model on its way to a plan, a report or a file: input shapes bound, passes done. */
#ifndef QN_PREPARE_H
#define QN_PREPARE_H

#include "ops/op.h"
#include "pass/pass.h"
#include "run/plan.h"

/* What is known of a value. */
void qn_value_describe(qn_value_info *out, const qn_value *value);

/* A clone of the model with its inputs shaped as the options say. With `close` the dimensions that
 * stay open become 1. Types are not inferred yet. */
QN_MUST_CHECK qn_status qn_prepare_shapes(qn_model **out, qn_context *ctx, qn_model *model,
                                          const qn_graph_options *options, bool close);
/* The same with the passes of the purpose done; open dimensions stay open. `changes` as of
 * qn_passes_run. */
QN_MUST_CHECK qn_status qn_prepare_optimized(qn_model **out, qn_context *ctx, qn_model *model,
                                             const qn_graph_options *options, qn_purpose purpose,
                                             int64_t *changes);
/* Takes as many as asked for, 0: the context's. Fails where they are less. */
QN_MUST_CHECK qn_status qn_threads_choose(int *out, qn_context *ctx, int asked);
/* Says that the value cannot be fed, where it is a constant. */
QN_MUST_CHECK qn_status qn_fail_if_constant(const qn_graph *graph, const char *name);
/* Gives a quantized model the form of that name (qn_form_name); another one stays as it is, with a
 * warning. */
QN_MUST_CHECK qn_status qn_prepare_format(qn_model *model, const char *name);

/* What a plan for looking inside is asked beyond the options. */
typedef struct qn_observe_options {
    /* The purpose whose passes are done */
    qn_purpose purpose;
    /* The model went through them already: they are done again only where dimensions that were open
     * then may have a size now. */
    bool passed;
    /* What qn_plan_config says */
    bool direct, only_claims;
    /* Must hold for plans of other shapes too: goes by names and types */
    qn_observe_fn *observe;
    /* Lives longer than the plan and its sessions */
    const void *user;
} qn_observe_options;
/* qn_plan_create with values to observe. */
QN_MUST_CHECK qn_status qn_plan_create_observed(qn_plan **out, qn_context *ctx, qn_model *model,
                                                const qn_plan_options *options,
                                                const qn_observe_options *watch);
/* qn_plan_create for those who need the steps at once: fails where a plan would wait for the
 * inputs. */
QN_MUST_CHECK qn_status qn_plan_create_now(qn_plan **out, qn_context *ctx, qn_model *model,
                                           const qn_plan_options *options);

#endif
