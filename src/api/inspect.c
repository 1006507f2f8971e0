/* qn_model_inspect: what is in a model and what the passes do to it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/inspect.h"
#include "base/nearest.h"
#include "base/options.h"
#include "model/prepare.h"
#include "ops/infer.h"
#include "pass/pass.h"

enum { TYPE_SIZE = 256 };

typedef struct totals {
    int64_t nodes, macs, uncounted, parameters, bytes;
    /* Nodes by place of their operator in qn_ops */
    int64_t counts[512];
    int64_t op_macs[512];
} totals;

static size_t op_place(const qn_op *op)
{
    size_t i = 0;
    while (i < qn_ops_count && qn_ops[i] != op)
        i++;
    return i;
}

static void count_constants(totals *t, const qn_graph *graph)
{
    for (size_t i = 0; i < graph->n_values; i++) {
        const qn_value *value = graph->values[i];
        if (!value->data || value->is_capture || (value->n_users == 0 && !value->is_output))
            continue;
        size_t bytes;
        t->parameters += qn_tensor_count(value->data);
        if (qn_tensor_bytes(&bytes, value->data->dtype, value->data->rank, value->data->dims))
            t->bytes += (int64_t)bytes;
    }
}

/* The same node of the graph without open dimensions, where there is one. */
static const qn_node *closed_node(const qn_node *node, const qn_graph *closed)
{
    const qn_node *same = closed ? qn_graph_node(closed, node->name) : NULL;
    return same && same->op == node->op ? same : node;
}

/* The same body there; the graph around it where the body became part of that. */
static const qn_graph *closed_body(const qn_node *node, const qn_graph *closed, size_t i)
{
    const qn_node *same = closed_node(node, closed);
    return same != node ? qn_node_subgraph(same, i) : closed;
}

static void count_graph(totals *t, const qn_graph *graph, const qn_graph *closed)
{
    count_constants(t, graph);
    for (const qn_node *node = graph->first; node; node = node->next) {
        const qn_node *same = closed_node(node, closed);
        const int64_t macs = qn_node_macs(same);
        const size_t place = op_place(node->op);
        const qn_graph *body;
        t->nodes++;
        t->macs += macs;
        t->uncounted += !qn_node_macs_known(same);
        if (place < QN_COUNT_OF(t->counts)) {
            t->counts[place]++;
            t->op_macs[place] += macs;
        }
        for (size_t i = 0; (body = qn_node_subgraph(node, i)) != NULL; i++)
            count_graph(t, body, closed_body(node, closed, i));
    }
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static void add_values(qn_item *parent, const char *key, qn_value *const *values, size_t count)
{
    qn_item *table = qn_item_table(parent, key);
    for (size_t i = 0; i < count; i++) {
        char type[TYPE_SIZE];
        qn_type_format(type, sizeof type, &values[i]->type);
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "name", values[i]->name);
        qn_item_text(row, "type", type);
    }
}

static void add_operators(qn_item *parent, const totals *t)
{
    qn_item *table = qn_item_table(parent, "operators");
    for (size_t i = 0; i < qn_ops_count && i < QN_COUNT_OF(t->counts); i++) {
        if (!t->counts[i])
            continue;
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "operator", qn_ops[i]->name);
        qn_item_text(row, "domain", *qn_ops[i]->domain ? qn_ops[i]->domain : "ai.onnx");
        qn_item_int(row, "count", t->counts[i]);
        qn_item_int(row, "macs", t->op_macs[i]);
    }
}

/* "a:float32[1,3] b:float32[4]"; a value left out is "-". */
static const char *value_list(qn_report *report, qn_value *const *values, int32_t count)
{
    const char *list = "";
    for (int32_t i = 0; i < count && list; i++) {
        char type[TYPE_SIZE] = "-";
        if (values[i])
            qn_type_format(type, sizeof type, &values[i]->type);
        list = qn_arena_format(&report->arena, "%s%s%s%s%s", list, i ? " " : "",
                               values[i] ? values[i]->name : "", values[i] ? ":" : "", type);
    }
    report->failed = report->failed || !list;
    return list ? list : "";
}

static void add_nodes(qn_item *table, const qn_graph *graph, const qn_graph *closed)
{
    qn_report *report = table->report;
    for (const qn_node *node = graph->first; node && !report->failed; node = node->next) {
        const qn_graph *body;
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "node", node->name);
        qn_item_text(row, "operator", node->op->name);
        qn_item_int(row, "macs", qn_node_macs(closed_node(node, closed)));
        qn_item_text(row, "outputs", value_list(report, node->out, node->n_out));
        qn_item_text(row, "inputs", value_list(report, node->in, node->n_in));
        for (size_t i = 0; (body = qn_node_subgraph(node, i)) != NULL; i++)
            add_nodes(table, body, closed_body(node, closed, i));
    }
}

/* ---- The report ------------------------------------------------------------------------------ */

