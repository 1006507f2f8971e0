/* The error that factors of channels lead to, estimated from statistics. */
#include "quant/smooth_error.h"

#include <math.h>

#include "ops/eval.h"
#include "ops/kinds.h"

/* A weight's taps in one: [dims 0, dims 1] of the weights. */
struct qn_smooth_reader {
    qn_smooth_member at;
    qn_weighted_node layer;
    /* Sum of squares and largest magnitude of the taps */
    float *square, *most;
    /* [filters]: largest magnitude */
    float *row;
    /* [filters]: noise, and largest weight with factors */
    double *sums, *peaks;
    /* [filters]: power of the result, for uncorrelated channels */
    double *signal;
    const qn_quant_value *input;
    /* The statistics of the input. */
    const qn_stats_entry *entry;
    /* [channels of the input], as it is now */
    double *power;
    /* [channels of the input] of the factors being tried */
    double *by, *noise;
};

static bool per_tensor(const qn_smooth_error *e, const qn_weighted_node *m)
{
    const qn_profile *p = e->q->settings.profile;
    return m->node->op == &qn_op_ConvTranspose ? !p->per_channel_transposed : !p->per_channel;
}

/* The channel of the value whose factor a channel of a reader's input has; none: as many as there
 * are. */
static int64_t channel_at(const qn_smooth_error *e, const qn_smooth_member *at, int64_t channel)
{
    const int64_t place = channel - at->first;
    if (place < 0)
        return e->region->channels;
    return QN_MIN(at->repeat == 1 ? place : place / at->repeat, e->region->channels);
}

static double factor_at(const qn_smooth_error *e, const qn_smooth_member *at, int64_t channel,
                        const float *factor)
{
    const int64_t c = channel_at(e, at, channel);
    return c < e->region->channels ? (double)factor[c] : 1;
}

/* The larger one; what is no number never is. In loops over all weights, where fmax is a call
 * each. */
static inline double larger(double a, double b)
{
    return b > a ? b : a;
}
static inline float larger_f(float a, float b)
{
    return b > a ? b : a;
}

const qn_stats_entry *qn_smooth_entry(const qn_stats *stats, const qn_value *value, int32_t axis)
{
    const qn_stats_entry *e = qn_stats_find(stats, value->name);
    return e && e->axis == axis && e->channels > 0 && e->channels == value->type.dims[axis].value
               ? e
               : NULL;
}

qn_range qn_smooth_kept_range(const qn_quant_value *v, const qn_quant_value *root,
                              const qn_stats_entry *e, int64_t c)
{
    const float by = v->factor ? v->factor[c] : 1;
    return (qn_range){fmaxf(fminf(e->channel_min[c], 0), root->range.min) / by,
                      fminf(fmaxf(e->channel_max[c], 0), root->range.max) / by};
}

/* Rows of the weights are filters, and many enough for several threads. */
static bool is_apart(const qn_weighted_node *m)
{
    return m->filter_first && m->w->dims[0] * m->w->dims[1] > QN_WEIGHTS_PER_THREAD;
}

/* ---- Taking a value apart -------------------------------------------------------------------- */

