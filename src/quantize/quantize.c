/* What there is to choose from, and qn_quantize_list: what each node would become. */
#include <string.h>

#include "base/options.h"
#include "quantize/report.h"

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

int qn_target_is_known(const char *name)
{
    for (size_t i = 0; qn_target_name(i); i++) {
        if (strcmp(qn_target_name(i), name) == 0)
            return 1;
    }
    return qn_profile_find_chip(name) != NULL;
}

int qn_chip_find(qn_chip_info *out, const char *name)
{
    const qn_profile *profile = qn_profile_find_chip(name);
    *out =
        (qn_chip_info){profile ? profile->name : NULL, profile && qn_profile_computes(profile, 16)};
    return profile != NULL;
}

const char *qn_bits_name(size_t i)
{
    static const char *const names[QN_WIDTHS] = {
#define QN_WIDTH(BITS, ...) #BITS,
#include "ir/widths.def"
#undef QN_WIDTH
    };
    for (int w = 0; w < QN_WIDTHS; w++) {
        if (qn_width_is_computed(qn_widths[w].bits) && i-- == 0)
            return names[w];
    }
    return NULL;
}

int qn_bits_opset(int bits)
{
    const qn_width *width = qn_width_of_bits(bits);
    return width ? width->opset : 0;
}

const char *qn_method_name(size_t i)
{
    return i < qn_methods_count ? qn_methods[i]->name : NULL;
}

/* ---- Listing --------------------------------------------------------------------------------- */

static void list_nodes(qn_item *root, const qn_quantizer *q)
{
    qn_node_counts_report(root, q);
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

static qn_status fill_list(qn_report *report, const qn_quantizer *q)
{
    list_nodes(&report->root, q);
    return qn_report_finish(report);
}

qn_status qn_quantize_list(qn_report **out, qn_context *ctx, qn_model *model,
                           const qn_quantize_options *options)
{
    *out = NULL;
    QN_TAKE_OPTIONS(qn_quantize_options, taken, ctx, options);
    qn_quantize_job j;
    qn_report *report = NULL;
    qn_status status = qn_quantize_job_open(&j, ctx, model, &taken, true);
    if (status == QN_OK)
        status = qn_report_create(&report, ctx);
    if (status == QN_OK)
        status = fill_list(report, j.ruled.quantizer);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    qn_quantize_job_free(&j);
    return status;
}
