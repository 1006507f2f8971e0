/* Tiles by Winograd's inner product (q_mac.h) in AVX2. Plain tiles are bound by the two units
 * that multiply; here a fourth of the instructions are multiplications, and all four units have the
 * same to do. Included by int8_mac_kernels.h, behind mac_end. */
#ifndef QN_CPU_INT8_INNER_PRODUCT_KERNELS_H
#define QN_CPU_INT8_INNER_PRODUCT_KERNELS_H

/* patches * 2 sums, the weights of two steps, two broadcasts and what is added to them */
enum { INNER_PRODUCT_PATCHES = 4, INNER_PRODUCT_CHANNELS = 4 };
enum { HALF_UNROLLED = 4 }; /* pairs of steps: what counts and moves on would fill the front end */

/* Two steps, the pair `at` behind the place where weights and patches stand. */
Q_INLINE void inner_product_steps(qi *sum, const mac_groups *g, const uint8_t *weights,
                                  int64_t x_step, int patches, int at)
{
    enum { AHEAD = 4096, LINE = 64 };
    weights += at * 4 * QI_BYTES;
    const qi u[2] = {qi_load(weights), qi_load(weights + QI_BYTES)};
    const qi v[2] = {qi_load(weights + 2 * QI_BYTES), qi_load(weights + 3 * QI_BYTES)};
    qi_fetch(weights, AHEAD);
    qi_fetch(weights, AHEAD + LINE);
#pragma GCC unroll 4
    for (int i = 0; i < patches; i++) {
        const uint8_t *x = mac_patch(g, x_step, patches, i) + at * 8;
        const qi a = qi_broadcast(x), b = qi_broadcast(x + 4);
#pragma GCC unroll 2
        for (int f = 0; f < 2; f++) {
            qi *to = &sum[2 * i + f];
            *to = qi_add(*to, qi_madd(qi_add_int16(a, v[f]), qi_add_int16(b, u[f])));
            Q_ADD_NOW(*to);
        }
    }
}

Q_INLINE void half_move(mac_groups *g, const uint8_t **weights, int pairs)
{
    *weights += pairs * 4 * QI_BYTES;
    for (int i = 0; i < 4; i++)
        g->at[i] += pairs * 8;
}

Q_INLINE void inner_product_tile(const qn_mac *m, const qn_mac_tile *t, int patches)
{
    const int half = mac_half(patches);
    const qi start[2] = {qi_load(m->start + t->param), qi_load(m->start + t->param + QI_LANES)};
    const uint8_t *weights = t->weights;
    mac_groups g = mac_begin(m, t, t->segments->offset, patches);
    int64_t pairs = t->segments->steps / 2;
    qi sum[INNER_PRODUCT_PATCHES * 2];
#pragma GCC unroll 4
    for (int i = 0; i < patches; i++) {
        const qi pair_sums = qi_set(i < half ? t->pair_sums[0][i] : t->pair_sums[1][i - half]);
        sum[2 * i] = qi_sub(start[0], pair_sums);
        sum[2 * i + 1] = qi_sub(start[1], pair_sums);
    }
    for (; pairs >= HALF_UNROLLED; pairs -= HALF_UNROLLED) {
#pragma GCC unroll 4
        for (int i = 0; i < HALF_UNROLLED; i++)
            inner_product_steps(sum, &g, weights, m->x_step, patches, i);
        half_move(&g, &weights, HALF_UNROLLED);
    }
    for (; pairs > 0; pairs--) {
        inner_product_steps(sum, &g, weights, m->x_step, patches, 0);
        half_move(&g, &weights, 1);
    }
    mac_end(sum, m, t, patches, 2);
}

#define HALF_TILE(n)                                                                               \
    static void inner_product_tile_##n(const qn_mac *m, const qn_mac_tile *t)                      \
    {                                                                                              \
        inner_product_tile(m, t, n);                                                               \
    }
HALF_TILE(1)
HALF_TILE(2)
HALF_TILE(3)
HALF_TILE(4)
static qn_mac_fn *const inner_product_tiles[INNER_PRODUCT_PATCHES] = {
    inner_product_tile_1, inner_product_tile_2, inner_product_tile_3, inner_product_tile_4};

/* Lanes with their neighbours: every product twice, so half of all. */
static void half_less(int32_t *pair_sums, const uint8_t *x, int64_t pixels, int64_t channels)
{
    const int64_t vectors = channels / (2 * QI_LANES) * (2 * QI_LANES);
    for (int64_t p = 0; p < pixels; p++, x += channels * 2) {
        const int16_t *rest = (const int16_t *)(const void *)x;
        int32_t lanes[QI_LANES], sum = 0;
        qi all = qi_set(0);
        for (int64_t i = 0; i < vectors; i += 2 * QI_LANES) {
            const qi v = qi_load(x + i * 2);
            all = qi_add(all, qi_madd(v, _mm256_shuffle_epi32(v, 0xb1)));
        }
        qi_store(lanes, all);
        for (int i = 0; i < QI_LANES; i += 2)
            sum += lanes[i];
        for (int64_t i = vectors; i < channels; i += INNER_PRODUCT_CHANNELS)
            sum += rest[i] * rest[i + 2] + rest[i + 1] * rest[i + 3];
        pair_sums[p] = sum;
    }
}

#endif
