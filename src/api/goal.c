/* The search behind --max-drop.
 *
 * Layers are ranked by the harm that each does alone: the error of the outputs with that layer quantized and all
 * others float. With n layers there are 2 n states to choose from, each more exact than the one before:
 *
 *   0 .. n        the first layers of the ranking at 16 bits
 *   n .. 2 n - 1  the first of them float, the others at 16 bits
 *
 * Strides that double find a state that holds, bisection the first such one. */
#include "api/goal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/eval.h"

enum { HARM_SAMPLES = 8, DROP_SAMPLES = 64 };

/* A multiply-accumulate node and what follows it up to the next ones. */
typedef struct layer {
    const char *node;
    const char **values; /* that its nodes write: patterns that fit them alone */
    size_t n_values;
    double harm;
} layer;

typedef struct search {
    qn_quantize_job *j;
    const qn_goal *goal;
    qn_quant_settings asked;
    layer *layers; /* the most harmful first, once ranked */
    size_t n_layers;
    double float_top1;
    qn_item *table;
    size_t best, made; /* states */
    double best_drop;
    bool holds; /* the best one */
} search;

/* ---- Layers ----------------------------------------------------------------------------------------------- */

static bool starts_layer(const qn_quant_node *n)
{
    return n->integer && n->form == QN_FORM_MAC;
}

/* The layer of the last node before this one that has one; -1: none. */
static int64_t layer_before(const qn_quant_node *n, const int64_t *layer_of)
{
    int64_t last = -1;
    for (int32_t i = 0; i < n->node->n_in; i++) {
        const qn_node *producer = n->node->in[i] ? n->node->in[i]->producer : NULL;
        if (producer)
            last = QN_MAX(last, layer_of[producer->mark]);
    }
    return last;
}

/* Places of the nodes' layers; those before the first one belong to it. */
static size_t number_layers(int64_t *layer_of, qn_quantizer *q)
{
    size_t count = 0;
    qn_quantizer_number(q);
    for (size_t i = 0; i < q->n_nodes; i++)
        layer_of[i] =
            starts_layer(&q->nodes[i]) ? (int64_t)count++ : layer_before(&q->nodes[i], layer_of);
    return count;
}

static qn_status add_value(layer *l, qn_arena *arena, qn_context *ctx, const qn_node *node)
{
    if (!node->n_out || !node->out[0])
        return QN_OK;
    char *name = qn_arena_text(arena, node->out[0]->name, strlen(node->out[0]->name));
    QN_TRY_ALLOC(ctx, name);
    l->values[l->n_values++] = name;
    return QN_OK;
}

static qn_status fill_layer(layer *l, search *s, const int64_t *layer_of, int64_t number)
{
    const qn_quantizer *q = s->j->quantizer;
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_node *node = q->nodes[i].node;
        if (!q->nodes[i].integer || QN_MAX(layer_of[i], 0) != number)
            continue;
        QN_TRY(add_value(l, &s->j->arena, s->j->ctx, node));
        if (!starts_layer(&q->nodes[i]))
            continue;
        l->node = qn_arena_text(&s->j->arena, node->name, strlen(node->name));
        QN_TRY_ALLOC(s->j->ctx, l->node);
    }
    return QN_OK;
}

static qn_status make_layers(search *s)
{
    qn_quantizer *q = s->j->quantizer;
    qn_arena *arena = &s->j->arena;
    int64_t *layer_of = qn_arena_array(arena, q->n_nodes + 1, sizeof *layer_of);
    QN_TRY_ALLOC(s->j->ctx, layer_of);
    s->n_layers = number_layers(layer_of, q);
    s->layers = qn_arena_array(arena, s->n_layers + 1, sizeof *s->layers);
    QN_TRY_ALLOC(s->j->ctx, s->layers);
    const char **values = qn_arena_array(arena, q->n_nodes + 1, sizeof *values);
    QN_TRY_ALLOC(s->j->ctx, values);
    for (size_t i = 0; i < s->n_layers; i++) {
        s->layers[i].values = values;
        QN_TRY(fill_layer(&s->layers[i], s, layer_of, (int64_t)i));
        values += s->layers[i].n_values;
    }
    return QN_OK;
}

