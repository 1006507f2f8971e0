/* What all tiles of q_mac.h have: their patches, their ends, and the list of their sizes. */
#ifndef QN_CPU_Q_TILE_KERNELS_H
#define QN_CPU_Q_TILE_KERNELS_H

#include "backend/cpu/int/epilogue/q_epilogue_kernels.h"
#include "backend/cpu/int/mac/q_mac.h"

/* What fits into the registers: patches * vectors sums, the vectors' weights and one broadcast. */
#if defined(__AVX512F__)
enum { MAC_PATCHES = 14, MAC_PATCHES_BY_4 = 6 };
#else
enum { MAC_PATCHES = 5, MAC_PATCHES_BY_4 = 2 };
#endif

/* Tiles that are worth a loop of their own for segments that leave patches out: the widest. */
#define MAC_SKIPS(patches, vectors) ((vectors) == 2 && (patches) >= MAC_PATCHES / 2)

/* A tile's patches in four groups, so that every one is at most three steps from a pointer: the
 * halves of the tile, each in halves. */
typedef struct mac_groups {
    const uint8_t *at[4];
} mac_groups;

Q_INLINE int mac_half(int patches)
{
    return (patches + 1) / 2;
}

/* The group of patch i and its place there. */
Q_INLINE const uint8_t *mac_patch(const mac_groups *g, int64_t step, int patches, int i)
{
    const int first = mac_half(patches), second = i >= first;
    const int at = second ? i - first : i;
    const int split = mac_half(second ? patches - first : first);
    return at < split ? g->at[second * 2] + at * step : g->at[second * 2 + 1] + (at - split) * step;
}

/* a, b: the first patch of each half */
Q_INLINE mac_groups mac_grouped(const uint8_t *a, const uint8_t *b, int64_t step, int patches)
{
    const int first = mac_half(patches);
    return (mac_groups){{a, a + mac_half(first) * step, b, b + mac_half(patches - first) * step}};
}

Q_INLINE mac_groups mac_begin(const qn_mac *m, const qn_mac_tile *t, int64_t offset, int patches)
{
    return mac_grouped(t->x[0] + offset, t->x[1] + offset, m->x_step, patches);
}

static void mac_epilogue(const qf *sums, const qn_mac *m, const qn_mac_tile *t, int patches,
                         int vectors)
{
    const int first = mac_half(patches);
    for (int v = 0; v < vectors && t->filters > v * QI_LANES; v++) {
        const int64_t at = v * QI_LANES;
        for (int h = 0; h < 2; h++) {
            const q_epilogue_lanes lanes = {.sums = sums + (h * first * vectors + v),
                                            .count = h ? patches - first : first,
                                            .step = vectors,
                                            .y = t->y[h] + v * m->y_vector,
                                            .r = t->r[h] + at * qn_q_epilogue_r_bytes(&m->epilogue),
                                            .y_step = m->y_step,
                                            .r_step = m->r_step,
                                            .param = t->param + at,
                                            .lanes = t->filters - at};
            epilogue_lanes(&m->epilogue, &lanes);
        }
    }
}

/* F(patches, vectors) for every size there is. */
#define MAC_UP_TO_2(F, v) F(1, v) F(2, v)
#define MAC_UP_TO_5(F, v) MAC_UP_TO_2(F, v) F(3, v) F(4, v) F(5, v)
#define MAC_UP_TO_6(F, v) MAC_UP_TO_5(F, v) F(6, v)
#define MAC_UP_TO_14(F, v)                                                                         \
    MAC_UP_TO_6(F, v) F(7, v) F(8, v) F(9, v) F(10, v) F(11, v) F(12, v) F(13, v) F(14, v)
#if defined(__AVX512F__)
#define MAC_TILES(F, v) MAC_UP_TO_14(F, v)
#define MAC_TILES_BY_4(F, v) MAC_UP_TO_6(F, v)
#else
#define MAC_TILES(F, v) MAC_UP_TO_5(F, v)
#define MAC_TILES_BY_4(F, v) MAC_UP_TO_2(F, v)
#endif

#endif
