/* qn_compare_models: a float model and its quantized version, run side by side. */
#include <string.h>

#include "base/options.h"
#include "compare/layer_comparison.h"
#include "compare/layer_report.h"
#include "quantize/calibration.h"

enum { DEFAULT_SAMPLES = 16 };

typedef struct models {
    qn_layer_report c;
    qn_calibrate_options run;
    qn_calibration data;
    /* As its file has it */
    const qn_model *real;
    /* Passes done */
    qn_model *quantized;
    qn_layer_comparison comparison;
} models;

static qn_status take(void *user, const qn_compared_tensor *tensor, qn_compared_side side,
                      const qn_tensor *rows)
{
    models *m = user;
    if (side == QN_SIDE_FLOAT || !qn_dtype_is_float(tensor->real.dtype))
        return QN_OK;
    return qn_layer_report_add(&m->c, &m->c.rows[tensor - m->comparison.at], &tensor->real, rows,
                               side == QN_SIDE_SINGLE);
}

static qn_status add_names(qn_layer_report *c, qn_compare_row *row,
                           const qn_compared_tensor *tensor)
{
    size_t most = 1;
    for (size_t i = 0; i < tensor->n_inside; i++)
        most += 1 + (size_t)tensor->inside[i]->n_out;
    const char **names = qn_arena_array(&c->arena, most, sizeof *names),
               **ops = qn_arena_array(&c->arena, most, sizeof *ops);
    if (!names || !ops)
        return qn_fail_nomem(c->ctx);
    for (size_t i = 0; i < tensor->n_inside; i++) {
        const qn_node *node = tensor->inside[i];
        ops[row->n_ops++] = node->op->name;
        names[row->n_names++] = node->name;
        for (int32_t k = 0; k < node->n_out; k++) {
            if (node->out[k])
                names[row->n_names++] = node->out[k]->name;
        }
    }
    row->op = tensor->op;
    row->names = names;
    row->ops = ops;
    return QN_OK;
}

/* The first sample tells which tensors both networks compute, and so what is fused in them. */
static qn_status choose(models *m)
{
    qn_layer_report *c = &m->c;
    QN_TRY(qn_layer_comparison_find_nodes(&m->comparison, m->real->graph));
    for (size_t i = 0; i < c->count; i++)
        QN_TRY(add_names(c, &c->rows[i], &m->comparison.at[i]));
    return qn_layer_report_choose(c);
}

static qn_status run(qn_layer_report *c)
{
    models *m = c->user;
    const qn_sample_source *source = m->data.source;
    c->samples = m->run.data.samples ? source->count : QN_MIN(source->count, DEFAULT_SAMPLES);
    for (int64_t i = 0; i < c->samples; i++) {
        const qn_tensor *inputs = NULL;
        QN_TRY(qn_check_cancel(c->ctx));
        QN_TRY(source->read(source->user, c->ctx, 0, i, &inputs));
        QN_TRY(qn_layer_comparison_run(&m->comparison, inputs, m->data.n_inputs, !c->drawing));
        if (i == 0 && !c->drawing)
            QN_TRY(choose(m));
        qn_progress(c->ctx, c->drawing ? "histograms" : "comparison", i + 1, c->samples);
    }
    return QN_OK;
}

static qn_status make_rows(models *m)
{
    qn_layer_report *c = &m->c;
    c->rows = qn_arena_array(&c->arena, m->comparison.count + 1, sizeof *c->rows);
    QN_TRY_ALLOC(c->ctx, c->rows);
    for (; c->count < m->comparison.count; c->count++) {
        const qn_compared_tensor *tensor = &m->comparison.at[c->count];
        qn_compare_row *row = &c->rows[c->count];
        *row = (qn_compare_row){.index = (int64_t)c->count,
                                .name = tensor->name,
                                .node = tensor->node,
                                .op = tensor->op,
                                .dtype = tensor->dtype,
                                .through = tensor->through,
                                .smoothed = tensor->factor ||
                                            (tensor->scale && qn_tensor_count(tensor->scale) != 1)};
        if (tensor->scale)
            row->scale = *(const float *)tensor->scale->data;
        if (tensor->zero)
            qn_load_i64(&row->zero, tensor->zero->dtype, tensor->zero->data, 0, 1);
    }
    return QN_OK;
}

static qn_status check_inputs(const models *m)
{
    const qn_graph *real = m->data.real->graph, *quantized = m->quantized->graph;
    if (real->n_inputs != quantized->n_inputs)
        return qn_fail(m->c.ctx, QN_E_INVALID,
                       "the float model has %zu inputs, the quantized one %zu: they are not "
                       "versions of the same network",
                       real->n_inputs, quantized->n_inputs);
    for (size_t i = 0; i < real->n_inputs; i++) {
        const qn_dtype a = real->inputs[i]->type.dtype, b = quantized->inputs[i]->type.dtype;
        if (a != b)
            return qn_fail(m->c.ctx, QN_E_INVALID,
                           "input '%s' is %s in the float model and %s in the quantized one: both "
                           "must read the same data",
                           real->inputs[i]->name, qn_dtype_name(a), qn_dtype_name(b));
    }
    return QN_OK;
}

/* Constants of a quantized file may be made by nodes: the passes for files find them, and keep what
 * it says. */
static qn_status open_models(models *m, qn_model *real, qn_model *quantized)
{
    qn_context *ctx = m->c.ctx;
    QN_TRY(qn_calibration_open(&m->data, ctx, real, &m->run));
    QN_TRY(qn_prepare_optimized(&m->quantized, ctx, quantized, &m->run.graph, QN_PURPOSE_CONVERT,
                                NULL));
    QN_TRY(check_inputs(m));
    QN_TRY(qn_calibration_feed(&m->data));
    qn_calibration_drop_plan(&m->data);
    const qn_layer_comparison_options all = {.graph = &m->data.graph, .all = true};
    QN_TRY(qn_layer_comparison_open(&m->comparison, ctx, m->data.real, m->quantized, &all));
    m->comparison.take = take;
    m->comparison.user = m;
    return make_rows(m);
}

qn_status qn_compare_models(qn_report **out, qn_context *ctx, qn_model *real, qn_model *quantized,
                            const qn_compare_options *options)
{
    *out = NULL;
    QN_TAKE_OPTIONS(qn_compare_options, taken, ctx, options);
    const qn_compare_options *o = &taken;
    models m = {.c = {.ctx = ctx,
                      .options = o,
                      .left = real->path ? real->path : "float model",
                      .right = quantized->path ? quantized->path : "quantized model",
                      .run = run},
                .run = o->run,
                .real = real};
    m.c.user = &m;
    qn_arena_init(&m.c.arena, &ctx->allocator);
    qn_status status = open_models(&m, real, quantized);
    if (status == QN_OK)
        status = qn_layer_report_run(out, &m.c);
    qn_layer_comparison_close(&m.comparison);
    qn_model_free(m.quantized);
    qn_calibration_close(&m.data);
    qn_arena_free(&m.c.arena);
    return status;
}