/* ---- Settings --------------------------------------------------------------------------------------------- */

typedef struct patterns {
    const char **at;
    size_t count;
} patterns;

/* Room for the patterns that were asked for and one for every value of a layer. */
static qn_status begin_patterns(patterns *p, search *s, const char *const *asked, size_t n_asked)
{
    size_t values = 0;
    for (size_t i = 0; i < s->n_layers; i++)
        values += s->layers[i].n_values;
    p->at = qn_arena_array(&s->j->arena, n_asked + values + 1, sizeof *p->at);
    QN_TRY_ALLOC(s->j->ctx, p->at);
    for (p->count = 0; p->count < n_asked; p->count++)
        p->at[p->count] = asked[p->count];
    return QN_OK;
}

static void add_float(patterns *p, const layer *l)
{
    for (size_t v = 0; v < l->n_values; v++)
        p->at[p->count++] = l->values[v];
}

static qn_status add_wide(patterns *p, search *s, const layer *l)
{
    for (size_t v = 0; v < l->n_values; v++) {
        char *text = qn_arena_format(&s->j->arena, "%s=16", l->values[v]);
        QN_TRY_ALLOC(s->j->ctx, text);
        p->at[p->count++] = text;
    }
    return QN_OK;
}

static qn_status make_state(search *s, size_t state)
{
    const size_t n = s->n_layers, in_float = state > n ? state - n : 0;
    const size_t raised = QN_MIN(state, n);
    patterns floats = {.count = 0}, widths = {.count = 0};
    QN_TRY(begin_patterns(&floats, s, s->asked.keep_float, s->asked.n_float));
    QN_TRY(begin_patterns(&widths, s, s->asked.widths, s->asked.n_widths));
    for (size_t i = 0; i < in_float; i++)
        add_float(&floats, &s->layers[i]);
    for (size_t i = in_float; i < raised; i++)
        QN_TRY(add_wide(&widths, s, &s->layers[i]));
    s->j->settings = s->asked;
    s->j->settings.keep_float = floats.at;
    s->j->settings.n_float = floats.count;
    s->j->settings.widths = widths.at;
    s->j->settings.n_widths = widths.count;
    s->made = state;
    return qn_job_make(s->j);
}

/* ---- Ranking ---------------------------------------------------------------------------------------------- */

/* Largest relative error of an output over the first samples. */
static qn_status output_error(double *error, search *s, int64_t samples)
{
    qn_report *aside;
    qn_quantize_job *j = s->j;
    const qn_compare_options options = {.source = &j->calibration.samples.source,
                                        .n_inputs = j->calibration.feed.n_in,
                                        .graph = &j->calibration.graph,
                                        .samples = samples,
                                        .worst = error};
    *error = 0;
    QN_TRY(qn_report_create(&aside, j->ctx));
    const qn_status status =
        qn_compare_models(&aside->root, j->ctx, j->calibration.real, j->quantized, &options);
    qn_report_free(aside);
    return status;
}

static qn_status measure_alone(search *s, size_t which)
{
    patterns floats = {.count = 0};
    QN_TRY(begin_patterns(&floats, s, s->asked.keep_float, s->asked.n_float));
    for (size_t i = 0; i < s->n_layers; i++) {
        if (i != which)
            add_float(&floats, &s->layers[i]);
    }
    s->j->settings = s->asked;
    s->j->settings.keep_float = floats.at;
    s->j->settings.n_float = floats.count;
    QN_TRY(qn_job_make(s->j));
    return output_error(&s->layers[which].harm, s, HARM_SAMPLES);
}

static int by_harm(const void *a, const void *b)
{
    const layer *x = a, *y = b;
    const int order = (x->harm < y->harm) - (x->harm > y->harm);
    return order ? order : strcmp(x->node, y->node);
}

static qn_status rank(search *s)
{
    for (size_t i = 0; i < s->n_layers; i++) {
        QN_TRY(measure_alone(s, i));
        qn_progress(s->j->ctx, "layers", (int64_t)i + 1, (int64_t)s->n_layers);
    }
    qsort(s->layers, s->n_layers, sizeof *s->layers, by_harm);
    return QN_OK;
}

/* ---- Steps ------------------------------------------------------------------------------------------------ */

