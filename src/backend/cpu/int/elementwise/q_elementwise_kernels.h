/* q_elementwise.h for the instruction set that the including file is compiled for. */
#include "backend/cpu/copy/q_transpose_kernels.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/int/elementwise/q_table_kernels.h"
#include "backend/cpu/int/int8_softmax_norm_kernels.h"
#include "backend/cpu/simd/vec_int16.h"
#include "backend/cpu/simd/vec_quantized.h"

/* Kernels copy their parameters first: the compiler cannot know that results do not overwrite
 * them. */

Q_INLINE qi read_side(const void *p, int64_t i, const qn_q_side *s, bool is_int16, int64_t lanes)
{
    return qi_add(qi_xor(qi_load_integers(p, i, is_int16, lanes), qi_set(s->flip)),
                  qi_set(-s->zero));
}

Q_INLINE void write_round(void *y, int64_t i, qf x, const qn_q_round *r, bool is_int16,
                          int64_t lanes)
{
    const qi whole = qf_round(qf_clamp(x, qf_set(r->low), qf_set(r->high)));
    qi_store_integers(y, i, is_int16, qi_add(whole, qi_set(r->zero)), lanes);
}

/* The same of four vectors, as bytes. */
Q_INLINE void write_four(uint8_t *y, const qf *x, const qn_q_round *r)
{
    const qf low = qf_set(r->low), high = qf_set(r->high);
    qi whole[4];
    for (int k = 0; k < 4; k++)
        whole[k] = qi_add(qf_round(qf_clamp(x[k], low, high)), qi_set(r->zero));
    qi_store_four(y, whole);
}

/* Writes VALUE, of `lanes` numbers from i on, for all n of a row. */
#define WRITE_ROUNDED(y, i, n, r, is_int16, VALUE)                                                 \
    do {                                                                                           \
        const int64_t fours = (is_int16) ? 0 : (n) / (4 * QI_LANES) * (4 * QI_LANES);              \
        for (int64_t four = 0; four < fours; four += 4 * QI_LANES) {                               \
            const int64_t lanes = QI_LANES;                                                        \
            qf values[4];                                                                          \
            for (int k = 0; k < 4; k++) {                                                          \
                const int64_t i = four + k * QI_LANES;                                             \
                values[k] = VALUE;                                                                 \
            }                                                                                      \
            write_four((uint8_t *)(y) + four, values, r);                                          \
        }                                                                                          \
        Q_VECTORS_FROM(i, fours, n, write_round(y, i, VALUE, r, is_int16, lanes));                 \
    } while (0)

/* The same of what is rounded already. */
Q_INLINE void write_whole(void *y, int64_t i, qi x, const qn_q_round *r, bool is_int16,
                          int64_t lanes)
{
    write_round(y, i, qi_float(x), r, is_int16, lanes);
}

/* ---- Between float and integers -------------------------------------------------------------- */

static void ends(float to[2], const float *x, int64_t n)
{
    enum { LANES = 32 };
    float low[LANES] = {0}, high[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            low[k] = x[i + k] < low[k] ? x[i + k] : low[k];
            high[k] = x[i + k] > high[k] ? x[i + k] : high[k];
        }
    }
    for (; i < n; i++) {
        low[0] = x[i] < low[0] ? x[i] : low[0];
        high[0] = x[i] > high[0] ? x[i] : high[0];
    }
    for (int k = 1; k < LANES; k++) {
        low[0] = low[k] < low[0] ? low[k] : low[0];
        high[0] = high[k] > high[0] ? high[k] : high[0];
    }
    to[0] = low[0];
    to[1] = high[0];
}

Q_INLINE void quantize_as(void *y, const float *x, int64_t n, const qn_q_cast *c, bool is_int16)
{
    const qf scale = qf_set(c->scale);
    const qn_q_round round = c->round;
    WRITE_ROUNDED(y, i, n, &round, is_int16, qf_div(qf_load_first(x + i, lanes), scale));
}

static void quantize(void *y, const float *x, int64_t n, const qn_q_cast *c)
{
    if (c->is_int16)
        quantize_as(y, x, n, c, true);
    else
        quantize_as(y, x, n, c, false);
}

Q_INLINE void dequantize_as(float *y, const void *x, int64_t n, const qn_q_cast *c, bool is_int16)
{
    const qf scale = qf_set(c->scale);
    Q_VECTORS(i, n,
              qf_store(y + i, qf_mul(qi_float(read_side(x, i, &c->from, is_int16, lanes)), scale),
                       lanes));
}

