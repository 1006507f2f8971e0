/* The search for factors of channels: a few rules of how channels could be made alike are tried,
 * and the one with the least error of the products behind (smooth_error.h) is taken. */
#include <math.h>

#include "quant/smooth_error.h"

typedef struct search {
    qn_quantizer *q;
    const qn_stats *stats;
    const qn_param_options *options;
    qn_smooth_region region;
    qn_smooth_error error;
    /* The first integer value that the factors scale. */
    const qn_quant_value *main;
    qn_smooth_member main_at;
    /* The largest magnitude in the range of its integers. */
    double width;
    /* [channels], the largest magnitude of each channel that the range keeps. */
    double *reach;
    /* [channels], the largest weight that reads the channel, relative to its filter's largest. */
    double *weight;
    float *factor, *best;
} search;

/* The range of the integers that carry the factors, and how much of it each channel uses. */
static bool find_main(search *s)
{
    const qn_stats_entry *e = NULL, *whole;
    for (size_t i = 0; i < s->region.n_values && !e; i++) {
        s->main_at = s->region.values[i];
        s->main = qn_quant_value_of(s->q, s->main_at.value);
        e = s->main->integer ? qn_smooth_entry(s->stats, s->main_at.value, s->main_at.axis) : NULL;
    }
    if (!e)
        return false;
    const qn_quant_value *root = qn_quant_root(s->q, s->main);
    const qn_quant_value *source = &s->q->values[root->source];
    whole = qn_smooth_entry(s->stats, source->value, s->main_at.axis);
    if (qn_width_is_fine(qn_width_of_bits(root->bits)) || !whole)
        return false;
    for (int64_t c = 0; c < whole->channels; c++) {
        const qn_range end = qn_smooth_kept_range(source, root, whole, c);
        s->width = fmax(s->width, fmax((double)end.max, -(double)end.min));
    }
    for (int64_t c = 0; c < s->region.channels * s->main_at.repeat; c++) {
        const qn_range end = qn_smooth_kept_range(s->main, root, e, s->main_at.first + c);
        double *reach = &s->reach[c / s->main_at.repeat];
        *reach = fmax(*reach, fmax((double)end.max, -(double)end.min));
    }
    return s->width > 0;
}

/* ---- Rules ----------------------------------------------------------------------------------- */

/* f = (range of the channel)^range / (weights behind)^weight. The range is that of the activations,
 * or of the weights before (cross-layer equalization, for targets with one scale for all
 * weights). */
typedef struct rule {
    double range, weight;
    bool of_weights;
} rule;
static const rule rules[] = {
    {0, 0, false}, {0.25, 0.25, false}, {0.5, 0.25, false}, {0.5, 0.5, false}, {0.5, 0.5, true}};

/* What a channel did not reach in these data it may in others: one that is made larger leaves a
 * third of the range free, and what hardly showed itself is not made larger without end. */
static const double spare = 1.5, least_factor = 0x1p-12;

/* The factors leave the range of the integers as it is: what is small is made larger. */
static bool fill(search *s, const rule *by)
{
    double most = 0;
    for (int64_t c = 0; c < s->region.channels; c++) {
        const double range = by->of_weights ? s->error.before[c] : s->reach[c];
        const bool dead = !(range > 0) || !(s->weight[c] > 0) || !(s->reach[c] > 0);
        s->factor[c] = dead ? 0 : (float)(pow(range, by->range) / pow(s->weight[c], by->weight));
        if (s->factor[c] > 0)
            most = fmax(most, s->reach[c] / (double)s->factor[c]);
    }
    for (int64_t c = 0; c < s->region.channels && most > 0; c++) {
        const double f = s->factor[c] > 0 ? (double)s->factor[c] * most / s->width : 1;
        const double apart = f < 1 ? fmin(f * spare, 1) : f;
        const double clear = fmin(fmax(apart, least_factor), 1 / least_factor);
        const bool cut = s->region.limited && s->reach[c] > 0.999 * s->width;
        s->factor[c] = (float)(cut ? fmin(clear, 1) : clear);
    }
    return most > 0;
}

/* An error that is smaller by less than this is no reason to change a network. */
static const double least_gain = 0.1;

static bool take_if_less(search *s, double *least, double error)
{
    if (!(error < *least))
        return false;
    *least = error;
    for (int64_t c = 0; c < s->region.channels; c++)
        s->best[c] = s->factor[c];
    return true;
}

static double make_smaller(search *s)
{
    double most = 0;
    for (int64_t c = 0; c < s->region.channels; c++) {
        s->factor[c] *= 4;
        most = fmax(most, (double)s->factor[c]);
    }
    return most;
}

/* Scales all channels down together where the value shares its range with others, as in a Concat,
 * which then have more of the range for themselves. */
static bool take_smaller(search *s, double *least, double error)
{
    bool found = false, better = s->error.has_other_channels && !s->region.limited;
    while (better && make_smaller(s) <= 1 / least_factor) {
        const double last = error;
        error = qn_smooth_error_of(&s->error, s->factor);
        found = take_if_less(s, least, error) || found;
        better = error < last;
    }
    return found;
}

