/* Where 8 bits are too few.
 *
 * The noise of the outputs is measured on the first samples. Where it is small, as with most networks, that is all.
 * Else every layer's harm is: the noise with that layer alone quantized. The most harmful ones stay float, as few as
 * bring the noise down and no more than a share of the network's work. A layer of integers between such ones stays
 * float too, if the share allows it: integers for it alone cost more time than they win. Nothing of it depends on time
 * measured, so the same data give the same file. */
#include "api/mend.h"

#include <stdlib.h>
#include <string.h>

#include "api/layers.h"

enum { CHECKED = 4, MEASURED = 16 }; /* samples */
/* Noise beside signal that an output may have, and that it should come down to where it has more. */
static const double most_noise = 0.125, good_noise = 0.015625;
/* Of the network's work that may stay float. */
static const double most_work = 0.1;

/* Who asks for a width or a method, whichever, gets it. Chips compute with integers. */
static bool may_mend(const qn_quantize_job *j)
{
    const qn_quantize_options *o = j->options;
    return !j->settings.profile->fixed_point && !o->bits && !o->method && !o->dynamic &&
           !j->scales && !j->settings.n_widths && !j->mix;
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
        in_float += l->at[i].bits == 32 ? l->at[i].work : 0;
    }
    return most_work * all - in_float;
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
        l->at[i].bits = 32;
        count++;
    }
    return count;
}

static qn_status try_first(bool *good, qn_layers *l, const qn_original *original, size_t count)
{
    double noise = 0;
    (void)leave_first(l, count);
    QN_TRY(qn_layers_make(l));
    QN_TRY(qn_original_noise(&noise, original));
    qn_log(l->j->ctx, QN_LOG_INFO, "%zu of %zu layers in float: noise %.4f of the signal", count,
           l->count, noise);
    *good = noise <= good_noise;
    return QN_OK;
}

/* The fewest that bring the noise down; all that there is room for where none do. */
static qn_status find_fewest(qn_layers *l, const qn_original *original)
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
        if (l->at[from == place ? to : from].bits != 32)
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
        if (l->at[i].bits == 32 || l->at[i].work > left || !is_island(l, i))
            continue;
        l->at[i].bits = 32;
        left -= l->at[i].work;
    }
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

static qn_status mend(qn_layers *l, const qn_original *original)
{
    QN_TRY(qn_layers_measure(l, original));
    QN_TRY(find_fewest(l, original));
    sink_islands(l);
    return qn_layers_make(l);
}

static qn_status with_original(double *noise, qn_layers *l, int64_t samples)
{
    qn_original original;
    qn_status status = qn_original_make(&original, l->j, samples);
    if (status == QN_OK && !noise)
        status = qn_original_keep_starts(&original);
    if (status == QN_OK)
        status = noise ? qn_original_noise(noise, &original) : mend(l, &original);
    qn_original_free(&original);
    return status;
}

qn_status qn_mend(qn_quantize_job *j)
{
    qn_layers layers;
    double noise = 0;
    j->unchecked = may_mend(j) && !j->calibration.fed && !j->given;
    if (!may_mend(j) || !has_samples(j))
        return qn_job_make(j);
    QN_TRY(qn_layers_find(&layers, j));
    QN_TRY(qn_job_make(j));
    QN_TRY(with_original(&noise, &layers, CHECKED));
    qn_log(j->ctx, QN_LOG_INFO, "8 bits: noise %.4f of the signal", noise);
    if (noise <= most_noise || layers.count < 2)
        return QN_OK;
    j->mended = true;
    QN_TRY(with_original(NULL, &layers, MEASURED));
    QN_TRY(with_original(&noise, &layers, CHECKED));
    j->noisy = noise > most_noise;
    return QN_OK;
}