static void dequantize(float *y, const void *x, int64_t n, const qn_q_cast *c)
{
    if (c->from.is_int16)
        dequantize_as(y, x, n, c, true);
    else
        dequantize_as(y, x, n, c, false);
}

Q_INLINE void requantize_as(void *y, const void *x, int64_t n, const qn_q_cast *cast, bool from,
                            bool to)
{
    const qn_q_cast c = *cast;
    const qf scale = qf_set(c.scale);
    WRITE_ROUNDED(y, i, n, &c.round, to,
                  qf_mul(qi_float(read_side(x, i, &c.from, from, lanes)), scale));
}

/* 16 bits in fixed point. */
Q_INLINE void rescale_as(void *y, const void *x, int64_t n, const qn_q_cast *cast, bool to)
{
    const qn_q_cast c = *cast;
    const qd scale = qd_set((double)c.scale);
    Q_VECTORS(i, n,
              write_whole(y, i,
                          qd_whole(qd_mul(qd_of(read_side(x, i, &c.from, true, lanes)), scale)),
                          &c.round, to, lanes));
}

static void rescale(void *y, const void *x, int64_t n, const qn_q_cast *c)
{
    if (c->is_int16)
        rescale_as(y, x, n, c, true);
    else
        rescale_as(y, x, n, c, false);
}

static void requantize(void *y, const void *x, int64_t n, const qn_q_cast *c)
{
    if (c->fixed_point && c->from.is_int16) { /* of a byte and 15 bits floats hold the product */
        rescale(y, x, n, c);
        return;
    }
    if (c->from.is_int16 && c->is_int16)
        requantize_as(y, x, n, c, true, true);
    else if (c->from.is_int16)
        requantize_as(y, x, n, c, true, false);
    else if (c->is_int16)
        requantize_as(y, x, n, c, false, true);
    else
        requantize_as(y, x, n, c, false, false);
}

/* ---- Two operands ---------------------------------------------------------------------------- */

/* A single operand is read once a row. */
Q_INLINE qi operand(const void *p, int64_t i, const qn_q_side *s, bool is_int16, bool single,
                    int64_t lanes)
{
    if (!single)
        return read_side(p, i, s, is_int16, lanes);
    const int32_t stored = is_int16 ? *(const uint16_t *)p : *(const uint8_t *)p;
    return qi_set((stored ^ s->flip) - s->zero);
}

/* What the compiler makes a loop of its own for. `single`: which operand is one number a row; 0:
 * none is. Where both are, the row is one element. */
typedef struct pair_variant {
    bool sum, is_int16;
    int single;
    bool exact;
} pair_variant;

Q_INLINE void exact_row(uint8_t *y, const uint8_t *a, const uint8_t *b, const qn_q_pair *pair,
                        int64_t width, pair_variant variant)
{
    const qn_q_pair p = *pair;
    const qd a_scale = qd_set((double)p.a_scale), b_scale = qd_set((double)p.b_scale);
    Q_VECTORS(i, width, {
        const qd x = qd_of(operand(a, i, &p.a, variant.is_int16, variant.single == 1, lanes));
        const qd z = qd_of(operand(b, i, &p.b, variant.is_int16, variant.single == 2, lanes));
        const qd v = variant.sum ? qd_add(qd_mul(x, a_scale), qd_mul(z, b_scale))
                                 : qd_mul(qd_mul(x, z), a_scale);
        write_whole(y, i, qd_whole(v), &p.round, variant.is_int16, lanes);
    });
}

Q_INLINE qf pair_value(const uint8_t *a, const uint8_t *b, int64_t i, const qn_q_pair *p,
                       pair_variant variant, int64_t lanes)
{
    const qf x = qi_float(operand(a, i, &p->a, variant.is_int16, variant.single == 1, lanes));
    const qf z = qi_float(operand(b, i, &p->b, variant.is_int16, variant.single == 2, lanes));
    const qf a_scale = qf_set(p->a_scale);
    return variant.sum ? qf_fma(x, a_scale, qf_fma(z, qf_set(p->b_scale), qf_set(p->offset)))
                       : qf_mul(qf_mul(x, z), a_scale);
}

Q_INLINE void pair_row(uint8_t *y, const uint8_t *a, const uint8_t *b, const qn_q_pair *pair,
                       int64_t width, pair_variant variant)
{
    const qn_q_pair p = *pair;
    WRITE_ROUNDED(y, i, width, &p.round, variant.is_int16, pair_value(a, b, i, &p, variant, lanes));
}

