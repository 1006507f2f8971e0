/* Pools of integers: a part of q_elementwise_kernels.h, which includes it once per instruction set.
 * It has no guard of its own for that reason. */

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
