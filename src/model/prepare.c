/* Input shapes bound, passes done. */
#include "model/prepare.h"

#include <string.h>

#include "ops/clone.h"

qn_status qn_threads_choose(int *out, qn_context *ctx, int asked)
{
    if (asked < 0)
        return qn_fail(ctx, QN_E_OPTION, "%d threads are none: 1 or more, or 0 for the context's",
                       asked);
    *out = asked ? asked : ctx->threads;
    return QN_OK;
}

static qn_status check_rank(const qn_graph *graph, const qn_type *type, const qn_input_shape *shape)
{
    if (shape->rank < 0 || shape->rank > QN_MAX_RANK)
        return qn_fail(graph->ctx, QN_E_OPTION, "input '%s': a tensor has 0 to %d dimensions",
                       shape->name, QN_MAX_RANK);
    if (type->rank >= 0 && type->rank != shape->rank)
        return qn_fail(graph->ctx, QN_E_OPTION,
                       "input '%s' has %d dimensions in the model, %d were given", shape->name,
                       type->rank, shape->rank);
    return QN_OK;
}

qn_status qn_fail_if_constant(const qn_graph *graph, const char *name)
{
    const qn_value *value = qn_graph_value(graph, name);
    if (!value || !value->data)
        return QN_OK;
    return qn_fail(graph->ctx, QN_E_OPTION,
                   "'%s' is an initializer of the model: its value is fixed at load", name);
}

static qn_status fail_no_input(const qn_graph *graph, const char *name)
{
    const char *names[QN_INPUTS_SHOWN];
    QN_TRY(qn_fail_if_constant(graph, name));
    for (size_t i = 0; i < QN_MIN(graph->n_inputs, QN_INPUTS_SHOWN); i++)
        names[i] = graph->inputs[i]->name;
    return qn_fail_no_input(graph->ctx, (qn_string){name, strlen(name)}, names, graph->n_inputs);
}

static qn_status bind_shape(qn_graph *graph, const qn_input_shape *shape)
{
    qn_value *value = qn_graph_value(graph, shape->name);
    if (!value || !value->is_input)
        return fail_no_input(graph, shape->name);
    qn_type *type = &value->type;
    QN_TRY(check_rank(graph, type, shape));
    for (int32_t d = 0; d < shape->rank; d++) {
        const qn_dim dim = type->rank < 0 ? qn_dim_unknown() : type->dims[d];
        const int64_t given = shape->dims[d] == -1 ? dim.value : shape->dims[d];
        if (given < -1 || (dim.value >= 0 && dim.value != given))
            return qn_fail(graph->ctx, QN_E_OPTION,
                           "input '%s': dimension %d is %lld in the model, %lld was given",
                           shape->name, d, (long long)dim.value, (long long)given);
        type->dims[d] = (qn_dim){given, dim.symbol};
    }
    type->rank = shape->rank;
    return QN_OK;
}

static bool is_shaped(const qn_graph_options *options, const char *input)
{
    for (size_t i = 0; i < options->n_shapes; i++) {
        if (strcmp(options->shapes[i].name, input) == 0)
            return true;
    }
    return false;
}

/* The batch must fit somewhere: a model that fixes it otherwise is not run with another one. */
static qn_status bind_batch(qn_graph *graph, const qn_graph_options *options)
{
    const int64_t batch = options->batch;
    const qn_value *fixed = NULL;
    bool found = false;
    for (size_t i = 0; i < graph->n_inputs; i++) {
        qn_type *type = &graph->inputs[i]->type;
        if (type->kind != QN_TYPE_TENSOR || type->rank < 1)
            continue;
        if (type->dims[0].value < 0)
            type->dims[0].value = batch;
        if (type->dims[0].value == batch)
            found = true;
        else if (!fixed)
            fixed = graph->inputs[i];
    }
    if (batch < 0)
        return qn_fail(graph->ctx, QN_E_OPTION, "a batch of %lld is none", (long long)batch);
    if (found || !fixed)
        return QN_OK;
    return qn_fail(
        graph->ctx, QN_E_OPTION, "batch %lld does not fit: input '%s' begins with %lld %s",
        (long long)batch, fixed->name, (long long)fixed->type.dims[0].value,
        is_shaped(options, fixed->name) ? "in its file or the shape given for it" : "in the model");
}

/* The number that some input gives the symbol already, or -1. */
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
    return -1;
}

static void bind_rest(qn_graph *graph, bool close)
{
    for (size_t i = 0; i < graph->n_inputs; i++) {
        qn_type *type = &graph->inputs[i]->type;
        for (int32_t d = 0; type->kind == QN_TYPE_TENSOR && d < type->rank; d++) {
            if (type->dims[d].value < 0)
                type->dims[d].value = symbol_value(graph, type->dims[d].symbol);
            if (type->dims[d].value < 0 && close)
                type->dims[d].value = 1;
        }
    }
}

static qn_status bind_shapes(qn_graph *graph, const qn_graph_options *options)
{
    for (size_t i = 0; i < options->n_shapes; i++)
        QN_TRY(bind_shape(graph, &options->shapes[i]));
    return options->batch ? bind_batch(graph, options) : QN_OK;
}

qn_status qn_prepare_shapes(qn_model **out, qn_context *ctx, qn_model *model,
                            const qn_graph_options *options, bool close)
{
    QN_TRY(qn_model_clone(out, ctx, model));
    const qn_status status = bind_shapes((*out)->graph, options);
    if (status == QN_OK) {
        bind_rest((*out)->graph, close);
        return QN_OK;
    }
    qn_model_free(*out);
    *out = NULL;
    return status;
}

qn_status qn_prepare_optimized(qn_model **out, qn_context *ctx, qn_model *model,
                               const qn_graph_options *options, qn_purpose purpose,
                               int64_t *changes)
{
    const qn_pass_options passes = {
        .skip = options->skip, .n_skip = options->n_skip, .purpose = purpose};
    QN_TRY(qn_prepare_shapes(out, ctx, model, options, false));
    const qn_status status = qn_passes_run(*out, &passes, changes);
    if (status != QN_OK) {
        qn_model_free(*out);
        *out = NULL;
    }
    return status;
}