Q_INLINE void pair_rows(void *y, const void *a, const void *b, const qn_q_pair *p,
                        const qn_q_rows *rows, pair_variant variant)
{
    const qn_q_rows r = *rows;
    const int64_t size = p->a.is_int16 ? 2 : 1;
    for (int64_t i = 0; i < r.rows; i++) {
        uint8_t *to = (uint8_t *)y + i * r.width * size;
        const uint8_t *x = (const uint8_t *)a + i * r.a_step * size;
        const uint8_t *z = (const uint8_t *)b + i * r.b_step * size;
        if (variant.exact && size == 2)
            exact_row(to, x, z, p, r.width,
                      (pair_variant){variant.sum, true, variant.single, true});
        else if (variant.exact)
            exact_row(to, x, z, p, r.width,
                      (pair_variant){variant.sum, false, variant.single, true});
        else if (size == 2)
            pair_row(to, x, z, p, r.width,
                     (pair_variant){variant.sum, true, variant.single, false});
        else
            pair_row(to, x, z, p, r.width,
                     (pair_variant){variant.sum, false, variant.single, false});
    }
}

Q_INLINE void pair_any(void *y, const void *a, const void *b, const qn_q_pair *p,
                       const qn_q_rows *r, pair_variant variant)
{
    if (r->a_single)
        pair_rows(y, a, b, p, r,
                  (pair_variant){.sum = variant.sum, .single = 1, .exact = variant.exact});
    else if (r->b_single)
        pair_rows(y, a, b, p, r,
                  (pair_variant){.sum = variant.sum, .single = 2, .exact = variant.exact});
    else
        pair_rows(y, a, b, p, r,
                  (pair_variant){.sum = variant.sum, .single = 0, .exact = variant.exact});
}

static void add(void *y, const void *a, const void *b, const qn_q_pair *p, const qn_q_rows *r)
{
    if (p->exact)
        pair_any(y, a, b, p, r, (pair_variant){.sum = true, .exact = true});
    else
        pair_any(y, a, b, p, r, (pair_variant){.sum = true});
}

static void multiply(void *y, const void *a, const void *b, const qn_q_pair *p, const qn_q_rows *r)
{
    if (p->exact)
        pair_any(y, a, b, p, r, (pair_variant){.exact = true});
    else
        pair_any(y, a, b, p, r, (pair_variant){.sum = false});
}

/* ---- PRelu ----------------------------------------------------------------------------------- */

/* What the compiler makes a loop of its own for: 16 bits of x and of y; one slope a row. */
typedef struct prelu_variant {
    bool from, to, single;
} prelu_variant;

/* quantize(v < 0 ? v * slope : v), v = dequantize(x) */
Q_INLINE qf prelu_value(const void *x, const float *slope, int64_t i, const qn_q_slopes *s,
                        prelu_variant variant, int64_t lanes)
{
    const qi whole = read_side(x, i, &s->cast.from, variant.from, lanes);
    const qf v = qf_mul(qi_float(whole), qf_set(s->cast.scale));
    const qf by = variant.single ? qf_set(*slope) : qf_load_first(slope + i, lanes);
    return qf_div(qf_by_sign(v, qf_mul(v, by), v), qf_set(s->y_scale));
}

Q_INLINE void prelu_rows(void *y, const void *x, const float *slope, const qn_q_slopes *slopes,
                         const qn_q_rows *rows, prelu_variant variant)
{
    const qn_q_slopes s = *slopes;
    const qn_q_rows r = *rows;
    for (int64_t row = 0; row < r.rows; row++) {
        uint8_t *to = (uint8_t *)y + row * r.width * (variant.to ? 2 : 1);
        const uint8_t *from = (const uint8_t *)x + row * r.a_step * (variant.from ? 2 : 1);
        const float *by = slope + row * r.b_step;
        WRITE_ROUNDED(to, i, r.width, &s.cast.round, variant.to,
                      prelu_value(from, by, i, &s, variant, lanes));
    }
}

Q_INLINE void prelu_any(void *y, const void *x, const float *slope, const qn_q_slopes *s,
                        const qn_q_rows *r, prelu_variant variant)
{
    if (r->b_single)
        prelu_rows(y, x, slope, s, r, (prelu_variant){variant.from, variant.to, true});
    else
        prelu_rows(y, x, slope, s, r, (prelu_variant){variant.from, variant.to, false});
}

static void prelu(void *y, const void *x, const float *slope, const qn_q_slopes *s,
                  const qn_q_rows *r)
{
    if (s->cast.from.is_int16 && s->cast.is_int16)
        prelu_any(y, x, slope, s, r, (prelu_variant){.from = true, .to = true});
    else if (s->cast.from.is_int16)
        prelu_any(y, x, slope, s, r, (prelu_variant){.from = true});
    else if (s->cast.is_int16)
        prelu_any(y, x, slope, s, r, (prelu_variant){.to = true});
    else
        prelu_any(y, x, slope, s, r, (prelu_variant){.from = false});
}

