/* Where 8 bits are too few.
 *
 * The noise of the outputs is measured on the first samples. Where it is small, as with most
 * networks, that is all. Else the sensitivity to every layer is: the noise with that layer alone
 * quantized. The layers that it is largest for stay float, as few as bring the noise down and no
 * more than a share of the network's work. A layer of integers between such ones stays float too,
 * if the share allows it: integers for it alone cost more time than they win. Nothing of it depends
 * on time measured, so the same data give the same file.
 *
 * A chip has no float layers. There other methods are tried first, and then 16 bits, where it has
 * them, for as many layers as it takes: nobody gets a network that has lost its results without
 * having asked for it. */
#include "quantize/mixed_precision.h"

#include <stdlib.h>
#include <string.h>

#include "quant/mix.h"

/* Samples. Who ranks layers to leave a few float needs fewer than who gives a chip's layers their
 * widths. */
enum { CHECKED = 4, RANKED = 8, RANKED_FOR_WIDTHS = 16, MEASURED = 16 };

/* What a remedy is: bits of a layer that 8 are too few for, the noise beside signal
 * that outputs should come down to, and the share of the network's work that may have it. A chip's
 * short tables leave more noise in 16 bits. */
typedef struct limits {
    int bits;
    double noise, work;
} limits;

/* What a chip's layers are promoted to; 0: it has nothing. */
static int wider(const qn_layers *l)
{
    return qn_profile_wider(l->asked.rules.profile, QN_WIDTH_STANDARD);
}

static limits limits_of(const qn_layers *l)
{
    return l->asked.rules.profile->fixed_point ? (limits){wider(l), 0.1, 1}
                                               : (limits){QN_LAYER_FLOAT, 0.015625, 0.1};
}

/* Who asks for a width or a method, whichever, gets it, and so does who has trained with some. */
static bool may_mix(const qn_search *s)
{
    const qn_quantize_options *o = s->input->options;
    return !o->bits && !o->method && !o->dynamic && !s->input->scales && !s->asked.rules.n_widths &&
           !s->input->mix && !s->input->trained;
}

static bool has_samples(const qn_search *s)
{
    return s->input->data->fed && s->input->data->with_data;
}

static int by_place(const void *a, const void *b)
{
    const qn_layer *x = a, *y = b;
    return (x->place > y->place) - (x->place < y->place);
}

/* ---- The layers that outputs are most sensitive to ------------------------------------------- */

static double work_left(const qn_layers *l)
{
    double all = 0, in_float = 0;
    for (size_t i = 0; i < l->count; i++) {
        all += l->at[i].work;
        in_float += l->at[i].bits ? l->at[i].work : 0;
    }
    return limits_of(l).work * all - in_float;
}

/* The first `most` layers that the share of work has room for. */
static size_t leave_first(qn_layers *l, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++)
        l->at[i].bits = 0;
    double left = work_left(l);
    for (size_t i = 0; i < l->count && count < most; i++) {
        if (l->at[i].work > left)
            continue;
        left -= l->at[i].work;
        l->at[i].bits = limits_of(l).bits;
        count++;
    }
    return count;
}

static qn_status try_first(bool *good, qn_layers *l, qn_output_check *check, size_t count)
{
    qn_quantized_model tried;
    double noise = 0;
    (void)leave_first(l, count);
    qn_status status = qn_layers_make(&tried, l);
    if (status == QN_OK)
        status = qn_output_check_noise(&noise, check, &tried);
    qn_quantized_model_free(&tried);
    QN_TRY(status);
    qn_log(check->ctx, QN_LOG_INFO, "%zu of %zu layers have %d bits: noise %.4f of the signal",
           count, l->count, limits_of(l).bits, noise);
    *good = noise <= limits_of(l).noise;
    return QN_OK;
}

