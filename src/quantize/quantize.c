/* qn_model_quantize: from a float model to an integer one, and the comparison of both. */
#include <string.h>

#include "quant/inputs.h"
#include "quant/output_scale.h"
#include "quant/reasons.h"
#include "quantize/accuracy_budget.h"
#include "quantize/layer_times.h"
#include "quantize/mixed_precision.h"
#include "quantize/repair_worst.h"

enum { DEFAULT_COMPARED = 16 };

const char *qn_target_name(size_t i)
{
    return i < qn_profiles_count && !qn_profiles[i].fixed_point ? qn_profiles[i].name : NULL;
}

const char *qn_chip_name(size_t i)
{
    size_t first = 0;
    while (qn_target_name(first))
        first++;
    return i < qn_profiles_count - first ? qn_profiles[first + i].name : NULL;
}

int qn_chip_find(qn_chip_info *out, const char *name)
{
    const qn_profile *profile = qn_profile_find_chip(name);
    *out =
        (qn_chip_info){profile ? profile->name : NULL, profile && qn_profile_computes(profile, 16)};
    return profile != NULL;
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
        integer += n->integer || qn_reason_is_integer(n->node);
    }
    qn_item_text(root, "target", q->settings.profile->name);
    qn_item_int(root, "nodes", all);
    qn_item_int(root, "integer_nodes", integer);
    if (q->n_given)
        qn_item_int(root, "given_scales", (int64_t)q->n_given);
}

/* Of a chip's outputs that are integers. */
static void report_scales(qn_item *root, const qn_quantize_job *j)
{
    const qn_graph *graph = j->quantized->graph;
    if (!j->settings.profile->fixed_point || j->settings.real_outputs)
        return;
    qn_item *table = qn_item_table(root, "output_scales");
    for (size_t i = 0; i < graph->n_outputs; i++) {
        char number[QN_OUTPUT_SCALE_TEXT];
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "output", graph->outputs[i]->name);
        qn_item_text(row, "scale",
                     qn_output_scale_format(number, j->quantized, graph->outputs[i]->name));
    }
}

static bool is_left(const qn_quant_node *n)
{
    return !n->integer && n->node->op->quant != QN_QUANT_SHAPE && n->why;
}

/* Counts the node in the row of its operator and reason; false: there is none. */
static bool count_alike(const qn_item *table, const qn_quant_node *n)
{
    for (const qn_item *row = table->first; row && !table->report->failed; row = row->next) {
        const qn_item *op = row->first, *why = row->last;
        if (strcmp(op->text, n->node->op->name) != 0 || strcmp(why->text, n->why) != 0)
            continue;
        op->next->integer++;
        return true;
    }
    return false;
}

/* Most nodes stay float where few kinds can be anything else: people are told the kinds. */
static void report_kinds(qn_item *root, const qn_quantizer *q)
{
    qn_item *table = qn_item_table(root, "left_in_float");
    table->audience = QN_FOR_PEOPLE;
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_quant_node *n = &q->nodes[i];
        if (!is_left(n) || count_alike(table, n))
            continue;
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "operator", n->node->op->name);
        qn_item_int(row, "nodes", 1);
        qn_item_text(row, "why", n->why);
    }
}

static void report_float(qn_item *root, const qn_quantizer *q)
{
    const bool dynamic = q->settings.dynamic;
    if (dynamic)
        report_kinds(root, q);
    qn_item *table = qn_item_table(root, "left_in_float");
    table->audience = dynamic ? QN_FOR_PROGRAMS : QN_FOR_ALL;
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_quant_node *n = &q->nodes[i];
        if (!is_left(n))
            continue;
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "node", n->node->name);
        qn_item_text(row, "operator", n->node->op->name);
        qn_item_text(row, "why", n->why);
    }
}

static void report_mended(qn_item *root, const qn_quantize_job *j)
{
    if (!j->mended)
        return;
    if (j->settings.profile->fixed_point)
        qn_item_text(root, "mended",
                     qn_arena_format(&root->report->arena,
                                     "8 bits with ranges by %s left too much noise in the outputs: "
                                     "ranges are by %s%s; -b 8 keeps 8 bits and %s",
                                     j->settings.profile->widths[QN_WIDTH_8].method,
                                     j->params.method->name,
                                     j->quantizer->settings.n_widths
                                         ? ", and the layers that made most of it have 16 bits"
                                         : "",
                                     j->settings.profile->widths[QN_WIDTH_8].method));
    else
        qn_item_text(root, "mended",
                     "8 bits left too much noise in the outputs: the layers that made "
                     "most of it stay float; -b 8 keeps 8 bits");
}

/* What may help, of what was not asked for. */
static const char *advice_for(const qn_quantize_job *j)
{
    const qn_quantize_options *o = j->options;
    const qn_profile *profile = j->settings.profile;
    if (o->bits == 8 && !j->mix && !j->quantizer->settings.n_widths &&
        (!profile->fixed_point || qn_profile_wider(profile, 8)))
        return "without -b 8 and -qm the layers that make most of it are found and get more; "
               "-b 16, --fix-worst N or a mix (-gt -ams IOhigh) help too";
    return qn_profile_wider(profile, j->settings.bits)
               ? "-b 16, --fix-worst N, another method (-qm all tries them) or more data help"
               : "--fix-worst N, another method (-qm all tries them) or more data help";
}