/* Points of top-1 with labels; else percent of the outputs. */
static qn_status measure_drop(double *drop, search *s)
{
    if (!s->goal->eval) {
        QN_TRY(output_error(drop, s, DROP_SAMPLES));
        *drop *= 100;
        return QN_OK;
    }
    QN_TRY(qn_eval_top1(drop, s->j->ctx, s->j->quantized, s->goal->eval));
    *drop = s->float_top1 - *drop;
    return QN_OK;
}

static void tell_step(search *s, size_t state, double drop)
{
    const size_t in_float = state > s->n_layers ? state - s->n_layers : 0;
    const size_t wide = QN_MIN(state, s->n_layers) - in_float;
    qn_item *row = qn_item_row(s->table);
    qn_item_int(row, "layers_raised", (int64_t)wide);
    qn_item_int(row, "layers_in_float", (int64_t)in_float);
    qn_item_real(row, "drop", drop, 4);
    qn_log(s->j->ctx, QN_LOG_INFO, "%zu layers at 16 bits, %zu in float: drop %.4f", wide, in_float,
           drop);
}

/* Makes a state and measures it; the best so far is shown to the caller at once. */
static qn_status try_state(bool *holds, search *s, size_t state)
{
    const qn_quantize_options *o = s->j->options;
    double drop;
    QN_TRY(make_state(s, state));
    QN_TRY(measure_drop(&drop, s));
    tell_step(s, state, drop);
    *holds = drop <= s->goal->max_drop;
    const bool better = *holds ? !s->holds || state < s->best : !s->holds && drop < s->best_drop;
    if (!better)
        return QN_OK;
    s->best = state;
    s->best_drop = drop;
    s->holds = *holds;
    return o->better ? o->better(o->better_user, s->j->quantized) : QN_OK;
}

static qn_status bisect(search *s, size_t fails, size_t works)
{
    while (works - fails > 1) {
        const size_t middle = fails + (works - fails) / 2;
        bool holds = false;
        QN_TRY(try_state(&holds, s, middle));
        if (holds)
            works = middle;
        else
            fails = middle;
    }
    return QN_OK;
}

/* The state with everything float is no quantized model. */
static qn_status find(search *s)
{
    const size_t last = 2 * s->n_layers - 1;
    size_t fails = 0, state = 0;
    bool holds = false;
    QN_TRY(try_state(&holds, s, 0));
    if (holds)
        return QN_OK;
    QN_TRY(rank(s));
    for (size_t stride = 1; !holds && fails < last; stride *= 2) {
        state = QN_MIN(fails + stride, last);
        QN_TRY(try_state(&holds, s, state));
        if (!holds)
            fails = state;
    }
    return holds ? bisect(s, fails, state) : QN_OK;
}

/* ---- The whole -------------------------------------------------------------------------------------------- */

static qn_status search_all(search *s)
{
    s->best_drop = INFINITY;
    QN_TRY(make_layers(s));
    if (!s->n_layers)
        return qn_fail(s->j->ctx, QN_E_UNSUPPORTED,
                       "no layer with weights is quantized: there is nothing to search");
    if (s->goal->eval)
        QN_TRY(qn_eval_top1(&s->float_top1, s->j->ctx, s->j->calibration.real, s->goal->eval));
    QN_TRY(find(s));
    return s->made == s->best ? QN_OK : make_state(s, s->best);
}

qn_status qn_goal_search(qn_item *root, qn_quantize_job *j)
{
    search s = {.j = j, .goal = j->options->goal, .asked = j->settings};
    qn_item *goal = qn_item_group(root, "goal");
    qn_item_text(goal, "measure", s.goal->eval ? "points of top-1" : "percent of the outputs");
    qn_item_real(goal, "allowed", s.goal->max_drop, 4);
    s.table = qn_item_table(goal, "steps");
    QN_TRY(search_all(&s));
    qn_item_real(goal, "drop", s.best_drop, 4);
    return s.holds ? QN_OK
                   : qn_fail(j->ctx, QN_E_GOAL,
                             "no mix of widths keeps the drop at %g: the best has %g "
                             "(more data for calibration, or another --quant-mode, may help)",
                             s.goal->max_drop, s.best_drop);
}
