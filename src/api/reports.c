/* Tables that the library knows of itself: operators, passes, the build. */
#include <stdio.h>
#include <string.h>

#include "api/inspect.h"
#include "backend/plugins.h"
#include "base/cpu.h"
#include "import/import.h"
#include "pass/pass.h"
#include "run/backend.h"

static const char *const quant_rules[] = {
    [QN_QUANT_FLOAT] = "float",     [QN_QUANT_MAC] = "multiply-accumulate",
    [QN_QUANT_PASS] = "pass",       [QN_QUANT_ELEMENT] = "element-wise",
    [QN_QUANT_TABLE] = "table",     [QN_QUANT_SHAPE] = "shape",
    [QN_QUANT_ALREADY] = "already",
};

static qn_status finish(qn_report **out, qn_report *report)
{
    const qn_status status = qn_report_finish(report);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    return status;
}

static void add_op(qn_item *table, const qn_op *op)
{
    char opsets[32];
    qn_item *row = qn_item_row(table);
    if (op->until)
        snprintf(opsets, sizeof opsets, "%d-%d", op->since, op->until - 1);
    else
        snprintf(opsets, sizeof opsets, "%d+", op->since);
    qn_item_text(row, "operator", op->name);
    qn_item_text(row, "domain", *op->domain ? op->domain : "ai.onnx");
    qn_item_text(row, "opsets", opsets);
    qn_item_text(row, "quantization", quant_rules[op->quant]);
    qn_item_text(row, "what", op->brief ? op->brief : "");
}

qn_status qn_ops_report(qn_report **out, qn_context *ctx)
{
    qn_report *report;
    *out = NULL;
    QN_TRY(qn_report_create(&report, ctx));
    qn_item *table = qn_item_table(&report->root, "operators");
    for (size_t i = 0; i < qn_ops_count; i++)
        add_op(table, qn_ops[i]);
    return finish(out, report);
}

static const qn_importer *importer_of(const char *framework)
{
    for (size_t i = 0; i < qn_importers_count; i++) {
        if (strcmp(qn_importers[i]->name, framework) == 0)
            return qn_importers[i];
    }
    return NULL;
}

qn_status qn_framework_ops_report(qn_report **out, qn_context *ctx, const char *framework)
{
    const qn_importer *importer = importer_of(framework);
    qn_report *report;
    *out = NULL;
    if (!importer)
        return qn_fail(ctx, QN_E_INVALID, "framework: '%s' is none that is known", framework);
    if (!importer->load)
        return qn_fail(ctx, QN_E_UNSUPPORTED, "models of %s cannot be read yet", importer->title);
    if (importer == &qn_importer_onnx)
        return qn_ops_report(out, ctx);
    QN_TRY(qn_report_create(&report, ctx));
    qn_item *table = qn_item_table(&report->root, "operators");
    for (size_t i = 0; i < importer->n_operators; i++) {
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "operator", importer->operators[i].name);
        qn_item_text(row, "what", importer->operators[i].brief);
    }
    return finish(out, report);
}

const char *qn_pass_name(size_t i)
{
    return i < qn_passes_count ? qn_passes[i]->name : NULL;
}

int qn_pass_is_known(const char *text)
{
    return qn_passes_know(text);
}

const char *qn_backend_name(size_t i)
{
    for (size_t k = 0; qn_backends[k]; k++) {
        if (k == i)
            return qn_backends[k]->name;
    }
    return NULL;
}

qn_status qn_passes_report(qn_report **out, qn_context *ctx)
{
    qn_report *report;
    *out = NULL;
    QN_TRY(qn_report_create(&report, ctx));
    qn_item *table = qn_item_table(&report->root, "passes");
    for (size_t p = 0; p < qn_passes_count; p++) {
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "pass", qn_passes[p]->name);
        qn_inspect_purposes(row, p);
        qn_item_text(row, "what", qn_passes[p]->brief);
    }
    return finish(out, report);
}

void qn_inspect_plugins(qn_item *root, const qn_backend *const *backends)
{
    qn_item *table = NULL;
    for (size_t i = 0; backends[i]; i++) {
        if (!backends[i]->file)
            continue;
        table = table ? table : qn_item_table(root, "plugins");
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "backend", backends[i]->name);
        qn_item_text(row, "version", backends[i]->release_name);
        qn_item_text(row, "file", backends[i]->file);
    }
}

qn_status qn_build_report(qn_report **out, qn_context *ctx)
{
    qn_report *report;
    const qn_backend *const *backends;
    *out = NULL;
    QN_TRY(qn_backends_of(&backends, ctx));
    QN_TRY(qn_report_create(&report, ctx));
    qn_item *root = &report->root;
    qn_item_text(root, "version", qn_version());
    qn_item_text(root, "instruction_set", qn_isa_name(qn_cpu_isa()));
    qn_item_int(root, "cores", qn_cpu_count());
    qn_item_int(root, "opset", QN_LATEST_OPSET);
    qn_item *table = qn_item_table(root, "backends");
    for (size_t i = 0; qn_backends[i]; i++)
        qn_item_text(qn_item_row(table), "backend", qn_backends[i]->name);
    qn_inspect_plugins(root, backends);
    return finish(out, report);
}
