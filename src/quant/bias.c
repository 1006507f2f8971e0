/* Biases: made to fit int32, and corrected by the mean error of rounded weights. */
#include <float.h>
#include <math.h>

#include "ops/eval.h"
#include "quant/params.h"

/* Units of sx * sw that a bias may have: half of int32, since sums are added to it; with 16 bits
 * what leaves room for exact sums in doubles. */
static const double most_units = 0x1p30, most_units_int16 = 0x1p46;

bool qn_params_is_int16(const qn_qparams *x, const qn_qparams *w)
{
    return x->width->sums == QN_INT64 || w->width->sums == QN_INT64;
}

static int64_t scale_index(const qn_qparams *w, const qn_weighted_node *m, int64_t filter)
{
    /* ConvTranspose: filters of all groups share the scales of the axis. */
    return w->count > 1 ? filter % m->w->dims[m->axis] : 0;
}

/* Raises the scales of weights that are so small that the bias would not fit int32. A filter whose
 * weights are all 0 gets the scale that its bias wants, since the bias is all that the filter
 * computes. */
static void raise_scales(qn_qparams *w, const qn_weighted_node *m, double x_scale, double most)
{
    for (int64_t k = 0; k < m->filters; k++) {
        const double least = fabs(qn_weighted_node_bias(m, k)) / (x_scale * most);
        const int64_t at = scale_index(w, m, k);
        if ((double)qn_qparams_scale_at(w, at) < least)
            qn_qparams_set_scale(w, at, fmaxf(nextafterf((float)least, INFINITY), FLT_MIN));
    }
}

/* shift[k] = sum over channels and taps of (rounded - real weight) * mean of the input's channel.
 * signal[k]: power of the output, were the channels uncorrelated. */
static qn_status mean_shift(double *shift, double *signal, const qn_weighted_node *m,
                            const qn_qparams *w, const qn_input_channels *input)
{
    qn_context *ctx = m->node->graph->ctx;
    float *weights;
    double *mean = qn_alloc_zero(ctx, 2 * (size_t)m->channels, sizeof *mean);
    QN_TRY_ALLOC(ctx, mean);
    double *power = mean + m->channels;
    for (int64_t c = 0; c < m->channels; c++) {
        mean[c] = qn_input_channels_mean(input, c);
        power[c] = qn_input_channels_power(input, c);
    }
    const qn_status status = qn_weighted_node_weights(&weights, m);
    /* Each thread takes whole filters, as many as share a cache line of the sums. */
    const int64_t share = 8 * (m->count / m->filters), count = status == QN_OK ? m->count : 0;
    const int threads = ctx->threads;
    const bool apart = m->filter_first && m->count > QN_WEIGHTS_PER_THREAD;
#pragma omp parallel for schedule(static, share) num_threads(threads) if (apart)
    for (int64_t i = 0; i < count; i++) {
        int64_t filter, channel;
        qn_weight_position(m, i, &filter, &channel);
        const int64_t s = w->count > 1 ? qn_weight_scale_index(m, i) : 0;
        const double rounded =
            (double)qn_params_quantize(w, s, weights[i]) * (double)qn_qparams_scale_at(w, s);
        shift[filter] += (rounded - (double)weights[i]) * mean[channel];
        signal[filter] += (double)(weights[i] * weights[i]) * power[channel];
    }
    qn_free(ctx, weights);
    qn_free(ctx, mean);
    return status;
}

/* Whether the statistics were kept along the axis of these channels. */
static bool has_means(const qn_weighted_node *m, const qn_input_channels *input)
{
    return input->entry && input->entry->channels == m->channels && m->bias_node;
}

static qn_status correct(qn_layer_encoding *out, qn_quantizer *q, const qn_weighted_node *m,
                         const qn_input_channels *input)
{
    double *shift = qn_alloc_zero(q->ctx, 2 * (size_t)m->filters, sizeof *shift);
    QN_TRY_ALLOC(q->ctx, shift);
    double *each = shift + m->filters, signal = 0, moved = 0;
    qn_status status = mean_shift(shift, each, m, out->weights, input);
    out->correction = qn_arena_array(q->graph->arena, (size_t)m->filters, sizeof *out->correction);
    if (status == QN_OK && !out->correction)
        status = qn_fail_nomem(q->ctx);
    for (int64_t k = 0; k < m->filters && status == QN_OK; k++)
        out->correction[k] = (float)-shift[k];
    for (int64_t k = 0; k < m->filters; k++) {
        moved += shift[k] * shift[k];
        signal += each[k];
    }
    q->refined[QN_REFINE_BIAS].layers++;
    q->refined[QN_REFINE_BIAS].before += signal > 0 ? moved / signal : 0;
    qn_free(q->ctx, shift);
    return status;
}

qn_status qn_bias_settle(qn_layer_encoding *out, qn_quantizer *q, const qn_weighted_node *m,
                         const qn_input_channels *input, const qn_qparams *x,
                         const qn_param_options *options)
{
    out->filters = m->filters;
    if (x) {
        const bool is_int16 = qn_params_is_int16(x, out->weights);
        raise_scales(out->weights, m, (double)x->scale, is_int16 ? most_units_int16 : most_units);
    }
    qn_params_replace_zero_scales(out->weights);
    if (!options->correct_bias || !has_means(m, input))
        return QN_OK;
    return correct(out, q, m, input);
}
