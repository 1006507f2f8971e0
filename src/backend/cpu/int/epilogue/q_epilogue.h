/* From sums of products to results: the end of every integer multiply-accumulate kernel, with the
 * nodes behind it that can be done while a sum is still in a register. Every rounding of those
 * nodes is kept. */
#ifndef QN_CPU_Q_EPILOGUE_H
#define QN_CPU_Q_EPILOGUE_H

#include "backend/cpu/float/kernels.h"
#include "ops/qfunction.h"
#include "run/backend.h"

/* rint(x), limited to low..high, which are a type's or a Clip's limits less the zero point; then +
 * zero. */
typedef struct qn_q_round {
    float low, high;
    int32_t zero;
} qn_q_round;

/* How whole tiles of sums of 8-bit products end; those with fewer filters than lanes always end by
 * lane. The plan chooses the last that holds.
 *
 *   BY_LANE        for anything: a vector at a time, limits before the rounding
 *   BY_TILE        for floats, or bounded bytes from bytes: four vectors at a time, limits as
 *                  bytes are packed
 *   IN_REGISTERS   for such bytes if only multiplier and bias are between sum and rounding: the
 *                  same, from the registers that have the sums, where those vectors have no bias
 *
 * Beside it stand `usual`, which spares the limits, and `biased`, which may differ from vector to
 * vector. */
typedef enum qn_q_epilogue_path {
    QN_Q_EPILOGUE_BY_LANE,
    QN_Q_EPILOGUE_BY_TILE,
    QN_Q_EPILOGUE_IN_REGISTERS
} qn_q_epilogue_path;

/* A residual that is added: round(fma(first, its scale, fma(second, its scale, offset))), where a
 * is the result of the product and b the residual. */
typedef struct qn_q_epilogue_sum {
    /* The first operand is a, else b. */
    bool a_first;
    float a_scale, b_scale, offset;
    /* The type of the residual: signed; of 16 bits. */
    bool r_signed, r_is_int16;
} qn_q_epilogue_sum;

/* What becomes of a sum `acc`: t = f32(acc) + bias[c], v = t * scale[c] (where the bias is part of
 * acc bias[] is zero), or, rounded twice, what ops/quantize.h makes of scale[c], rest[c] and
 * first_rounding[c]
 *
 *   floats:   y = v + added[c], Relu of that, or another function (map); else
 *   function: v = what ops/qfunction.h makes of v, with gain and offset
 *             a = round(v)
 *   sum:      a = what qn_q_epilogue_sum makes of a and the residual
 *   table:    a = table[a]
 *             y = a */
typedef struct qn_q_epilogue {
    /* By filter, up to whole vectors. */
    const float *bias, *scale;
    /* What the second of two roundings needs (qn_twice of ops/quantize.h). NULL: there is one. */
    const float *rest, *first_rounding;
    /* The same, added to floats. NULL: nothing. */
    const float *added;
    /* Multipliers and biases of fixed point (ops/fixed_point.h), else NULL. Sums are multiplied and
     * rounded before anything else is done with them; bias[] is 0 and scale[] is 1 then. */
    const double *exact, *exact_bias;
    qn_q_round first, second;
    /* The type of the results: floats; signed; of 16 bits. */
    bool floats, is_signed, is_int16;
    bool relu;
    /* No number that is rounded reaches 2^31: limits may be applied behind the rounding. */
    bool bounded;
    /* There is no function and no fixed point, and results are all of uint8, with the zero point
     * 0. */
    bool usual;
    qn_q_epilogue_path path;
    /* By vector of filters: bias[] has other numbers than zero. NULL: none has. */
    const bool *biased;
    bool has_sum;
    qn_q_epilogue_sum sum;
    bool has_function;
    /* Gain and offset are in units of the result. */
    qn_qfunction_attrs function;
    /* By the byte of a, applied when a band of results is complete. NULL: none. */
    const uint8_t *table;
    void (*look_up)(uint8_t *y, const uint8_t *x, int64_t count, const uint8_t *table);
    /* The same for floats: a function of chain.h. NULL: none. */
    qn_map_fn *map;
    qn_stage stage;
} qn_q_epilogue;

/* A plan's side of it: what a claim fuses behind the node that computes the sums. */
typedef struct qn_q_tail {
    qn_q_epilogue epilogue;
    /* The input of the claim that is the residual; -1: none. */
    int32_t residual;
    /* No residual may be taken. */
    bool alone;
    /* epilogue.map may be used, and floats may be put in blocks. */
    bool maps;
    /* The last value of the group. */
    qn_value *out;
} qn_q_tail;

/* Bytes of a result, and of a number of the residual. */
static inline int64_t qn_q_epilogue_y_bytes(const qn_q_epilogue *epilogue)
{
    return epilogue->floats ? (int64_t)sizeof(float) : epilogue->is_int16 ? 2 : 1;
}
static inline int64_t qn_q_epilogue_r_bytes(const qn_q_epilogue *epilogue)
{
    return epilogue->sum.r_is_int16 ? 2 : 1;
}

/* Begins behind `value`, a result of floats, or of 8 or 16 bits with this zero point. */
void qn_q_tail_begin(qn_q_tail *tail, qn_value *value, int64_t zero);
/* Adds the nodes behind it that can be done here to the claim. */
QN_MUST_CHECK qn_status qn_q_tail_grow(qn_q_tail *tail, qn_claim *claim, qn_layout layout);
/* Sets bounded, usual and path: no sum, bias included, is larger than `most`; there are `count`
 * multipliers. */
void qn_q_epilogue_bound(qn_q_epilogue *epilogue, double most, int64_t count);
/* Parameters in fixed point, in the plan's memory, all 0. */
typedef struct qn_q_fixed_point {
    double *multipliers, *bias;
    float *zeros, *ones;
} qn_q_fixed_point;
QN_MUST_CHECK qn_status qn_q_fixed_point_make(qn_q_fixed_point *out, const qn_claim *claim,
                                              int64_t count);
/* Instead of scales, biases and qn_q_epilogue_bound. */
void qn_q_fixed_point_set(qn_q_epilogue *epilogue, const qn_q_fixed_point *fixed_point,
                          int64_t count);
/* Adds the output to the claim, in the residual's place where that is free. */
void qn_q_tail_close(const qn_q_tail *tail, qn_claim *claim, qn_layout layout);

static inline bool qn_q_is_byte(const qn_value *value)
{
    return value->type.dtype == QN_UINT8 || value->type.dtype == QN_INT8;
}
/* Element i of a constant list, or the only one, wherever the file has it. */
double qn_q_element(const qn_tensor *list, int64_t i);
/* The ratios of a sum in fixed point; false where zero points are in the way. Products of 8-bit
 * numbers and these, and their sums, have 24 bits at most: fused multiply-adds of floats are
 * exact. */
bool qn_q_fixed_point_ratios(float ratios[2], const double zeros[3]);
/* A single number that a constant input holds; false where it is none. */
bool qn_q_number(double *out, const qn_node *node, int32_t i);

#endif