static void add_opsets(qn_item *root, const qn_model *model)
{
    qn_item *table = qn_item_table(root, "opsets");
    for (size_t i = 0; i < model->n_opsets; i++) {
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "domain", *model->opsets[i].domain ? model->opsets[i].domain : "ai.onnx");
        qn_item_int(row, "version", model->opsets[i].version);
    }
}

/* Most files have none. */
/* What is not meant for people to read is cut short. */
static void add_short(qn_item *row, const char *text)
{
    enum { MOST = 160 };
    char words[MOST + 64];
    const size_t length = strlen(text);
    if (length > MOST)
        snprintf(words, sizeof words, "%.60s... (%zu bytes)", text, length);
    qn_item_text(row, "value", length > MOST ? words : text);
}

static void add_metadata(qn_item *root, const qn_metadata *metadata)
{
    qn_item *table = metadata->count ? qn_item_table(root, "metadata") : NULL;
    for (size_t i = 0; i < metadata->count; i++) {
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "key", metadata->at[i].key);
        add_short(row, metadata->at[i].value);
    }
}

void qn_inspect_head(qn_item *root, const qn_model *file)
{
    const char *producer = file->producer ? file->producer : "";
    if (file->path)
        qn_item_text(root, "file", file->path);
    qn_item_text(root, "graph", file->graph->name ? file->graph->name : "");
    if (*producer)
        qn_item_text(root, "producer", producer);
    qn_item_int(root, "ir_version", file->ir_version);
    for (size_t i = 0; i < file->n_opsets; i++) {
        if (*file->opsets[i].domain == 0)
            qn_item_int(root, "opset", file->opsets[i].version);
    }
}

static bool has_open_inputs(const qn_graph *graph)
{
    for (size_t i = 0; i < graph->n_inputs; i++) {
        if (!qn_type_is_static(&graph->inputs[i]->type, NULL))
            return true;
    }
    return false;
}

/* `closed` is the same without open dimensions; NULL: there is no such graph. */
static qn_status add_graph(qn_item *root, const qn_graph *graph, const qn_graph *closed, bool nodes)
{
    totals *t = qn_alloc_zero(graph->ctx, 1, sizeof *t);
    QN_TRY_ALLOC(graph->ctx, t);
    count_graph(t, graph, closed);
    qn_item_int(root, "nodes", t->nodes);
    qn_item_int(root, "parameters", t->parameters);
    qn_item_int(root, "bytes", t->bytes);
    qn_item_int(root, "macs", t->macs);
    if (t->uncounted)
        qn_item_int(root, "uncounted_nodes", t->uncounted);
    if (has_open_inputs(graph))
        qn_item_text(root, "assumed",
                     closed ? "open dimensions are 1"
                            : "dimensions that are not known are 1; bind those of the inputs");
    add_opsets(root, graph->model->origin ? graph->model->origin : graph->model);
    add_metadata(root, &graph->model->metadata);
    add_values(root, "inputs", graph->inputs, graph->n_inputs);
    add_values(root, "outputs", graph->outputs, graph->n_outputs);
    add_operators(root, t);
    if (nodes)
        add_nodes(qn_item_table(root, "node_list"), graph, closed);
    qn_free(graph->ctx, t);
    return QN_OK;
}

void qn_inspect_purposes(qn_item *row, size_t pass)
{
    char text[64] = "";
    for (int i = 0; i < QN_PURPOSES; i++) {
        if (qn_pass_serves(pass, (qn_purpose)i))
            qn_word_list(text, sizeof text, "%s", qn_purpose_names[i]);
    }
    qn_item_text(row, "for", text);
}

/* People want to know what was done, and what was left out because they asked for it. */
static void list_passes(qn_item *root, const qn_graph_options *options, const int64_t *changes,
                        qn_audience audience)
{
    qn_item *table = qn_item_table(root, "passes");
    table->audience = audience;
    for (size_t p = 0; p < qn_passes_count; p++) {
        const bool skipped = qn_pass_is_skipped(p, options->skip, options->n_skip);
        if (audience == QN_FOR_PEOPLE && !changes[p] && !skipped)
            continue;
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "pass", qn_passes[p]->name);
        qn_item_int(row, "changes", changes[p]);
        qn_inspect_purposes(row, p);
        qn_item_text(row, "what", skipped ? "(left out)" : qn_passes[p]->brief);
    }
}

void qn_inspect_passes(qn_item *root, const qn_graph_options *options, const int64_t *changes)
{
    list_passes(root, options, changes, QN_FOR_PEOPLE);
    list_passes(root, options, changes, QN_FOR_PROGRAMS);
}

/* ---- Counting without open dimensions -------------------------------------------------------- */

/* Resolves the arithmetic of shapes, and branches that hang on it, and leaves the other passes
 * out. */
