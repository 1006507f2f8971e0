/* The kernels of q_recurrent.h. Their operations are those of src/ops/qlinear_recurrent.c, in its
 * order. */
#ifndef QN_CPU_Q_RECURRENT_KERNELS_H
#define QN_CPU_Q_RECURRENT_KERNELS_H

#include "backend/cpu/int/recurrent/q_recurrent.h"
#include "backend/cpu/simd/vec_int_double.h"
#include "backend/cpu/simd/vec_quantized.h"

/* ---- Products -------------------------------------------------------------------------------- */

#if defined(__AVX512F__)
enum { TILE_ROWS = 4 };
#else
enum { TILE_ROWS = 2 };
#endif
enum { TILE_VECTORS = 4, LONGEST = 127 };

/* A group of weights of a vector, of `bytes` bytes each. Those of 8 bits come from far in half the
 * time, where there is an instruction that widens them. */
#if defined(__AVX512VNNI__)
enum { WEIGHT_BYTES = 1, SHORT_BELOW = 0 };
Q_INLINE qi weights_at(const uint8_t *p, int bytes)
{
    (void)bytes;
    return qi_load(p);
}
#elif defined(__AVX512F__)
enum { WEIGHT_BYTES = 1, SHORT_BELOW = QN_QRL_NEAR };
Q_INLINE qi weights_at(const uint8_t *p, int bytes)
{
    return bytes == 2 ? qi_load(p)
                      : _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
#elif defined(__AVX2__)
enum { WEIGHT_BYTES = 1, SHORT_BELOW = QN_QRL_NEAR };
Q_INLINE qi weights_at(const uint8_t *p, int bytes)
{
    return bytes == 2 ? qi_load(p)
                      : _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
}
#else
enum { WEIGHT_BYTES = 2, SHORT_BELOW = 0 };
Q_INLINE qi weights_at(const uint8_t *p, int bytes)
{
    (void)bytes;
    return qi_load(p);
}
#endif

/* Additions that wait for each other: those of VNNI take as long as its products. */
#if defined(__AVX512VNNI__)
enum { WAITS = true };
#else
enum { WAITS = false };
#endif

/* A tile is `rows` rows by `vectors` vectors, numbers that the compiler knows. A single row has two
 * sums for each vector where additions wait for each other. */
typedef struct tile_size {
    int rows, vectors;
    /* The size of a weight. */
    int bytes;
} tile_size;

Q_INLINE int64_t weight_group(int bytes)
{
    return (int64_t)QI_LANES * QI_DOT * bytes;
}

/* Group k of a tile whose weights begin at m. */
Q_INLINE void tile_group(qi *sum, const qn_q_recurrent_product *p, const uint8_t *const *x,
                         const uint8_t *m, int64_t k, tile_size size)
{
    qi w[TILE_VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < size.vectors; v++)
        w[v] = weights_at(m + (v * p->groups + k) * weight_group(size.bytes), size.bytes);
#pragma GCC unroll 4
    for (int r = 0; r < size.rows; r++) {
        const qi pair = qi_broadcast(x[r] + 4 * k);
#pragma GCC unroll 4
        for (int v = 0; v < size.vectors; v++)
            sum[r * size.vectors + v] = qi_dot(sum[r * size.vectors + v], pair, w[v]);
    }
}

Q_INLINE void tile_end(const qi *sum, const qn_q_recurrent_product *p, int64_t row, int64_t first,
                       tile_size size)
{
    for (int r = 0; r < size.rows; r++) {
        int32_t *y = (int32_t *)p->y + (row + r) * p->y_stride + first * QI_LANES;
        const qd zero = qd_set(-p->zeros[row + r]);
        for (int v = 0; v < size.vectors; v++) {
            const qd off = qd_mul(qd_load(p->sums + (first + v) * QI_LANES), zero);
            qi_store(y + v * QI_LANES, qi_add(qd_round(off), sum[r * size.vectors + v]));
        }
    }
}

Q_INLINE void tile(const qn_q_recurrent_product *p, int64_t row, int64_t first, tile_size size)
{
    const int rows = size.rows, vectors = size.vectors;
    const uint8_t *m = p->m + first * p->groups * weight_group(size.bytes), *x[TILE_ROWS];
    qi sum[TILE_ROWS * TILE_VECTORS], second[TILE_VECTORS];
    int64_t k = 0;
    for (int i = 0; i < rows * vectors; i++)
        sum[i] = qi_set(0);
    for (int i = 0; i < vectors; i++)
        second[i] = qi_set(0);
    for (int r = 0; r < rows; r++)
        x[r] = p->x[row + r];
    for (; WAITS && rows == 1 && k + 2 <= p->groups; k += 2) {
        tile_group(sum, p, x, m, k, size);
        tile_group(second, p, x, m, k + 1, size);
    }
    for (; k < p->groups; k++)
        tile_group(sum, p, x, m, k, size);
    for (int i = 0; WAITS && i < vectors && rows == 1; i++)
        sum[i] = qi_add(sum[i], second[i]);
    tile_end(sum, p, row, first, size);
}

Q_INLINE void tiles(const qn_q_recurrent_product *p, int64_t first, int vectors, int bytes)
{
    int64_t row = 0;
    for (; row + TILE_ROWS <= p->rows; row += TILE_ROWS)
        tile(p, row, first, (tile_size){TILE_ROWS, vectors, bytes});
    for (; row < p->rows; row++)
        tile(p, row, first, (tile_size){1, vectors, bytes});
}

Q_INLINE void product(const qn_q_recurrent_product *p, int bytes)
{
    int64_t v = 0;
    for (; v + TILE_VECTORS <= p->vectors; v += TILE_VECTORS)
        tiles(p, v, TILE_VECTORS, bytes);
    for (; v < p->vectors; v++)
        tiles(p, v, 1, bytes);
}

static void product_int8(const qn_q_recurrent_product *p)
{
    product(p, WEIGHT_BYTES);
}

static void product_short(const qn_q_recurrent_product *p)
{
    product(p, 2);
}

/* A row by a vector of weights of 16 bits. */
Q_INLINE qd wide_sum(const uint8_t *x, const uint8_t *m, int64_t groups, qd sum)
{
    for (int64_t k = 0; k < groups;) {
        const int64_t end = k + LONGEST < groups ? k + LONGEST : groups;
        qi high = qi_set(0), low = qi_set(0);
        for (; k < end; k++) {
            const qi pair = qi_broadcast(x + 4 * k);
            high = qi_add(high, qi_madd(pair, qi_load(m + 2 * k * QI_BYTES)));
            low = qi_add(low, qi_madd(pair, qi_load(m + (2 * k + 1) * QI_BYTES)));
        }
        sum = qd_add(sum, qd_add(qd_mul(qd_of(high), qd_set(256)), qd_of(low)));
    }
    return sum;
}

static void product_int16(const qn_q_recurrent_product *p)
{
    for (int64_t v = 0; v < p->vectors; v++) {
        const uint8_t *m = p->m + 2 * v * p->groups * QI_BYTES;
        for (int64_t r = 0; r < p->rows; r++) {
            double *y = (double *)p->y + r * p->y_stride + v * QI_LANES;
            const qd off = qd_mul(qd_load(p->sums + v * QI_LANES), qd_set(-p->zeros[r]));
            qd_store(y, wide_sum(p->x[r], m, p->groups, off));
        }
    }
}

/* ---- Cells ----------------------------------------------------------------------------------- */

Q_INLINE qd sums_at(const void *sums, int64_t i, bool has_double_sums)
{
    return has_double_sums ? qd_load((const double *)sums + i)
                           : qd_of(qi_load((const int32_t *)sums + i));
}

/* Row i, counted with what pads. */
Q_INLINE qd argument(const qn_q_recurrent_step *s, int64_t i, bool has_double_sums)
{
    const qd sum_x = qd_mul(sums_at(s->sum_x, i, has_double_sums), qd_set(s->x_unit));
    const qd sum_h = qd_mul(sums_at(s->sum_h, i, has_double_sums), qd_set(s->h_unit));
    const qd x = qd_mul(sum_x, qd_of_floats(s->cell->x + i));
    const qd h = qd_mul(sum_h, qd_of_floats(s->cell->r + i));
    return qd_add(qd_add(x, h), qd_of_floats(s->cell->bias + i));
}

Q_INLINE qi limited(qd x, double low, double high)
{
    return qd_round(qd_clamp(x, qd_set(low), qd_set(high)));
}

/* Pairs of neighbours in the table, and the line between them. */
Q_INLINE qi squash(const qn_qsquash *f, qd argument)
{
    enum { STEP = 1 << QN_QSQUASH_STEP_BITS, HALF = 32768 };
    const qi x = qi_add(limited(argument, -HALF, HALF - 1), qi_set(HALF));
    const qi k = qi_shift_right(x, QN_QSQUASH_STEP_BITS), r = qi_and(x, qi_set(STEP - 1));
    const qi weights = qi_add(qi_shift_left(r, 16), qi_sub(qi_set(STEP), r));
#if defined(__AVX512F__)
    const qi pair = _mm512_i32gather_epi32(k, f->table, 2);
#elif defined(__AVX2__)
    const qi pair = _mm256_i32gather_epi32((const int *)(const void *)f->table, k, 2);
#else
    int32_t at[QI_LANES];
    uint32_t ends[QI_LANES];
    qi_store(at, k);
    for (int i = 0; i < QI_LANES; i++)
        ends[i] = (uint16_t)f->table[at[i]] | (uint32_t)(uint16_t)f->table[at[i] + 1] << 16;
    const qi pair = qi_load(ends);
#endif
    return qi_shift_right(qi_add(qi_madd(pair, weights), qi_set(STEP / 2)), QN_QSQUASH_STEP_BITS);
}

/* The state, rounded and limited, without its zero point. */
Q_INLINE qi rounded(const qn_qcell *cell, qd h)
{
    return limited(h, (double)(cell->range.min - cell->y.zero),
                   (double)(cell->range.max - cell->y.zero));
}

/* Units [k, k + lanes) of the state that products read. */
Q_INLINE void store_form(const qn_q_recurrent_step *s, int64_t k, qi h)
{
    const qi numbers = qi_add(h, qi_set((int32_t)s->cell->y.zero - s->form.offset));
    qi_store_integers(s->stored, k, s->form.as_int16, numbers, QI_LANES);
}

Q_INLINE void store_state(const qn_q_recurrent_step *s, int64_t k, qi h)
{
    qi_store(s->h + k, h);
    store_form(s, k, h);
    if (s->y)
        qi_store_integers(s->y, k, s->y_is_int16, qi_add(h, qi_set((int32_t)s->cell->y.zero)),
                          s->cell->hidden - k);
}

/* A gate of an LSTM, which may look at the cell; peepholes are those of i, o and f. */
Q_INLINE qi lstm_gate(const qn_q_recurrent_step *s, int64_t gate, int64_t k, qi c,
                      bool has_double_sums)
{
    const int64_t i = gate * s->pitch + k;
    qd x = argument(s, i, has_double_sums);
    if (s->cell->peeps)
        x = qd_add(x, qd_mul(qd_of(c), qd_of_floats(s->cell->peephole + i)));
    return squash(&s->cell->f, x);
}

Q_INLINE void lstm_units(const qn_q_recurrent_step *s, int64_t k, bool has_double_sums)
{
    enum { I, O, F, FRESH };
    const qn_qcell *cell = s->cell;
    const int bits = cell->f.out_bits;
    qi c = qi_load(s->c + k);
    const qi i = lstm_gate(s, I, k, c, has_double_sums);
    const qi f =
        cell->input_forget ? qi_sub(qi_set(1 << bits), i) : lstm_gate(s, F, k, c, has_double_sums);
    const qi fresh = squash(&cell->g, argument(s, FRESH * s->pitch + k, has_double_sums));
    const qd kept = qd_mul(qd_of(f), qd_of(c));
    const qd added = qd_mul(qd_of(qi_mul(i, fresh)), qd_set(cell->fresh_unit));
    c = limited(qd_mul(qd_add(kept, added), qd_set(cell->gate_unit)), -INT32_MAX, INT32_MAX);
    qi_store(s->c + k, c);
    const qi o = lstm_gate(s, O, k, c, has_double_sums);
    const qi shown = squash(&cell->h, qd_mul(qd_of(c), qd_set(cell->shown_unit)));
    const qd h = qd_mul(qd_of(qi_mul(o, shown)), qd_set(cell->out));
    if (s->real)
        qd_store_floats(s->real + k, h);
    else
        store_state(s, k, rounded(cell, h));
}

/* What a reset gate leaves of the state. */
Q_INLINE void reset_units(const qn_q_recurrent_step *s, int64_t k, bool has_double_sums)
{
    const qn_qcell *cell = s->cell;
    const qi r = squash(&cell->f, argument(s, s->pitch + k, has_double_sums));
    const qd kept = qd_mul(qd_of(qi_load(s->h + k)), qd_of(r));
    store_form(s, k, rounded(cell, qd_mul(kept, qd_set(cell->gate_unit))));
}

/* The argument of the fresh state whose reset gate acts on the sum. */
Q_INLINE qd linear_argument(const qn_q_recurrent_step *s, int64_t k, bool has_double_sums)
{
    const qn_qcell *cell = s->cell;
    const int64_t i = 2 * s->pitch + k;
    const double most = 1 << 20;
    const qi r = squash(&cell->f, argument(s, s->pitch + k, has_double_sums));
    const qd h = qd_add(qd_mul(sums_at(s->sum_h, i, has_double_sums), qd_of_floats(cell->r + i)),
                        qd_of_floats(cell->bias_r + k));
    const qd let = qd_mul(qd_of(limited(h, -most, most)), qd_of(r));
    const qd x = qd_add(qd_mul(sums_at(s->sum_x, i, has_double_sums), qd_of_floats(cell->x + i)),
                        qd_of_floats(cell->bias + i));
    return qd_add(x, qd_mul(let, qd_set(cell->gate_unit)));
}

Q_INLINE void gru_units(const qn_q_recurrent_step *s, int64_t k, bool has_double_sums)
{
    const qn_qcell *cell = s->cell;
    const int bits = cell->f.out_bits;
    const qi z = squash(&cell->f, argument(s, k, has_double_sums));
    const qi fresh = squash(&cell->g, cell->kind == QN_QCELL_GRU_LINEAR
                                          ? linear_argument(s, k, has_double_sums)
                                          : argument(s, 2 * s->pitch + k, has_double_sums));
    const qi share = qi_mul(qi_sub(qi_set(1 << bits), z), fresh);
    const qd kept = qd_mul(qd_mul(qd_of(qi_load(s->h + k)), qd_of(z)), qd_set(cell->gate_unit));
    store_state(s, k, rounded(cell, qd_add(qd_mul(qd_of(share), qd_set(cell->out)), kept)));
}

Q_INLINE void rnn_units(const qn_q_recurrent_step *s, int64_t k, bool has_double_sums)
{
    const qi f = squash(&s->cell->f, argument(s, k, has_double_sums));
    store_state(s, k, rounded(s->cell, qd_mul(qd_of(f), qd_set(s->cell->out))));
}

#define STEP(name, units)                                                                          \
    static void name(const qn_q_recurrent_step *s)                                                 \
    {                                                                                              \
        const int64_t hidden = s->cell->hidden;                                                    \
        if (s->has_double_sums) {                                                                  \
            for (int64_t k = 0; k < hidden; k += QI_LANES)                                         \
                units(s, k, true);                                                                 \
        } else {                                                                                   \
            for (int64_t k = 0; k < hidden; k += QI_LANES)                                         \
                units(s, k, false);                                                                \
        }                                                                                          \
    }
STEP(lstm_step, lstm_units)
STEP(reset_step, reset_units)
STEP(gru_step, gru_units)
STEP(rnn_step, rnn_units)

static qn_q_recurrent_step_fn *const steps[QN_QCELL_KINDS] = {
    [QN_QCELL_LSTM] = lstm_step,
    [QN_QCELL_GRU] = gru_step,
    [QN_QCELL_GRU_LINEAR] = gru_step,
    [QN_QCELL_RNN] = rnn_step,
};

const qn_q_recurrent_kernels Q_NAME(qn_q_recurrent_kernels) = {
    .lanes = QI_LANES,
    .dot = QI_DOT,
    .weight_bytes = WEIGHT_BYTES,
    .short_below = SHORT_BELOW,
    .product = {product_int8, product_int16, product_short},
    .steps = steps,
    .reset = reset_step,
};

#endif
