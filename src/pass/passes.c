/* The pass manager: runs the passes of a purpose until none changes anything. */
#include <string.h>

#include "ops/infer.h"
#include "pass/pass_snapshot.h"
#include "pass/quant_formats.h"

/* Each round makes the graph smaller or simpler; the bound only guards against a pair of passes
 * that undo each other. */
enum { MOST_ROUNDS = 32 };

const qn_pass *const qn_passes[] = {
#define QN_PASS(id, also, run, quantize, convert, train, lint) &qn_pass_##id,
#include "pass/passes.def"
#undef QN_PASS
};
const size_t qn_passes_count = QN_COUNT_OF(qn_passes);

const char *const qn_purpose_names[QN_PURPOSES] = {"run", "quantize", "convert", "train", "lint"};

static const bool serves[][QN_PURPOSES] = {
#define QN_PASS(id, also, run, quantize, convert, train, lint)                                     \
    {run, quantize, convert, train, lint},
#include "pass/passes.def"
#undef QN_PASS
};

bool qn_pass_serves(size_t pass, qn_purpose purpose)
{
    return serves[pass][purpose];
}

static const char *const older_names[] = {
#define QN_PASS(id, also, run, quantize, convert, train, lint) also,
#include "pass/passes.def"
#undef QN_PASS
};

/* Whether the option's text names this pass, by its own or its older name, or all passes. */
static bool is_named(size_t pass, const char *text)
{
    return strcmp(text, "all") == 0 || strcmp(text, qn_passes[pass]->name) == 0 ||
           (older_names[pass] && strcmp(text, older_names[pass]) == 0);
}

bool qn_passes_know(const char *text)
{
    bool known = false;
    for (size_t p = 0; p < qn_passes_count && !known; p++)
        known = is_named(p, text);
    return known;
}

bool qn_pass_is_skipped(size_t pass, const char *const *skip, size_t n_skip)
{
    for (size_t i = 0; i < n_skip; i++) {
        if (is_named(pass, skip[i]))
            return true;
    }
    return false;
}

qn_status qn_passes_check(qn_context *ctx, const qn_pass_options *options)
{
    for (size_t i = 0; i < options->n_skip; i++) {
        if (!qn_passes_know(options->skip[i]))
            return qn_fail(ctx, QN_E_INVALID,
                           "there is no pass '%s' ('quench help passes' lists them)",
                           options->skip[i]);
    }
    return QN_OK;
}

/* One run of passes over the graphs of a model. */
typedef struct round_of {
    const qn_pass_options *options;
    bool keep_quantization;
} round_of;

static qn_status run_observed(qn_pass_context *self, const qn_pass *pass,
                              const qn_pass_observer *observer)
{
    qn_pass_snapshot before;
    qn_status status = qn_pass_snapshot_take(&before, self->graph);
    if (status == QN_OK)
        status = pass->run(self);
    if (status == QN_OK && self->changes)
        qn_pass_snapshot_report(&before, self->graph, observer, pass);
    qn_pass_snapshot_free(&before, self->graph);
    return status;
}

static qn_status run_on(qn_graph *graph, const qn_pass *pass, const round_of *round,
                        int64_t *changes)
{
    const qn_pass_observer *observer = round->options->observer;
    qn_pass_context self = {
        .ctx = graph->ctx, .graph = graph, .keep_quantization = round->keep_quantization};
    QN_TRY(observer ? run_observed(&self, pass, observer) : pass->run(&self));
    *changes += self.changes;
    for (qn_node *node = graph->first; node; node = node->next) {
        qn_graph *body;
        for (size_t i = 0; (body = qn_node_subgraph(node, i)) != NULL; i++)
            QN_TRY(run_on(body, pass, round, changes));
    }
    return QN_OK;
}

/* The passes of the purpose, again and again until none changes anything. */
static qn_status run_rounds(qn_model *model, const qn_pass_options *options, bool keep_quantization,
                            int64_t *changes)
{
    const round_of this = {.options = options, .keep_quantization = keep_quantization};
    bool changed = true;
    for (int round = 0; round < MOST_ROUNDS && changed; round++) {
        changed = false;
        QN_TRY(qn_graph_infer(model->graph));
        for (size_t p = 0; p < qn_passes_count; p++) {
            int64_t count = 0;
            if (!serves[p][options->purpose] ||
                qn_pass_is_skipped(p, options->skip, options->n_skip))
                continue;
            QN_TRY(qn_check_cancel(model->ctx));
            QN_TRY(run_on(model->graph, qn_passes[p], &this, &count));
            changed = changed || count > 0;
            if (changes)
                changes[p] += count;
        }
    }
    return QN_OK;
}

/* A quantized graph is simplified as it stands first: qdq-to-integer looks for operators in their
 * final form, and for integers that have not been folded into floats. */
qn_status qn_passes_run(qn_model *model, const qn_pass_options *options, int64_t *changes)
{
    QN_TRY(qn_passes_check(model->ctx, options));
    for (size_t p = 0; changes && p < qn_passes_count; p++)
        changes[p] = 0;
    if (options->purpose != QN_PURPOSE_RUN)
        return run_rounds(model, options, true, changes);
    if (qn_graph_is_quantized(model->graph))
        QN_TRY(run_rounds(model, options, true, changes));
    return run_rounds(model, options, false, changes);
}
