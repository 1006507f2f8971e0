/* The end of tiles whose filters fill all their vectors: sums to bytes or floats, four vectors at a
 * time, with the numbers that all patches share in registers. */
#ifndef QN_CPU_Q_FULL_TILE_KERNELS_H
#define QN_CPU_Q_FULL_TILE_KERNELS_H

#include "backend/cpu/int/epilogue/q_epilogue_kernels.h"
#include "backend/cpu/int/mac/q_mac.h"

typedef struct whole {
    const qn_mac *m;
    const qn_mac_tile *t;
    /* First: of them, from y[0] and r[0] on. */
    int patches, first;
} whole;

/* Which loop serves. */
typedef struct whole_kind {
    int vectors;
    /* No bias to add, all of uint8 without zero point. */
    bool usual;
    bool a_first;
    /* Has been done: sums are whole numbers less the zero point. */
    bool function;
    /* There are two roundings. */
    bool twice;
} whole_kind;

/* ---- Patches --------------------------------------------------------------------------------- */

/* A patch: its sums, [vectors], and where its results go. */
typedef struct whole_patch {
    const qi *sums;
    uint8_t *y;
} whole_patch;

/* Those of one group of four vectors; the last one stands for those that are missing. */
typedef struct whole_group {
    whole_patch at[4];
} whole_group;

/* The next `4 / vectors` patches from *i on, of which *next is the first. */
Q_INLINE whole_group whole_take(whole_patch *next, int *i, const whole *w, int vectors)
{
    whole_group g;
    for (int k = 0; k < 4 / vectors; k++) {
        g.at[k] = *next;
        if (++*i < w->patches) {
            next->sums += vectors;
            next->y = *i == w->first ? w->t->y[1] : next->y + w->m->y_step;
        }
    }
    return g;
}

Q_INLINE void whole_store(const whole_group *g, qi bytes, int vectors)
{
    if (vectors == 4)
        qi_store_halves(g->at[0].y, g->at[0].y + 2 * QI_LANES, bytes);
    else if (vectors == 2)
        qi_store_halves(g->at[0].y, g->at[1].y, bytes);
    else
        qi_store_quarters((uint8_t *const[4]){g->at[0].y, g->at[1].y, g->at[2].y, g->at[3].y},
                          bytes);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

typedef struct whole_scales {
    /* By vector. */
    qf bias[4], scale[4];
    q_twice twice[4];
} whole_scales;

Q_INLINE whole_scales whole_load(const qn_q_epilogue *f, int64_t param, int vectors)
{
    whole_scales s;
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
        s.bias[v] = qf_load(f->bias + param + v * QI_LANES);
        s.scale[v] = qf_load(f->scale + param + v * QI_LANES);
        if (f->first_rounding)
            s.twice[v] = twice_load(f, param + v * QI_LANES);
    }
    return s;
}

Q_INLINE qf whole_scaled(const whole_scales *s, qi sum, int v, bool biased)
{
    const qf x = qi_float(sum);
    return qf_mul(biased ? qf_add(x, s->bias[v]) : x, s->scale[v]);
}

Q_INLINE qi whole_pack(const qi *a, const qi_limits *limits, bool usual)
{
    return usual ? qi_pack_bytes(a[0], a[1], a[2], a[3]) : qi_pack(a[0], a[1], a[2], a[3], limits);
}

/* What is rounded next, of vector k of a group. */
Q_INLINE qf whole_value(const whole_scales *s, const whole_group *g, int k, whole_kind kind)
{
    const int v = k % kind.vectors;
    const qi sum = g->at[k / kind.vectors].sums[v];
    return kind.twice ? twice_rounded(qf_add(qi_float(sum), s->bias[v]), &s->twice[v])
                      : whole_scaled(s, sum, v, !kind.usual);
}

/* The same rounded. */
Q_INLINE qi whole_rounded(const whole_scales *s, const whole_group *g, int k, whole_kind kind)
{
    return kind.function ? g->at[k / kind.vectors].sums[k % kind.vectors]
                         : qf_round(whole_value(s, g, k, kind));
}

/* What a function makes of all sums. */
Q_INLINE void whole_function(qi *to, const whole *w, const qi *sums, int vectors)
{
    const qn_q_epilogue *f = &w->m->epilogue;
    const whole_scales s = whole_load(f, w->t->param, vectors);
    qf x[QN_MAC_PATCHES * 2];
    for (int i = 0; i < w->patches * vectors; i += vectors) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            x[i + v] = whole_scaled(&s, sums[i + v], v, true);
    }
    function_rounded(to, x, w->patches * vectors, f);
}

/* ---- Loops ----------------------------------------------------------------------------------- */

Q_INLINE void whole_alone(const whole *w, const qi *sums, whole_kind kind)
{
    const qn_q_epilogue *f = &w->m->epilogue;
    const whole_scales s = whole_load(f, w->t->param, kind.vectors);
    const qi_limits limits = epilogue_limits(f);
    whole_patch next = {sums, w->t->y[0]};
    for (int i = 0; i < w->patches;) {
        const whole_group g = whole_take(&next, &i, w, kind.vectors);
        qi a[4];
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++)
            a[k] = whole_rounded(&s, &g, k, kind);
        whole_store(&g, whole_pack(a, &limits, kind.usual), kind.vectors);
    }
}

