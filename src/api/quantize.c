/* qn_model_quantize: from a float model to an integer one, and the comparison of both. */
#include "api/quantize.h"

enum { DEFAULT_COMPARED = 16 };

const char *qn_target_name(size_t i)
{
    return i < qn_profiles_count ? qn_profiles[i].name : NULL;
}

const char *qn_method_name(size_t i)
{
    return i < qn_methods_count ? qn_methods[i]->name : NULL;
}

/* ---- Report ---------------------------------------------------------------------------------------------------- */

static void report_counts(qn_item *root, const qn_quantizer *q)
{
    int64_t integer = 0, all = 0;
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_quant_node *n = &q->nodes[i];
        all += n->form != QN_FORM_FLOAT || !n->integer;
        integer += n->integer;
    }
    qn_item_text(root, "target", q->settings.profile->name);
    qn_item_int(root, "nodes", all);
    qn_item_int(root, "integer_nodes", integer);
}

static void report_float(qn_item *root, const qn_quantizer *q)
{
    qn_item *table = qn_item_table(root, "left_in_float");
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_quant_node *n = &q->nodes[i];
        if (n->integer || n->node->op->quant == QN_QUANT_SHAPE || !n->why)
            continue;
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "node", n->node->name);
        qn_item_text(row, "operator", n->node->op->name);
        qn_item_text(row, "why", n->why);
    }
}

static qn_status report_errors(qn_report *report, qn_quantize_job *j)
{
    const qn_quantizer *q = j->quantizer;
    qn_calibration *c = &j->calibration;
    qn_compare_options options = {.source = &c->samples.source,
                                  .n_inputs = c->feed.n_in,
                                  .graph = &c->graph,
                                  .samples = j->options->compared ? j->options->compared
                                                                  : DEFAULT_COMPARED,
                                  .tensors = NULL};
    options.tensors = qn_arena_array(&report->arena, q->n_values + 1, sizeof *options.tensors);
    QN_TRY_ALLOC(j->ctx, options.tensors);
    for (size_t i = 0; i < q->n_values; i++) {
        if (q->values[i].integer && !q->values[i].through)
            options.tensors[options.n_tensors++] = q->values[i].value->name;
    }
    return qn_compare_models(&report->root, j->ctx, c->real, j->quantized, &options);
}

/* Statistics without data leave nothing to compare on. */
static qn_status report_job(qn_report **out, qn_quantize_job *j)
{
    qn_report *report;
    QN_TRY(qn_report_create(&report, j->ctx));
    report_counts(&report->root, j->quantizer);
    qn_status status = j->calibration.fed ? report_errors(report, j) : QN_OK;
    report_float(&report->root, j->quantizer);
    if (status == QN_OK)
        status = qn_report_finish(report);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    return status;
}

/* ---- The whole ------------------------------------------------------------------------------------------------- */

static qn_status quantize(qn_quantize_job *j, qn_report **report, qn_model *model)
{
    QN_TRY(qn_job_prepare(j, model));
    QN_TRY(qn_job_calibrate(j));
    QN_TRY(qn_job_make(j));
    return report ? report_job(report, j) : QN_OK;
}

qn_status qn_model_quantize(qn_model **out, qn_report **report, qn_context *ctx, qn_model *model,
                            const qn_quantize_options *options)
{
    const qn_quantize_options defaults = QN_QUANTIZE_OPTIONS_INIT;
    qn_quantize_job j = {.ctx = ctx, .options = options ? options : &defaults};
    *out = NULL;
    if (report)
        *report = NULL;
    const qn_status status = quantize(&j, report, model);
    if (status == QN_OK)
        *out = j.quantized;
    else
        qn_model_free(j.quantized);
    qn_job_free(&j);
    return status;
}

/* ---- Listing --------------------------------------------------------------------------------------------------- */

static void list_nodes(qn_item *root, const qn_quantizer *q)
{
    report_counts(root, q);
    qn_item *table = qn_item_table(root, "list");
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_quant_node *n = &q->nodes[i];
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "node", n->node->name);
        qn_item_text(row, "operator", n->node->op->name);
        qn_item_text(row, "output", n->node->n_out && n->node->out[0] ? n->node->out[0]->name : "");
        qn_item_int(row, "bits", n->integer ? n->bits : 32);
        qn_item_text(row, "why", n->integer || !n->why ? "" : n->why);
    }
}

qn_status qn_quantize_list(qn_report **out, qn_context *ctx, qn_model *model,
                           const qn_quantize_options *options)
{
    const qn_quantize_options defaults = QN_QUANTIZE_OPTIONS_INIT;
    qn_quantize_job j = {.ctx = ctx, .options = options ? options : &defaults};
    qn_report *report = NULL;
    *out = NULL;
    qn_status status = qn_job_prepare(&j, model);
    if (status == QN_OK)
        status = qn_report_create(&report, ctx);
    if (status == QN_OK) {
        list_nodes(&report->root, j.quantizer);
        status = qn_report_finish(report);
    }
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    qn_model_free(j.quantized);
    qn_job_free(&j);
    return status;
}
