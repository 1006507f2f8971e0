/* qn_model_edit: a model with other ends. */
#include "base/options.h"
#include "model/prepare.h"
#include "ops/clone.h"
#include "ops/infer.h"
#include "pass/edit_graph.h"

static qn_status edit(qn_model *model, const qn_edit_options *o)
{
    qn_graph *graph = model->graph;
    qn_pass_context pass = {.ctx = model->ctx, .graph = graph};
    if (o->n_mean || o->n_std)
        QN_TRY(qn_graph_normalize_input(graph, (qn_channel_numbers){o->mean, o->n_mean},
                                        (qn_channel_numbers){o->std, o->n_std}));
    if (!o->n_outputs)
        return QN_OK;
    QN_TRY(qn_graph_select_outputs(graph, o->outputs, o->n_outputs));
    return qn_pass_remove_dead.run(&pass);
}

qn_status qn_model_edit(qn_model **out, qn_context *ctx, qn_model *model,
                        const qn_edit_options *options)
{
    *out = NULL;
    QN_TAKE_OPTIONS(qn_edit_options, taken, ctx, options);
    const qn_graph_options shapes = {QN_OPTIONS_VERSION, .batch = taken.batch};
    QN_TRY(qn_prepare_shapes(out, ctx, model, &shapes, false));
    const qn_status status = edit(*out, &taken);
    if (status == QN_OK)
        return QN_OK;
    qn_model_free(*out);
    *out = NULL;
    return status;
}
