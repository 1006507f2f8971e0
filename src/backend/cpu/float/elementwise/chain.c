/* Chains of element-wise functions: one loop over memory, shared among threads. */
#include "backend/cpu/float/elementwise/chain.h"

#include <omp.h>

#include "backend/cpu/float/kernels.h"

enum {
    /* Floats that go through all stages while they are in the first cache. */
    CHUNK = 1024,
    /* Floats for which waking the other threads does not pay. */
    ALONE_BELOW = 16384
};

bool qn_stage_keeps_zero(const qn_stage *s)
{
    switch (s->fn) {
    case QN_FN_ABS:
    case QN_FN_ADD:
    case QN_FN_HARD_SWISH:
    case QN_FN_LEAKY_RELU:
    case QN_FN_MAX:
    case QN_FN_MIN:
    case QN_FN_MUL:
    case QN_FN_RELU:
    case QN_FN_SCALE:
    case QN_FN_SILU:
    case QN_FN_SQUARE:
    case QN_FN_SUB: return true;
    case QN_FN_LINEAR: return s->b == 0;
    case QN_FN_CLIP: return s->a <= 0 && s->b >= 0;
    default: return false;
    }
}

typedef struct run {
    const qn_chain *chain;
    float *y;
    const float *x;
    const float *const *operands;
} run;

/* Padding of the last block of channels stays 0 whatever the functions make of it. */
static void clear_tail(float *y, int64_t count, const qn_chain *c)
{
    for (int64_t i = 0; i < count; i += c->lanes) {
        for (int64_t lane = c->tail; lane < c->lanes; lane++)
            y[i + lane] = 0;
    }
}

static void run_chunk(const run *r, int64_t n, int64_t p, int64_t first, int64_t count)
{
    const qn_chain *c = r->chain;
    float *y = r->y + n * c->y_stride + p * c->length + first;
    const float *x = r->x + n * c->x_stride + p * c->length + first;
    for (int32_t s = 0; s < c->n_stages; s++) {
        const qn_stage *stage = &c->stages[s];
        const float *operand = NULL;
        qn_spread spread = QN_SPREAD_ONE;
        if (stage->operand >= 0) {
            const qn_operand *o = &c->operands[stage->operand];
            spread = o->spread;
            operand = r->operands[stage->operand] + n * o->sample_stride + p * o->plane_stride +
                      (spread == QN_SPREAD_FULL ? first : 0);
        }
        c->kernels->map[stage->fn](y, s ? y : x, count, stage, operand, spread);
    }
    if (c->tail < c->lanes && p == c->planes - 1)
        clear_tail(y, count, c);
}

static void run_range(const run *r, int64_t n, int64_t p, int64_t first, int64_t last)
{
    const int64_t chunk = r->chain->n_stages > 1 ? CHUNK : last - first;
    for (int64_t at = first; at < last; at += chunk)
        run_chunk(r, n, p, at, QN_MIN(chunk, last - at));
}

/* Share `id` of `count` threads: a range of positions in all planes, so that every thread works on
 * the part of the map that it computed before. Where planes are short, a range of planes. */
static void run_share(const run *r, int64_t id, int64_t count)
{
    const qn_chain *c = r->chain;
    const bool by_plane = c->length < CHUNK && c->planes > 1;
    const int64_t unit = by_plane ? 1 : c->lanes > 1 ? c->lanes : 16;
    const int64_t each = by_plane ? c->planes : (c->length + unit - 1) / unit;
    const int64_t from = c->samples * each * id / count, to = c->samples * each * (id + 1) / count;
    for (int64_t n = from / each; n * each < to; n++) {
        const int64_t first = QN_MAX(from - n * each, 0), last = QN_MIN(to - n * each, each);
        if (by_plane) {
            for (int64_t p = first; p < last; p++)
                run_range(r, n, p, 0, c->length);
            continue;
        }
        for (int64_t p = 0; p < c->planes; p++)
            run_range(r, n, p, first * unit, QN_MIN(last * unit, c->length));
    }
}

void qn_chain_run(const qn_chain *chain, float *y, const float *x, const float *const *operands,
                  int threads)
{
    const run r = {chain, y, x, operands};
    if (chain->samples * chain->planes * chain->length == 0)
        return;
    if (threads == 1 || chain->samples * chain->planes * chain->length < ALONE_BELOW) {
        run_share(&r, 0, 1);
        return;
    }
#pragma omp parallel num_threads(threads)
    run_share(&r, omp_get_thread_num(), omp_get_num_threads());
}
