/* The one meaning of quantize and requantize; every kernel and backend uses these or equals
 * them. */
#ifndef QN_QUANTIZE_H
#define QN_QUANTIZE_H

#include <math.h>

#include "ir/qparams.h"
#include "ops/eval.h"
#include "ops/fixed_point.h"
#include "ops/infer.h"

/* Least and greatest value of an integer type. */
typedef struct qn_limits {
    int64_t min, max;
} qn_limits;

static inline qn_limits qn_limits_of(qn_dtype dtype)
{
    const qn_dtype_info *info = qn_dtype_get(dtype);
    const int bits = QN_MIN(info->bits, 63);
    if (info->kind == QN_KIND_UINT)
        return (qn_limits){0, (int64_t)((UINT64_C(1) << bits) - 1)};
    const int64_t half = (int64_t)(UINT64_C(1) << (QN_MAX(info->bits, 1) - 1));
    return (qn_limits){info->bits == 64 ? INT64_MIN : -half,
                       info->bits == 64 ? INT64_MAX : half - 1};
}

/* clamp(rint(x) + zero), halves to even; NaN gives the least value. */
static inline int64_t qn_round_clamp(double x, int64_t zero, qn_limits range)
{
    const double y = nearbyint(x) + (double)zero;
    if (!(y > (double)range.min))
        return range.min;
    return y < (double)range.max ? (int64_t)y : range.max;
}

/* From a sum of products to the output's type: clamp(rint(sum * multiplier) + zero). The sum is
 * (float)products + (float)bias. */
static inline int64_t qn_requantize(float sum, float multiplier, int64_t zero, qn_limits range)
{
    return qn_round_clamp((double)(sum * multiplier), zero, range);
}

/* A multiplier of two roundings, whose 31 bits are those of two floats. */
typedef struct qn_twice {
    float multiplier, rest;
    /* What the first rounding amounts to: where results are multiples of 2^-s behind it, those that
     * are 2^-(s + 1) below a half are rounded up by the second. 0: the first is the last. */
    float first;
} qn_twice;

/* From products of scale x * w to scale y; TensorFlow Lite has products of scales in double for
 * int8, in float for uint8. */
qn_twice qn_twice_of(float x, float w, float y, bool is_signed);

/* Rounded twice: the nearest integer, put right by what is left of it. */
static inline int64_t qn_requantize_twice(float sum, const qn_twice *m, int64_t zero,
                                          qn_limits range)
{
    const float small = fmaf(sum, m->rest, copysignf(m->first, sum));
    const float whole = nearbyintf(fmaf(sum, m->multiplier, small));
    const float left = fmaf(sum, m->multiplier, -whole) + small;
    return qn_round_clamp((double)(whole + nearbyintf(left)), zero, range);
}

/* The multiplier from products of scale x * w to scale y: two roundings, as ONNX Runtime takes
 * them. */
static inline float qn_multiplier(float x, float w, float y)
{
    return x * w / y;
}

/* What the zero points (of a, b and y) of a sum amount to, in units of y; ratios: sa / sy, sb /
 * sy. */
static inline float qn_sum_offset(const float ratios[2], const int64_t zeros[3])
{
    const float both = ratios[0] * (float)zeros[0] + ratios[1] * (float)zeros[1];
    return (float)zeros[2] - both;
}

/* ---- Multiply-accumulate: from an exact sum of products to float ----------------------------- */

/* A side (input a or b) needs sums of 64 bits: then the bias is added before the sum becomes
 * float. */
static inline bool qn_mac_is_int64(const qn_eval *self, int32_t a, int32_t b)
{
    const qn_width *wa = qn_width_of(self->in[a]->dtype), *wb = qn_width_of(self->in[b]->dtype);
    return (wa && wa->sums == QN_INT64) || (wb && wb->sums == QN_INT64);
}

/* products + bias[at]; bias NULL: none. */
float qn_mac_sum(double products, const qn_tensor *bias, int64_t at, bool is_int64);

/* ---- Types of quantized tensors -----------------------------------------------------------------
 * Graphs inside quench compute with 16 bits what files can say for 8 only: type rules with
 * QN_NO_OPSET refuse to write it. */

#define QN_SET_QUANTIZED_WIDE (QN_SET(QN_INT16) | QN_SET(QN_UINT16))
#define QN_SET_QUANTIZED (QN_SET(QN_INT8) | QN_SET(QN_UINT8) | QN_SET_QUANTIZED_WIDE)

