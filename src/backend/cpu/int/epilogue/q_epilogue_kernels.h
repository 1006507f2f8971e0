/* epilogue.h of integers for one tile of sums. */
#ifndef QN_CPU_Q_EPILOGUE_KERNELS_H
#define QN_CPU_Q_EPILOGUE_KERNELS_H

#include "backend/cpu/int/epilogue/q_function_kernels.h"
#include "backend/cpu/simd/vec_int16.h"

/* `count` vectors of the same lanes, at sums, sums + step, ..., as floats; results and residual lie
 * `y_step` and `r_step` bytes apart. */
typedef struct q_epilogue_lanes {
    const qf *sums;
    int count, step;
    uint8_t *y;
    const uint8_t *r;
    int64_t y_step, r_step;
    /* Index into bias and scale; how many lanes are real. */
    int64_t param, lanes;
} q_epilogue_lanes;

/* qn_twice of a vector of filters; nothing where there is one rounding. */
typedef struct q_twice {
    qf multiplier, rest, first;
} q_twice;

Q_INLINE q_twice twice_load(const qn_q_epilogue *f, int64_t param)
{
    const bool twice = f->first_rounding != NULL;
    return (q_twice){.multiplier = qf_load(f->scale + param),
                     .rest = twice ? qf_load(f->rest + param) : qf_set(0),
                     .first = twice ? qf_load(f->first_rounding + param) : qf_set(0)};
}

/* qn_requantize_twice but for limits and zero point, of results that fit int32. */
Q_INLINE qf twice_rounded(qf sum, const q_twice *m)
{
    const qf zero = qf_set(0), small = qf_fma(sum, m->rest, qf_with_sign(m->first, sum));
    const qf whole = qf_rint(qf_fma(sum, m->multiplier, small));
    const qf left = qf_add(qf_fma(sum, m->multiplier, qf_sub(zero, whole)), small);
    return qf_add(whole, qf_rint(left));
}

/* The same of any; those beyond 16 bits are some number beyond. */
Q_INLINE qf twice_limited(qf sum, const q_twice *m)
{
    const qf most = qf_set(0x1p20F), one = qf_set(1);
    const qf zero = qf_set(0), low = qf_set(-0x1p20F), minus_one = qf_set(-1);
    const qf small = qf_fma(sum, m->rest, qf_with_sign(m->first, sum));
    const qf whole = qf_rint(qf_clamp(qf_fma(sum, m->multiplier, small), low, most));
    const qf left = qf_add(qf_fma(sum, m->multiplier, qf_sub(zero, whole)), small);
    return qf_add(whole, qf_rint(qf_clamp(left, minus_one, one)));
}

/* What is the same for all of them, in registers. */
typedef struct q_epilogue_constants {
    qf bias, scale;
    q_twice twice;
    /* The limits of the first and the last rounding. */
    qf low, high, last_low, last_high;
    /* The zero point of the last one. */
    qi zero;
    qf a_zero, a_scale, b_scale, offset;
} q_epilogue_constants;

Q_INLINE q_epilogue_constants epilogue_load(const qn_q_epilogue *f, int64_t param)
{
    const qn_q_round *end = f->has_sum ? &f->second : &f->first;
    return (q_epilogue_constants){.bias = qf_load(f->bias + param),
                                  .scale = qf_load(f->scale + param),
                                  .twice = twice_load(f, param),
                                  .low = qf_set(f->first.low),
                                  .high = qf_set(f->first.high),
                                  .last_low = qf_set(end->low),
                                  .last_high = qf_set(end->high),
                                  .zero = qi_set(end->zero),
                                  .a_zero = qf_set((float)f->first.zero),
                                  .a_scale = qf_set(f->sum.a_scale),
                                  .b_scale = qf_set(f->sum.b_scale),
                                  .offset = qf_set(f->sum.offset)};
}

Q_INLINE qf epilogue_scaled(const q_epilogue_constants *k, qf sum)
{
    return qf_mul(qf_add(sum, k->bias), k->scale);
}

/* The same of a sum that becomes an integer. */
Q_INLINE qf epilogue_integer(const qn_q_epilogue *f, const q_epilogue_constants *k, qf sum)
{
    return f->first_rounding ? twice_limited(qf_add(sum, k->bias), &k->twice)
                             : epilogue_scaled(k, sum);
}

Q_INLINE qi epilogue_last(const q_epilogue_constants *k, qf x)
{
    return qi_add(qf_round(qf_clamp(x, k->last_low, k->last_high)), k->zero);
}

/* a: the result less its zero point, b: the residual */
Q_INLINE qf epilogue_add(const q_epilogue_constants *k, qf a, qf b, bool a_first)
{
    const qf whole = qf_add(a, k->a_zero);
    return a_first ? qf_fma(whole, k->a_scale, qf_fma(b, k->b_scale, k->offset))
                   : qf_fma(b, k->b_scale, qf_fma(whole, k->a_scale, k->offset));
}

/* Sums of 8-bit products in fixed point, and of wider ones, which have their biases. */
Q_INLINE qi epilogue_fixed_point(const qn_q_epilogue *f, qi sum, int64_t param)
{
    const qd whole = qd_add(qd_of(sum), qd_load(f->exact_bias + param));
    return qd_whole(qd_mul(whole, qd_load(f->exact + param)));
}

Q_INLINE qf epilogue_int16(const qn_q_epilogue *f, qd total, int64_t param)
{
    return f->exact ? qi_float(qd_whole(qd_mul(total, qd_load(f->exact + param))))
                    : qd_float(total);
}

