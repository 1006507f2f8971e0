/* Weights of integers in the order of q_mac.h: [block][step][vector][lane][dot]. */
#include <string.h>

#include "backend/cpu/int/conv/q_winograd.h"
#include "backend/cpu/parallel.h"

int32_t qn_q_weight(const qn_q_weights *w, int64_t filter, int64_t at)
{
    int32_t raw = w->is_signed ? (int8_t)w->data[at] : w->data[at];
    if (w->is_int16) {
        uint16_t number;
        memcpy(&number, w->data + 2 * at, sizeof number);
        raw = w->is_signed ? (int16_t)number : number;
    }
    return raw - w->zeros[filter];
}

static bool has_zeros(const qn_q_weights *w, int64_t filters)
{
    bool any = false;
    for (int64_t f = 0; f < filters; f++)
        any = any || w->zeros[f] != 0;
    return any;
}

/* All of them lie from `least` to `most`. */
static bool lie_within(const qn_q_weights *w, int64_t filters, int64_t length, int32_t least,
                       int32_t most)
{
    for (int64_t f = 0; f < filters; f++) {
        for (int64_t k = 0; k < length; k++) {
            const int32_t x = qn_q_weight(w, f, w->by_column ? k * filters + f : f * length + k);
            if (x < least || x > most)
                return false;
        }
    }
    return true;
}

int64_t qn_q_weights_largest(const qn_q_weights *w, int64_t filters, int64_t length)
{
    int64_t largest = 0;
    for (int64_t f = 0; f < filters; f++) {
        int64_t size = 0;
        for (int64_t k = 0; k < length; k++) {
            const int32_t x = qn_q_weight(w, f, f * length + k);
            size += x < 0 ? -x : x;
        }
        largest = QN_MAX(largest, size);
    }
    return largest;
}

bool qn_q_weights_fit(const qn_q_weights *w, int64_t filters, int64_t length, int bits)
{
    const int32_t half = 1 << (bits - 1);
    if (!has_zeros(w, filters) && w->is_signed && bits >= (w->is_int16 ? 16 : 8))
        return true;
    return lie_within(w, filters, length, -half, half - 1);
}

bool qn_q_weights_balanced(const qn_q_weights *w, int64_t filters, int64_t length)
{
    bool any = false;
    if (has_zeros(w, filters) || !w->is_signed || !w->is_int16)
        return lie_within(w, filters, length, -INT16_MAX, INT16_MAX);
    for (int64_t i = 0; i < filters * length; i++) {
        int16_t number;
        memcpy(&number, w->data + 2 * i, sizeof number);
        any |= number == INT16_MIN;
    }
    return !any;
}

/* One filter on its way into the packed weights. */
typedef struct packer {
    const qn_q_conv *c;
    const qn_q_weights *w;
    int64_t filter;
    /* Its lane of the first step. */
    uint8_t *to;
    /* Bytes from step to step. */
    int64_t step;
    /* Products of a step: 2 or 4. */
    int64_t dot;
    /* The sum of its weights. */
    int64_t sum;
    /* The same of their magnitudes. */
    int64_t size;
} packer;

static void put(packer *p, int64_t place, int32_t x)
{
    const int64_t in = place & (p->dot - 1);
    uint8_t *at = p->to + (place >> (p->dot == 4 ? 2 : 1)) * p->step;
    const int16_t as_int16 = (int16_t)x;
    p->sum += x;
    p->size += x < 0 ? -x : x;
    if (p->c->shape.kind == QN_MAC_INT16_SPLIT) { /* a vector of low bytes, then one of high ones */
        const int16_t low = (int16_t)(x & 255), high = (int16_t)((x - low) / 256);
        memcpy(at + in * 2, &low, sizeof low);
        memcpy(at + (int64_t)p->c->plan.kernels->lanes * 4 + in * 2, &high, sizeof high);
    } else if (p->c->plan.kernels->weight_bytes == 2 * p->dot)
        memcpy(at + in * 2, &as_int16, sizeof as_int16);
    else
        at[in] = (uint8_t)x;
}

/* Channels of kernel element (down, right), from `place` on. */
static void put_channels(packer *p, int64_t place, int64_t down, int64_t right)
{
    const qn_q_conv *c = p->c;
    const int64_t area = c->shape.grid.kernel[0] * c->shape.grid.kernel[1],
                  length = qn_q_conv_length(c);
    const int64_t filters = qn_q_conv_filters(c);
    for (int64_t i = 0; i < c->shape.group_channels; i++) {
        const int64_t k = i * area + down * c->shape.grid.kernel[1] + right;
        const int64_t at = p->w->by_column ? k * filters + p->filter : p->filter * length + k;
        put(p, place + i, qn_q_weight(p->w, p->filter, at));
    }
}

