/* Joins model, passes and planner: what qn_plan_create does. */
#include <stdio.h>
#include <string.h>

#include "backend/plugins.h"
#include "base/options.h"
#include "model/prepare.h"
#include "ops/infer.h"

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

/* ---- Other shapes ---------------------------------------------------------------------------- */

/* What of the options a plan for other shapes needs. */
typedef struct recipe {
    const char *backend;
    const char **skip;
    size_t n_skip;
    qn_observe_options watch;
} recipe;

/* For those who need steps. */
static qn_status refuse_deferred(qn_plan **plan, qn_context *ctx)
{
    if (!(*plan)->deferred)
        return QN_OK;
    const qn_status status = qn_fail(ctx, QN_E_INVALID, "%s", (*plan)->deferred);
    qn_plan_free(*plan);
    *plan = NULL;
    return status;
}

/* The shapes that the inputs have; where the planned ones are not known nothing is bound. */
static qn_status plan_sibling(qn_plan **out, qn_context *ctx, const qn_plan *plan,
                              const qn_tensor *inputs)
{
    const recipe *r = plan->recipe;
    const qn_graph *graph = plan->model->graph;
    qn_input_shape *shapes = qn_alloc_zero(ctx, graph->n_inputs + 1, sizeof *shapes);
    size_t count = 0;
    QN_TRY_ALLOC(ctx, shapes);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const bool known = plan->slots.at[plan->inputs[i]].shape.rank >= 0 || plan->deferred;
        if (!known || graph->inputs[i]->type.kind != QN_TYPE_TENSOR)
            continue;
        qn_input_shape *shape = &shapes[count++];
        shape->name = graph->inputs[i]->name;
        shape->rank = inputs[i].rank;
        memcpy(shape->dims, inputs[i].dims, sizeof shape->dims);
    }
    const qn_plan_options options = {
        QN_OPTIONS_VERSION, .threads = plan->threads, .backend = r->backend,
        .graph = {.shapes = shapes, .n_shapes = count, .skip = r->skip, .n_skip = r->n_skip}};
    qn_status status = qn_plan_create_observed(out, ctx, plan->model->origin, &options, &r->watch);
    if (status == QN_OK)
        status = refuse_deferred(out, ctx);
    qn_free(ctx, shapes);
    return status == QN_E_OPTION ? QN_E_INVALID : status; /* the tensors' shapes, no option's */
}

static const char *keep_text(qn_plan *plan, const char *text)
{
    return qn_arena_text(&plan->arena, text, strlen(text));
}

static qn_status keep_recipe(qn_plan *plan, const qn_plan_options *options,
                             const qn_observe_options *watch)
{
    const qn_graph_options *graph = &options->graph;
    recipe *r = qn_arena_alloc(&plan->arena, sizeof *r);
    QN_TRY_ALLOC(plan->ctx, r);
    r->watch = *watch;
    r->n_skip = graph->n_skip;
    r->skip = qn_arena_array(&plan->arena, graph->n_skip + 1, sizeof *r->skip);
    r->backend = options->backend ? keep_text(plan, options->backend) : NULL;
    if (!r->skip || (options->backend && !r->backend))
        return qn_fail_nomem(plan->ctx);
    for (size_t i = 0; i < graph->n_skip; i++) {
        r->skip[i] = keep_text(plan, graph->skip[i]);
        QN_TRY_ALLOC(plan->ctx, r->skip[i]);
    }
    plan->recipe = r;
    plan->sibling = plan_sibling;
    return QN_OK;
}

/* ---- Telling --------------------------------------------------------------------------------- */

static size_t steps_of(const qn_plan *plan, const qn_backend *backend)
{
    size_t count = 0;
    for (size_t i = 0; i < plan->n_steps; i++)
        count += plan->steps[i].backend == backend;
    return count;
}

/* What no fast kernel took. */
static void log_slow_steps(qn_context *ctx, const qn_plan *plan, const qn_backend *last)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        const qn_step *step = &plan->steps[i];
        if (step->backend == last && step->n_nodes > 0)
            qn_log(ctx, QN_LOG_INFO, "node '%s' (%s) runs in its reference kernel",
                   step->nodes[0]->name, step->nodes[0]->op->name);
    }
}

static void log_steps(qn_context *ctx, const qn_plan *plan)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        const qn_step *step = &plan->steps[i];
        const qn_node *node = step->n_nodes > 0 ? step->nodes[0] : NULL;
        qn_log(ctx, QN_LOG_DEBUG, "step %zu: '%s' (%s) and %d more by %s: %s", i,
               node ? node->name : "", node ? node->op->name : "layout",
               step->n_nodes > 1 ? step->n_nodes - 1 : 0, step->backend->name, step->kernel->name);
    }
}