/* The fewest that bring the noise down; all that there is room for where none do. */
static qn_status find_fewest(qn_layers *l, qn_output_check *check)
{
    qn_layers_sort(l);
    size_t fails = 0, works = leave_first(l, l->count - 1);
    while (works - fails > 1) {
        bool good = false;
        const size_t stride = 2 * fails + 1;
        const size_t tried = stride < works ? stride : fails + (works - fails) / 2;
        QN_TRY(try_first(&good, l, check, tried));
        if (good)
            works = tried;
        else
            fails = tried;
    }
    (void)leave_first(l, works);
    return QN_OK;
}

/* ---- Islands of integers --------------------------------------------------------------------- */

/* All that the layer at the place reads and all that read it are float. */
static bool is_island(const qn_layers *l, size_t place)
{
    bool has_neighbour = false;
    for (size_t e = 0; e < l->n_edges; e++) {
        const size_t from = (size_t)l->edges[e].from, to = (size_t)l->edges[e].to;
        if (from != place && to != place)
            continue;
        if (l->at[from == place ? to : from].bits == 0)
            return false;
        has_neighbour = true;
    }
    return has_neighbour;
}

static void sink_islands(qn_layers *l)
{
    qsort(l->at, l->count, sizeof *l->at, by_place);
    double left = work_left(l);
    for (size_t i = 0; i < l->count; i++) {
        if (l->at[i].bits || l->at[i].work > left || !is_island(l, i))
            continue;
        l->at[i].bits = limits_of(l).bits;
        left -= l->at[i].work;
    }
}

/* ---- Other methods --------------------------------------------------------------------------- */

static qn_status check_model(double *noise, qn_search *s, const qn_quantized_model *q)
{
    QN_TRY(qn_output_check_noise(noise, &s->check, q));
    qn_log(s->input->ctx, QN_LOG_INFO, "%s: noise %.4f of the signal",
           q->settings.params.method->name, *noise);
    return QN_OK;
}

/* *best is what has less noise, with *noise, of itself and a model of the settings by the
 * method. */
static qn_status try_method(double *noise, qn_quantized_model *best, qn_search *s,
                            const qn_quantize_settings *with, const char *method)
{
    qn_quantized_model tried = {.ctx = NULL};
    qn_quantize_settings settings = *with;
    double found = 0;
    QN_TRY(qn_method_find(&settings.params.method, s->input->ctx, method));
    qn_status status = qn_quantize_make(&tried, s->input, &settings);
    if (status == QN_OK)
        status = check_model(&found, s, &tried);
    if (status == QN_OK && found < *noise) {
        *noise = found;
        qn_quantized_model_move(best, &tried);
    }
    qn_quantized_model_free(&tried);
    return status;
}

/* A chip's own method may be the wrong one for a network: the one with the least noise. */
static qn_status try_methods(double *noise, qn_quantized_model *best, qn_search *s,
                             const qn_quantize_settings *with)
{
    static const char *const names[] = {"mse", "percentile", "min_max"};
    for (size_t i = 0; i < QN_COUNT_OF(names); i++)
        QN_TRY(try_method(noise, best, s, with, names[i]));
    return QN_OK;
}

/* ---- Rules of mixed widths ------------------------------------------------------------------- */

static bool promote_node(qn_layers *l, const qn_quant_node *n)
{
    bool promoted = false;
    for (size_t i = 0; i < l->count && n->bits == QN_WIDTH_STANDARD; i++) {
        qn_layer *layer = &l->at[i];
        for (size_t v = 0; v < layer->n_values && !layer->bits; v++) {
            if (strcmp(layer->values[v], n->node->out[0]->name) == 0) {
                layer->bits = wider(l);
                promoted = true;
            }
        }
    }
    return promoted;
}

static bool promote_bonds(qn_layers *l, const qn_mix_constraints *bonds)
{
    bool promoted = false;
    for (size_t i = 0; i < bonds->count; i++) {
        const qn_mix_constraint *bond = &bonds->at[i];
        if (bond->a->bits > bond->b->bits)
            promoted = promote_node(l, bond->b) || promoted;
        else if (!bond->at_most)
            promoted = promote_node(l, bond->a) || promoted;
    }
    return promoted;
}

