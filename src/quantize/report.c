/* The report of a quantization. */
#include "quantize/report.h"

#include <string.h>

#include "base/number.h"
#include "quant/output_scale.h"
#include "quant/reasons.h"

enum { DEFAULT_COMPARED = 16 };

void qn_node_counts_report(qn_item *root, const qn_quantizer *q)
{
    int64_t integer = 0, all = 0;
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_quant_node *n = &q->nodes[i];
        all += n->quant_class != QN_CLASS_FLOAT || !n->integer;
        integer += n->integer || qn_reason_is_integer(n->node);
    }
    qn_item_text(root, "target", q->settings.profile->name);
    qn_item_int(root, "nodes", all);
    qn_item_int(root, "integer_nodes", integer);
    if (q->n_existing)
        qn_item_int(root, "given_scales", (int64_t)q->n_existing);
}

/* Reports the scales of a chip's outputs that are integers. */
static void report_scales(qn_item *root, const qn_quantized_model *q)
{
    const qn_graph *graph = q->model->graph;
    if (!q->settings.rules.profile->fixed_point || q->settings.rules.real_outputs)
        return;
    qn_item *table = qn_item_table(root, "output_scales");
    for (size_t i = 0; i < graph->n_outputs; i++) {
        char number[QN_OUTPUT_SCALE_TEXT];
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "output", graph->outputs[i]->name);
        qn_item_text(row, "scale",
                     qn_output_scale_format(number, q->model, graph->outputs[i]->name));
    }
}