static void pack_filter(packer *p)
{
    const qn_q_conv *c = p->c;
    const int64_t across = c->tiles.n_segments / c->shape.grid.kernel[0];
    const int64_t places = c->tiles.segments[0].steps * c->plan.kernels->dot;
    for (int64_t s = 0; s < c->tiles.n_segments; s++) {
        const int64_t down = s / across;
        if (across == c->shape.grid.kernel[1]) {
            put_channels(p, s * places, down, s % across);
            continue;
        }
        for (int64_t right = 0; right < c->shape.grid.kernel[1]; right++)
            put_channels(p, s * places + right * c->shape.channels, down, right);
    }
}

/* The sum of dot(u, v) of a filter: weights of every two steps. */
static int64_t filter_pair_sums(const packer *p, int64_t steps)
{
    int64_t sum = 0;
    for (int64_t k = 0; k + 1 < steps; k += 2) {
        int16_t u[2], v[2];
        memcpy(u, p->to + k * p->step, sizeof u);
        memcpy(v, p->to + (k + 1) * p->step, sizeof v);
        sum += u[0] * v[0] + u[1] * v[1];
    }
    return sum;
}

typedef struct work {
    const qn_q_conv *c;
    const qn_q_weights *w;
    uint8_t *to;
    int32_t *start;
    double *begin;
} work;

static void pack_params(const void *opaque, int64_t first, int64_t last)
{
    const work *k = opaque;
    const qn_q_conv *c = k->c;
    const int64_t size = c->plan.kernels->weight_bytes, width = qn_q_conv_block_filters(c);
    for (int64_t param = first; param < last; param++) {
        const int64_t block = param / width, vectors = qn_q_conv_vectors(c, block);
        packer p = {.c = c,
                    .w = k->w,
                    .filter = qn_q_conv_param_filter(c, param),
                    .dot = c->plan.kernels->dot};
        p.step = vectors * c->plan.kernels->lanes * size;
        if (p.filter < 0)
            continue;
        p.to = k->to + block * c->tiles.steps * width * size + param % width * QN_MIN(size, 4);
        pack_filter(&p);
        /* sum of (x - zero) w = sum of (what tiles read) w - padding * sum of w */
        if (c->shape.kind == QN_MAC_INT8)
            k->start[param] = (int32_t)(0u - (uint32_t)qn_q_conv_padding(c) * (uint32_t)p.sum);
        if (c->plan.algorithm == QN_Q_CONV_INNER_PRODUCT)
            k->start[param] -= (int32_t)filter_pair_sums(&p, c->tiles.steps);
        k->begin[param] = -(double)qn_q_conv_padding(c) * (double)p.sum;
        c->packed.reach[param] = (c->source.is_int16 ? 0x1p15 : 255.0) * (double)p.size;
    }
}

qn_status qn_q_conv_pack(qn_q_conv *c, qn_builder *builder, const qn_q_weights *w)
{
    enum { ALONE = 1 << 16 }; /* weights that one thread packs by itself */
    if (c->plan.algorithm == QN_Q_CONV_DEPTHWISE)
        return qn_q_depthwise_pack(c, builder, w);
    if (c->plan.algorithm == QN_Q_CONV_WINOGRAD)
        return qn_q_winograd_pack(c, builder, w);
    const int64_t size = c->plan.kernels->weight_bytes, width = qn_q_conv_block_filters(c);
    const size_t bytes = (size_t)(c->shape.groups * c->plan.blocks * c->tiles.steps * width * size);
    const int64_t count = qn_q_conv_params(c);
    const work k = {.c = c,
                    .w = w,
                    .to = qn_build_alloc_weights(builder, bytes),
                    .start = qn_build_alloc(builder, (size_t)count * sizeof *k.start),
                    .begin = qn_build_alloc(builder, (size_t)count * sizeof *k.begin)};
    c->packed.reach = qn_build_alloc(builder, (size_t)count * sizeof *c->packed.reach);
    if (!k.to || !k.start || !k.begin || !c->packed.reach)
        return qn_fail_nomem(qn_build_context(builder));
    memset(k.to, 0, bytes);
    qn_parallel(qn_build_threads(builder), count, ALONE / qn_q_conv_length(c) + 1, pack_params, &k);
    c->packed.weights = k.to;
    c->packed.start = k.start;
    c->mac.start = k.start;
    c->mac.begin = k.begin;
    return c->plan.kernels->by_runs ? qn_q_conv_find_runs(c, builder) : QN_OK;
}
