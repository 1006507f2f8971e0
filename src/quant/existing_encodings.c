/* Keeps the quantization parameters that a file already has. */
#include "quant/existing_encodings.h"

#include <math.h>

size_t qn_existing_find(qn_quantizer *q)
{
    size_t found = 0;
    for (size_t i = 0; i < q->n_values; i++) {
        const qn_quant_value *v = &q->values[i];
        const qn_qparams *existing = v->existing;
        qn_quant_value *root = qn_quant_root(q, v);
        if (!v->integer || v->value->data || !existing || existing->count != 1 ||
            existing->zero < existing->qmin || existing->zero > existing->qmax)
            continue;
        if (!root->existing || (size_t)root->source == i)
            root->existing = existing;
    }
    for (size_t i = 0; i < q->n_values; i++)
        found += q->values[i].integer && !q->values[i].value->data && q->values[i].existing &&
                 (size_t)q->values[i].parent == i;
    return found;
}

bool qn_existing_is_complete(const qn_quantizer *q)
{
    for (size_t i = 0; i < q->n_values; i++) {
        const qn_quant_value *v = &q->values[i];
        if (v->integer && !v->value->data && !qn_quant_root(q, v)->existing)
            return false;
    }
    return true;
}

qn_range qn_existing_range(const qn_qparams *existing)
{
    const double scale = (double)existing->scale;
    return (qn_range){.min = (float)((double)(existing->qmin - existing->zero) * scale),
                      .max = (float)((double)(existing->qmax - existing->zero) * scale)};
}

/* Integers of another sign that mean the same: q + (qmin' - qmin). */
static int64_t moved_zero(const qn_qparams *to, const qn_qparams *existing, int64_t i)
{
    return qn_qparams_zero_at(existing, i) + to->qmin - existing->qmin;
}

void qn_existing_apply(qn_qparams *p, const qn_qparams *existing, bool symmetric)
{
    const bool as_wide = p->qmax - p->qmin == existing->qmax - existing->qmin;
    if (as_wide && (!symmetric || moved_zero(p, existing, 0) == 0)) {
        p->scale = existing->scale;
        p->zero = moved_zero(p, existing, 0);
        return;
    }
    const qn_range range = qn_existing_range(existing);
    qn_params_from_range(p, range.min, range.max, symmetric);
}

/* Every weight of the scale is a whole number of steps that p's integers have. Weights that were an
 * integer times a scale in float are off by a rounding or two. */
static bool is_whole(const qn_qparams *p, const qn_weighted_node *m, const float *w,
                     int64_t channel)
{
    const int64_t dim = m->w->dims[m->axis], outer = m->count / (dim * m->inner);
    const float scale = qn_qparams_scale_at(p, p->count > 1 ? channel : 0);
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < m->inner; i++) {
            const float steps = w[(o * dim + channel) * m->inner + i] / scale;
            if (!(fabsf(steps) <= (float)p->qmax + 0.01F) || fabsf(steps - rintf(steps)) > 0.01F)
                return false;
        }
    }
    return true;
}

bool qn_existing_weights(qn_qparams *p, const qn_quantizer *q, const qn_weighted_node *layer,
                         const float *w)
{
    const qn_qparams *existing = qn_quant_value_of(q, layer->node->in[1])->existing;
    const int64_t channels = layer->w->dims[layer->axis];
    if (!existing || existing->qmax - existing->qmin > p->qmax - p->qmin + 1 ||
        (existing->count > 1 && (existing->count != p->count || existing->axis != layer->axis)))
        return false;
    for (int64_t i = 0; i < p->count; i++) {
        const int64_t from = existing->count > 1 ? i : 0;
        /* qmin of weights is one more than that of their type. */
        if (qn_qparams_zero_at(existing, from) != (existing->qmin ? 0 : (existing->qmax + 1) / 2) ||
            !(qn_qparams_scale_at(existing, from) > 0))
            return false;
        qn_qparams_set_scale(p, i, qn_qparams_scale_at(existing, from));
    }
    for (int64_t c = 0; c < channels; c++) {
        if (!is_whole(p, layer, w, c))
            return false;
    }
    return true;
}
