/* The range of a value that only a function of one number reads, or a chain of such functions.
 * Where the function is flat (SiLU below -8) clipping costs nothing, and where it is steep every
 * step counts. The range is the one with the least squared error behind the function f:
 *
 *   sum over bins of count * (f(x) - f(dequantize(quantize(x))))^2 */
#include <math.h>
#include <string.h>

#include "pass/unary_function.h"
#include "quant/params.h"

enum { LEVELS = 256, ENDS = 16 };
/* The parts of an end that are tried for it, in rounds from coarse to fine. */
static const float spans[][2] = {{0, 1}, {0.25F, 1.25F}, {0.9F, 1.1F}, {0.98F, 1.02F}};

typedef struct bins {
    /* Centres of the bins that are not empty */
    float *x;
    /* The function at these centres. */
    float *y;
    /* The number of elements in each bin. */
    double *mass;
    int64_t count;
} bins;

typedef struct search {
    const qn_quantizer *q;
    /* The value that the first function reads. */
    const qn_value *value;
    qn_arena arena;
    bins bins;
    /* The parameters of the range that is being tried. */
    qn_qparams *params;
    /* [LEVELS], the function at each dequantized level. */
    float *levels;
} search;

/* The function of one number that alone reads the value, which is not rounded on the way there. */
static const qn_node *function_of(const qn_quantizer *q, const qn_value *value)
{
    const qn_node *user = qn_value_only_user(value);
    const qn_quant_node *n = user ? qn_quant_node_of(q, user) : NULL;
    return n && n->integer && n->is_function && qn_unary_function_slot(user) >= 0 ? user : NULL;
}

static qn_status apply_all(qn_tensor **out, search *s, qn_arena *arena, const qn_tensor *x)
{
    const qn_value *value = s->value;
    qn_tensor *y = NULL;
    do {
        const qn_node *node = function_of(s->q, value);
        QN_TRY(qn_unary_function_eval(&y, arena, node, y ? y : x));
        value = node->out[0];
    } while (!qn_quant_value_of(s->q, value)->integer && function_of(s->q, value));
    *out = y;
    return QN_OK;
}

/* f of `count` numbers. */
static qn_status apply(float *y, search *s, const float *x, int64_t count)
{
    qn_tensor in = {.dtype = QN_FLOAT32, .rank = 1, .dims = {count}};
    qn_tensor *out = NULL;
    qn_arena arena;
    qn_arena_init(&arena, &s->q->ctx->allocator);
    in.data = qn_arena_copy(&arena, x, (size_t)count * sizeof *x);
    qn_status status = in.data ? apply_all(&out, s, &arena, &in) : qn_fail_nomem(s->q->ctx);
    if (status == QN_OK)
        memcpy(y, out->data, (size_t)count * sizeof *y);
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
    p->scale = 1;
    p->zero = 0;
    qn_params_from_range(p, least, most, s->q->settings.profile->symmetric);
    for (int64_t i = 0; i < LEVELS; i++)
        x[i] = (float)(p->qmin + i - p->zero) * p->scale;
    QN_TRY(apply(s->levels, s, x, LEVELS));
    for (int64_t i = 0; i < s->bins.count; i++) {
        const float level = s->levels[qn_params_quantize(p, 0, s->bins.x[i]) - p->qmin];
        const double e = (double)level - (double)s->bins.y[i];
        sum += s->bins.mass[i] * e * e;
    }
    *out = sum;
    return QN_OK;
}

/* Tries values of one end between `from` and `to` times what it is. */
static qn_status search_end(search *s, qn_range *range, double *least, bool upper,
                            const float span[2])
{
    const qn_range start = *range;
    for (int i = 0; i <= ENDS; i++) {
        const float share = span[0] + (span[1] - span[0]) * (float)i / ENDS;
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
                             qn_profile_activation(s->q->settings.profile, 8), 1));
    QN_TRY(error_of(&least, s, best.min, best.max));
    for (size_t round = 0; round < QN_COUNT_OF(spans); round++) {
        QN_TRY(search_end(s, &best, &least, false, spans[round]));
        QN_TRY(search_end(s, &best, &least, true, spans[round]));
    }
    *range = best;
    return QN_OK;
}

/* A function reads the value, which shares its parameters with none. */
bool qn_range_is_before_function(const qn_quantizer *q, const qn_quant_value *root)
{
    if (qn_width_is_fine(qn_width_of_bits(root->bits)) || !function_of(q, root->value))
        return false;
    for (size_t i = 0; i < q->n_values; i++) {
        const qn_quant_value *v = &q->values[i];
        if (v->integer && v != root && qn_quant_root(q, v) == root)
            return false;
    }
    return true;
}

qn_status qn_range_before_function(qn_range *range, const qn_quantizer *q,
                                   const qn_quant_value *root, const qn_stats_entry *entry)
{
    search s = {.q = q, .value = root->value};
    qn_arena_init(&s.arena, &q->ctx->allocator);
    const qn_status status = search_range(&s, range, entry);
    qn_arena_free(&s.arena);
    return status;
}
