/* What is known of packed weights of 8 and 16 bits beside a map of 16 (q_mac.h): how many steps a
 * sum of 32 bits takes, and whether the totals are near 0. */
#include <math.h>
#include <string.h>

#include "backend/cpu/int/conv/q_conv.h"
#include "backend/cpu/parallel.h"

enum { MOST = 65534, LANES = 64 }; /* of a sum of magnitudes; of a block, at most */

typedef struct work {
    const qn_q_conv *c;
    uint8_t *runs;
} work;

/* Adds the magnitudes of one step to the sums of the lanes; returns the largest sum. */
static int32_t add_step(int32_t *sums, const uint8_t *weights, int64_t lanes, bool is_int16)
{
    const int8_t *bytes = (const int8_t *)weights;
    const int16_t *as_int16 = (const int16_t *)(const void *)weights;
    int32_t most = 0;
    for (int64_t i = 0; i < lanes; i++) {
        const int32_t a = is_int16 ? as_int16[2 * i] : bytes[2 * i];
        const int32_t b = is_int16 ? as_int16[2 * i + 1] : bytes[2 * i + 1];
        sums[i] += (a < 0 ? -a : a) + (b < 0 ? -b : b);
        most = QN_MAX(most, sums[i]);
    }
    return most;
}

/* The runs of one segment, as long as they can be. */
static void find_segment(uint8_t *runs, const uint8_t *weights, int64_t steps, int64_t lanes,
                         bool is_int16)
{
    const int64_t step = lanes * (is_int16 ? 4 : 2);
    int32_t sums[LANES];
    for (int64_t at = 0, run = 0; at < steps; at += run) {
        memset(sums, 0, sizeof sums);
        for (run = 0; run < QN_MAC_RUN && at + run < steps; run++) {
            if (add_step(sums, weights + (at + run) * step, lanes, is_int16) > MOST)
                break;
        }
        runs[at] = (uint8_t)run;
    }
}

static void find_blocks(const void *opaque, int64_t first, int64_t last)
{
    const work *k = opaque;
    const qn_q_conv *c = k->c;
    const bool is_int16 = c->shape.kind == QN_MAC_INT16;
    const int64_t size = c->plan.kernels->weight_bytes, width = qn_q_conv_block_filters(c);
    const int64_t steps = c->tiles.segments[0].steps;
    for (int64_t block = first; block < last; block++) {
        const int64_t lanes = qn_q_conv_vectors(c, block) * c->plan.kernels->lanes;
        const uint8_t *weights = c->packed.weights + block * c->tiles.steps * width * size;
        for (int64_t s = 0; s < c->tiles.n_segments; s++)
            find_segment(k->runs + block * c->tiles.steps + s * steps,
                         weights + s * steps * lanes * size, steps, lanes, is_int16);
    }
}

qn_status qn_q_conv_find_runs(qn_q_conv *c, qn_builder *builder)
{
    enum { ALONE = 1 << 16 };
    const int64_t blocks = c->shape.groups * c->plan.blocks;
    const work k = {.c = c, .runs = qn_build_alloc(builder, (size_t)(blocks * c->tiles.steps))};
    QN_TRY_ALLOC(qn_build_context(builder), k.runs);
    qn_parallel(qn_build_threads(builder), blocks,
                ALONE / (c->tiles.steps * qn_q_conv_block_filters(c)) + 1, find_blocks, &k);
    c->packed.step_runs = k.runs;
    return QN_OK;
}

qn_status qn_q_conv_find_near(qn_q_conv *c, qn_builder *builder)
{
    const double most = 0xffff * 0x1p24;
    const int64_t count = qn_q_conv_params(c);
    for (int64_t i = 0; i < count; i++) {
        if (!(fabs(c->mac.begin[i]) + c->packed.reach[i] < most))
            return QN_OK;
    }
    int32_t *lower = qn_build_alloc(builder, (size_t)count * sizeof *lower);
    int32_t *upper = qn_build_alloc(builder, (size_t)count * sizeof *upper);
    if (!lower || !upper)
        return qn_fail_nomem(qn_build_context(builder));
    for (int64_t i = 0; i < count; i++) {
        upper[i] = (int32_t)floor(c->mac.begin[i] / 65536);
        lower[i] = (int32_t)(c->mac.begin[i] - 65536.0 * upper[i]);
    }
    c->mac.near[0] = lower;
    c->mac.near[1] = upper;
    return QN_OK;
}
