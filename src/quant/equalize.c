/* Which factors the channels of a value get. The error of the products that read it is estimated from the statistics
 * for a few rules of how channels could be made alike, and the rule with the least error is taken:
 *
 *   E[k] = sum over channels c of (w[k,c] f[c])^2 N[c]  +  S[k]^2 / 12 * sum over c of P[c] / f[c]^2
 *
 * N: noise of the rounded input, its step squared / 12 (at most the power of the channel), and with one scale for all
 * weights that of the weights before it; S: step of the filter's weights w * f; P: mean square of the channel. Each
 * filter's error counts by its own signal. */
#include <math.h>

#include "ops/eval.h"
#include "quant/balance.h"
#include "quant/params.h"

/* ---- Products that read the value ------------------------------------------------------------------------------ */

/* A weight's taps in one: [dims 0, dims 1] of the weights. */
typedef struct reading {
    qn_carrier at;
    qn_mac mac;
    float *square, *most; /* sum of squares and largest magnitude of the taps */
    float *row;           /* [filters]: largest magnitude */
    double *sums, *peaks; /* [filters]: noise, and largest weight with factors */
    double *signal;       /* [filters]: power of the result, for uncorrelated channels */
    const qn_quant_value *input;
    const qn_stats_entry *entry; /* of the input */
    double *power;               /* [channels of the input], as it is now */
    double *by, *noise;          /* [channels of the input] of the factors being tried */
} reading;

typedef struct search {
    qn_quantizer *q;
    const qn_stats *stats;
    const qn_param_options *options;
    qn_spread spread;
    reading *readings;
    size_t n_readings;
    const qn_quant_value *main; /* the first value of integers that carries the factors */
    qn_carrier main_at;
    double width;   /* of the integers' range around it */
    double *reach;  /* [channels]: largest magnitude that integers have to tell */
    double *weight; /* [channels]: largest weight behind, relative to its filter's */
    double *before; /* [channels]: largest weight of the node before; 0: none that counts */
    double fan_in;  /* sum of squares that a weight before is multiplied with */
    float *factor, *best;
} search;

static bool per_tensor(const search *s, const qn_mac *m)
{
    const qn_profile *p = s->q->settings.profile;
    return m->node->op == &qn_op_ConvTranspose ? !p->per_channel_transposed : !p->per_channel;
}

/* The channel of the value whose factor a channel of a reader's input has; none: as many as there are. */
static int64_t channel_at(const search *s, const qn_carrier *at, int64_t channel)
{
    const int64_t place = channel - at->first;
    if (place < 0)
        return s->spread.channels;
    return QN_MIN(at->repeat == 1 ? place : place / at->repeat, s->spread.channels);
}

static double factor_at(const search *s, const qn_carrier *at, int64_t channel, const float *factor)
{
    const int64_t c = channel_at(s, at, channel);
    return c < s->spread.channels ? (double)factor[c] : 1;
}

/* The larger one; what is no number never is. In loops over all weights, where fmax is a call each. */
static inline double larger(double a, double b)
{
    return b > a ? b : a;
}
static inline float larger_f(float a, float b)
{
    return b > a ? b : a;
}

static const qn_stats_entry *entry_of(const search *s, const qn_value *value, int32_t axis)
{
    const qn_stats_entry *e = qn_stats_find(s->stats, value->name);
    return e && e->axis == axis && e->channels > 0 && e->channels == value->type.dims[axis].value
               ? e
               : NULL;
}

/* What the range leaves of a channel, by both ends. */
static qn_range kept(const qn_quant_value *v, const qn_quant_value *root, const qn_stats_entry *e,
                     int64_t c)
{
    const float by = v->factor ? v->factor[c] : 1;
    return (qn_range){fmaxf(fminf(e->channel_min[c], 0), root->range.min) / by,
                      fminf(fmaxf(e->channel_max[c], 0), root->range.max) / by};
}

/* Rows of the weights are filters, and many enough for several threads. */
static bool is_apart(const qn_mac *m)
{
    return m->filter_first && m->w->dims[0] * m->w->dims[1] > QN_QUANT_ALONE;
}

/* ---- Taking a value apart ---------------------------------------------------------------------------------------- */

/* Row o of the weights, w being its first. */
static void fold_row(reading *r, int64_t o, const float *w)
{
    const qn_mac *m = &r->mac;
    const int64_t second = m->w->dims[1], base = o / (m->w->dims[0] / m->group) * second;
    for (int64_t i = 0; i < second; i++, w += m->kernel) {
        const int64_t at = o * second + i, filter = m->filter_first ? o : base + i;
        float square = 0, most = 0;
        for (int64_t t = 0; t < m->kernel; t++) {
            square += w[t] * w[t];
            most = larger_f(most, fabsf(w[t]));
        }
        r->square[at] = square;
        r->most[at] = most;
        r->row[filter] = larger_f(r->row[filter], most);
        r->signal[filter] += (double)square * r->power[m->filter_first ? base + i : o];
    }
}