/* What the integers of inputs mean, where these have types of their own. */
static void report_inputs(qn_item *root, const qn_quantized_model *made)
{
    const qn_quantizer *q = made->quantizer;
    qn_item *table = NULL;
    for (size_t i = 0; i < q->graph->n_inputs; i++) {
        const qn_quant_value *v = qn_quant_value_of(q, q->graph->inputs[i]);
        const qn_value_encoding *encoding = qn_quant_root(q, v)->encoding;
        char number[QN_NUMBER_SIZE];
        if (v->type == QN_UNDEFINED || !encoding)
            continue;
        table = table ? table : qn_item_table(root, "input_scales");
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "input", q->graph->inputs[i]->name);
        qn_item_text(row, "type", qn_dtype_name(v->type));
        qn_item_text(row, "scale", qn_number_format_float(number, encoding->params->scale));
        qn_item_int(row, "zero_point", encoding->params->zero);
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

static int64_t count_promoted(const qn_quantizer *q)
{
    int64_t count = 0;
    for (size_t i = 0; i < q->n_nodes; i++)
        count += q->nodes[i].integer && q->nodes[i].bits > QN_WIDTH_STANDARD;
    return count;
}

/* What a chip's model has instead of 8 bits and the chip's method. */
static const char *describe_chip_precision(qn_arena *arena, const qn_quantized_model *q)
{
    const qn_profile *profile = q->settings.rules.profile;
    const int wider = qn_profile_wider(profile, QN_WIDTH_STANDARD);
    const char *own = profile->widths[qn_width_of_bits(QN_WIDTH_STANDARD)->index].method;
    const char *method = q->settings.params.method->name;
    const char *promoted = "";
    if (q->settings.rules.n_widths)
        promoted =
            qn_arena_format(arena, ", and %lld of %zu nodes have %d bits",
                            (long long)count_promoted(q->quantizer), q->quantizer->n_nodes, wider);
    return qn_arena_format(arena,
                           "8 bits with ranges by %s left too much noise in the outputs: ranges "
                           "are by %s%s; %s %s",
                           own, method, promoted ? promoted : "",
                           wider ? "`bits` 8 keeps 8 bits and" : "`methods` kl keeps", own);
}

static void report_mixed(qn_item *root, const qn_quantize_result *result)
{
    const qn_quantized_model *q = &result->made;
    const char *text = "8 bits left too much noise in the outputs: the layers that made most of it "
                       "stay float; `bits` 8 keeps 8 bits";
    if (!result->mixed)
        return;
    if (q->settings.rules.profile->fixed_point)
        text = describe_chip_precision(&root->report->arena, q);
    qn_item_text(root, "mended", text);
    if (text && q->settings.rules.profile->fixed_point)
        qn_log(root->report->ctx, QN_LOG_NOTE, "%s", text);
}

/* What may help, of what was not asked for. */
static const char *advice_for(const qn_quantize_result *result, const qn_quantize_input *input)
{
    const qn_quantize_options *o = input->options;
    const qn_quant_settings *rules = &result->made.settings.rules;
    const qn_profile *profile = rules->profile;
    const bool searches = !profile->fixed_point || qn_profile_wider(profile, QN_WIDTH_STANDARD);
    const bool asked = o->bits == QN_WIDTH_STANDARD || (o->method && !o->bits);
    if (asked && searches && !input->mix && !rules->n_widths && !input->trained)
        return o->bits
                   ? "without `bits` 8 and `methods` the layers that make most of it are found and "
                     "get "
                     "more; `bits` 16, `fix_worst` N or a mix (`qn_mix_template`, `strategy` "
                     "IOhigh) help too"
                   : "without `methods` the layers that make most of it are found and get more; "
                     "`bits` 16, `fix_worst` N or a mix (`qn_mix_template`, `strategy` IOhigh) "
                     "help too";
    if (asked && !searches)
        return "without `methods` and `bits` the best method is found; `fix_worst` N or more data "
               "help too";
    return qn_profile_wider(profile, rules->bits) ? "`bits` 16, `fix_worst` N or more data help"
                                                  : "`fix_worst` N or more data help";
}

/* Who names a method wants to know what does not go by it. */
static void note_functions(const qn_quantize_result *result, const qn_quantize_input *input)
{
    const qn_quantizer *q = result->made.quantizer;
    int64_t count = 0;
    for (size_t i = 0; i < q->n_values && input->options->method; i++) {
        const qn_quant_value *v = &q->values[i];
        count += v->integer && qn_quant_root(q, v) == v && v->range_by_readers && !v->masked;
    }
    if (count)
        qn_log(input->ctx, QN_LOG_NOTE,
               "%lld ranges in front of functions go by the error behind these, not by %s: "
               "`no_look_through` changes that",
               (long long)count, input->options->method);
}

/* Nobody shall find out on the chip. */
static void report_noise(qn_item *root, const qn_quantize_result *result,
                         const qn_quantize_input *input)
{
    if (!(result->noise > QN_WARNED_NOISE))
        return;
    const char *text = qn_arena_format(&root->report->arena,
                                       "the noise of the outputs is %.2f of what they say: "
                                       "results may be lost; %s",
                                       result->noise, advice_for(result, input));
    qn_item_text(root, "noisy", text);
    if (text)
        qn_log(input->ctx, QN_LOG_NOTE, "%s", text);
}

qn_status qn_quantize_report(qn_item *root, qn_quantize_result *result,
                             const qn_quantize_input *input, const qn_layer_times *times)
{
    const qn_quantized_model *q = &result->made;
    const int64_t compared = input->options->compared;
    qn_node_counts_report(root, q->quantizer);
    qn_calibration_report_data(root, input->data);
    report_mixed(root, result);
    if (result->unchecked)
        qn_item_text(root, "unchecked",
                     "statistics do not tell which layers 8 bits are too few for: with data beside "
                     "them (`data`) such layers are found");
    if (times)
        qn_layer_times_report(root, times);
    if (q->settings.rules.profile->fixed_point)
        qn_item_text(root, "rounding",
                     "in fixed point, as the chip rounds; ONNX Runtime rounds by float32, so some "
                     "of its integers are a few steps off (`runtime` tells how far)");
    if (input->data->fed)
        QN_TRY(qn_error_report(root, result, input, compared ? compared : DEFAULT_COMPARED));
    report_noise(root, result, input);
    note_functions(result, input);
    report_inputs(root, q);
    report_scales(root, q);
    qn_refinements_report(root, result, input);
    report_float(root, q->quantizer);
    return qn_report_finish(root->report);
}