static void log_plan(qn_context *ctx, const qn_plan *plan, const int64_t *changes)
{
    size_t last = 0;
    for (size_t p = 0; p < qn_passes_count; p++) {
        if (changes[p])
            qn_log(ctx, QN_LOG_INFO, "pass %s: %lld changes", qn_passes[p]->name,
                   (long long)changes[p]);
    }
    for (size_t i = 0; plan->backends[i]; i++) {
        last = i;
        qn_log(ctx, QN_LOG_INFO, "backend %s: %zu of %zu steps", plan->backends[i]->name,
               steps_of(plan, plan->backends[i]), plan->n_steps);
    }
    qn_log(ctx, QN_LOG_INFO, "plan: %d threads, %zu bytes of packed weights, %zu of activations",
           plan->threads, plan->weight_bytes,
           qn_plan_arena_bytes(plan) + qn_plan_scratch_bytes(plan));
    log_slow_steps(ctx, plan, plan->backends[last]);
    log_steps(ctx, plan);
}

/* ---- Making ---------------------------------------------------------------------------------- */

static const qn_value *open_input(const qn_graph *graph)
{
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const qn_type *type = &graph->inputs[i]->type;
        for (int32_t d = 0; type->kind == QN_TYPE_TENSOR && d < type->rank; d++) {
            if (type->dims[d].value < 0)
                return graph->inputs[i];
        }
    }
    return NULL;
}

/* The plan's own model, passes done; *changes lives as long as it. */
static qn_status make_ready(qn_model **out, int64_t **changes, qn_context *ctx, qn_model *model,
                            const qn_graph_options *options, const qn_observe_options *watch)
{
    const qn_pass_options passes = {
        .skip = options->skip, .n_skip = options->n_skip, .purpose = watch->purpose};
    const bool passed = watch->passed && !open_input(model->graph);
    QN_TRY(qn_passes_check(ctx, &passes));
    QN_TRY(qn_prepare_shapes(out, ctx, model, options, true));
    forget_declared(*out);
    *changes = qn_arena_array(&(*out)->arena, qn_passes_count, sizeof **changes);
    qn_status status = *changes ? QN_OK : qn_fail_nomem(ctx);
    if (status == QN_OK)
        status = passed ? qn_graph_infer((*out)->graph) : qn_passes_run(*out, &passes, *changes);
    if (status != QN_OK)
        qn_model_free(*out);
    return status;
}

static qn_status plan_now(qn_plan **out, qn_context *ctx, qn_model *model,
                          const qn_graph_options *graph, const qn_observe_options *watch,
                          const qn_plan_config *config)
{
    qn_model *own;
    int64_t *changes;
    QN_TRY(make_ready(&own, &changes, ctx, model, graph, watch));
    QN_TRY(qn_plan_build(out, own, config));
    log_plan(ctx, *out, changes);
    return QN_OK;
}

/* After a failure of plan_now. Shapes that do not fit may come from open dimensions, which became
 * 1: the message says so, and where nothing else is wrong the plan waits for inputs. */
static qn_status plan_later(qn_plan **out, qn_context *ctx, qn_model *model,
                            const qn_graph_options *graph, const qn_plan_config *config,
                            qn_status status)
{
    qn_model *open;
    if (status != QN_E_FORMAT && status != QN_E_INVALID)
        return status;
    QN_TRY(qn_prepare_shapes(&open, ctx, model, graph, false));
    const qn_value *input = open_input(open->graph);
    if (input) {
        char why[QN_ERROR_SIZE];
        snprintf(why, sizeof why,
                 "with open dimensions of input '%s' taken as 1 (bind them, as with "
                 "`shapes`): %s",
                 input->name, ctx->error);
        status = qn_graph_infer(open->graph);
        if (status == QN_OK)
            return qn_plan_defer(out, open, config, why);
    }
    qn_model_free(open);
    return status;
}

qn_status qn_plan_create_observed(qn_plan **out, qn_context *ctx, qn_model *model,
                                  const qn_plan_options *options, const qn_observe_options *watch)
{
    *out = NULL;
    QN_TAKE_OPTIONS(qn_plan_options, taken, ctx, options);
    const qn_plan_options *o = &taken;
    const qn_backend *backends[QN_MOST_BACKENDS];
    qn_plan_config config = {.backends = backends,
                             .direct = watch->direct,
                             .only_claims = watch->only_claims,
                             .observe = watch->observe,
                             .observe_user = watch->user};
    QN_TRY(qn_threads_choose(&config.threads, ctx, o->threads));
    QN_TRY(qn_backends_choose(backends, ctx, o->backend));
    qn_status status = plan_now(out, ctx, model, &o->graph, watch, &config);
    if (status != QN_OK)
        QN_TRY(plan_later(out, ctx, model, &o->graph, &config, status));
    status = keep_recipe(*out, o, watch);
    if (status == QN_OK)
        return QN_OK;
    qn_plan_free(*out);
    *out = NULL;
    return status;
}

qn_status qn_plan_create(qn_plan **out, qn_context *ctx, qn_model *model,
                         const qn_plan_options *options)
{
    const qn_observe_options nothing = {.purpose = QN_PURPOSE_RUN};
    return qn_plan_create_observed(out, ctx, model, options, &nothing);
}

qn_status qn_plan_create_now(qn_plan **out, qn_context *ctx, qn_model *model,
                             const qn_plan_options *options)
{
    QN_TRY(qn_plan_create(out, ctx, model, options));
    return refuse_deferred(out, ctx);
}

/* ---- Looking --------------------------------------------------------------------------------- */

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
