/* vec_int32.h in plain C. */
#ifndef QN_CPU_VEC_INT32_PLAIN_H
#define QN_CPU_VEC_INT32_PLAIN_H

#include <math.h>

enum { QI_LANES = 4 };
typedef struct qi {
    int32_t i[4];
} qi;
typedef struct qf {
    float f[4];
} qf;
#define QI_EACH(type, field, expression)                                                           \
    type r;                                                                                        \
    for (int i = 0; i < QI_LANES; i++)                                                             \
        r.field[i] = (expression);                                                                 \
    return r

Q_INLINE qi qi_load(const void *p)
{
    qi r;
    memcpy(&r, p, sizeof r);
    return r;
}
Q_INLINE void qi_store(void *p, qi a)
{
    memcpy(p, &a, sizeof a);
}
Q_INLINE qi qi_set(int32_t x)
{
    QI_EACH(qi, i, x);
}
Q_INLINE qi qi_add(qi a, qi b) /* wraps, as vectors do */
{
    QI_EACH(qi, i, (int32_t)((uint32_t)a.i[i] + (uint32_t)b.i[i]));
}
Q_INLINE qi qi_sub(qi a, qi b)
{
    QI_EACH(qi, i, (int32_t)((uint32_t)a.i[i] - (uint32_t)b.i[i]));
}
Q_INLINE qi qi_shift_left(qi a, int bits)
{
    QI_EACH(qi, i, (int32_t)((uint32_t)a.i[i] << bits));
}
Q_INLINE qi qi_shift_right(qi a, int bits) /* of signed numbers */
{
    QI_EACH(qi, i, a.i[i] >> bits);
}
/* Words wrap: a * 2^bits + sign * b of each half. */
Q_INLINE qi qi_each_pair(qi a, qi b, int bits, int sign)
{
    uint16_t x[2 * QI_LANES], y[2 * QI_LANES];
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    for (int i = 0; i < 2 * QI_LANES; i++)
        x[i] = (uint16_t)((x[i] << bits) + sign * y[i]);
    return qi_load(x);
}
Q_INLINE qi qi_add_int16(qi a, qi b)
{
    return qi_each_pair(a, b, 0, 1);
}
Q_INLINE qi qi_sub_int16(qi a, qi b)
{
    return qi_each_pair(a, b, 0, -1);
}
Q_INLINE qi qi_shift_int16(qi a, int bits) /* to the left */
{
    return qi_each_pair(a, a, bits, 0);
}
Q_INLINE qi qi_madd(qi a, qi b)
{
    int16_t x[2 * QI_LANES], y[2 * QI_LANES];
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    QI_EACH(qi, i, x[2 * i] * y[2 * i] + x[2 * i + 1] * y[2 * i + 1]);
}
Q_INLINE qi qi_mix(qi a, qi b, int first)
{
    int16_t x[2 * QI_LANES], y[2 * QI_LANES], z[2 * QI_LANES];
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    for (int i = 0; i < 2 * QI_LANES; i++)
        z[i] = i % 2 ? y[first + i / 2] : x[first + i / 2];
    return qi_load(z);
}
Q_INLINE qi qi_mix_low(qi a, qi b)
{
    return qi_mix(a, b, 0);
}
Q_INLINE qi qi_mix_high(qi a, qi b)
{
    return qi_mix(a, b, QI_LANES);
}
Q_INLINE void qi_unmix(qi *a, qi *b)
{
    (void)a;
    (void)b;
}
Q_INLINE qf qi_float(qi a)
{
    QI_EACH(qf, f, (float)a.i[i]);
}
Q_INLINE qf qf_load(const float *p)
{
    QI_EACH(qf, f, p[i]);
}
Q_INLINE void qf_store_all(float *p, qf a)
{
    memcpy(p, &a, sizeof a);
}
Q_INLINE qf qf_set(float x)
{
    QI_EACH(qf, f, x);
}
Q_INLINE qf qf_add(qf a, qf b)
{
    QI_EACH(qf, f, a.f[i] + b.f[i]);
}
Q_INLINE qf qf_sub(qf a, qf b)
{
    QI_EACH(qf, f, a.f[i] - b.f[i]);
}
Q_INLINE qf qf_mul(qf a, qf b)
{
    QI_EACH(qf, f, a.f[i] * b.f[i]);
}
Q_INLINE qf qf_abs(qf a)
{
    QI_EACH(qf, f, fabsf(a.f[i]));
}
Q_INLINE qf qf_with_sign(qf a, qf x) /* |a| = a, with the sign of x */
{
    QI_EACH(qf, f, copysignf(a.f[i], x.f[i]));
}
Q_INLINE qi qf_truncate(qf a)
{
    QI_EACH(qi, i, (int32_t)a.f[i]);
}
Q_INLINE qf qf_pick(const float table[16], qi at) /* by indices from 0 to 15 */
{
    QI_EACH(qf, f, table[at.i[i]]);
}
Q_INLINE qf qf_by_sign(qf x, qf below, qf above) /* `below` where x < 0 */
{
    QI_EACH(qf, f, x.f[i] < 0 ? below.f[i] : above.f[i]);
}
Q_INLINE qf qf_clamp(qf a, qf low, qf high)
{
    QI_EACH(qf, f, fminf(a.f[i] > low.f[i] ? a.f[i] : low.f[i], high.f[i]));
}
Q_INLINE qf qf_relu(qf a) /* what is no number stays none */
{
    QI_EACH(qf, f, 0 > a.f[i] ? 0 : a.f[i]);
}
Q_INLINE qi qf_round(qf a)
{
    QI_EACH(qi, i, (int32_t)rintf(a.f[i]));
}
typedef struct qi_limits {
    int32_t zero, low, high, flip;
} qi_limits;
Q_INLINE qi_limits qi_limits_set(int16_t zero, uint8_t low, uint8_t high, uint8_t flip)
{
    return (qi_limits){zero, low, high, flip};
}
Q_INLINE qi qi_pack(qi a, qi b, qi c, qi d, const qi_limits *l)
{
    const qi all[4] = {a, b, c, d};
    uint8_t bytes[4 * QI_LANES];
    for (int i = 0; i < 4 * QI_LANES; i++) {
        const int64_t x = (int64_t)all[i / QI_LANES].i[i % QI_LANES] + l->zero;
        bytes[i] = (uint8_t)((x < l->low ? l->low : x > l->high ? l->high : x) ^ l->flip);
    }
    return qi_load(bytes);
}
Q_INLINE qi qi_pack_bytes(qi a, qi b, qi c, qi d)
{
    return qi_pack(a, b, c, d, &(qi_limits){0, 0, 255, 0});
}
Q_INLINE void qi_store_halves(uint8_t *p, uint8_t *q, qi a)
{
    memcpy(p, &a, sizeof a / 2);
    memcpy(q, (const char *)&a + sizeof a / 2, sizeof a / 2);
}
Q_INLINE void qi_store_quarters(uint8_t *const p[4], qi a)
{
    for (size_t i = 0; i < 4; i++)
        memcpy(p[i], (const char *)&a + i * sizeof a / 4, sizeof a / 4);
}

#endif
