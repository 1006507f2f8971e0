/* qn_mix_template: the file that says bits and method of every node. */
#include <string.h>

#include "base/map.h"
#include "base/options.h"
#include "model/save_dir.h"
#include "quantize/job.h"

typedef struct template_job {
    qn_quantize_job job;
    qn_context *ctx;
    qn_arena arena;
    /* NULL: none */
    qn_mix *base;
    qn_mix_template_options wish;
    /* The file to be written */
    const char *path;
} template_job;

static qn_status choose_strategy(bool *int16_ends, qn_context *ctx, const char *strategy)
{
    *int16_ends = strategy && strcmp(strategy, "IOhigh") == 0;
    if (!strategy || *int16_ends || strcmp(strategy, "initial") == 0)
        return QN_OK;
    if (strcmp(strategy, "HAWQ") == 0)
        return qn_fail(ctx, QN_E_UNSUPPORTED,
                       "strategy HAWQ goes by second derivatives, which come with the training "
                       "engine: use IOhigh or initial");
    return qn_fail(ctx, QN_E_INVALID, "there is no strategy '%s': it is initial, IOhigh or HAWQ",
                   strategy);
}

static qn_status make_wish(template_job *t, const qn_mix_options *o)
{
    qn_context *ctx = t->ctx;
    t->wish = (qn_mix_template_options){.bits = t->job.settings.rules.bits,
                                        .usual = t->job.settings.params.method,
                                        .method = o->quantize.method ? t->job.settings.params.method
                                                                     : NULL,
                                        .base = t->base,
                                        .ratio = o->ratio};
    if (!(o->ratio >= 0 && o->ratio <= 1))
        return qn_fail(ctx, QN_E_INVALID, "a ratio of %g: it is a share from 0 to 1", o->ratio);
    return choose_strategy(&t->wish.int16_ends, ctx, o->strategy);
}

/* ---- Report ---------------------------------------------------------------------------------- */

static void report_widths(qn_item *root, const template_job *t)
{
    const qn_quantizer *q = t->job.ruled.quantizer;
    int64_t counts[QN_WIDTHS] = {0}, all = 0;
    for (size_t i = 0; i < q->n_nodes; i++) {
        if (qn_mix_is_node(q, &q->nodes[i]))
            counts[qn_width_of_bits(q->nodes[i].bits)->index]++;
    }
    for (int w = 0; w < QN_WIDTHS; w++)
        all += counts[w];
    qn_item_text(root, "file", t->path);
    qn_item_text(root, "strategy", t->wish.int16_ends ? "IOhigh" : "initial");
    qn_item_int(root, "nodes", all);
    for (int w = 0; w < QN_WIDTHS; w++) {
        if (!counts[w] && !qn_width_is_computed(qn_widths[w].bits))
            continue;
        const char *key =
            qn_arena_format(&root->report->arena, "nodes_of_%d_bits", qn_widths[w].bits);
        root->report->failed = root->report->failed || !key;
        qn_item_int(root, key, counts[w]);
    }
}

/* What the file that it began with says otherwise. */
static void report_changes(qn_item *root, const template_job *t)
{
    const qn_quantizer *q = t->job.ruled.quantizer;
    qn_item *table = NULL;
    for (size_t i = 0; t->base && i < q->n_nodes; i++) {
        const qn_quant_node *n = &q->nodes[i];
        const qn_mix_row *row = qn_mix_find(t->base, n->node->name);
        if (!qn_mix_is_node(q, n) || (row && row->bits == n->bits))
            continue;
        table = table ? table : qn_item_table(root, "changed");
        qn_item *item = qn_item_row(table);
        qn_item_text(item, "node", n->node->name);
        if (row)
            qn_item_int(item, "bits_before", row->bits);
        else
            qn_item_text(item, "bits_before", "none");
        qn_item_int(item, "bits", n->bits);
    }
}

/* ---- The whole ------------------------------------------------------------------------------- */

static qn_status write_file(const template_job *t)
{
    char *text = NULL;
    QN_TRY(qn_mix_write(&text, t->job.ruled.quantizer));
    const qn_status status = qn_output_save(t->ctx, t->path, text, strlen(text));
    qn_text_free(t->ctx, text);
    return status;
}

static qn_status fill(template_job *t, qn_model *model, const qn_mix_options *o,
                      const qn_quantize_options *quantize)
{
    QN_TRY(qn_quantize_job_open(&t->job, t->ctx, model, quantize, false));
    QN_TRY(make_wish(t, o));
    if (t->base)
        QN_TRY(qn_mix_check_names(t->job.ruled.quantizer, t->base, model->graph));
    QN_TRY(qn_mix_fill(t->job.ruled.quantizer, &t->wish));
    return t->base ? qn_mix_check_widths(t->job.ruled.quantizer, t->base) : QN_OK;
}

static qn_status write_locked(template_job *t, const char *folder)
{
    qn_folder_lock lock;
    QN_TRY(qn_folder_make(t->ctx, folder));
    QN_TRY(qn_folder_lock_take(&lock, t->ctx, &t->arena, folder));
    const qn_status status = write_file(t);
    qn_folder_lock_drop(&lock);
    return status;
}

static qn_status run(qn_report *report, template_job *t, qn_model *model, const qn_mix_options *o)
{
    qn_quantize_options quantize = o->quantize;
    quantize.mix = NULL; /* of a job it would be what is to be done, not where to begin */
    if (o->strategy && strcmp(o->strategy, "IOhigh") == 0)
        quantize.bits = 8; /* the usual method is that of 8 bits */
    const char *folder = o->save_dir ? o->save_dir : "quench_out";
    char *path = NULL;
    QN_TRY(qn_folder_file(&path, &t->arena, model, folder, "_mix.json"));
    t->path = path;
    QN_TRY(qn_folder_spare(t->ctx, path, o->quantize.mix, "the mix file"));
    if (o->quantize.mix)
        QN_TRY(qn_mix_load(&t->base, t->ctx, o->quantize.mix));
    QN_TRY(fill(t, model, o, &quantize));
    QN_TRY(write_locked(t, folder));
    report_widths(&report->root, t);
    report_changes(&report->root, t);
    return qn_report_finish(report);
}

qn_status qn_mix_template(qn_report **out, qn_context *ctx, qn_model *model,
                          const qn_mix_options *options)
{
    *out = NULL;
    QN_TAKE_OPTIONS(qn_mix_options, taken, ctx, options);
    const qn_mix_options *o = &taken;
    template_job t = {.ctx = ctx};
    qn_report *report;
    QN_TRY(qn_report_create(&report, ctx));
    qn_arena_init(&t.arena, &ctx->allocator);
    const qn_status status = run(report, &t, model, o);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    qn_mix_free(t.base);
    qn_quantize_job_free(&t.job);
    qn_arena_free(&t.arena);
    return status;
}
