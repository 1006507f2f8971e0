#include "quant/given.h"

#include <math.h>

size_t qn_given_find(qn_quantizer *q)
{
    size_t found = 0;
    for (size_t i = 0; i < q->n_values; i++) {
        const qn_quant_value *v = &q->values[i];
        const qn_qparams *given = v->given;
        qn_quant_value *root = qn_quant_root(q, v);
        if (!v->integer || v->value->data || !given || given->count != 1 ||
            given->zero < given->qmin || given->zero > given->qmax)
            continue;
        if (!root->given || (size_t)root->source == i)
            root->given = given;
    }
    for (size_t i = 0; i < q->n_values; i++)
        found += q->values[i].integer && !q->values[i].value->data && q->values[i].given &&
                 (size_t)q->values[i].parent == i;
    return found;
}

bool qn_given_is_complete(const qn_quantizer *q)
{
    for (size_t i = 0; i < q->n_values; i++) {
        const qn_quant_value *v = &q->values[i];
        if (v->integer && !v->value->data && !qn_quant_root(q, v)->given)
            return false;
    }
    return true;
}

qn_range qn_given_range(const qn_qparams *given)
{
    const double scale = (double)given->scale;
    return (qn_range){.min = (float)((double)(given->qmin - given->zero) * scale),
                      .max = (float)((double)(given->qmax - given->zero) * scale)};
}

/* Integers of another sign that mean the same: q + (qmin' - qmin). */
static int64_t moved_zero(const qn_qparams *to, const qn_qparams *given, int64_t i)
{
    return qn_qparams_zero_at(given, i) + to->qmin - given->qmin;
}

void qn_given_apply(qn_qparams *p, const qn_qparams *given, bool symmetric)
{
    const bool as_wide = p->qmax - p->qmin == given->qmax - given->qmin;
    if (as_wide && (!symmetric || moved_zero(p, given, 0) == 0)) {
        p->scale = given->scale;
        p->zero = moved_zero(p, given, 0);
        return;
    }
    const qn_range range = qn_given_range(given);
    qn_params_from_range(p, range.min, range.max, symmetric);
}

/* Every weight of the scale is a whole number of steps that p's integers have. Weights that were an integer times a
 * scale in float are off by a rounding or two. */
static bool is_whole(const qn_qparams *p, const qn_mac *m, const float *w, int64_t channel)
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

bool qn_given_weights(qn_qparams *p, const qn_quantizer *q, const qn_mac *mac, const float *w)
{
    const qn_qparams *given = qn_quant_value_of(q, mac->node->in[1])->given;
    const int64_t channels = mac->w->dims[mac->axis];
    if (!given || given->qmax - given->qmin > p->qmax - p->qmin + 1 ||
        (given->count > 1 && (given->count != p->count || given->axis != mac->axis)))
        return false;
    for (int64_t i = 0; i < p->count; i++) {
        const int64_t from = given->count > 1 ? i : 0;
        /* qmin of weights is one more than that of their type. */
        if (qn_qparams_zero_at(given, from) != (given->qmin ? 0 : (given->qmax + 1) / 2) ||
            !(qn_qparams_scale_at(given, from) > 0))
            return false;
        qn_qparams_set_scale(p, i, qn_qparams_scale_at(given, from));
    }
    for (int64_t c = 0; c < channels; c++) {
        if (!is_whole(p, mac, w, c))
            return false;
    }
    return true;
}
