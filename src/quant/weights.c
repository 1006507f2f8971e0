/* Scales of weights: by their largest magnitude, or by the range that rounds them best. */
#include <math.h>

#include "ops/eval.h"
#include "quant/existing_encodings.h"
#include "quant/params.h"

/* A range somewhat smaller than the largest weight may round the others better. */
enum { CLIP_STEPS = 16, TRIES = CLIP_STEPS + 1 };

/* Scales side by side: each has a sum of its own, in the order of the weights. */
typedef struct tries {
    float scale[TRIES], inverse[TRIES];
    double error[TRIES];
} tries;

/* Adds the squared errors that the scales make of x. |x / scale| is below 2^22, so that x * inverse
 * + shift rounds to whole numbers. They are not weighed by the power of the channel that x is
 * multiplied with: docs/quantization.md has what was measured. */
static inline void try_weight(tries *t, float x, float end)
{
    const float shift = 0x1.8p23F;
    for (int k = 0; k < TRIES; k++) {
        const float whole = (x * t->inverse[k] + shift) - shift;
        const float e = x - QN_MIN(QN_MAX(whole, -end), end) * t->scale[k];
        t->error[k] += (double)(e * e);
    }
}

static float largest(const float *w, const qn_weighted_node *m, int64_t at)
{
    const int64_t dim = m->w->dims[m->axis], outer = m->count / (dim * m->inner);
    float most = 0;
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < m->inner; i++)
            most = QN_MAX(fabsf(w[(o * dim + at) * m->inner + i]), most);
    }
    return most;
}

/* Sums of squares: of errors before and after, and of the weights. */
typedef struct clip_sums {
    double before, after, signal;
} clip_sums;

/* What the search goes by, and what comes of it. */
typedef struct clip_search {
    const float *w;
    const qn_weighted_node *m;
    /* The sums of each scale. */
    clip_sums *sums;
} clip_search;

static float best_scale(const clip_search *s, int64_t at, float whole, int64_t most)
{
    const qn_weighted_node *m = s->m;
    const int64_t dim = m->w->dims[m->axis], outer = m->count / (dim * m->inner);
    clip_sums sums = {0, 0, 0};
    tries t = {.error = {0}};
    int best = 0;
    for (int k = 0; k < TRIES; k++) {
        t.scale[k] = k == 0 ? whole : whole * (1 - 0.02F * (float)k);
        t.inverse[k] = 1 / t.scale[k];
    }
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < m->inner; i++) {
            const float x = s->w[(o * dim + at) * m->inner + i];
            try_weight(&t, x, (float)most);
            sums.signal += (double)(x * x);
        }
    }
    for (int k = 1; k < TRIES; k++)
        best = t.error[k] < t.error[best] ? k : best;
    sums.before = t.error[0];
    sums.after = t.error[best];
    s->sums[at] = sums;
    return t.scale[best];
}

static bool is_per_channel(const qn_quantizer *q, const qn_weighted_node *m)
{
    const qn_profile *p = q->settings.profile;
    return m->node->op == &qn_op_ConvTranspose ? p->per_channel_transposed : p->per_channel;
}

/* Finer integers need no search, and one scale for all has the widest channel's. */
static bool is_clipped(const qn_qparams *p)
{
    return !qn_width_is_fine(p->width) && p->count > 1;
}

/* Dead channels have 0. */
static void weight_scales(qn_qparams *p, const clip_search *s, bool clip)
{
    const int64_t dim = s->m->w->dims[s->m->axis];
    const int threads = s->m->node->graph->ctx->threads;
    qn_qparams_set_scale(p, 0, 0);
#pragma omp parallel for num_threads(threads) if (p->count > 1 &&                                  \
                                                  s->m->count > QN_WEIGHTS_PER_THREAD)
    for (int64_t c = 0; c < dim; c++) {
        const float most = largest(s->w, s->m, c);
        float scale = 0;
        if (most > 0)
            scale = qn_params_positive((double)most / (double)p->qmax);
        if (most > 0 && clip && is_clipped(p))
            scale = best_scale(s, c, scale, p->qmax);
        if (p->count > 1)
            qn_qparams_set_scale(p, c, scale);
        else
            qn_qparams_set_scale(p, 0, fmaxf(scale, qn_qparams_scale_at(p, 0)));
    }
}