/* Nobody shall find out on the chip. */
static void report_noise(qn_item *root, const qn_quantize_job *j)
{
    if (!(j->noise > QN_WARNED_NOISE))
        return;
    const char *text = qn_arena_format(&root->report->arena,
                                       "the noise of the outputs is %.2f of what they say: "
                                       "results may be lost; %s",
                                       j->noise, advice_for(j));
    qn_item_text(root, "noisy", text);
    if (text)
        qn_log(j->ctx, QN_LOG_NOTE, "%s", text);
}

static qn_status report_job(qn_item *root, qn_quantize_job *j, const qn_layer_times *speed)
{
    const int64_t samples = j->options->compared ? j->options->compared : DEFAULT_COMPARED;
    report_counts(root, j->quantizer);
    qn_calibration_report_data(root, &j->calibration);
    report_mended(root, j);
    if (j->unchecked)
        qn_item_text(root, "unchecked",
                     "statistics do not tell which layers 8 bits are too few for: with data beside "
                     "them (-d) such layers are found");
    if (speed)
        qn_layer_times_report(root, speed);
    if (j->calibration.fed)
        QN_TRY(qn_job_report_errors(root, j, samples));
    report_noise(root, j);
    report_scales(root, j);
    qn_proof_report(root, j);
    report_float(root, j->quantizer);
    return qn_report_finish(root->report);
}

/* ---- The whole ------------------------------------------------------------------------------------------------- */

/* Statistics without data leave nothing to run either model on. */
qn_status qn_job_compare(qn_item *root, qn_quantize_job *j, bool reported)
{
    const bool fastest = j->options->fastest != 0;
    qn_layer_times speed;
    if (!j->calibration.fed || (!fastest && (!reported || j->untimed)))
        return reported ? report_job(root, j, NULL) : QN_OK;
    qn_status status = qn_layer_times_measure(&speed, j);
    if (status == QN_OK && fastest)
        status = qn_faster_layers_search(&speed, j);
    if (status == QN_OK && reported)
        status = report_job(root, j, &speed);
    qn_layer_times_free(&speed);
    return status;
}

static qn_status check_runs(const qn_quantize_job *j)
{
    const qn_quantize_options *o = j->options;
    if (o->goal && j->calibration.fed && !j->calibration.with_data)
        return qn_fail(j->ctx, QN_E_OPTION,
                       "--max-drop measures: random numbers tell nothing, it needs data (-d)");
    if (j->calibration.fed || (!o->fastest && !o->goal && !o->fix_worst))
        return QN_OK;
    return qn_fail(j->ctx, QN_E_OPTION, "%s measures: beside statistics it needs data too (-d)",
                   o->goal        ? "--max-drop"
                   : o->fix_worst ? "--fix-worst"
                                  : "--fastest");
}

static qn_status check_fix(const qn_quantize_job *j)
{
    const qn_quantize_options *o = j->options;
    if (!o->fix_worst || (!o->goal && !o->dynamic && !j->given))
        return QN_OK;
    return qn_fail(j->ctx, QN_E_OPTION, "--fix-worst does not go with %s",
                   o->goal      ? "--max-drop, which chooses layers itself"
                   : o->dynamic ? "dynamic quantization: there are no scales to be too coarse"
                                : "a model that is quantized already: its scales are kept");
}

qn_status qn_job_decide(qn_item *root, qn_quantize_job *j)
{
    QN_TRY(check_runs(j));
    QN_TRY(check_fix(j));
    if (j->options->goal)
        return qn_accuracy_budget_search(root, j);
    qn_layers layers;
    const int64_t fixed = j->options->fix_worst;
    if (fixed)
        QN_TRY(qn_layers_find(&layers, j));
    QN_TRY(qn_mixed_precision_search(j));
    QN_TRY(qn_job_prove(j));
    return fixed ? qn_repair_worst(root, &layers, fixed) : QN_OK;
}

static qn_status quantize(qn_item *root, qn_quantize_job *j, qn_model *model, bool reported)
{
    QN_TRY(qn_job_prepare(j, model));
    QN_TRY(qn_job_calibrate(j));
    const qn_status reached = qn_job_decide(root, j);
    if (reached != QN_OK && reached != QN_E_GOAL)
        return reached;
    qn_output_file *scales;
    QN_TRY(qn_job_compare(root, j, reported));
    QN_TRY(qn_inputs_retype(j->quantized, &j->settings));
    QN_TRY(qn_job_write_scales(&scales, j));
    if (scales)
        QN_TRY(qn_output_commit(scales));
    return reached;
}

qn_status qn_model_quantize(qn_model **out, qn_report **report, qn_context *ctx, qn_model *model,
                            const qn_quantize_options *options)
{
    qn_quantize_job j;
    qn_report *told;
    *out = NULL;
    if (report)
        *report = NULL;
    QN_TRY(qn_report_create(&told, ctx));
    qn_job_init(&j, ctx, options);
    const qn_status status = quantize(&told->root, &j, model, report != NULL);
    const bool made = status == QN_OK || status == QN_E_GOAL;
    if (made)
        *out = j.quantized;
    else
        qn_model_free(j.quantized);
    qn_job_free(&j);
    if (made && report)
        *report = told;
    else
        qn_report_free(told);
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
    qn_quantize_job j;
    qn_job_init(&j, ctx, options);
    j.listing = true;
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