static void epilogue_floats(const qn_q_epilogue *f, const q_epilogue_lanes *l)
{
    const q_epilogue_constants k = epilogue_load(f, l->param);
    const bool adds = f->added != NULL;
    const qf added = adds ? qf_load(f->added + l->param) : qf_set(0);
    for (int i = 0; i < l->count; i++) {
        const qf v = epilogue_scaled(&k, l->sums[i * l->step]), y = adds ? qf_add(v, added) : v;
        qf_store((float *)(void *)(l->y + i * l->y_step), f->relu ? qf_relu(y) : y, l->lanes);
    }
}

/* Numbers of the residual, as stored. */
Q_INLINE qi epilogue_residual(const uint8_t *r, bool is_signed, bool is_int16, int64_t lanes)
{
    const qi top = qi_set(0x8000);
    if (!is_int16)
        return qi_load_bytes(r, is_signed, lanes);
    const qi numbers = qi_load_uint16(r, lanes);
    return is_signed ? qi_add(qi_xor(numbers, top), qi_set(-0x8000)) : numbers;
}

Q_INLINE void epilogue_store(uint8_t *y, qi a, bool is_int16, int64_t lanes)
{
    if (is_int16)
        qi_store_uint16(y, a, lanes);
    else
        qi_store_bytes(y, a, lanes);
}

/* `lanes` is a number that the compiler knows where all are real. */
Q_INLINE void epilogue_sums(const qn_q_epilogue *f, const q_epilogue_lanes *l, int64_t lanes)
{
    const q_epilogue_constants k = epilogue_load(f, l->param);
    const bool is_signed = f->sum.r_signed, is_int16 = f->is_int16, r_is_int16 = f->sum.r_is_int16;
    for (int i = 0; i < l->count; i++) {
        qf v = epilogue_integer(f, &k, l->sums[i * l->step]);
        if (f->has_function)
            function_one(&v, f);
        const qf a = qf_rint(qf_clamp(v, k.low, k.high));
        const qi r = epilogue_residual(l->r + i * l->r_step, is_signed, r_is_int16, lanes);
        const qf sum = epilogue_add(&k, a, qi_float(r), f->sum.a_first);
        epilogue_store(l->y + i * l->y_step, epilogue_last(&k, sum), is_int16, lanes);
    }
}

Q_INLINE void epilogue_alone(const qn_q_epilogue *f, const q_epilogue_lanes *l, int64_t lanes)
{
    const q_epilogue_constants k = epilogue_load(f, l->param);
    const bool is_int16 = f->is_int16;
    for (int i = 0; i < l->count; i++) {
        qf v = epilogue_integer(f, &k, l->sums[i * l->step]);
        if (f->has_function)
            function_one(&v, f);
        epilogue_store(l->y + i * l->y_step, epilogue_last(&k, v), is_int16, lanes);
    }
}

static void epilogue_lanes(const qn_q_epilogue *f, const q_epilogue_lanes *l)
{
    const bool whole = l->lanes >= QI_LANES;
    if (f->floats) {
        epilogue_floats(f, l);
        return;
    }
    if (f->has_sum && whole)
        epilogue_sums(f, l, QI_LANES);
    else if (f->has_sum)
        epilogue_sums(f, l, l->lanes);
    else if (whole)
        epilogue_alone(f, l, QI_LANES);
    else
        epilogue_alone(f, l, l->lanes);
}

/* ---- Whole vectors whose sums are still in registers ----------------------------------------- */

/* Limits behind the rounding, as bytes: signed results are computed 128 higher. */
Q_INLINE qi_limits epilogue_limits(const qn_q_epilogue *f)
{
    const qn_q_round *end = f->has_sum ? &f->second : &f->first;
    const int32_t zero = end->zero + (f->is_signed ? 128 : 0);
    return qi_limits_set((int16_t)zero, (uint8_t)((int32_t)end->low + zero),
                         (uint8_t)((int32_t)end->high + zero), f->is_signed ? 0x80 : 0);
}

/* Four vectors behind a function. */
Q_INLINE void epilogue_functions(qi *a, const qn_q_epilogue *f, const qi *sums, int64_t param)
{
    qf v[4];
    for (int i = 0; i < 4; i++, param += QI_LANES)
        v[i] =
            qf_mul(qf_add(qi_float(sums[i]), qf_load(f->bias + param)), qf_load(f->scale + param));
    function_rounded(a, v, 4, f);
}

Q_INLINE qf epilogue_sum(const qn_q_epilogue *f, qi sum, int64_t param)
{
    return qf_add(qi_float(sum), qf_load(f->bias + param));
}

/* One vector, rounded but for limits and zero point. */
Q_INLINE qi epilogue_one(const qn_q_epilogue *f, qi sum, int64_t param)
{
    const q_twice m = twice_load(f, param);
    const qf t = epilogue_sum(f, sum, param);
    return qf_round(f->first_rounding ? twice_rounded(t, &m) : qf_mul(t, m.multiplier));
}

/* The same for numbers that need not fit int32. */
Q_INLINE qi epilogue_one_limited(const qn_q_epilogue *f, qi sum, int64_t param)
{
    const q_twice m = twice_load(f, param);
    const qf t = epilogue_sum(f, sum, param);
    const qf v = f->first_rounding ? twice_limited(t, &m) : qf_mul(t, m.multiplier);
    return qf_round(qf_clamp(v, qf_set(f->first.low), qf_set(f->first.high)));
}

#endif