/* Row o of the weights, w being its first. */
static void fold_row(qn_smooth_reader *r, int64_t o, const float *w)
{
    const qn_weighted_node *m = &r->layer;
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

static void fold_taps(qn_smooth_reader *r, const float *w, int threads)
{
    const int64_t rows = r->layer.w->dims[0], size = r->layer.w->dims[1] * r->layer.kernel;
#pragma omp parallel for num_threads(threads) if (is_apart(&r->layer))
    for (int64_t o = 0; o < rows; o++)
        fold_row(r, o, w + o * size);
}

/* All arrays of a reader, in one block per type. */
static bool take_arrays(qn_smooth_reader *r, qn_arena *arena)
{
    const qn_weighted_node *m = &r->layer;
    const size_t places = (size_t)(m->w->dims[0] * m->w->dims[1]);
    const size_t filters = (size_t)m->filters, channels = (size_t)m->channels;
    float *f = qn_arena_array(arena, 2 * places + filters, sizeof *f);
    double *d = qn_arena_array(arena, 3 * filters + 3 * channels, sizeof *d);
    if (!f || !d)
        return false;
    r->square = f;
    r->most = r->square + places;
    r->row = r->most + places;
    r->sums = d;
    r->peaks = r->sums + filters;
    r->signal = r->peaks + filters;
    r->power = r->signal + filters;
    r->by = r->power + channels;
    r->noise = r->by + channels;
    return true;
}

static qn_status open_reading(qn_smooth_reader *r, qn_smooth_error *e, const qn_smooth_member *at)
{
    qn_context *ctx = e->q->ctx;
    const qn_weighted_node *m = &r->layer;
    float *w;
    r->at = *at;
    if (!take_arrays(r, &e->arena))
        return qn_fail_nomem(ctx);
    for (int64_t c = 0; c < m->channels; c++) {
        const double by = r->input->factor ? (double)r->input->factor[c] : 1;
        r->power[c] = qn_entry_channel_power(r->entry, c) / (by * by);
    }
    QN_TRY(qn_weighted_node_weights(&w, m));
    fold_taps(r, w, ctx->threads);
    qn_free(ctx, w);
    return QN_OK;
}

/* Products of integers that read integers of 8 bits whose channels are known; others just carry the
 * factors. */
static qn_status open_readings(qn_smooth_error *e)
{
    e->readings = qn_arena_array(&e->arena, e->region->n_readers, sizeof *e->readings);
    QN_TRY_ALLOC(e->q->ctx, e->readings);
    for (size_t i = 0; i < e->region->n_readers; i++) {
        const qn_smooth_member *at = &e->region->readers[i];
        qn_smooth_reader *r = &e->readings[e->n_readings];
        r->input = qn_quant_value_of(e->q, at->value);
        r->entry = qn_smooth_entry(e->stats, at->value, at->axis);
        if (!qn_quant_node_of(e->q, at->reader)->integer || !r->input->integer || !r->entry ||
            !qn_weighted_node_of(&r->layer, at->reader))
            continue;
        e->n_readings++;
        e->has_other_channels =
            e->has_other_channels || r->layer.channels > e->region->channels * at->repeat;
        QN_TRY(open_reading(r, e, at));
    }
    return QN_OK;
}

/* Finds the weights of the node before, which matter where that node has one scale for all
 * weights. */
static qn_status find_before(qn_smooth_error *e)
{
    const qn_weighted_node *m = &e->region->layer;
    float *w;
    if (e->region->norm || !per_tensor(e, m) || !qn_quant_node_of(e->q, m->node)->integer)
        return QN_OK;
    const qn_value *x = m->node->in[0];
    const bool window = qn_op_is_convolution(m->node->op);
    const qn_stats_entry *known = qn_smooth_entry(e->stats, x, window ? 1 : x->type.rank - 1);
    const float *by = qn_quant_value_of(e->q, x)->factor;
    for (int64_t c = 0; known && c < known->channels; c++)
        e->fan_in += qn_entry_channel_power(known, c) / (by ? (double)by[c] * (double)by[c] : 1) *
                     (double)m->kernel / (double)m->group;
    QN_TRY(qn_weighted_node_weights(&w, m));
    for (int64_t i = 0; i < m->count; i++) {
        int64_t filter, channel;
        qn_weight_position(m, i, &filter, &channel);
        e->before[filter] = fmax(e->before[filter], (double)fabsf(w[i]));
    }
    qn_free(e->q->ctx, w);
    return QN_OK;
}

void qn_smooth_error_weights(double *weight, const qn_smooth_error *e)
{
    for (size_t i = 0; i < e->n_readings; i++) {
        const qn_smooth_reader *r = &e->readings[i];
        const qn_weighted_node *m = &r->layer;
        const int64_t first = m->w->dims[0], second = m->w->dims[1];
        float all = 0;
        for (int64_t k = 0; k < m->filters; k++)
            all = fmaxf(all, r->row[k]);
        const bool one_scale = per_tensor(e, m);
        for (int64_t o = 0; o < first; o++) {
            const int64_t base = o / (first / m->group) * second;
            for (int64_t k = base; k < base + second; k++) {
                const int64_t c = channel_at(e, &r->at, m->filter_first ? k : o);
                const float of = one_scale ? all : r->row[m->filter_first ? o : k];
                const float most = r->most[o * second + k - base];
                if (c < e->region->channels && of > 0)
                    weight[c] = larger(weight[c], (double)(most / of));
            }
        }
    }
}

qn_status qn_smooth_error_open(qn_smooth_error *e)
{
    qn_arena_init(&e->arena, &e->q->ctx->allocator);
    e->before = qn_arena_array(&e->arena, (size_t)e->region->channels, sizeof *e->before);
    QN_TRY_ALLOC(e->q->ctx, e->before);
    QN_TRY(open_readings(e));
    return e->n_readings ? find_before(e) : QN_OK;
}

void qn_smooth_error_close(qn_smooth_error *e)
{
    qn_arena_free(&e->arena);
}

/* ---- The error of a choice ------------------------------------------------------------------- */

static double step_of_input(const qn_smooth_error *e, const qn_smooth_reader *r)
{
    const qn_quant_value *root = qn_quant_root(e->q, r->input);
    double least = 0, most = 0;
    for (int64_t c = 0; c < r->layer.channels; c++) {
        const qn_range end = qn_smooth_kept_range(r->input, root, r->entry, c);
        most = fmax(most, (double)end.max / r->by[c]);
        least = fmin(least, (double)end.min / r->by[c]);
    }
    const double levels = (double)(qn_width_count(qn_width_of_bits(root->bits)) - 1);
    return e->q->settings.profile->symmetric ? 2 * fmax(most, -least) / levels
                                             : (most - least) / levels;
}

static double noise_before(const qn_smooth_error *e, const float *factor)
{
    double most = 0;
    for (int64_t c = 0; c < e->region->channels; c++)
        most = fmax(most, e->before[c] / (double)factor[c]);
    return most * most / (127.0 * 127.0 * 12) * e->fan_in;
}

static void try_factors(qn_smooth_reader *r, const qn_smooth_error *e, const float *factor)
{
    const double before = noise_before(e, factor);
    for (int64_t c = 0; c < r->layer.channels; c++)
        r->by[c] = factor_at(e, &r->at, c, factor);
    const double step = step_of_input(e, r);
    for (int64_t c = 0; c < r->layer.channels; c++)
        r->noise[c] = fmin(step * step / 12 + before, r->power[c] / (r->by[c] * r->by[c]));
}

/* Row o of the weights, which is one filter. */
static void sum_filter(qn_smooth_reader *r, int64_t o)
{
    const qn_weighted_node *m = &r->layer;
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
static void sum_channel(qn_smooth_reader *r, int64_t o)
{
    const qn_weighted_node *m = &r->layer;
    const int64_t second = m->w->dims[1], base = o / (m->w->dims[0] / m->group) * second;
    const double by = r->by[o];
    for (int64_t i = 0; i < second; i++) {
        const int64_t at = o * second + i;
        r->sums[base + i] += (double)r->square[at] * by * by * r->noise[o];
        r->peaks[base + i] = larger(r->peaks[base + i], (double)r->most[at] * by);
    }
}

static void sum_filters(qn_smooth_reader *r, int threads)
{
    const int64_t rows = r->layer.w->dims[0];
    for (int64_t k = 0; k < r->layer.filters; k++)
        r->sums[k] = r->peaks[k] = 0;
    for (int64_t o = 0; o < rows && !r->layer.filter_first; o++)
        sum_channel(r, o);
    if (!r->layer.filter_first)
        return;
#pragma omp parallel for num_threads(threads) if (is_apart(&r->layer))
    for (int64_t o = 0; o < rows; o++)
        sum_filter(r, o);
}

static double error_of(const qn_smooth_reader *r, bool one_scale)
{
    const qn_weighted_node *m = &r->layer;
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

double qn_smooth_error_of(const qn_smooth_error *e, const float *factor)
{
    double error = 0;
    for (size_t i = 0; i < e->n_readings; i++) {
        qn_smooth_reader *r = &e->readings[i];
        try_factors(r, e, factor);
        sum_filters(r, e->q->ctx->threads);
        error += error_of(r, per_tensor(e, &r->layer));
    }
    return error;
}