static qn_status fold_shapes(qn_model *model)
{
    const char **skip = qn_alloc_zero(model->ctx, qn_passes_count, sizeof *skip);
    QN_TRY_ALLOC(model->ctx, skip);
    qn_pass_options options = {.skip = skip, .purpose = QN_PURPOSE_CONVERT};
    for (size_t p = 0; p < qn_passes_count; p++) {
        if (qn_passes[p] != &qn_pass_fold_constants && qn_passes[p] != &qn_pass_inline_branches)
            skip[options.n_skip++] = qn_passes[p]->name;
    }
    const qn_status status = qn_passes_run(model, &options, NULL);
    qn_free(model->ctx, skip);
    return status;
}

/* The model with ones for open dimensions and all shapes that follow from that. Ones need not make
 * sense to a model: then *out is NULL. */
static qn_status make_closed(qn_model **out, qn_context *ctx, qn_model *model,
                             const qn_graph_options *graph, bool optimized)
{
    const qn_pass_options passes = {
        .skip = graph->skip, .n_skip = graph->n_skip, .purpose = QN_PURPOSE_CONVERT};
    qn_model *closed;
    *out = NULL;
    QN_TRY(qn_prepare_shapes(&closed, ctx, model, graph, true));
    const qn_status status = optimized ? qn_passes_run(closed, &passes, NULL) : fold_shapes(closed);
    if (status == QN_OK)
        *out = closed;
    else
        qn_model_free(closed);
    return status == QN_E_FORMAT || status == QN_E_INVALID ? QN_OK : status;
}

qn_status qn_inspect_model(qn_item *root, qn_model *model)
{
    const qn_graph_options none = QN_GRAPH_OPTIONS_INIT;
    qn_model *closed;
    qn_inspect_head(root, model);
    QN_TRY(make_closed(&closed, model->ctx, model, &none, false));
    const qn_status status = add_graph(root, model->graph, closed ? closed->graph : NULL, false);
    qn_model_free(closed);
    return status;
}

/* ---- The whole ------------------------------------------------------------------------------- */

/* The graphs that a report is about. */
typedef struct graphs {
    /* Inputs bound as asked */
    qn_model *plain;
    /* The model with the passes done, too */
    qn_model *optimized;
    /* What is shown, with open dimensions bound to 1; NULL: makes no sense */
    qn_model *closed;
} graphs;

static qn_status make_graphs(graphs *g, qn_model *model, const qn_inspect_options *o)
{
    QN_TRY(qn_graph_infer(g->plain->graph));
    QN_TRY(qn_prepare_shapes(&g->optimized, g->plain->ctx, model, &o->graph, false));
    return make_closed(&g->closed, g->plain->ctx, model, &o->graph, o->optimized != 0);
}

/* One line for a node and what became of it. */
static void add_touched(void *table, const qn_pass *pass, const char *what, const char *node,
                        const qn_op *op)
{
    qn_item *row = qn_item_row(table);
    qn_item_text(row, "pass", pass->name);
    qn_item_text(row, "what", what);
    qn_item_text(row, "operator", op->name);
    qn_item_text(row, "node", node);
}

static qn_status optimize(int64_t *changes, qn_item *touched, graphs *g,
                          const qn_inspect_options *o)
{
    const qn_pass_observer observer = {.user = touched, .changed = add_touched};
    const qn_pass_options passes = {.skip = o->graph.skip,
                                    .n_skip = o->graph.n_skip,
                                    .purpose = QN_PURPOSE_CONVERT,
                                    .observer = o->passes ? &observer : NULL};
    return qn_passes_run(g->optimized, &passes, changes);
}

static qn_status fill(qn_item *root, graphs *g, qn_model *model, const qn_inspect_options *o)
{
    qn_item touched = {.report = root->report, .kind = QN_ITEM_TABLE, .key = "touched"};
    int64_t *changes = qn_arena_array(&root->report->arena, qn_passes_count, sizeof *changes);
    QN_TRY_ALLOC(g->plain->ctx, changes);
    QN_TRY(make_graphs(g, model, o));
    QN_TRY(optimize(changes, &touched, g, o));
    const qn_graph *shown = o->optimized ? g->optimized->graph : g->plain->graph;
    QN_TRY(add_graph(root, shown, g->closed ? g->closed->graph : NULL, o->nodes != 0));
    qn_inspect_passes(root, &o->graph, changes);
    if (o->passes)
        *qn_item_table(root, touched.key) = touched;
    return QN_OK;
}

qn_status qn_model_inspect(qn_report **out, qn_context *ctx, qn_model *model,
                           const qn_inspect_options *options)
{
    *out = NULL;
    QN_TAKE_OPTIONS(qn_inspect_options, taken, ctx, options);
    const qn_inspect_options *o = &taken;
    qn_report *report = NULL;
    graphs g = {NULL, NULL, NULL};
    qn_status status = qn_report_create(&report, ctx);
    if (status == QN_OK)
        status = qn_prepare_shapes(&g.plain, ctx, model, &o->graph, false);
    if (status == QN_OK) {
        qn_inspect_head(&report->root, model);
        status = fill(&report->root, &g, model, o);
    }
    qn_model_free(g.plain);
    qn_model_free(g.optimized);
    qn_model_free(g.closed);
    if (status == QN_OK)
        status = qn_report_finish(report);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    return status;
}