static bool choose(search *s, qn_refined *refined)
{
    bool found = false;
    for (int64_t c = 0; c < s->region.channels; c++)
        s->factor[c] = 1;
    const double plain = qn_smooth_error_of(&s->error, s->factor);
    double least = plain * (1 - least_gain);
    for (size_t i = 0; i < QN_COUNT_OF(rules); i++) {
        const bool changes = rules[i].range > 0 || s->error.has_other_channels;
        if (!changes || !fill(s, &rules[i]))
            continue;
        const double error = qn_smooth_error_of(&s->error, s->factor);
        found = take_if_less(s, &least, error) || found;
        found = take_smaller(s, &least, error) || found;
    }
    if (found) {
        refined->before += plain;
        refined->after += least;
    }
    return found;
}

/* ---- One value, all values ------------------------------------------------------------------- */

static void close_search(search *s)
{
    qn_context *ctx = s->q->ctx;
    qn_smooth_error_close(&s->error);
    qn_free(ctx, s->reach);
    qn_free(ctx, s->weight);
    qn_free(ctx, s->factor);
    qn_free(ctx, s->best);
}

static qn_status look(bool *found, search *s, qn_refined *refined)
{
    const size_t channels = (size_t)s->region.channels;
    s->reach = qn_alloc_zero(s->q->ctx, channels, sizeof *s->reach);
    s->weight = qn_alloc_zero(s->q->ctx, channels, sizeof *s->weight);
    s->factor = qn_alloc_zero(s->q->ctx, channels, sizeof *s->factor);
    s->best = qn_alloc_zero(s->q->ctx, channels, sizeof *s->best);
    if (!s->reach || !s->weight || !s->factor || !s->best)
        return qn_fail_nomem(s->q->ctx);
    if (!find_main(s))
        return QN_OK;
    QN_TRY(qn_smooth_error_open(&s->error));
    if (s->error.n_readings == 0)
        return QN_OK;
    qn_smooth_error_weights(s->weight, &s->error);
    *found = choose(s, refined);
    return QN_OK;
}

static qn_status keep(qn_quantizer *q, const search *s)
{
    qn_encodings *d = &q->encodings;
    QN_TRY_GROW(q->ctx, d->smoothed, d->smoothed_capacity, d->n_smoothed + 1);
    qn_channel_factors *b = &d->smoothed[d->n_smoothed];
    *b = (qn_channel_factors){.name = s->region.value->name, .channels = s->region.channels};
    b->factor = qn_arena_array(&q->arena, (size_t)b->channels, sizeof *b->factor);
    QN_TRY_ALLOC(q->ctx, b->factor);
    for (int64_t c = 0; c < b->channels; c++)
        b->factor[c] = s->best[c];
    d->n_smoothed++;
    return qn_smooth_apply(q, b);
}

/* Whether the value is smoothed, since a matrix product reads it or a LayerNormalization computes
 * it; values between convolutions are equalized. */
static bool is_matrix(const qn_smooth_region *s)
{
    bool matrix = s->norm != NULL;
    for (size_t i = 0; i < s->n_readers; i++)
        matrix = matrix || s->readers[i].reader->op == &qn_op_MatMul ||
                 s->readers[i].reader->op == &qn_op_Gemm;
    return matrix;
}

static qn_status search_factors(bool *found, search *s, qn_value *value)
{
    const qn_param_options *o = s->options;
    if (!value || !qn_smooth_region_of(&s->region, value))
        return QN_OK;
    const bool matrix = is_matrix(&s->region);
    if (matrix ? !o->smooth_channels : !o->equalize)
        return QN_OK;
    qn_refined *refined = &s->q->refined[matrix ? QN_REFINE_SMOOTHING : QN_REFINE_EQUALIZATION];
    qn_status status = look(found, s, refined);
    if (status == QN_OK && *found) {
        refined->layers += (int64_t)s->error.n_readings;
        status = keep(s->q, s);
    }
    close_search(s);
    return status;
}

/* Where a node has one scale for all weights, factors of one value change what is best for the
 * next, so the values are visited in rounds. */
enum { ROUNDS = 8 };

qn_status qn_equalize(qn_quantizer *q, const qn_stats *stats, const qn_param_options *options)
{
    const int rounds = q->settings.profile->per_channel ? 1 : ROUNDS;
    bool any = options->equalize || options->smooth_channels;
    for (int round = 0; round < rounds && any; round++) {
        any = false;
        for (size_t i = 0; i < q->n_nodes; i++) {
            search s = {.q = q, .stats = stats, .options = options};
            s.error = (qn_smooth_error){.q = q, .stats = stats, .region = &s.region};
            bool found = false;
            QN_TRY(qn_check_cancel(q->ctx));
            QN_TRY(search_factors(&found, &s,
                                  q->nodes[i].node->n_out ? q->nodes[i].node->out[0] : NULL));
            any = any || found;
        }
    }
    return QN_OK;
}
