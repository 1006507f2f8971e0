/* The model goes to ONNX Runtime as a file of its own, with all tensors of integers as outputs. An
 * operator makes a difference where its result differs and nothing before it does; what follows it
 * only carries that on. */
#include "ort/ort_comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "export/export.h"
#include "ops/clone.h"
#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/kinds.h"
#include "pass/qdq_to_integer.h"

enum { SHOWN = 10 };

typedef struct seen_value {
    const qn_value *value;
    /* The operator that its numbers come from */
    const qn_node *node;
    /* An output of the model, compared as a real number */
    bool is_result;
    bool compared, differs, own;
    int64_t elements, differing;
    /* Largest difference: in steps, or relative to the largest number of a result */
    double most;
} seen_value;

struct qn_ort_comparison {
    qn_context *ctx;
    /* A clone with more outputs */
    qn_model *model;
    qn_ort *ort;
    /* One per output of the clone */
    seen_value *values;
    const char **in_names, **out_names;
    /* The reference of the run at hand */
    const qn_reference_values *reference;
    size_t n_results;
};

/* ---- Opening --------------------------------------------------------------------------------- */

static bool is_integers(const qn_value *value)
{
    const qn_dtype dtype = value->type.dtype;
    return value->type.kind == QN_TYPE_TENSOR && !value->data && value->producer &&
           (dtype == QN_UINT8 || dtype == QN_INT8 || dtype == QN_UINT16 || dtype == QN_INT16);
}

static qn_status expose(qn_graph *graph)
{
    for (qn_node *node = graph->first; node; node = node->next) {
        for (int32_t o = 0; o < node->n_out; o++) {
            if (node->out[o] && !node->out[o]->is_output && is_integers(node->out[o]))
                QN_TRY(qn_graph_add_output(graph, node->out[o]));
        }
    }
    return QN_OK;
}

/* What computed the numbers that a Q rounds; limits and biases belong to the operator before
 * them. */
static const qn_node *operator_of(const qn_value *value)
{
    const qn_node *node = value->producer;
    while (node && node->n_in && node->in[0] && node->in[0]->producer &&
           (qn_is_quantize(node) || qn_op_is_limit(node->op)))
        node = node->in[0]->producer;
    return node;
}

static qn_status make_tables(qn_ort_comparison *b)
{
    const qn_graph *graph = b->model->graph;
    qn_arena *arena = &b->model->arena;
    b->values = qn_arena_array(arena, graph->n_outputs + 1, sizeof *b->values);
    b->in_names = qn_arena_array(arena, graph->n_inputs + 1, sizeof *b->in_names);
    b->out_names = qn_arena_array(arena, graph->n_outputs + 1, sizeof *b->out_names);
    if (!b->values || !b->in_names || !b->out_names)
        return qn_fail_nomem(b->ctx);
    for (size_t i = 0; i < graph->n_inputs; i++)
        b->in_names[i] = graph->inputs[i]->name;
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const qn_value *value = graph->outputs[i];
        b->out_names[i] = value->name;
        b->values[i] =
            (seen_value){.value = value, .node = operator_of(value), .is_result = i < b->n_results};
    }
    return QN_OK;
}

static qn_status export_and_open(qn_ort_comparison *b, const char *library)
{
    char path[] = "/tmp/quench-verify-XXXXXX";
    const int file = mkstemp(path);
    if (file < 0)
        return qn_fail(b->ctx, QN_E_IO, "cannot make a temporary file in /tmp");
    close(file);
    qn_status status = qn_export_onnx(b->ctx, b->model, path, NULL);
    if (status == QN_OK)
        status = qn_ort_open(&b->ort, b->ctx, library, path);
    unlink(path);
    return status;
}

static qn_status open_all(qn_ort_comparison *b, qn_model *model, const char *library)
{
    QN_TRY(qn_model_clone(&b->model, b->ctx, model));
    QN_TRY(qn_graph_infer(b->model->graph));
    b->n_results = b->model->graph->n_outputs;
    QN_TRY(expose(b->model->graph));
    QN_TRY(make_tables(b));
    return export_and_open(b, library);
}

qn_status qn_ort_comparison_open(qn_ort_comparison **out, qn_context *ctx, qn_model *model,
                                 const char *library)
{
    qn_ort_comparison *b = qn_alloc_zero(ctx, 1, sizeof *b);
    *out = NULL;
    QN_TRY_ALLOC(ctx, b);
    b->ctx = ctx;
    const qn_status status = open_all(b, model, library);
    if (status == QN_OK)
        *out = b;
    else
        qn_ort_comparison_close(b);
    return status;
}

