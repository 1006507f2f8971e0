/* qn_model_lint: what keeps a model from running as integers, as a report. */
#include <string.h>

#include "base/options.h"
#include "model/prepare.h"
#include "ops/infer.h"
#include "quant/lint.h"
#include "report/report.h"

typedef struct job {
    qn_item *table;
    /* By rule */
    size_t *counts;
    size_t all;
} job;

static size_t rule_index(const char *name)
{
    const char *brief, *found;
    for (size_t i = 0; (found = qn_lint_rule_name(i, &brief)) != NULL; i++) {
        if (strcmp(found, name) == 0)
            return i;
    }
    return 0;
}

static void add(void *user, const qn_lint_finding *finding)
{
    job *j = user;
    qn_item *row = qn_item_row(j->table);
    qn_item_text(row, "rule", finding->rule);
    qn_item_text(row, "node", finding->node->name);
    qn_item_text(row, "operator", finding->node->op->name);
    qn_item_text(row, "why", finding->why);
    j->counts[rule_index(finding->rule)]++;
    j->all++;
}

static void summarize(qn_item *root, const job *j)
{
    const char *brief, *name;
    qn_item *table = qn_item_table(root, "rules");
    for (size_t i = 0; (name = qn_lint_rule_name(i, &brief)) != NULL; i++) {
        if (!j->counts[i])
            continue;
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "rule", name);
        qn_item_int(row, "findings", (int64_t)j->counts[i]);
        qn_item_text(row, "what", brief);
    }
}

static qn_status fill(job *j, qn_report *report, qn_model *model, const qn_profile *profile)
{
    size_t rules = 0;
    const char *brief;
    const qn_lint_sink sink = {add, j};
    while (qn_lint_rule_name(rules, &brief))
        rules++;
    j->counts = qn_arena_array(&report->arena, rules, sizeof *j->counts);
    QN_TRY_ALLOC(report->ctx, j->counts);
    qn_item_text(&report->root, "target", profile->name);
    j->table = qn_item_table(&report->root, "findings");
    QN_TRY(qn_graph_infer(model->graph));
    QN_TRY(qn_lint(model, profile, &sink));
    summarize(&report->root, j);
    if (!j->all)
        qn_item_text(&report->root, "result", "nothing stands in the way of integers");
    return qn_report_finish(report);
}

const char *qn_lint_target(size_t i)
{
    return i < qn_profiles_count ? qn_profiles[i].name : NULL;
}

qn_status qn_model_lint(qn_report **out, size_t *findings, qn_context *ctx, qn_model *model,
                        const qn_lint_options *options)
{
    *out = NULL;
    QN_TAKE_OPTIONS(qn_lint_options, taken, ctx, options);
    const qn_lint_options *o = &taken;
    const qn_profile *profile = NULL;
    qn_model *prepared = NULL;
    qn_report *report = NULL;
    job j = {.all = 0};
    QN_TRY(qn_profile_find(&profile, ctx, o->target));
    qn_status status =
        qn_prepare_optimized(&prepared, ctx, model, &o->graph, QN_PURPOSE_LINT, NULL);
    if (status == QN_OK)
        status = qn_report_create(&report, ctx);
    if (status == QN_OK)
        status = fill(&j, report, prepared, profile);
    qn_model_free(prepared);
    if (findings)
        *findings = j.all;
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    return status;
}
