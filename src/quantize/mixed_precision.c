/* Where 8 bits are too few.
 *
 * The noise of the outputs is measured on the first samples. Where it is small, as with most networks, that is all.
 * Else every layer's harm is: the noise with that layer alone quantized. The most harmful ones stay float, as few as
 * bring the noise down and no more than a share of the network's work. A layer of integers between such ones stays
 * float too, if the share allows it: integers for it alone cost more time than they win. Nothing of it depends on time
 * measured, so the same data give the same file.
 *
 * A chip has no float layers. There other methods are tried first, and then 16 bits, where it has them, for as many
 * layers as it takes: nobody gets a network that has lost its results without having asked for it. */
#include "quantize/mixed_precision.h"

#include <stdlib.h>
#include <string.h>

#include "quant/mix.h"
#include "quantize/layers.h"

enum { CHECKED = 4, MEASURED = 16 }; /* samples */

/* What a remedy is: bits of a layer that 8 are too few for (32: float), the noise beside signal that outputs should come
 * down to, and the share of the network's work that may have it. A chip's short tables leave more noise in 16 bits. */
typedef struct limits {
    int bits;
    double noise, work;
} limits;
static const limits of_engines = {32, 0.015625, 0.1}, of_chips = {16, 0.1, 1};

static limits limits_of(const qn_quantize_job *j)
{
    return j->settings.profile->fixed_point ? of_chips : of_engines;
}

/* Who asks for a width or a method, whichever, gets it. */
static bool may_mend(const qn_quantize_job *j)
{
    const qn_quantize_options *o = j->options;
    return !o->bits && !o->method && !o->dynamic && !j->scales && !j->settings.n_widths && !j->mix;
}

static bool has_samples(const qn_quantize_job *j)
{
    return j->calibration.fed && j->calibration.with_data;
}

static int by_harm(const void *a, const void *b)
{
    const qn_layer *x = a, *y = b;
    const int order = (x->harm < y->harm) - (x->harm > y->harm);
    return order ? order : strcmp(x->node, y->node);
}

static int by_place(const void *a, const void *b)
{
    const qn_layer *x = a, *y = b;
    return (x->place > y->place) - (x->place < y->place);
}

/* ---- The most harmful ones ---------------------------------------------------------------------------------- */

static double work_left(const qn_layers *l)
{
    double all = 0, in_float = 0;
    for (size_t i = 0; i < l->count; i++) {
        all += l->at[i].work;
        in_float += l->at[i].bits ? l->at[i].work : 0;
    }
    return limits_of(l->j).work * all - in_float;
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
        l->at[i].bits = limits_of(l->j).bits;
        count++;
    }
    return count;
}

static qn_status try_first(bool *good, qn_layers *l, const qn_output_check *original, size_t count)
{
    double noise = 0;
    (void)leave_first(l, count);
    QN_TRY(qn_layers_make(l));
    QN_TRY(qn_output_check_noise(&noise, original));
    qn_log(l->j->ctx, QN_LOG_INFO, "%zu of %zu layers have %d bits: noise %.4f of the signal",
           count, l->count, limits_of(l->j).bits, noise);
    *good = noise <= limits_of(l->j).noise;
    return QN_OK;
}

/* The fewest that bring the noise down; all that there is room for where none do. */
static qn_status find_fewest(qn_layers *l, const qn_output_check *original)
{
    qsort(l->at, l->count, sizeof *l->at, by_harm);
    size_t fails = 0, works = leave_first(l, l->count - 1);
    while (works - fails > 1) {
        bool good = false;
        const size_t stride = 2 * fails + 1;
        const size_t tried = stride < works ? stride : fails + (works - fails) / 2;
        QN_TRY(try_first(&good, l, original, tried));
        if (good)
            works = tried;
        else
            fails = tried;
    }
    (void)leave_first(l, works);
    return QN_OK;
}

/* ---- Islands of integers -------------------------------------------------------------------------------------- */

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
        l->at[i].bits = limits_of(l->j).bits;
        left -= l->at[i].work;
    }
}

/* ---- Other methods ------------------------------------------------------------------------------------------- */