/* ---- Bytes to bytes -------------------------------------------------------------------------- */

static void clip(uint8_t *y, const uint8_t *x, int64_t n, qn_q_side side, const int32_t limits[2])
{
    const uint8_t low = (uint8_t)limits[0], high = (uint8_t)limits[1], flip = (uint8_t)side.flip;
    for (int64_t i = 0; i < n; i++) {
        uint8_t v = x[i] ^ flip;
        v = v > low ? v : low;
        v = v < high ? v : high;
        y[i] = v ^ flip;
    }
}

/* ---- Windows --------------------------------------------------------------------------------- */

Q_INLINE const uint8_t *tap(const qn_q_taps *t, int64_t i)
{
    return (const uint8_t *)t->x + (t->offsets ? t->offsets[i] : i * t->step);
}

Q_INLINE void largest_of(uint8_t *y, const qn_q_taps *t, int64_t c, qb flip, int64_t count)
{
    qb most = qb_set(0);
    for (int64_t i = 0; i < t->n; i++)
        most = qb_max(most, qb_xor(qb_load(tap(t, i) + c, count), flip));
    qb_store(y + c, qb_xor(most, flip), count);
}

static void largest(uint8_t *y, const qn_q_taps *t, int64_t width, int32_t flip)
{
    const qb top = qb_set((uint8_t)flip);
    int64_t c = 0;
    for (; c + QB_BYTES <= width; c += QB_BYTES)
        largest_of(y, t, c, top, QB_BYTES);
    if (c < width)
        largest_of(y, t, c, top, width - c);
}

static void largest_uint16(uint8_t *y, const qn_q_taps *t, int64_t width, int32_t flip)
{
    uint16_t *most = (uint16_t *)(void *)y;
    const uint16_t top = (uint16_t)flip;
    for (int64_t c = 0; c < width; c++)
        most[c] = top; /* the least there is */
    for (int64_t i = 0; i < t->n; i++) {
        const uint16_t *x = (const uint16_t *)(const void *)tap(t, i);
        for (int64_t c = 0; c < width; c++)
            most[c] = (x[c] ^ top) > (most[c] ^ top) ? x[c] : most[c];
    }
}

static uint8_t largest_row(const uint8_t *x, int64_t n, int32_t flip)
{
    const uint8_t top = (uint8_t)flip;
    uint8_t lanes[QB_BYTES], most = 0;
    qb best = qb_set(0);
    int64_t i = 0;
    for (; i + QB_BYTES <= n; i += QB_BYTES)
        best = qb_max(best, qb_xor(qb_load(x + i, QB_BYTES), qb_set(top)));
    qb_store(lanes, best, QB_BYTES);
    for (int k = 0; k < QB_BYTES; k++)
        most = lanes[k] > most ? lanes[k] : most;
    for (; i < n; i++)
        most = (x[i] ^ top) > most ? x[i] ^ top : most;
    return most ^ top;
}

/* So many vectors of numbers from c on, of which `lanes` count each. */
typedef struct mean_part {
    int64_t c, lanes;
    int vectors;
} mean_part;

/* Four vectors of sums at a time, so that each tap's cache line is used whole. */
Q_INLINE void mean_group(void *y, const qn_q_taps *t, mean_part part, const qn_q_cast *cast,
                         bool from, bool to)
{
    const int64_t c = part.c, lanes = part.lanes;
    const int vectors = part.vectors;
    const qn_q_cast m = *cast;
    const int64_t zeros = t->n * (int64_t)m.from.zero;
    qi sums[4];
    for (int v = 0; v < vectors; v++)
        sums[v] = qi_set((int32_t)-zeros);
    for (int64_t i = 0; i < t->n; i++) {
        const uint8_t *x = tap(t, i);
        for (int v = 0; v < vectors; v++)
            sums[v] = qi_add(sums[v], qi_xor(qi_load_integers(x, c + v * QI_LANES, from, lanes),
                                             qi_set(m.from.flip)));
    }
    for (int v = 0; v < vectors; v++) {
        const qf mean = m.fixed_point
                            ? qi_float(qd_whole(qd_times(qd_of(sums[v]), (double)m.scale)))
                            : qf_mul(qi_float(sums[v]), qf_set(m.scale));
        write_round(y, c + v * QI_LANES, mean, &m.round, to, lanes);
    }
}

