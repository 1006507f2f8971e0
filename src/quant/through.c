/* The range of a value that only a function of one number reads. Where the function is flat (SiLU below
 * -8) nothing is lost by cutting off, where it is steep everything counts: what is made small is the
 * squared error behind the function,
 *
 *   sum over bins of count * (f(x) - f(dequantize(quantize(x))))^2. */
#include <math.h>
#include <string.h>

#include "ops/eval.h"
#include "quant/params.h"

enum { LEVELS = 256, ENDS = 24, ROUNDS = 3 };

typedef struct bins {
    float *x;     /* centres of the bins that are not empty */
    float *y;     /* f of them */
    double *mass; /* elements */
    int64_t count;
} bins;

typedef struct search {
    const qn_quantizer *q;
    const qn_node *node;
    qn_arena arena;
    bins bins;
    qn_qparams *params; /* of the range being tried */
    float *levels;      /* [LEVELS] what f makes of them */
} search;

/* f of `count` numbers. */
static qn_status apply(float *y, search *s, const float *x, int64_t count)
{
    qn_tensor in = {.dtype = QN_FLOAT32, .rank = 1, .dims = {count}};
    const qn_tensor *inputs[1] = {&in};
    qn_tensor *out[1] = {NULL};
    qn_arena arena;
    in.data = qn_arena_copy(&s->arena, x, (size_t)count * sizeof *x);
    QN_TRY_ALLOC(s->q->ctx, in.data);
    qn_arena_init(&arena, &s->q->ctx->allocator);
    const qn_status status = qn_node_eval(out, s->q->ctx, &arena, s->node, inputs);
    if (status == QN_OK)
        memcpy(y, out[0]->data, (size_t)count * sizeof *y);
    qn_arena_free(&arena);
    return status;
}

static qn_status read_bins(search *s, const qn_stats_entry *entry)
{
    const qn_histogram *h = &entry->histogram;
    bins *b = &s->bins;
    const size_t most = 2 * (size_t)QN_HISTOGRAM_BINS;
    b->x = qn_arena_array(&s->arena, most, sizeof *b->x);
    b->y = qn_arena_array(&s->arena, most, sizeof *b->y);
    b->mass = qn_arena_array(&s->arena, most, sizeof *b->mass);
    if (!b->x || !b->y || !b->mass)
        return qn_fail_nomem(s->q->ctx);
    for (int side = 0; side < 2; side++) {
        for (int64_t i = 0; h->side[side] && i < QN_HISTOGRAM_BINS; i++) {
            if (!h->side[side][i])
                continue;
            const double x = ldexp((double)i + 0.5, h->exponent);
            b->x[b->count] = (float)(side ? -x : x);
            b->mass[b->count++] = (double)h->side[side][i];
        }
    }
    return b->count ? apply(b->y, s, b->x, b->count) : QN_OK;
}

static qn_status error_of(double *out, search *s, float least, float most)
{
    qn_qparams *p = s->params;
    float x[LEVELS];
    double sum = 0;
    p->scale[0] = 1;
    p->zero[0] = 0;
    qn_params_from_range(p, least, most, s->q->settings.profile->symmetric);
    for (int64_t i = 0; i < LEVELS; i++)
        x[i] = (float)(p->qmin + i - p->zero[0]) * p->scale[0];
    QN_TRY(apply(s->levels, s, x, LEVELS));
    for (int64_t i = 0; i < s->bins.count; i++) {
        const float level = s->levels[qn_params_quantize(p, 0, s->bins.x[i]) - p->qmin];
        const double e = (double)level - (double)s->bins.y[i];
        sum += s->bins.mass[i] * e * e;
    }
    *out = sum;
    return QN_OK;
}

/* Tries smaller and smaller values of one end. */
static qn_status search_end(search *s, qn_range *range, double *least, bool upper)
{
    const qn_range start = *range;
    for (int i = 1; i < ENDS; i++) {
        const float share = 1 - (float)i / ENDS;
        const qn_range tried = {upper ? start.min : start.min * share,
                                upper ? start.max * share : start.max};
        double error = 0;
        QN_TRY(error_of(&error, s, tried.min, tried.max));
        if (error < *least) {
            *least = error;
            *range = tried;
        }
    }
    return QN_OK;
}

static qn_status search_range(search *s, qn_range *range, const qn_stats_entry *entry)
{
    double least = 0;
    qn_range best = {QN_MIN(entry->min, 0), QN_MAX(entry->max, 0)};
    QN_TRY(read_bins(s, entry));
    s->levels = qn_arena_array(&s->arena, LEVELS, sizeof *s->levels);
    QN_TRY_ALLOC(s->q->ctx, s->levels);
    QN_TRY(qn_qparams_create(&s->params, s->q->ctx, &s->arena,
                             s->q->settings.profile->activation[0], 1));
    QN_TRY(error_of(&least, s, best.min, best.max));
    for (int round = 0; round < ROUNDS; round++) {
        QN_TRY(search_end(s, &best, &least, false));
        QN_TRY(search_end(s, &best, &least, true));
    }
    *range = best;
    return QN_OK;
}

qn_status qn_range_through(qn_range *range, const qn_quantizer *q, const qn_node *node,
                           const qn_stats_entry *entry)
{
    search s = {.q = q, .node = node};
    qn_arena_init(&s.arena, &q->ctx->allocator);
    const qn_status status = search_range(&s, range, entry);
    qn_arena_free(&s.arena);
    return status;
}
