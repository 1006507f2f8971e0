/* qn_quantize: passes, rules, statistics, parameters, nodes, and the comparison with float. */
#include "api/quantize.h"

#include <string.h>

#include "ops/clone.h"
#include "ops/fingerprint.h"
#include "ops/infer.h"
#include "pass/pass.h"

/* The least KL to float on the classifiers that this was tried with. */
#define DEFAULT_METHOD "mse"
enum { DEFAULT_COMPARED = 16 };

const char *qn_target_name(size_t i)
{
    return i < qn_profiles_count ? qn_profiles[i].name : NULL;
}

const char *qn_method_name(size_t i)
{
    return i < qn_methods_count ? qn_methods[i]->name : NULL;
}

typedef struct job {
    qn_context *ctx;
    const qn_quantize_options *options;
    qn_model *real; /* after the passes */
    qn_model *quantized;
    qn_quantizer *quantizer;
    qn_stats *stats;
    qn_feed feed;
    qn_feed_options feed_options;
    qn_data_options data;
    qn_feed_source samples;
    qn_graph_options graph;
    const char **skip; /* of graph */
    bool fed;
} job;

/* ---- Ready to be quantized -------------------------------------------------------------------------------- */

static qn_status settings_of(qn_quant_settings *out, qn_context *ctx, const qn_quantize_options *o)
{
    *out = (qn_quant_settings){.bits = o->bits ? o->bits : 8,
                               .keep_float = o->keep_float,
                               .n_float = o->n_float,
                               .widths = o->widths,
                               .n_widths = o->n_widths};
    if (out->bits != 8 && out->bits != 16)
        return qn_fail(ctx, QN_E_INVALID, "%d bits: it must be 8 or 16", out->bits);
    return qn_profile_find(&out->profile, ctx, o->target);
}

/* Attention as one operator hides the products that are to be quantized. */
static qn_status choose_passes(job *j)
{
    const qn_graph_options *asked = &j->options->calibrate.graph;
    j->skip = qn_alloc_zero(j->ctx, asked->n_skip + 1, sizeof *j->skip);
    QN_TRY_ALLOC(j->ctx, j->skip);
    for (size_t i = 0; i < asked->n_skip; i++)
        j->skip[i] = asked->skip[i];
    j->skip[asked->n_skip] = "fuse-attention";
    j->graph = *asked;
    j->graph.skip = j->skip;
    j->graph.n_skip = asked->n_skip + 1;
    return QN_OK;
}

static qn_status make_ready(job *j, qn_model *model)
{
    qn_quant_settings settings = {.profile = NULL};
    QN_TRY(settings_of(&settings, j->ctx, j->options));
    QN_TRY(choose_passes(j));
    QN_TRY(qn_prepare_optimized(&j->real, j->ctx, model, &j->graph, NULL));
    QN_TRY(qn_model_clone(&j->quantized, j->ctx, j->real));
    QN_TRY(qn_graph_infer(j->quantized->graph));
    return qn_quantizer_create(&j->quantizer, j->quantized, &settings);
}

/* ---- Statistics --------------------------------------------------------------------------------------------- */

static bool is_observed(const void *user, const qn_value *value)
{
    const qn_names *names = user;
    return qn_names_get(names, value->name) != NULL;
}

static qn_status open_feed(job *j)
{
    const qn_calibrate_options *c = &j->options->calibrate;
    qn_input_shape *shapes = NULL;
    j->data = c->data;
    j->data.batch = 1;
    j->data.loaders = -1;
    j->feed_options = (qn_feed_options){.inputs = c->inputs,
                                        .n_inputs = c->n_inputs,
                                        .data = &j->data,
                                        .seed = c->seed,
                                        .graph = &c->graph};
    j->fed = true;
    QN_TRY(qn_feed_open(&j->feed, j->ctx, j->real, &j->feed_options));
    QN_TRY(qn_feed_shapes(&shapes, &j->graph.n_shapes, &j->feed));
    j->graph.shapes = shapes;
    return QN_OK;
}

static void warn_random(const job *j)
{
    if (!j->feed.dataset)
        qn_log(j->ctx, QN_LOG_WARN,
               "no data were given: %lld samples of random numbers stand in for them, and ranges "
               "and accuracy mean nothing",
               (long long)j->samples.source.count);
}

static qn_status collect_with(job *j, const qn_names *names)
{
    const qn_calibrate_options *c = &j->options->calibrate;
    const qn_plan_options options = {.threads = 1, .graph = j->graph};
    const qn_watch watch = {.direct = true, .observe = is_observed, .user = names};
    const qn_collect_options collecting = {.threads = c->threads > 0 ? c->threads : j->ctx->threads,
                                           .checkpoint = c->checkpoint,
                                           .axis = qn_axis_default,
                                           .model = qn_model_fingerprint(j->real)};
    qn_plan *plan = NULL;
    QN_TRY(qn_plan_create_watched(&plan, j->ctx, j->real, &options, &watch));
    qn_status status = qn_feed_source_open(&j->samples, &j->feed, plan, collecting.threads);
    if (status == QN_OK) {
        warn_random(j);
        status = qn_collect(&j->stats, NULL, plan, j->ctx, &j->samples.source, &collecting);
    }
    qn_plan_free(plan);
    return status;
}