void qn_params_replace_zero_scales(qn_qparams *p)
{
    for (int64_t i = 0; i < p->count; i++)
        qn_qparams_set_scale(p, i, qn_qparams_scale_at(p, i) > 0 ? qn_qparams_scale_at(p, i) : 1);
}

void qn_params_weight_limits(qn_qparams *p, const qn_quantizer *q)
{
    if (q->settings.reduce_range)
        p->qmax = p->width->reduced;
    p->qmin = -p->qmax;
}

qn_status qn_params_weight_template(qn_qparams **out, const qn_quantizer *q,
                                    const qn_weighted_node *layer)
{
    const int bits = qn_quant_node_of(q, layer->node)->weight_bits;
    const bool several = is_per_channel(q, layer);
    QN_TRY(qn_qparams_create(out, q->ctx, q->graph->arena,
                             qn_profile_weight(q->settings.profile, bits),
                             several ? layer->w->dims[layer->axis] : 1));
    (*out)->axis = several ? layer->axis : -1;
    qn_params_weight_limits(*out, q);
    return QN_OK;
}

qn_status qn_params_of_gates(qn_qparams **out, const qn_quantizer *q, const qn_tensor *w,
                             const qn_quant_node *n)
{
    const qn_profile *profile = q->settings.profile;
    const int64_t count = qn_tensor_count(w), rows = w->dims[1], inner = w->dims[2];
    QN_TRY(qn_qparams_create(out, q->ctx, q->graph->arena,
                             qn_profile_weight(profile, n->weight_bits),
                             profile->per_channel ? rows : 1));
    (*out)->axis = profile->per_channel ? 1 : -1;
    qn_params_weight_limits(*out, q);
    qn_qparams_set_scale(*out, 0, 0);
    for (int64_t c = 0; c < (*out)->count; c++)
        qn_qparams_set_scale(*out, c, 0);
    for (int64_t i = 0; i < count; i++) {
        const int64_t c = i / inner % (*out)->count;
        const double most = fabs(qn_tensor_f64(w, i)) / (double)(*out)->qmax;
        if (most > 0)
            qn_qparams_set_scale(*out, c,
                                 fmaxf(qn_qparams_scale_at(*out, c), qn_params_positive(most)));
    }
    qn_params_replace_zero_scales(*out);
    return QN_OK;
}

static void count_clipping(qn_quantizer *q, const clip_search *s)
{
    qn_refined *refined = &q->refined[QN_REFINE_CLIPPING];
    clip_sums all = {0, 0, 0};
    for (int64_t c = 0; c < s->m->w->dims[s->m->axis]; c++) {
        all.before += s->sums[c].before;
        all.after += s->sums[c].after;
        all.signal += s->sums[c].signal;
    }
    refined->layers++;
    refined->before += all.signal > 0 ? all.before / all.signal : 0;
    refined->after += all.signal > 0 ? all.after / all.signal : 0;
}

qn_status qn_params_of_weights(qn_qparams **out, qn_quantizer *q, const qn_weighted_node *layer,
                               const qn_param_options *options)
{
    float *w = NULL;
    QN_TRY(qn_params_weight_template(out, q, layer));
    QN_TRY(qn_weighted_node_weights(&w, layer));
    clip_search s = {.w = w, .m = layer};
    s.sums = qn_alloc_zero(q->ctx, (size_t)layer->w->dims[layer->axis], sizeof *s.sums);
    const bool enough = s.sums != NULL;
    const bool given = enough && qn_existing_weights(*out, q, layer, w);
    if (enough && !given)
        weight_scales(*out, &s, options->clip_weights);
    if (enough && !given && options->clip_weights && is_clipped(*out))
        count_clipping(q, &s);
    qn_free(q->ctx, w);
    qn_free(q->ctx, s.sums);
    return enough ? QN_OK : qn_fail_nomem(q->ctx);
}