/* Element i of a quantized tensor: clamp(rint(x) + zero) for integers, x + zero for small floats,
 * which saturate or become what the type has for overflow. */
void qn_store_quantized(const qn_tensor *out, int64_t i, double x, double zero, bool saturate);

/* ---- Parameters that nodes carry as inputs: one scale and zero point for the whole tensor ---- */

/* From inputs `scale` and `zero` (may be left out: 0). Fails where one is not a single number. */
QN_MUST_CHECK qn_status qn_eval_qparams(qn_qparams *out, qn_eval *self, int32_t scale,
                                        int32_t zero);
/* Fails where input i is known not to be a single number. */
QN_MUST_CHECK qn_status qn_infer_single(const qn_infer *self, int32_t i);

/* The same for a list of inputs that ends with -1. */
QN_MUST_CHECK qn_status qn_infer_singles(const qn_infer *self, const int32_t *list);
/* Type of the result: that of its zero point (input `zero`), else that of input 0. */
qn_dtype qn_infer_result_type(const qn_infer *self, int32_t zero);

/* Operators of com.microsoft: inside quench each tensor has a type of its own, perhaps of 16 bits;
 * in files they all have the same 8 bits. */
extern const qn_type_rule qn_int16_type_rules[1];
extern const qn_version_rule qn_same_type_versions[1];

static inline float qn_dequantize(int64_t x, const qn_qparams *q)
{
    return (float)(x - q->zero) * q->scale;
}
static inline int64_t qn_quantize(float x, const qn_qparams *q, qn_limits range)
{
    return qn_round_clamp((double)(x / q->scale), q->zero, range);
}
/* DynamicQuantizeLinear: the uint8 that reach from low <= 0 to high >= 0. Zeros get scale 1. */
static inline qn_qparams qn_dynamic_ends(float low, float high)
{
    qn_qparams q = qn_qparams_of_type(QN_UINT8);
    q.scale = high > low ? (high - low) / 255.0f : 1.0f;
    q.zero = qn_round_clamp((double)(-low / q.scale), 0, (qn_limits){0, 255});
    return q;
}
/* Those of numbers, and of 0. */
qn_qparams qn_dynamic_quant(const float *x, int64_t count);
/* A sum of integers to the scale `to`, in its way. */
static inline int64_t qn_requantize_to(int64_t sum, float multiplier, const qn_qparams *to,
                                       qn_limits range)
{
    if (!qn_qparams_is_fixed_point(to))
        return qn_requantize((float)sum, multiplier, to->zero, range);
    const int64_t y = qn_normal_times(sum, qn_normal_of((double)multiplier)) + to->zero;
    return QN_MIN(QN_MAX(y, range.min), range.max);
}
/* x in the scale of y: the requantized copy. */
static inline int64_t qn_requantize_copy(int64_t x, const qn_qparams *from, const qn_qparams *to,
                                         qn_limits range)
{
    return qn_requantize_to(x - from->zero, from->scale / to->scale, to, range);
}
/* From a sum of `count` elements of scale x to their mean in scale y. */
static inline float qn_mean_multiplier(double x, double y, int64_t count)
{
    const float whole = (float)y * (float)QN_MAX(count, 1);
    return (float)x / whole;
}
/* The mean of `count` elements whose sum, zero points taken off, is `sum`. */
static inline int64_t qn_mean(int64_t sum, int64_t count, const qn_qparams *from,
                              const qn_qparams *to, qn_limits range)
{
    const float multiplier = qn_mean_multiplier((double)from->scale, (double)to->scale, count);
    return qn_requantize_to(sum, multiplier, to, range);
}

/* ---- Multiply-accumulate: from an exact sum of products to integers -------------------------- */

typedef struct qn_mac_end {
    /* The bias; NULL: there is none. */
    const qn_tensor *bias;
    /* What qn_mac_is_int64 says. */
    bool is_int64;
    qn_qparams y;
    qn_limits range;
} qn_mac_end;

/* scale: of the products; at: element of the bias. */
int64_t qn_mac_requantize(const qn_mac_end *end, double products, int64_t at, float scale);
/* The same with two roundings. */
int64_t qn_mac_requantize_twice(const qn_mac_end *end, double products, int64_t at,
                                const qn_twice *m);

#endif