/* The residual lies like the results. */
Q_INLINE void whole_sum(const whole *w, const qi *sums, whole_kind kind)
{
    const qn_q_epilogue *f = &w->m->epilogue;
    const whole_scales s = whole_load(f, w->t->param, kind.vectors);
    const q_epilogue_constants c = epilogue_load(f, w->t->param);
    const qi_limits limits = epilogue_limits(f);
    const qi bits = qi_set(f->sum.r_signed ? -1 : 255);
    const ptrdiff_t r = (ptrdiff_t)((uintptr_t)w->t->r[0] - (uintptr_t)w->t->y[0]);
    whole_patch next = {sums, w->t->y[0]};
    for (int i = 0; i < w->patches;) {
        const whole_group g = whole_take(&next, &i, w, kind.vectors);
        qi a[4];
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) {
            const int v = k % kind.vectors;
            const whole_patch *at = &g.at[k / kind.vectors];
            const qi b = qi_and(qi_load_bytes(at->y + r + v * QI_LANES, true, QI_LANES), bits);
            const qf x = kind.function
                             ? qi_float(at->sums[v])
                             : qf_rint(qf_clamp(whole_value(&s, &g, k, kind), c.low, c.high));
            a[k] = qf_round(epilogue_add(&c, x, qi_float(b), kind.a_first));
        }
        whole_store(&g, whole_pack(a, &limits, kind.usual), kind.vectors);
    }
}

Q_INLINE void whole_floats(const whole *w, const qi *sums, int vectors, bool adds)
{
    const qn_q_epilogue *f = &w->m->epilogue;
    const whole_scales s = whole_load(f, w->t->param, vectors);
    qf added[4];
    for (int v = 0; v < vectors; v++)
        added[v] = adds ? qf_load(f->added + w->t->param + v * QI_LANES) : qf_set(0);
    const bool relu = f->relu;
    uint8_t *y = w->t->y[0];
    for (int i = 0; i < w->patches; sums += vectors) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            const qf scaled = whole_scaled(&s, sums[v], v, true);
            const qf x = adds ? qf_add(scaled, added[v]) : scaled;
            qf_store((float *)(void *)(y + v * w->m->y_vector), relu ? qf_relu(x) : x, QI_LANES);
        }
        y = ++i == w->first ? w->t->y[1] : y + w->m->y_step;
    }
}

Q_INLINE void whole_epilogue(const qi *sums, const whole *w, int vectors)
{
    const qn_q_epilogue *f = &w->m->epilogue;
    const bool usual = f->usual && !f->biased;
    qi done[QN_MAC_PATCHES * 2];
    if (f->has_function && !f->floats) {
        whole_function(done, w, sums, vectors);
        sums = done;
    }
    if (f->floats && f->added)
        whole_floats(w, sums, vectors, true);
    else if (f->floats)
        whole_floats(w, sums, vectors, false);
    else if (f->has_function && !f->has_sum)
        whole_alone(w, sums, (whole_kind){vectors, false, false, true, false});
    else if (f->has_function && f->sum.a_first)
        whole_sum(w, sums, (whole_kind){vectors, false, true, true, false});
    else if (f->has_function)
        whole_sum(w, sums, (whole_kind){vectors, false, false, true, false});
    else if (f->first_rounding && !f->has_sum)
        whole_alone(w, sums, (whole_kind){vectors, false, false, false, true});
    else if (f->first_rounding && f->sum.a_first)
        whole_sum(w, sums, (whole_kind){vectors, false, true, false, true});
    else if (f->first_rounding)
        whole_sum(w, sums, (whole_kind){vectors, false, false, false, true});
    else if (!f->has_sum && usual)
        whole_alone(w, sums, (whole_kind){vectors, true, false, false, false});
    else if (!f->has_sum)
        whole_alone(w, sums, (whole_kind){vectors, false, false, false, false});
    else if (usual && f->sum.a_first)
        whole_sum(w, sums, (whole_kind){vectors, true, true, false, false});
    else if (usual)
        whole_sum(w, sums, (whole_kind){vectors, true, false, false, false});
    else if (f->sum.a_first)
        whole_sum(w, sums, (whole_kind){vectors, false, true, false, false});
    else
        whole_sum(w, sums, (whole_kind){vectors, false, false, false, false});
}

/* sums: [patches][vectors] */
static void whole_epilogue_1(const qi *sums, const whole *w)
{
    whole_epilogue(sums, w, 1);
}
static void whole_epilogue_2(const qi *sums, const whole *w)
{
    whole_epilogue(sums, w, 2);
}
static void whole_epilogue_4(const qi *sums, const whole *w)
{
    whole_epilogue(sums, w, 4);
}

#endif
