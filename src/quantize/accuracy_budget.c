/* The search behind --max-drop.
 *
 * Layers are ranked by the sensitivity to each alone: the noise of the outputs with that layer
 * quantized and all others float. With n layers there are 2 n states to choose from, each more
 * exact than the one before:
 *
 *   0 .. n        the first layers of the ranking promoted to the next width
 *   n .. 2 n - 1  the first of them float, the others promoted
 *
 * For a target without another width there are n: 0 .. n - 1, the first of the ranking float.
 *
 * Strides that double find a state that holds, bisection the first such one. */
#include "quantize/accuracy_budget.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "executor/eval.h"

enum { RANKED = 8, DROPPED = QN_SEARCHED_SAMPLES }; /* samples */

typedef struct budget {
    qn_search *search;
    const qn_accuracy_budget *wanted;
    /* The most sensitive first, once ranked. */
    qn_layers *layers;
    /* The drop is one of top-1 accuracy; else one of the outputs. */
    bool scored;
    double float_top1;
    /* The group in the report; its steps. */
    qn_item *group, *table;
    /* State, and the model of it. */
    size_t best;
    qn_quantized_model *made;
    double best_drop;
    /* The best one. */
    bool holds;
} budget;

/* What layers are promoted to; 0: the target has nothing. */
static int wider(const budget *b)
{
    return qn_profile_wider(b->layers->asked.rules.profile, QN_WIDTH_STANDARD);
}

static size_t most_promoted(const budget *b)
{
    return wider(b) ? b->layers->count : 0;
}

static size_t count_float(const budget *b, size_t state)
{
    return state > most_promoted(b) ? state - most_promoted(b) : 0;
}

static size_t count_promoted(const budget *b, size_t state)
{
    return QN_MIN(state, most_promoted(b)) - QN_MIN(count_float(b, state), most_promoted(b));
}

static qn_status make_state(qn_quantized_model *out, budget *b, size_t state)
{
    const size_t in_float = count_float(b, state), promoted = count_promoted(b, state);
    for (size_t i = 0; i < b->layers->count; i++)
        b->layers->at[i].bits = i < in_float              ? QN_LAYER_FLOAT
                                : i < in_float + promoted ? wider(b)
                                                          : 0;
    return qn_layers_make(out, b->layers);
}