static qn_status collect(job *j)
{
    qn_names names;
    qn_status status = QN_OK;
    qn_names_init(&names, j->ctx);
    for (size_t i = 0; i < j->quantizer->n_values && status == QN_OK; i++) {
        qn_quant_value *v = &j->quantizer->values[i];
        if (v->integer)
            status = qn_names_set(&names, v->value->name, v);
    }
    if (status == QN_OK)
        status = collect_with(j, &names);
    qn_names_free(&names);
    return status;
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

static qn_status report_job(qn_report **out, job *j)
{
    const qn_quantizer *q = j->quantizer;
    qn_report *report;
    QN_TRY(qn_report_create(&report, j->ctx));
    report_counts(&report->root, q);
    qn_compare_options options = {.source = &j->samples.source,
                                  .n_inputs = j->feed.n_in,
                                  .graph = &j->graph,
                                  .samples = j->options->compared ? j->options->compared
                                                                  : DEFAULT_COMPARED,
                                  .tensors = NULL};
    options.tensors = qn_arena_array(&report->arena, q->n_values + 1, sizeof *options.tensors);
    qn_status status = options.tensors ? QN_OK : qn_fail_nomem(j->ctx);
    for (size_t i = 0; i < q->n_values && status == QN_OK; i++) {
        if (q->values[i].integer && !q->values[i].through)
            options.tensors[options.n_tensors++] = q->values[i].value->name;
    }
    if (status == QN_OK)
        status = qn_compare_models(&report->root, j->ctx, j->real, j->quantized, &options);
    report_float(&report->root, q);
    if (status == QN_OK)
        status = qn_report_finish(report);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    return status;
}

/* ---- Metadata --------------------------------------------------------------------------------------------------- */

/* What the file was made with; nothing of the way that the data came. */
static qn_status describe(job *j, const char *method)
{
    enum { OWN = 5 };
    char print[QN_FINGERPRINT_TEXT];
    qn_model *model = j->quantized;
    const qn_metadata *old = &j->real->metadata;
    const qn_quant_settings *settings = &j->quantizer->settings;
    qn_pair *pairs = qn_arena_array(&model->arena, old->count + OWN, sizeof *pairs);
    QN_TRY_ALLOC(j->ctx, pairs);
    for (size_t i = 0; i < old->count; i++)
        pairs[i] = old->at[i];
    const qn_pair own[OWN] = {
        {"quench.version", qn_version()},
        {"quench.target", settings->profile->name},
        {"quench.method", qn_arena_text(&model->arena, method, strlen(method))},
        {"quench.bits", settings->bits == 8 ? "8" : "16"},
        {"quench.data",
         qn_arena_format(&model->arena, "%s", qn_fingerprint_format(print, j->stats->data))}};
    for (size_t i = 0; i < OWN; i++) {
        QN_TRY_ALLOC(j->ctx, own[i].value);
        pairs[old->count + i] = own[i];
    }
    model->metadata = (qn_metadata){pairs, old->count + OWN};
    return QN_OK;
}

/* ---- The whole ------------------------------------------------------------------------------------------------- */

static qn_status quantize(job *j, qn_report **report, qn_model *model)
{
    const qn_quantize_options *o = j->options;
    qn_param_options params = {.range = QN_RANGE_OPTIONS_INIT,
                               .look_through = o->look_through != 0,
                               .clip_weights = !o->no_weight_clipping,
                               .correct_bias = !o->no_bias_correction};
    if (o->percentile > 0)
        params.range.percentile = o->percentile;
    QN_TRY(qn_method_find(&params.method, j->ctx, o->method ? o->method : DEFAULT_METHOD));
    QN_TRY(make_ready(j, model));
    QN_TRY(open_feed(j));
    QN_TRY(collect(j));
    QN_TRY(qn_params_choose(j->quantizer, j->stats, &params));
    QN_TRY(qn_quant_insert(j->quantizer));
    QN_TRY(describe(j, params.method->name));
    return report ? report_job(report, j) : QN_OK;
}

static void job_free(job *j)
{
    if (j->fed)
        qn_feed_close(&j->feed);
    qn_stats_free(j->stats);
    qn_quantizer_free(j->quantizer);
    qn_model_free(j->real);
    qn_free(j->ctx, j->skip);
}

qn_status qn_model_quantize(qn_model **out, qn_report **report, qn_context *ctx, qn_model *model,
                            const qn_quantize_options *options)
{
    const qn_quantize_options defaults = QN_QUANTIZE_OPTIONS_INIT;
    job j = {.ctx = ctx, .options = options ? options : &defaults};
    *out = NULL;
    if (report)
        *report = NULL;
    const qn_status status = quantize(&j, report, model);
    if (status == QN_OK)
        *out = j.quantized;
    else
        qn_model_free(j.quantized);
    job_free(&j);
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
    job j = {.ctx = ctx, .options = options ? options : &defaults};
    qn_report *report = NULL;
    *out = NULL;
    qn_status status = make_ready(&j, model);
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
    job_free(&j);
    return status;
}
