#include "quant/params.h"

#include <float.h>
#include <math.h>

#include "ops/eval.h"

/* ---- From ranges -------------------------------------------------------------------------------------------- */

static float positive(double scale)
{
    return scale >= (double)FLT_MIN ? (float)scale : FLT_MIN;
}

void qn_params_from_range(qn_qparams *p, float least, float most, bool symmetric)
{
    const double lo = QN_MIN((double)least, 0), hi = QN_MAX((double)most, 0);
    if (symmetric) {
        const double end = QN_MAX(-lo, hi), steps = (double)(p->qmax - p->qmin + 1) / 2 - 1;
        p->scale[0] = end > 0 ? positive(end / steps) : 1;
        p->zero[0] = (p->qmin + p->qmax + 1) / 2;
        return;
    }
    if (hi == lo) {
        p->zero[0] = p->qmin > 0 ? p->qmin : 0;
        return;
    }
    const double steps = (double)(p->qmax - p->qmin);
    p->scale[0] = positive((hi - lo) / steps);
    const double zero = nearbyint((double)p->qmin - lo / (double)p->scale[0]);
    p->zero[0] = (int64_t)QN_MIN(QN_MAX(zero, (double)p->qmin), (double)p->qmax);
}

/* rint(x) to even by additions, which round so: for what such a sum can hold, and else by the library. */
static inline double rounded(double x)
{
    const double shift = 0x1.8p52;
    return fabs(x) < 0x1p51 ? (x + shift) - shift : nearbyint(x);
}

int64_t qn_params_quantize(const qn_qparams *p, int64_t scale, float x)
{
    const double y = rounded((double)(x / p->scale[scale])) + (double)p->zero[scale];
    if (!(y > (double)p->qmin))
        return p->qmin;
    return y < (double)p->qmax ? (int64_t)y : p->qmax;
}

/* ---- Constants ---------------------------------------------------------------------------------------------- */

qn_status qn_params_of_constant(qn_qparams **out, const qn_quantizer *q, const qn_tensor *tensor,
                                int bits)
{
    const qn_profile *profile = q->settings.profile;
    const int64_t count = qn_tensor_count(tensor);
    float least = 0, most = 0;
    QN_TRY(qn_qparams_create(out, q->ctx, q->graph->arena, profile->activation[bits > 8], 1));
    for (int64_t i = 0; i < count; i++) {
        const float x = (float)qn_tensor_f64(tensor, i);
        least = QN_MIN(least, x);
        most = QN_MAX(most, x);
    }
    qn_params_from_range(*out, least, most, profile->symmetric);
    return QN_OK;
}

/* ---- Weights ------------------------------------------------------------------------------------------------ */

/* A range somewhat smaller than the largest weight may round the others better. */
enum { CLIP_STEPS = 16, TRIES = CLIP_STEPS + 1 };

/* Scales side by side: each has a sum of its own, in the order of the weights. */
typedef struct tries {
    float scale[TRIES], inverse[TRIES];
    double error[TRIES];
} tries;

/* Adds the squared errors that the scales make of x. |x / scale| is below 2^22, so that x * inverse + shift
 * rounds to whole numbers. */
static inline void try_weight(tries *t, float x, float end)
{
    const float shift = 0x1.8p23F;
    for (int k = 0; k < TRIES; k++) {
        const float whole = (x * t->inverse[k] + shift) - shift;
        const float e = x - QN_MIN(QN_MAX(whole, -end), end) * t->scale[k];
        t->error[k] += (double)(e * e);
    }
}

static float largest(const float *w, const qn_mac *m, int64_t at)
{
    const int64_t dim = m->w->dims[m->axis], outer = m->count / (dim * m->inner);
    float most = 0;
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < m->inner; i++)
            most = QN_MAX(fabsf(w[(o * dim + at) * m->inner + i]), most);
    }
    return most;
}

static float best_scale(const float *w, const qn_mac *m, int64_t at, float whole, int64_t most)
{
    const int64_t dim = m->w->dims[m->axis], outer = m->count / (dim * m->inner);
    tries t = {.error = {0}};
    int best = 0;
    for (int k = 0; k < TRIES; k++) {
        t.scale[k] = k == 0 ? whole : whole * (1 - 0.02F * (float)k);
        t.inverse[k] = 1 / t.scale[k];
    }
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < m->inner; i++)
            try_weight(&t, w[(o * dim + at) * m->inner + i], (float)most);
    }
    for (int k = 1; k < TRIES; k++)
        best = t.error[k] < t.error[best] ? k : best;
    return t.scale[best];
}

static bool is_per_channel(const qn_quantizer *q, const qn_mac *m)
{
    const qn_profile *p = q->settings.profile;
    return m->node->op == &qn_op_ConvTranspose ? p->per_channel_transposed : p->per_channel;
}

static void weight_scales(qn_qparams *p, const qn_mac *m, const float *w, bool clip)
{
    const int64_t dim = m->w->dims[m->axis];
    const int threads = m->node->graph->ctx->threads;
#pragma omp parallel for num_threads(threads) if (p->count > 1 && m->count > QN_QUANT_ALONE)
    for (int64_t c = 0; c < dim; c++) {
        const float most = largest(w, m, c);
        float scale = 1;
        if (most > 0)
            scale = positive((double)most / (double)p->qmax);
        if (most > 0 && clip && p->qmax < 256 && p->count > 1)
            scale = best_scale(w, m, c, scale, p->qmax);
        if (p->count > 1)
            p->scale[c] = scale;
        else if (most > 0)
            p->scale[0] = c == 0 || p->scale[0] == 1 ? scale : fmaxf(scale, p->scale[0]);
    }
}