/* A chip's own method may be the wrong one for a network: the one with the least noise. */
static qn_status try_methods(double *noise, qn_quantize_job *j, const qn_output_check *original)
{
    static const char *const names[] = {"mse", "percentile", "min_max"};
    const qn_method *best = j->params.method;
    for (size_t i = 0; i < QN_COUNT_OF(names); i++) {
        double tried = 0;
        QN_TRY(qn_method_find(&j->params.method, j->ctx, names[i]));
        QN_TRY(qn_job_make(j));
        QN_TRY(qn_output_check_noise(&tried, original));
        qn_log(j->ctx, QN_LOG_INFO, "%s: noise %.4f of the signal", names[i], tried);
        if (tried >= *noise)
            continue;
        *noise = tried;
        best = j->params.method;
    }
    j->params.method = best;
    return qn_job_make(j);
}

static qn_status check(double *noise, qn_quantize_job *j, const qn_output_check *original)
{
    QN_TRY(qn_output_check_noise(noise, original));
    qn_log(j->ctx, QN_LOG_INFO, "%s: noise %.4f of the signal", j->params.method->name, *noise);
    if (*noise <= QN_MOST_NOISE || !j->settings.profile->fixed_point)
        return QN_OK;
    j->mended = true;
    return try_methods(noise, j, original);
}

/* ---- Rules of mixed widths ------------------------------------------------------------------------------------- */

static bool raise_node(qn_layers *l, const qn_quant_node *n)
{
    bool raised = false;
    for (size_t i = 0; i < l->count && n->bits == 8; i++) {
        qn_layer *layer = &l->at[i];
        for (size_t v = 0; v < layer->n_values && !layer->bits; v++) {
            if (strcmp(layer->values[v], n->node->out[0]->name) == 0) {
                layer->bits = of_chips.bits;
                raised = true;
            }
        }
    }
    return raised;
}

/* With a layer all those get 16 bits that a chip wants as wide. */
static qn_status obey_rules(qn_layers *l)
{
    for (bool raised = true; raised;) {
        qn_mix_bonds bonds;
        raised = false;
        QN_TRY(qn_layers_set(l));
        QN_TRY(qn_job_rules(l->j));
        const qn_status status = qn_mix_bonds_find(&bonds, l->j->quantizer);
        for (size_t i = 0; i < bonds.count && status == QN_OK; i++) {
            const qn_mix_bond *bond = &bonds.at[i];
            if (bond->a->bits > bond->b->bits)
                raised = raise_node(l, bond->b) || raised;
            else if (!bond->at_most)
                raised = raise_node(l, bond->a) || raised;
        }
        qn_mix_bonds_free(&bonds, l->j->quantizer);
        QN_TRY(status);
    }
    return QN_OK;
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

static qn_status mend(qn_layers *l, const qn_output_check *original)
{
    QN_TRY(qn_layers_measure(l, original));
    QN_TRY(find_fewest(l, original));
    if (l->j->settings.profile->fixed_point)
        QN_TRY(obey_rules(l));
    else
        sink_islands(l);
    return qn_layers_make(l);
}

static qn_status with_original(double *noise, qn_layers *l, int64_t samples)
{
    qn_output_check original;
    qn_status status = qn_output_check_open(&original, l->j, samples);
    if (status == QN_OK && !noise)
        status = qn_output_check_use_prefixes(&original);
    if (status == QN_OK)
        status = noise ? check(noise, l->j, &original) : mend(l, &original);
    qn_output_check_free(&original);
    return status;
}

/* Layers of a chip that has 8 bits only cannot have more. */
static bool has_remedy(const qn_layers *l)
{
    const qn_profile *profile = l->j->settings.profile;
    return l->count > 1 && (!profile->fixed_point || qn_profile_wider(profile, 8));
}

qn_status qn_mixed_precision_search(qn_quantize_job *j)
{
    qn_layers layers;
    double noise = 0;
    j->unchecked = may_mend(j) && !j->calibration.fed && !j->given;
    if (!may_mend(j) || !has_samples(j))
        return qn_job_make(j);
    QN_TRY(qn_layers_find(&layers, j));
    QN_TRY(qn_job_make(j));
    QN_TRY(with_original(&noise, &layers, CHECKED));
    if (noise <= QN_MOST_NOISE || !has_remedy(&layers))
        return QN_OK;
    j->mended = true;
    return with_original(NULL, &layers, MEASURED);
}