static void fold_taps(reading *r, const float *w, int threads)
{
    const int64_t rows = r->mac.w->dims[0], size = r->mac.w->dims[1] * r->mac.kernel;
#pragma omp parallel for num_threads(threads) if (is_apart(&r->mac))
    for (int64_t o = 0; o < rows; o++)
        fold_row(r, o, w + o * size);
}

static qn_status open_reading(reading *r, const search *s, const qn_carrier *at)
{
    qn_context *ctx = s->q->ctx;
    const qn_mac *m = &r->mac;
    float *w;
    r->at = *at;
    const size_t places = (size_t)(m->w->dims[0] * m->w->dims[1]);
    r->square = qn_alloc_zero(ctx, places, sizeof *r->square);
    r->most = qn_alloc_zero(ctx, places, sizeof *r->most);
    r->row = qn_alloc_zero(ctx, (size_t)m->filters, sizeof *r->row);
    r->sums = qn_alloc_zero(ctx, (size_t)m->filters, sizeof *r->sums);
    r->peaks = qn_alloc_zero(ctx, (size_t)m->filters, sizeof *r->peaks);
    r->signal = qn_alloc_zero(ctx, (size_t)m->filters, sizeof *r->signal);
    r->power = qn_alloc_zero(ctx, (size_t)m->channels, sizeof *r->power);
    r->by = qn_alloc_zero(ctx, (size_t)m->channels, sizeof *r->by);
    r->noise = qn_alloc_zero(ctx, (size_t)m->channels, sizeof *r->noise);
    if (!r->square || !r->most || !r->row || !r->sums || !r->peaks || !r->power || !r->by ||
        !r->noise || !r->signal)
        return qn_fail_nomem(ctx);
    for (int64_t c = 0; c < m->channels; c++) {
        const double by = r->input->factor ? (double)r->input->factor[c] : 1;
        r->power[c] = qn_entry_channel_power(r->entry, c) / (by * by);
    }
    QN_TRY(qn_mac_weights(&w, m));
    fold_taps(r, w, ctx->threads);
    qn_free(ctx, w);
    return QN_OK;
}

/* Products of integers that read integers of 8 bits whose channels are known; others just carry the factors. */
static qn_status open_readings(search *s)
{
    s->readings = qn_alloc_zero(s->q->ctx, s->spread.n_readers, sizeof *s->readings);
    QN_TRY_ALLOC(s->q->ctx, s->readings);
    for (size_t i = 0; i < s->spread.n_readers; i++) {
        const qn_carrier *at = &s->spread.readers[i];
        reading *r = &s->readings[s->n_readings];
        r->input = qn_quant_value_of(s->q, at->value);
        r->entry = entry_of(s, at->value, at->axis);
        if (!qn_quant_node_of(s->q, at->reader)->integer || !r->input->integer || !r->entry ||
            !qn_mac_of(&r->mac, at->reader))
            continue;
        s->n_readings++;
        QN_TRY(open_reading(r, s, at));
    }
    return QN_OK;
}

static void find_weight(search *s)
{
    for (size_t i = 0; i < s->n_readings; i++) {
        const reading *r = &s->readings[i];
        const qn_mac *m = &r->mac;
        const int64_t first = m->w->dims[0], second = m->w->dims[1];
        float all = 0;
        for (int64_t k = 0; k < m->filters; k++)
            all = fmaxf(all, r->row[k]);
        const bool one_scale = per_tensor(s, m);
        for (int64_t o = 0; o < first; o++) {
            const int64_t base = o / (first / m->group) * second;
            for (int64_t k = base; k < base + second; k++) {
                const int64_t c = channel_at(s, &r->at, m->filter_first ? k : o);
                const float of = one_scale ? all : r->row[m->filter_first ? o : k];
                const float most = r->most[o * second + k - base];
                if (c < s->spread.channels && of > 0)
                    s->weight[c] = larger(s->weight[c], (double)(most / of));
            }
        }
    }
}

