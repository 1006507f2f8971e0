#include <math.h>

#include "ops/eval.h"
#include "quant/params.h"

/* Units of sx * sw that a bias may have: half of int32, since sums are added to it; with 16 bits what leaves
 * room for exact sums in doubles. */
static const double most_units = 0x1p30, most_units_wide = 0x1p46;

static int64_t scale_index(const qn_qparams *w, const qn_mac *m, int64_t filter)
{
    /* ConvTranspose: filters of all groups share the scales of the axis. */
    return w->count > 1 ? filter % m->w->dims[m->axis] : 0;
}

/* Weights whose scale is so small that the bias would not fit get a larger one. */
static void raise_scales(qn_qparams *w, const qn_mac *m, double x_scale, double most)
{
    for (int64_t k = 0; k < m->filters; k++) {
        const double least = fabs(qn_mac_bias(m, k)) / (x_scale * most);
        float *scale = &w->scale[scale_index(w, m, k)];
        if ((double)*scale < least)
            *scale = nextafterf((float)least, INFINITY);
    }
}

/* shift[k] = sum over channels and taps of (rounded - real weight) * mean of the input's channel. */
static qn_status mean_shift(double *shift, const qn_mac *m, const qn_qparams *w,
                            const qn_stats_entry *input)
{
    float *weights;
    QN_TRY(qn_mac_weights(&weights, m));
    /* Threads take whole filters, a line of the cache of sums at a time. */
    const int64_t share = 8 * (m->count / m->filters);
    const int threads = m->node->graph->ctx->threads;
    const bool apart = m->filter_first && m->count > QN_QUANT_ALONE;
#pragma omp parallel for schedule(static, share) num_threads(threads) if (apart)
    for (int64_t i = 0; i < m->count; i++) {
        int64_t filter, channel;
        qn_mac_place(m, i, &filter, &channel);
        const int64_t s = w->count > 1 ? qn_mac_scale(m, i) : 0;
        const double rounded = (double)qn_params_quantize(w, s, weights[i]) * (double)w->scale[s];
        shift[filter] += (rounded - (double)weights[i]) * qn_entry_channel_mean(input, channel);
    }
    qn_free(m->node->graph->ctx, weights);
    return QN_OK;
}

/* The axis along which the input's statistics must have been kept. */
static bool has_means(const qn_mac *m, const qn_stats_entry *entry)
{
    return entry && entry->channels == m->channels && m->bias_node;
}

static qn_status correct(qn_derived_node *out, const qn_quantizer *q, const qn_mac *m,
                         const qn_stats_entry *input)
{
    double *shift = qn_alloc_zero(q->ctx, (size_t)m->filters, sizeof *shift);
    QN_TRY_ALLOC(q->ctx, shift);
    qn_status status = mean_shift(shift, m, out->weights, input);
    out->correction = qn_arena_array(q->graph->arena, (size_t)m->filters, sizeof *out->correction);
    if (status == QN_OK && !out->correction)
        status = qn_fail_nomem(q->ctx);
    for (int64_t k = 0; k < m->filters && status == QN_OK; k++)
        out->correction[k] = (float)-shift[k];
    qn_free(q->ctx, shift);
    return status;
}

qn_status qn_bias_settle(qn_derived_node *out, qn_quantizer *q, const qn_mac *m,
                         const qn_stats_entry *input, const qn_qparams *x,
                         const qn_param_options *options)
{
    out->filters = m->filters;
    if (x) {
        const bool wide = out->weights->qmax > 255 || x->qmax - x->qmin > 255;
        raise_scales(out->weights, m, (double)x->scale[0], wide ? most_units_wide : most_units);
    }
    return options->correct_bias && has_means(m, input) ? correct(out, q, m, input) : QN_OK;
}