Q_INLINE void mean_as(void *y, const qn_q_taps *t, int64_t width, const qn_q_cast *m, bool from,
                      bool to)
{
    int64_t c = 0;
    for (; c + 4 * QI_LANES <= width; c += 4 * QI_LANES)
        mean_group(y, t, (mean_part){c, QI_LANES, 4}, m, from, to);
    for (; c < width; c += QI_LANES)
        mean_group(y, t, (mean_part){c, width - c < QI_LANES ? width - c : QI_LANES, 1}, m, from,
                   to);
}

static void mean(void *y, const qn_q_taps *t, int64_t width, const qn_q_cast *m)
{
    if (m->from.is_int16 && m->is_int16)
        mean_as(y, t, width, m, true, true);
    else if (m->from.is_int16)
        mean_as(y, t, width, m, true, false);
    else if (m->is_int16)
        mean_as(y, t, width, m, false, true);
    else
        mean_as(y, t, width, m, false, false);
}

static void mean_row(void *y, const void *x, int64_t n, const qn_q_cast *m)
{
    const qn_q_side *s = &m->from;
    int32_t sum = 0;
    if (s->is_int16) {
        for (int64_t i = 0; i < n; i++)
            sum += (((const uint16_t *)x)[i] ^ s->flip) - s->zero;
    } else {
        for (int64_t i = 0; i < n; i++)
            sum += (((const uint8_t *)x)[i] ^ s->flip) - s->zero;
    }
    if (m->fixed_point)
        write_whole(y, 0, qd_whole(qd_set((double)sum * (double)m->scale)), &m->round, m->is_int16,
                    1);
    else
        write_round(y, 0, qf_set((float)sum * m->scale), &m->round, m->is_int16, 1);
}

/* ---- Resize ---------------------------------------------------------------------------------- */

/* The two taps along a row of one position. */
typedef struct linear_taps {
    int64_t at[2];
    float weight[2];
} linear_taps;

/* x[i0] * c0 + x[i1] * c1, each rounded by itself */
Q_INLINE qf between(const uint8_t *row, const linear_taps *t, int64_t c, const qn_q_side *s,
                    bool is_int16, int64_t lanes)
{
    const qf a =
        qf_mul(qi_float(read_side(row, t->at[0] + c, s, is_int16, lanes)), qf_set(t->weight[0]));
    const qf b =
        qf_mul(qi_float(read_side(row, t->at[1] + c, s, is_int16, lanes)), qf_set(t->weight[1]));
    return qf_add(a, b);
}

Q_INLINE void linear_as(void *y, const qn_q_linear *line, const qn_q_cast *cast, bool is_int16)
{
    const qn_q_linear copied = *line, *l = &copied;
    const qn_q_cast how = *cast, *m = &how;
    const qf d0 = qf_set(l->top_weight), d1 = qf_set(l->low_weight), scale = qf_set(m->scale);
    for (int64_t w = 0; w < l->out_w; w++) {
        const linear_taps taps = {
            {l->index[2 * w] * l->channels, l->index[2 * w + 1] * l->channels},
            {l->weight[2 * w], l->weight[2 * w + 1]}};
        Q_VECTORS(c, l->channels, {
            const qf h0 = between(l->top, &taps, c, &m->from, is_int16, lanes);
            const qf h1 = between(l->low, &taps, c, &m->from, is_int16, lanes);
            const qf v = qf_add(qf_mul(h0, d0), qf_mul(h1, d1));
            write_round(y, w * l->channels + c, qf_mul(v, scale), &m->round, is_int16, lanes);
        });
    }
}

static void linear(void *y, const qn_q_linear *l, const qn_q_cast *m)
{
    if (m->is_int16)
        linear_as(y, l, m, true);
    else
        linear_as(y, l, m, false);
}

/* ---- Table ----------------------------------------------------------------------------------- */

const qn_q_kernels Q_NAME(qn_q_kernels) = {
    .ends = ends,
    .quantize = quantize,
    .dequantize = dequantize,
    .requantize = requantize,
    .add = add,
    .multiply = multiply,
    .prelu = prelu,
    .clip = clip,
    .table = look_up,
    .largest = largest,
    .largest_uint16 = largest_uint16,
    .largest_row = largest_row,
    .mean = mean,
    .mean_row = mean_row,
    .linear = linear,
    .softmax = softmax,
    .softmax_columns = softmax_columns,
    .norm = norm,
    .transpose_uint8 = transpose_uint8,
    .transpose_uint16 = transpose_uint16,
};