/* With one scale for all weights those of the node before matter too. */
static qn_status find_before(search *s)
{
    const qn_mac *m = &s->spread.mac;
    float *w;
    if (s->spread.norm || !per_tensor(s, m) || !qn_quant_node_of(s->q, m->node)->integer)
        return QN_OK;
    const qn_value *x = m->node->in[0];
    const bool window = m->node->op == &qn_op_Conv || m->node->op == &qn_op_ConvTranspose;
    const qn_stats_entry *e = entry_of(s, x, window ? 1 : x->type.rank - 1);
    const float *by = qn_quant_value_of(s->q, x)->factor;
    for (int64_t c = 0; e && c < e->channels; c++)
        s->fan_in += qn_entry_channel_power(e, c) / (by ? (double)by[c] * (double)by[c] : 1) *
                     (double)m->kernel / (double)m->group;
    QN_TRY(qn_mac_weights(&w, m));
    for (int64_t i = 0; i < m->count; i++) {
        int64_t filter, channel;
        qn_mac_place(m, i, &filter, &channel);
        s->before[filter] = fmax(s->before[filter], (double)fabsf(w[i]));
    }
    qn_free(s->q->ctx, w);
    return QN_OK;
}

/* The range of the integers that carry the factors, and how much of it each channel uses. */
static bool find_main(search *s)
{
    const qn_stats_entry *e = NULL, *whole;
    for (size_t i = 0; i < s->spread.n_values && !e; i++) {
        s->main_at = s->spread.values[i];
        s->main = qn_quant_value_of(s->q, s->main_at.value);
        e = s->main->integer ? entry_of(s, s->main_at.value, s->main_at.axis) : NULL;
    }
    if (!e)
        return false;
    const qn_quant_value *root = qn_quant_root(s->q, s->main);
    const qn_quant_value *source = &s->q->values[root->source];
    whole = entry_of(s, source->value, s->main_at.axis);
    if (root->bits > 8 || !whole)
        return false;
    for (int64_t c = 0; c < whole->channels; c++) {
        const qn_range end = kept(source, root, whole, c);
        s->width = fmax(s->width, fmax((double)end.max, -(double)end.min));
    }
    for (int64_t c = 0; c < s->spread.channels * s->main_at.repeat; c++) {
        const qn_range end = kept(s->main, root, e, s->main_at.first + c);
        double *reach = &s->reach[c / s->main_at.repeat];
        *reach = fmax(*reach, fmax((double)end.max, -(double)end.min));
    }
    return s->width > 0;
}

/* ---- The error of a choice --------------------------------------------------------------------------------------- */

static double step_of_input(const search *s, const reading *r)
{
    const qn_quant_value *root = qn_quant_root(s->q, r->input);
    double least = 0, most = 0;
    for (int64_t c = 0; c < r->mac.channels; c++) {
        const qn_range end = kept(r->input, root, r->entry, c);
        most = fmax(most, (double)end.max / r->by[c]);
        least = fmin(least, (double)end.min / r->by[c]);
    }
    const double levels = root->bits > 8 ? 65535 : 255;
    return s->q->settings.profile->symmetric ? 2 * fmax(most, -least) / levels
                                             : (most - least) / levels;
}

static double noise_before(const search *s, const float *factor)
{
    double most = 0;
    for (int64_t c = 0; c < s->spread.channels; c++)
        most = fmax(most, s->before[c] / (double)factor[c]);
    return most * most / (127.0 * 127.0 * 12) * s->fan_in;
}

static void try_factors(reading *r, const search *s, const float *factor)
{
    const double before = noise_before(s, factor);
    for (int64_t c = 0; c < r->mac.channels; c++)
        r->by[c] = factor_at(s, &r->at, c, factor);
    const double step = step_of_input(s, r);
    for (int64_t c = 0; c < r->mac.channels; c++)
        r->noise[c] = fmin(step * step / 12 + before, r->power[c] / (r->by[c] * r->by[c]));
}

/* Row o of the weights, which is one filter. */
static void sum_filter(reading *r, int64_t o)
{
    const qn_mac *m = &r->mac;
    const int64_t second = m->w->dims[1], base = o / (m->w->dims[0] / m->group) * second;
    const double *by = r->by + base, *noise = r->noise + base;
    const float *square = r->square + o * second, *most = r->most + o * second;
    double sum = 0, peak = 0;
    for (int64_t i = 0; i < second; i++) {
        sum += (double)square[i] * by[i] * by[i] * noise[i];
        peak = larger(peak, (double)most[i] * by[i]);
    }
    r->sums[o] = sum;
    r->peaks[o] = peak;
}

/* Row o of the weights, which is one channel. */
static void sum_channel(reading *r, int64_t o)
{
    const qn_mac *m = &r->mac;
    const int64_t second = m->w->dims[1], base = o / (m->w->dims[0] / m->group) * second;
    const double by = r->by[o];
    for (int64_t i = 0; i < second; i++) {
        const int64_t at = o * second + i;
        r->sums[base + i] += (double)r->square[at] * by * by * r->noise[o];
        r->peaks[base + i] = larger(r->peaks[base + i], (double)r->most[at] * by);
    }
}