void qn_ort_comparison_close(qn_ort_comparison *b)
{
    if (!b)
        return;
    qn_ort_close(b->ort);
    qn_model_free(b->model);
    qn_free(b->ctx, b);
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static void compare(seen_value *s, const qn_tensor *theirs, const qn_tensor *ours)
{
    const int64_t count = qn_tensor_count(ours);
    double largest = 0, most = 0;
    s->compared = true;
    s->elements += count;
    for (int64_t i = 0; i < count; i++) {
        const double x = qn_tensor_f64(ours, i), difference = fabs(x - qn_tensor_f64(theirs, i));
        s->differing += !(difference == 0);
        most = fmax(most, difference);
        largest = fmax(largest, fabs(x));
    }
    s->differs = s->differs || most > 0;
    s->most = fmax(s->most, s->is_result && largest > 0 ? most / largest : most);
}

static qn_status take(void *user, size_t i, const qn_tensor *theirs)
{
    qn_ort_comparison *b = user;
    seen_value *s = &b->values[i];
    const qn_reference_value *ours = qn_names_get(&b->reference->by_name, s->value->name);
    const qn_tensor *t = ours ? &ours->tensor : NULL;
    s->differs = false;
    if (!t || !t->data || t->dtype != theirs->dtype || t->rank != theirs->rank ||
        memcmp(t->dims, theirs->dims, (size_t)t->rank * sizeof *t->dims) != 0)
        return QN_OK;
    compare(s, theirs, t);
    return QN_OK;
}

/* In topological order: a value is soiled by what is before it, or by the difference that was seen
 * of it. */
static void find_own(qn_ort_comparison *b)
{
    enum { CLEAN, SOILED };
    qn_graph *graph = b->model->graph;
    for (size_t i = 0; i < graph->n_values; i++)
        graph->values[i]->mark = 0;
    for (size_t i = 0; i < graph->n_outputs; i++)
        graph->outputs[i]->mark = (uint32_t)(i + 1) << 1;
    for (const qn_node *node = graph->first; node; node = node->next) {
        uint32_t soiled = CLEAN;
        for (int32_t i = 0; i < node->n_in; i++)
            soiled |= node->in[i] ? node->in[i]->mark & SOILED : 0;
        for (int32_t o = 0; o < node->n_out; o++) {
            qn_value *value = node->out[o];
            seen_value *s = value && value->mark >> 1 ? &b->values[(value->mark >> 1) - 1] : NULL;
            const bool known = s && s->compared;
            if (known)
                s->own = s->own || (s->differs && !soiled);
            if (value)
                value->mark |= known ? (s->differs ? SOILED : CLEAN) : soiled;
        }
    }
}

qn_status qn_ort_comparison_run(qn_ort_comparison *b, const qn_tensor *inputs,
                                const qn_reference_values *reference)
{
    const qn_graph *graph = b->model->graph;
    const qn_ort_run run = {.in_names = b->in_names,
                            .in = inputs,
                            .n_in = graph->n_inputs,
                            .out_names = b->out_names,
                            .n_out = graph->n_outputs,
                            .seen = take,
                            .user = b};
    b->reference = reference;
    QN_TRY(qn_ort_compute(b->ort, &run));
    find_own(b);
    return QN_OK;
}

/* ---- Report ---------------------------------------------------------------------------------- */

static const char *operator_name(const seen_value *s)
{
    return s->node ? s->node->op->name : "input";
}

/* What operators of one kind give, in one row where the first of them stands. */
static void report_operator(qn_item *table, const qn_ort_comparison *b, size_t first)
{
    const char *name = operator_name(&b->values[first]);
    int64_t tensors = 0, differing = 0, own = 0;
    double most = 0;
    for (size_t i = b->n_results; i < b->model->graph->n_outputs; i++) {
        const seen_value *s = &b->values[i];
        if (!s->compared || strcmp(operator_name(s), name) != 0)
            continue;
        if (i < first)
            return;
        tensors++;
        differing += s->differing > 0;
        own += s->own;
        most = fmax(most, s->most);
    }
    qn_item *row = qn_item_row(table);
    qn_item_text(row, "operator", name);
    qn_item_int(row, "tensors", tensors);
    qn_item_int(row, "differ", differing);
    qn_item_int(row, "make_it", own);
    qn_item_int(row, "most_steps", (int64_t)most);
}

static void report_makers(qn_item *root, const qn_ort_comparison *b)
{
    qn_item *table = qn_item_table(root, "differences_made");
    int shown = 0;
    for (size_t i = b->n_results; i < b->model->graph->n_outputs && shown < SHOWN; i++) {
        const seen_value *s = &b->values[i];
        if (!s->own)
            continue;
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "tensor", s->value->name);
        qn_item_text(row, "node", s->node ? s->node->name : "");
        qn_item_text(row, "operator", operator_name(s));
        qn_item_real(row, "share", (double)s->differing / (double)QN_MAX(s->elements, 1), 6);
        qn_item_int(row, "most_steps", (int64_t)s->most);
        shown++;
    }
}

void qn_ort_comparison_report(qn_item *root, const qn_ort_comparison *b)
{
    int64_t equal = 0, differing = 0;
    qn_item *group = qn_item_group(root, "onnx_runtime");
    for (size_t i = b->n_results; i < b->model->graph->n_outputs; i++) {
        equal += b->values[i].compared && b->values[i].differing == 0;
        differing += b->values[i].differing > 0;
    }
    qn_item_text(group, "version", qn_ort_version(b->ort));
    qn_item_int(group, "integer_tensors_equal", equal);
    qn_item_int(group, "integer_tensors_differ", differing);
    if (differing && !qn_cpu_has_vnni())
        qn_item_text(group, "saturates",
                     "its products of 8 bits do on CPUs without VNNI, such as this one, unless its "
                     "session option session.x64quantprecision is 1");
    qn_item *results = qn_item_table(group, "results");
    for (size_t i = 0; i < b->n_results; i++) {
        qn_item *row = qn_item_row(results);
        qn_item_text(row, "output", b->values[i].value->name);
        qn_item_real(row, "difference", b->values[i].most, 9);
    }
    qn_item *table = qn_item_table(group, "operators");
    for (size_t i = b->n_results; i < b->model->graph->n_outputs; i++) {
        if (b->values[i].compared)
            report_operator(table, b, i);
    }
    report_makers(group, b);
}
