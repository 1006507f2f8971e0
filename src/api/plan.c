/* Joins model, passes and planner: what qn_plan_create does. */
#include <string.h>

#include "api/prepare.h"
#include "pass/pass.h"
#include "run/plan.h"

/* ---- Backends ------------------------------------------------------------------------------------------- */

enum { MOST_BACKENDS = 8 };

/* All backends of the build, or the named one with the reference behind it. */
static qn_status choose_backends(const qn_backend **out, qn_context *ctx, const char *name)
{
    size_t count = 0;
    bool found = !name;
    for (size_t i = 0; qn_backends[i] && count + 1 < MOST_BACKENDS; i++) {
        const bool named = name && strcmp(qn_backends[i]->name, name) == 0;
        const bool last = !qn_backends[i + 1];
        found = found || named;
        if (!name || named || last)
            out[count++] = qn_backends[i];
    }
    out[count] = NULL;
    if (!found)
        return qn_fail(ctx, QN_E_UNSUPPORTED, "this build has no backend '%s'", name);
    return QN_OK;
}

/* Shapes that a file only claims must not decide how much memory a kernel writes to: in a plan only
 * what is inferred counts. */
static void forget_declared(const qn_model *model)
{
    for (size_t g = 0; g < model->n_graphs; g++) {
        const qn_graph *graph = model->graphs[g];
        for (size_t i = 0; i < graph->n_values; i++)
            graph->values[i]->declared = NULL;
    }
}

qn_status qn_plan_create(qn_plan **out, qn_context *ctx, qn_model *model,
                         const qn_plan_options *options)
{
    const qn_plan_options defaults = QN_PLAN_OPTIONS_INIT;
    const qn_plan_options *o = options ? options : &defaults;
    const qn_backend *backends[MOST_BACKENDS];
    const qn_plan_config config = {o->threads > 0 ? o->threads : ctx->threads, backends};
    const qn_pass_options passes = {.skip = o->graph.skip, .n_skip = o->graph.n_skip};
    qn_model *own;
    *out = NULL;
    QN_TRY(choose_backends(backends, ctx, o->backend));
    QN_TRY(qn_prepare_shapes(&own, ctx, model, &o->graph, true));
    forget_declared(own);
    const qn_status status = qn_passes_run(own, &passes, NULL);
    if (status != QN_OK) {
        qn_model_free(own);
        return status;
    }
    return qn_plan_build(out, own, &config);
}

/* ---- Looking ----------------------------------------------------------------------------------------- */

static void planned_type(qn_tensor *out, const qn_plan *plan, int32_t slot)
{
    *out = plan->slots.at[slot].shape;
    out->data = NULL;
}

void qn_plan_input(qn_tensor *out, const qn_plan *plan, size_t i)
{
    planned_type(out, plan, plan->inputs[i]);
}

void qn_plan_output(qn_tensor *out, const qn_plan *plan, size_t i)
{
    planned_type(out, plan, plan->outputs[i]);
}
