/* Joins model, passes and planner: what qn_plan_create does. */
#include <string.h>

#include "ops/clone.h"
#include "pass/pass.h"
#include "run/plan.h"

/* ---- Input shapes -------------------------------------------------------------------------------------- */

static qn_status bind_shape(qn_graph *graph, const qn_input_shape *shape)
{
    qn_value *value = qn_graph_value(graph, shape->name);
    if (!value || !value->is_input)
        return qn_fail(graph->ctx, QN_E_INVALID, "the model has no input '%s'", shape->name);
    qn_type *type = &value->type;
    if (shape->rank < 0 || shape->rank > QN_MAX_RANK ||
        (type->rank >= 0 && type->rank != shape->rank))
        return qn_fail(graph->ctx, QN_E_INVALID, "input '%s' has %d dimensions, %d were given",
                       shape->name, type->rank, shape->rank);
    for (int32_t d = 0; d < shape->rank; d++) {
        const qn_dim dim = type->rank < 0 ? qn_dim_unknown() : type->dims[d];
        if (shape->dims[d] < 0 || (dim.value >= 0 && dim.value != shape->dims[d]))
            return qn_fail(graph->ctx, QN_E_INVALID,
                           "input '%s': dimension %d is %lld in the model, %lld was given",
                           shape->name, d, (long long)dim.value, (long long)shape->dims[d]);
        type->dims[d] = (qn_dim){shape->dims[d], dim.symbol};
    }
    type->rank = shape->rank;
    return QN_OK;
}

/* The number that some input gives the symbol already, or 1. */
static int64_t symbol_value(const qn_graph *graph, const char *symbol)
{
    for (size_t i = 0; symbol && i < graph->n_inputs; i++) {
        const qn_type *type = &graph->inputs[i]->type;
        for (int32_t d = 0; d < type->rank; d++) {
            if (type->dims[d].value >= 0 && type->dims[d].symbol &&
                strcmp(type->dims[d].symbol, symbol) == 0)
                return type->dims[d].value;
        }
    }
    return 1;
}

static void bind_rest(qn_graph *graph)
{
    for (size_t i = 0; i < graph->n_inputs; i++) {
        qn_type *type = &graph->inputs[i]->type;
        for (int32_t d = 0; type->kind == QN_TYPE_TENSOR && d < type->rank; d++) {
            if (type->dims[d].value < 0)
                type->dims[d].value = symbol_value(graph, type->dims[d].symbol);
        }
    }
}

static qn_status bind_shapes(qn_graph *graph, const qn_plan_options *options)
{
    for (size_t i = 0; i < options->n_shapes; i++)
        QN_TRY(bind_shape(graph, &options->shapes[i]));
    bind_rest(graph);
    return QN_OK;
}

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
    qn_model *own;
    *out = NULL;
    QN_TRY(choose_backends(backends, ctx, o->backend));
    QN_TRY(qn_model_clone(&own, ctx, model));
    forget_declared(own);
    qn_status status = bind_shapes(own->graph, o);
    const qn_pass_options passes = {.skip = o->skip, .n_skip = o->n_skip};
    if (status == QN_OK)
        status = qn_model_optimize(own, &passes, NULL);
    if (status != QN_OK) {
        qn_model_free(own);
        return status;
    }
    return qn_plan_build(out, own, &config);
}