qn_status qn_params_weight_form(qn_qparams **out, const qn_quantizer *q, const qn_mac *mac)
{
    const int bits = qn_quant_node_of(q, mac->node)->weight_bits;
    const bool several = is_per_channel(q, mac);
    QN_TRY(qn_qparams_create(out, q->ctx, q->graph->arena, q->settings.profile->weight[bits > 8],
                             several ? mac->w->dims[mac->axis] : 1));
    (*out)->axis = several ? mac->axis : -1;
    (*out)->qmin = -(*out)->qmax;
    return QN_OK;
}

qn_status qn_params_of_weights(qn_qparams **out, const qn_quantizer *q, const qn_mac *mac,
                               const qn_param_options *options)
{
    float *w;
    QN_TRY(qn_params_weight_form(out, q, mac));
    QN_TRY(qn_mac_weights(&w, mac));
    weight_scales(*out, mac, w, options->clip_weights);
    qn_free(q->ctx, w);
    return QN_OK;
}

/* ---- Activations ---------------------------------------------------------------------------------------------- */

/* 16 bits resolve what was seen with room to spare: nothing is cut off, and half as much is added on both sides
 * for what other data may bring. A side that is 0, as behind a Relu, stays. */
static qn_status range_of_words(qn_range *range, const qn_quantizer *q, const qn_stats_entry *entry,
                                const qn_range_options *wanted)
{
    const float more = 1.5f;
    const qn_method *method = NULL;
    QN_TRY(qn_method_find(&method, q->ctx, "min_max"));
    QN_TRY(qn_stats_range(range, q->ctx, entry, method, wanted));
    range->min *= more;
    range->max *= more;
    return QN_OK;
}

static qn_status choose_range(qn_range *range, const qn_quantizer *q, qn_quant_value *root,
                              const qn_stats_entry *entry, const qn_param_options *options)
{
    qn_range_options wanted = options->range;
    wanted.bits = root->bits;
    wanted.symmetric = q->settings.profile->symmetric;
    root->through = options->look_through && qn_range_has_through(q, root);
    if (root->through)
        return qn_range_through(range, q, root, entry);
    if (root->bits > 8)
        return range_of_words(range, q, entry, &wanted);
    return qn_stats_range(range, q->ctx, entry, options->method, &wanted);
}

/* Values that only the target's spelling has were never seen; their function says what they can be. */
static bool known_range(qn_range *range, const qn_value *value)
{
    if (!value->producer || value->producer->op != &qn_op_Sigmoid)
        return false;
    *range = (qn_range){.min = 0, .max = 1};
    return true;
}

static qn_status derive_value(qn_quantizer *q, qn_quant_value *root, const qn_stats *stats,
                              const qn_param_options *options)
{
    const qn_profile *profile = q->settings.profile;
    const char *source = q->values[root->source].value->name;
    const qn_stats_entry *entry = qn_stats_find(stats, source);
    qn_derived_value *out = &q->derived.values[q->derived.n_values++];
    *out = (qn_derived_value){.name = root->value->name, .method = options->method->name};
    if (!entry && known_range(&out->range, q->values[root->source].value))
        out->method = "function";
    else if (!entry)
        qn_log(q->ctx, QN_LOG_WARN, "tensor '%s' was never seen with an element", source);
    else
        QN_TRY(choose_range(&out->range, q, root, entry, options));
    if (root->through)
        out->method = "function";
    QN_TRY(qn_qparams_create(&out->params, q->ctx, q->graph->arena,
                             profile->activation[root->bits > 8], 1));
    qn_params_from_range(out->params, out->range.min, out->range.max, profile->symmetric);
    root->derived = out;
    return QN_OK;
}

static qn_status derive_values(qn_quantizer *q, const qn_stats *stats,
                               const qn_param_options *options)
{
    q->derived.values = qn_arena_array(&q->arena, q->n_values + 1, sizeof *q->derived.values);
    QN_TRY_ALLOC(q->ctx, q->derived.values);
    for (size_t i = 0; i < q->n_values; i++) {
        qn_quant_value *root = qn_quant_root(q, &q->values[i]);
        if (q->values[i].integer && !root->derived)
            QN_TRY(derive_value(q, root, stats, options));
    }
    return QN_OK;
}

static const qn_qparams *params_of(const qn_quantizer *q, const qn_value *value)
{
    const qn_derived_value *d = qn_quant_root(q, qn_quant_value_of(q, value))->derived;
    return d ? d->params : NULL;
}

static qn_status derive_nodes(qn_quantizer *q, const qn_stats *stats,
                              const qn_param_options *options)
{
    q->derived.nodes = qn_arena_array(&q->arena, q->n_nodes + 1, sizeof *q->derived.nodes);
    QN_TRY_ALLOC(q->ctx, q->derived.nodes);
    for (size_t i = 0; i < q->n_nodes; i++) {
        const qn_quant_node *n = &q->nodes[i];
        qn_mac mac;
        if (!n->integer || n->form != QN_FORM_MAC || !qn_mac_of(&mac, n->node))
            continue;
        qn_derived_node *out = &q->derived.nodes[q->derived.n_nodes++];
        const qn_value *x = n->node->in[0];
        QN_TRY(qn_check_cancel(q->ctx));
        out->name = n->node->out[0]->name;
        QN_TRY(qn_params_of_weights(&out->weights, q, &mac, options));
        QN_TRY(
            qn_bias_settle(out, q, &mac, qn_stats_find(stats, x->name), params_of(q, x), options));
        qn_progress(q->ctx, "weights", (int64_t)i, (int64_t)q->n_nodes);
    }
    return QN_OK;
}

qn_status qn_derive(qn_quantizer *q, const qn_stats *stats, const qn_param_options *options)
{
    qn_quantizer_number(q);
    QN_TRY(derive_values(q, stats, options));
    return derive_nodes(q, stats, options);
}