/* With a layer all those get 16 bits that a chip wants as wide. */
static qn_status obey_rules(qn_layers *l)
{
    for (bool promoted = true; promoted;) {
        qn_mix_constraints bonds;
        qn_quantized_model ruled = {.ctx = NULL};
        qn_quantize_settings settings;
        promoted = false;
        QN_TRY(qn_layers_settings(&settings, l));
        qn_status status = qn_quantize_rules(&ruled, l->search->input, &settings);
        if (status == QN_OK)
            status = qn_mix_constraints_find(&bonds, ruled.quantizer);
        if (status == QN_OK) {
            promoted = promote_bonds(l, &bonds);
            qn_mix_constraints_free(&bonds, ruled.quantizer);
        }
        qn_quantized_model_free(&ruled);
        QN_TRY(status);
    }
    return QN_OK;
}

/* ---- The ends of a chip's network ------------------------------------------------------------ */

static bool writes_output(const qn_layer *layer, const qn_graph *graph)
{
    for (size_t v = 0; v < layer->n_values; v++) {
        for (size_t k = 0; k < graph->n_outputs; k++) {
            if (strcmp(layer->values[v], graph->outputs[k]->name) == 0)
                return true;
        }
    }
    return false;
}

/* Whether boxes and scores share an output, whose 8 bits hide what is lost before: the layers that
 * write outputs get 16 bits, and the method is the one with the least noise then. */
static qn_status promote_ends(double *noise, qn_quantized_model *best, qn_search *s, qn_layers *l)
{
    qn_quantize_settings settings;
    for (size_t i = 0; i < l->count; i++)
        l->at[i].bits = writes_output(&l->at[i], s->input->data->real->graph) ? wider(l) : 0;
    QN_TRY(obey_rules(l));
    QN_TRY(qn_layers_settings(&settings, l));
    QN_TRY(try_method(noise, best, s, &settings, s->asked.params.method->name));
    return try_methods(noise, best, s, &settings);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static qn_status promote_layers(qn_quantized_model *out, qn_search *s, qn_layers *l)
{
    qn_quantized_model mixed;
    QN_TRY(qn_output_check_use_prefixes(
        &s->check, l->asked.rules.profile->fixed_point ? RANKED_FOR_WIDTHS : RANKED));
    QN_TRY(qn_layers_measure(l, &s->check));
    QN_TRY(qn_output_check_use(&s->check, MEASURED));
    QN_TRY(find_fewest(l, &s->check));
    if (l->asked.rules.profile->fixed_point)
        QN_TRY(obey_rules(l));
    else
        sink_islands(l);
    const qn_status status = qn_layers_make(&mixed, l);
    qn_quantized_model_move(out, &mixed);
    return status;
}

/* Layers of a chip that has 8 bits only cannot have more. */
static bool has_remedy(const qn_layers *l)
{
    return l->count > 1 && (!l->asked.rules.profile->fixed_point || wider(l));
}

qn_status qn_mixed_precision_search(qn_quantize_result *out, qn_search *s, qn_layers *layers)
{
    double noise = 0;
    const bool chip = s->asked.rules.profile->fixed_point;
    out->unchecked = may_mix(s) && !s->input->data->fed && !s->input->given;
    if (!may_mix(s) || !has_samples(s))
        return QN_OK;
    QN_TRY(qn_output_check_use(&s->check, CHECKED));
    QN_TRY(check_model(&noise, s, &out->made));
    if (noise > QN_MOST_NOISE && chip) {
        out->mixed = true;
        QN_TRY(try_methods(&noise, &out->made, s, &s->asked));
    }
    if (noise > QN_MOST_NOISE && chip && has_remedy(layers))
        QN_TRY(promote_ends(&noise, &out->made, s, layers));
    if (noise <= QN_MOST_NOISE || !has_remedy(layers))
        return QN_OK;
    out->mixed = true;
    layers->asked.params = out->made.settings.params;
    return promote_layers(&out->made, s, layers);
}