static qn_status rank(budget *b)
{
    QN_TRY(qn_output_check_use_prefixes(&b->search->check, RANKED));
    QN_TRY(qn_layers_measure(b->layers, &b->search->check));
    qn_layers_sort(b->layers);
    return QN_OK;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* Points of top-1 with labels; else percent of the outputs. */
static qn_status measure_drop(double *drop, budget *b, const qn_quantized_model *q)
{
    qn_output_check *check = &b->search->check;
    if (!b->scored) {
        QN_TRY(qn_output_check_use(check, DROPPED));
        QN_TRY(qn_output_check_error(drop, check, q));
        *drop *= 100;
        return QN_OK;
    }
    QN_TRY(qn_eval_score(drop, q->ctx, q->model, b->wanted->eval));
    *drop = b->float_top1 - *drop;
    return QN_OK;
}

static void report_step(budget *b, size_t state, double drop)
{
    const size_t in_float = count_float(b, state), promoted = count_promoted(b, state);
    qn_item *row = qn_item_row(b->table);
    qn_item_int(row, "layers_raised", (int64_t)promoted);
    qn_item_int(row, "layers_in_float", (int64_t)in_float);
    qn_item_real(row, "drop", drop, 4);
    qn_log(b->search->input->ctx, QN_LOG_INFO,
           "%zu layers promoted to %d bits, %zu in float: drop %.4f", promoted, wider(b), in_float,
           drop);
}

/* Takes the model where it is the best so far, and shows it to the caller at once. */
static qn_status judge(bool *holds, budget *b, size_t state, qn_quantized_model *made)
{
    const qn_quantize_options *o = b->search->input->options;
    double drop;
    QN_TRY(measure_drop(&drop, b, made));
    report_step(b, state, drop);
    *holds = drop <= b->wanted->max_drop;
    const bool better = *holds ? !b->holds || state < b->best : !b->holds && drop < b->best_drop;
    if (!better)
        return QN_OK;
    b->best = state;
    b->best_drop = drop;
    b->holds = *holds;
    qn_quantized_model_move(b->made, made);
    return o->better ? o->better(o->better_user, b->made->model) : QN_OK;
}

static qn_status try_state(bool *holds, budget *b, size_t state)
{
    qn_quantized_model made;
    qn_status status = make_state(&made, b, state);
    if (status == QN_OK)
        status = judge(holds, b, state, &made);
    qn_quantized_model_free(&made);
    return status;
}

static qn_status bisect(budget *b, size_t fails, size_t works)
{
    while (works - fails > 1) {
        const size_t middle = fails + (works - fails) / 2;
        bool holds = false;
        QN_TRY(try_state(&holds, b, middle));
        if (holds)
            works = middle;
        else
            fails = middle;
    }
    return QN_OK;
}

/* The state with everything float is no quantized model. */
static qn_status find(budget *b)
{
    const size_t last = most_promoted(b) + b->layers->count - 1;
    size_t fails = 0, state = 0;
    bool holds = false;
    QN_TRY(try_state(&holds, b, 0));
    if (holds)
        return QN_OK;
    QN_TRY(rank(b));
    for (size_t stride = 1; !holds && fails < last; stride *= 2) {
        state = QN_MIN(fails + stride, last);
        QN_TRY(try_state(&holds, b, state));
        if (!holds)
            fails = state;
    }
    return holds ? bisect(b, fails, state) : QN_OK;
}

/* ---- The whole ------------------------------------------------------------------------------- */

static bool carry_classes(const qn_feed *feed)
{
    return feed->dataset && qn_dataset_label(feed->dataset, 0) >= 0;
}

/* What the drop is counted from: the float model's share of hits, or its outputs. */
static qn_status measure_float(budget *b)
{
    const qn_accuracy_budget *wanted = b->wanted;
    const qn_calibration *data = b->search->input->data;
    qn_context *ctx = b->search->input->ctx;
    b->scored = wanted->eval && (!wanted->if_labelled || carry_classes(&data->feed));
    if (!b->scored)
        return QN_OK;
    const qn_status status = qn_eval_score(&b->float_top1, ctx, data->real, wanted->eval);
    if (status == QN_OK || status == QN_E_NOMEM || status == QN_E_CANCELLED || !wanted->if_labelled)
        return status;
    qn_log(ctx, QN_LOG_NOTE, "the classes of the data are no measure of this model: %s",
           qn_context_error(ctx));
    b->scored = false;
    return QN_OK;
}

static qn_status search_all(budget *b)
{
    b->best_drop = INFINITY;
    if (!b->layers->count)
        return qn_fail(b->search->input->ctx, QN_E_UNSUPPORTED,
                       "no layer with weights is quantized: there is nothing to search");
    QN_TRY(measure_float(b));
    qn_item_text(b->group, "measure", b->scored ? "points of top-1" : "percent of the outputs");
    qn_item_real(b->group, "allowed", b->wanted->max_drop, 4);
    b->table = qn_item_table(b->group, "steps");
    return find(b);
}

qn_status qn_accuracy_budget_search(qn_quantize_result *out, qn_search *s, qn_layers *layers)
{
    budget b = {.search = s,
                .wanted = s->input->options->accuracy_budget,
                .layers = layers,
                .group = qn_item_group(s->report, "goal"),
                .made = &out->made};
    QN_TRY(search_all(&b));
    qn_item_real(b.group, "drop", b.best_drop, 4);
    return b.holds ? QN_OK
                   : qn_fail(s->input->ctx, QN_E_GOAL,
                             "no mix of widths keeps the drop at %g: the best has %g "
                             "(more data for calibration, or another `methods`, may help)",
                             b.wanted->max_drop, b.best_drop);
}