static void sum_filters(reading *r, int threads)
{
    const int64_t rows = r->mac.w->dims[0];
    for (int64_t k = 0; k < r->mac.filters; k++)
        r->sums[k] = r->peaks[k] = 0;
    for (int64_t o = 0; o < rows && !r->mac.filter_first; o++)
        sum_channel(r, o);
    if (!r->mac.filter_first)
        return;
#pragma omp parallel for num_threads(threads) if (is_apart(&r->mac))
    for (int64_t o = 0; o < rows; o++)
        sum_filter(r, o);
}

static double error_of(const reading *r, bool one_scale)
{
    const qn_mac *m = &r->mac;
    const int64_t filters = m->filters / m->group, channels = m->channels / m->group;
    double error = 0, all = 0;
    for (int64_t k = 0; k < m->filters; k++)
        all = fmax(all, r->peaks[k]);
    for (int64_t g = 0; g < m->group; g++) {
        double power = 0;
        for (int64_t c = g * channels; c < (g + 1) * channels; c++)
            power += r->power[c] / (r->by[c] * r->by[c]);
        for (int64_t k = g * filters; k < (g + 1) * filters; k++) {
            const double step = (one_scale ? all : r->peaks[k]) / 127;
            const double noise = r->sums[k] + step * step / 12 * power * (double)m->kernel;
            error += r->signal[k] > 0 ? noise / r->signal[k] : 0;
        }
    }
    return error / (double)m->filters;
}

/* Over all products that read. */
static double estimate(search *s, const float *factor)
{
    double error = 0;
    for (size_t i = 0; i < s->n_readings; i++) {
        reading *r = &s->readings[i];
        try_factors(r, s, factor);
        sum_filters(r, s->q->ctx->threads);
        error += error_of(r, per_tensor(s, &r->mac));
    }
    return error;
}

/* ---- Rules --------------------------------------------------------------------------------------------------------- */

/* f = (range of the channel)^range / (weights behind)^weight. The range is that of the activations, or of the weights
 * before (cross-layer equalization, for targets with one scale for all weights). */
typedef struct rule {
    double range, weight;
    bool of_weights;
} rule;
static const rule rules[] = {
    {0.25, 0.25, false}, {0.5, 0.25, false}, {0.5, 0.5, false}, {0.5, 0.5, true}};

/* What a channel did not reach in these data it may in others: one that is made larger leaves a third of the range
 * free, and what hardly showed itself is not made larger without end. */
static const double spare = 1.5, least_factor = 0x1p-12;

/* The factors leave the range of the integers as it is: what is small is made larger. */
static bool fill(search *s, const rule *by)
{
    double most = 0;
    for (int64_t c = 0; c < s->spread.channels; c++) {
        const double range = by->of_weights ? s->before[c] : s->reach[c];
        const bool dead = !(range > 0) || !(s->weight[c] > 0) || !(s->reach[c] > 0);
        s->factor[c] = dead ? 0 : (float)(pow(range, by->range) / pow(s->weight[c], by->weight));
        if (s->factor[c] > 0)
            most = fmax(most, s->reach[c] / (double)s->factor[c]);
    }
    for (int64_t c = 0; c < s->spread.channels && most > 0; c++) {
        const double f = s->factor[c] > 0 ? (double)s->factor[c] * most / s->width : 1;
        const double apart = f < 1 ? fmin(f * spare, 1) : f;
        const double clear = fmin(fmax(apart, least_factor), 1 / least_factor);
        const bool cut = s->spread.limited && s->reach[c] > 0.999 * s->width;
        s->factor[c] = (float)(cut ? fmin(clear, 1) : clear);
    }
    return most > 0;
}

/* An error that is smaller by less than this is no reason to change a network. */
static const double least_gain = 0.1;

static bool choose(search *s, qn_refined *told)
{
    bool found = false;
    for (int64_t c = 0; c < s->spread.channels; c++)
        s->factor[c] = 1;
    const double plain = estimate(s, s->factor);
    double least = plain * (1 - least_gain);
    for (size_t i = 0; i < QN_COUNT_OF(rules); i++) {
        if (!fill(s, &rules[i]))
            continue;
        const double error = estimate(s, s->factor);
        if (!(error < least))
            continue;
        least = error;
        found = true;
        float *swap = s->best;
        s->best = s->factor;
        s->factor = swap;
    }
    if (found) {
        told->before += plain;
        told->after += least;
    }
    return found;
}

