/* The search behind --max-drop.
 *
 * Layers are ranked by the harm that each does alone: the error of the outputs with that layer quantized and all
 * others float. With n layers there are 2 n states to choose from, each more exact than the one before:
 *
 *   0 .. n        the first layers of the ranking at 16 bits
 *   n .. 2 n - 1  the first of them float, the others at 16 bits
 *
 * For a target without 16 bits there are n: 0 .. n - 1, the first of the ranking float.
 *
 * Strides that double find a state that holds, bisection the first such one. */
#include "quantize/accuracy_budget.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "executor/eval.h"
#include "quantize/layers.h"

enum { HARM_SAMPLES = 8, DROP_SAMPLES = 64 };

typedef struct search {
    qn_quantize_job *j;
    const qn_goal *goal;
    qn_layers layers; /* the most harmful first, once ranked */
    bool scored;      /* by classes */
    double float_top1;
    qn_output_check original; /* where no labels tell the drop */
    qn_item *told, *table;    /* of the report; its steps */
    size_t best, made;        /* states */
    double best_drop;
    bool holds; /* the best one */
} search;

static size_t most_wide(const search *s)
{
    return qn_profile_wider(s->j->settings.profile, 8) ? s->layers.count : 0;
}

static size_t count_float(const search *s, size_t state)
{
    return state > most_wide(s) ? state - most_wide(s) : 0;
}

static size_t count_wide(const search *s, size_t state)
{
    return QN_MIN(state, most_wide(s)) - QN_MIN(count_float(s, state), most_wide(s));
}

static qn_status make_state(search *s, size_t state)
{
    const size_t in_float = count_float(s, state), raised = in_float + count_wide(s, state);
    for (size_t i = 0; i < s->layers.count; i++)
        s->layers.at[i].bits = i < in_float ? 32 : i < raised ? 16 : 0;
    s->made = state;
    return qn_layers_make(&s->layers);
}

/* ---- Ranking ---------------------------------------------------------------------------------------------- */

static int by_harm(const void *a, const void *b)
{
    const qn_layer *x = a, *y = b;
    const int order = (x->harm < y->harm) - (x->harm > y->harm);
    return order ? order : strcmp(x->node, y->node);
}

static qn_status rank(search *s)
{
    qn_output_check original;
    qn_status status = qn_output_check_open(&original, s->j, HARM_SAMPLES);
    if (status == QN_OK)
        status = qn_output_check_use_prefixes(&original);
    if (status == QN_OK)
        status = qn_layers_measure(&s->layers, &original);
    qn_output_check_free(&original);
    qsort(s->layers.at, s->layers.count, sizeof *s->layers.at, by_harm);
    return status;
}

/* ---- Steps ------------------------------------------------------------------------------------------------ */

/* Points of top-1 with labels; else percent of the outputs. */
static qn_status measure_drop(double *drop, search *s)
{
    if (!s->scored) {
        QN_TRY(qn_output_check_error(drop, &s->original));
        *drop *= 100;
        return QN_OK;
    }
    QN_TRY(qn_eval_score(drop, s->j->ctx, s->j->quantized, s->goal->eval));
    *drop = s->float_top1 - *drop;
    return QN_OK;
}

static void tell_step(search *s, size_t state, double drop)
{
    const size_t in_float = count_float(s, state), wide = count_wide(s, state);
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
    const size_t last = most_wide(s) + s->layers.count - 1;
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

static bool carry_classes(const qn_feed *feed)
{
    return feed->dataset && qn_dataset_label(feed->dataset, 0) >= 0;
}

/* What the drop is counted from: the float model's share of hits, or its outputs. */
static qn_status measure_float(search *s)
{
    const qn_goal *goal = s->goal;
    qn_context *ctx = s->j->ctx;
    s->scored = goal->eval && (!goal->if_labelled || carry_classes(&s->j->calibration.feed));
    if (s->scored) {
        const qn_status status =
            qn_eval_score(&s->float_top1, ctx, s->j->calibration.real, goal->eval);
        if (status == QN_OK || status == QN_E_NOMEM || status == QN_E_CANCELLED ||
            !goal->if_labelled)
            return status;
        qn_log(ctx, QN_LOG_NOTE, "the classes of the data are no measure of this model: %s",
               qn_context_error(ctx));
        s->scored = false;
    }
    return qn_output_check_open(&s->original, s->j, DROP_SAMPLES);
}

static qn_status search_all(search *s)
{
    s->best_drop = INFINITY;
    QN_TRY(qn_layers_find(&s->layers, s->j));
    if (!s->layers.count)
        return qn_fail(s->j->ctx, QN_E_UNSUPPORTED,
                       "no layer with weights is quantized: there is nothing to search");
    QN_TRY(measure_float(s));
    qn_item_text(s->told, "measure", s->scored ? "points of top-1" : "percent of the outputs");
    qn_item_real(s->told, "allowed", s->goal->max_drop, 4);
    s->table = qn_item_table(s->told, "steps");
    QN_TRY(find(s));
    return s->made == s->best ? QN_OK : make_state(s, s->best);
}

qn_status qn_accuracy_budget_search(qn_item *root, qn_quantize_job *j)
{
    search s = {.j = j, .goal = j->options->goal, .told = qn_item_group(root, "goal")};
    const qn_status status = search_all(&s);
    qn_output_check_free(&s.original);
    QN_TRY(status);
    qn_item_real(s.told, "drop", s.best_drop, 4);
    return s.holds ? QN_OK
                   : qn_fail(j->ctx, QN_E_GOAL,
                             "no mix of widths keeps the drop at %g: the best has %g "
                             "(more data for calibration, or another --quant-mode, may help)",
                             s.goal->max_drop, s.best_drop);
}
