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

static qn_status put_bias(const qn_mac *m, const double *shift)
{
    const qn_node *node = m->bias_node;
    qn_tensor *fresh;
    const qn_value *old = m->bias_slot < node->n_in ? node->in[m->bias_slot] : NULL;
    const qn_type type = old && qn_tensor_count(old->data) == m->filters
                             ? qn_type_of(old->data)
                             : qn_type_tensor(QN_FLOAT32, 1, &m->filters);
    QN_TRY(qn_model_tensor(&fresh, node->graph->model, &type));
    for (int64_t k = 0; k < m->filters; k++)
        ((float *)fresh->data)[k] = (float)(qn_mac_bias(m, k) - shift[k]);
    return qn_mac_put(m->bias_node, m->bias_slot, fresh, "bias");
}

/* The axis along which the input's statistics must have been kept. */
static bool has_means(const qn_mac *m, const qn_stats_entry *entry)
{
    return entry && entry->channels == m->channels && m->bias_node;
}

qn_status qn_bias_settle(qn_quantizer *q, const qn_mac *m, const qn_stats *stats,
                         const qn_param_options *options)
{
    const qn_value *x = m->node->in[0];
    qn_qparams *w = qn_quant_node_of(q, m->node)->weights;
    const qn_stats_entry *entry = qn_stats_find(stats, x->name);
    qn_status status = QN_OK;
    if (x->qparams) {
        const bool wide = w->qmax > 255 || x->qparams->qmax - x->qparams->qmin > 255;
        raise_scales(w, m, (double)x->qparams->scale[0], wide ? most_units_wide : most_units);
    }
    if (!options->correct_bias || !has_means(m, entry))
        return QN_OK;
    double *shift = qn_alloc_zero(q->ctx, (size_t)m->filters, sizeof *shift);
    QN_TRY_ALLOC(q->ctx, shift);
    status = mean_shift(shift, m, w, entry);
    if (status == QN_OK)
        status = put_bias(m, shift);
    qn_free(q->ctx, shift);
    return status;
}