/* ---- One value, all values ------------------------------------------------------------------------------------------ */

static void close_search(search *s)
{
    qn_context *ctx = s->q->ctx;
    for (size_t i = 0; s->readings && i < s->spread.n_readers; i++) {
        qn_free(ctx, s->readings[i].square);
        qn_free(ctx, s->readings[i].most);
        qn_free(ctx, s->readings[i].row);
        qn_free(ctx, s->readings[i].sums);
        qn_free(ctx, s->readings[i].peaks);
        qn_free(ctx, s->readings[i].signal);
        qn_free(ctx, s->readings[i].power);
        qn_free(ctx, s->readings[i].by);
        qn_free(ctx, s->readings[i].noise);
    }
    qn_free(ctx, s->readings);
    qn_free(ctx, s->reach);
    qn_free(ctx, s->weight);
    qn_free(ctx, s->before);
    qn_free(ctx, s->factor);
    qn_free(ctx, s->best);
}

static qn_status look(bool *found, search *s, qn_refined *told)
{
    const size_t channels = (size_t)s->spread.channels;
    s->reach = qn_alloc_zero(s->q->ctx, channels, sizeof *s->reach);
    s->weight = qn_alloc_zero(s->q->ctx, channels, sizeof *s->weight);
    s->before = qn_alloc_zero(s->q->ctx, channels, sizeof *s->before);
    s->factor = qn_alloc_zero(s->q->ctx, channels, sizeof *s->factor);
    s->best = qn_alloc_zero(s->q->ctx, channels, sizeof *s->best);
    if (!s->reach || !s->weight || !s->before || !s->factor || !s->best)
        return qn_fail_nomem(s->q->ctx);
    if (!find_main(s))
        return QN_OK;
    QN_TRY(open_readings(s));
    if (s->n_readings == 0)
        return QN_OK;
    find_weight(s);
    QN_TRY(find_before(s));
    *found = choose(s, told);
    return QN_OK;
}

static qn_status keep(qn_quantizer *q, const search *s)
{
    qn_derived *d = &q->derived;
    QN_TRY_GROW(q->ctx, d->balances, d->balances_capacity, d->n_balances + 1);
    qn_derived_balance *b = &d->balances[d->n_balances];
    *b = (qn_derived_balance){.name = s->spread.value->name, .channels = s->spread.channels};
    b->factor = qn_arena_array(&q->arena, (size_t)b->channels, sizeof *b->factor);
    QN_TRY_ALLOC(q->ctx, b->factor);
    for (int64_t c = 0; c < b->channels; c++)
        b->factor[c] = s->best[c];
    d->n_balances++;
    return qn_balance_apply(q, b);
}

/* Matrices, and what a normalization makes, are balanced; windows are equalized. */
static bool is_matrix(const qn_spread *s)
{
    bool matrix = s->norm != NULL;
    for (size_t i = 0; i < s->n_readers; i++)
        matrix = matrix || s->readers[i].reader->op == &qn_op_MatMul ||
                 s->readers[i].reader->op == &qn_op_Gemm;
    return matrix;
}

static qn_status balance_value(bool *found, search *s, qn_value *value)
{
    const qn_param_options *o = s->options;
    if (!value || !qn_spread_of(&s->spread, value))
        return QN_OK;
    const bool matrix = is_matrix(&s->spread);
    if (matrix ? !o->balance : !o->equalize)
        return QN_OK;
    qn_refined *told = &s->q->refined[matrix ? QN_REFINE_BALANCING : QN_REFINE_EQUALIZATION];
    qn_status status = look(found, s, told);
    if (status == QN_OK && *found) {
        told->layers += (int64_t)s->n_readings;
        status = keep(s->q, s);
    }
    close_search(s);
    return status;
}

/* With one scale for all weights of a node what is done to one value changes what is best for the next. */
enum { ROUNDS = 8 };

qn_status qn_equalize(qn_quantizer *q, const qn_stats *stats, const qn_param_options *options)
{
    const int rounds = q->settings.profile->per_channel ? 1 : ROUNDS;
    bool any = options->equalize || options->balance;
    for (int round = 0; round < rounds && any; round++) {
        any = false;
        for (size_t i = 0; i < q->n_nodes; i++) {
            search s = {.q = q, .stats = stats, .options = options};
            bool found = false;
            QN_TRY(qn_check_cancel(q->ctx));
            QN_TRY(balance_value(&found, &s,
                                 q->nodes[i].node->n_out ? q->nodes[i].node->out[0] : NULL));
            any = any || found;
        }
    }
    return QN_OK;
}
