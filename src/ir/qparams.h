/* Quantization parameters: how the integers of a value stand for real numbers, x = (q - zero) *
 * scale. Files, the graph, the quantizer and kernels have this one type; what a kernel makes of it
 * (multipliers, shifts) is its own. */
#ifndef QN_QPARAMS_H
#define QN_QPARAMS_H

#include "ir/graph.h"
#include "ir/width.h"

/* How sums of products come to the scale of their result (docs/numerics.md). */
typedef enum qn_requantization {
    /* By a product with a float. */
    QN_REQUANTIZE_FLOAT,
    /* By an integer multiplier and a shift, as chips do it. */
    QN_REQUANTIZE_FIXED_POINT,
    /* By an integer multiplier of 31 bits, rounded, and a shift, rounded again: as the reference
     * kernels of TensorFlow Lite convolve. */
    QN_REQUANTIZE_TWICE
} qn_requantization;

struct qn_qparams {
    /* The type that stores the integers, whose sign is theirs; it may have more bits than the
     * width. */
    qn_dtype dtype;
    /* NULL: the integers have a type of more bits than quantized numbers have, as those of biases
     * do. */
    const qn_width *width;
    qn_requantization requantization;
    /* Along which there are several scales; -1: one scale for all. */
    int32_t axis;
    /* Indices of the axis that share a scale where there are blocks; 0: there are none. */
    int64_t block_size;
    /* Scales, in row-major order. */
    int64_t count;
    /* The scale and the zero point of all, where the list is NULL; see qn_qparams_scale_at. */
    float scale;
    int64_t zero;
    /* [count], or NULL. */
    float *scales;
    int64_t *zeros;
    /* Integers in use; a type may have one more (-128). */
    int64_t qmin, qmax;
    /* What each integer from qmin on stands for in units of the scale; NULL: itself (uniform
     * quantization). */
    const float *codebook;
};

/* Parameters of one scale, 1, and zero point 0, with all integers of the type. */
qn_qparams qn_qparams_of_type(qn_dtype dtype);
/* Parameters with all scales 1 and zero points 0. */
QN_MUST_CHECK qn_status qn_qparams_create(qn_qparams **out, qn_context *ctx, qn_arena *arena,
                                          qn_dtype dtype, int64_t count);
bool qn_qparams_equal(const qn_qparams *a, const qn_qparams *b);
/* The scales as float32, the zero points as integers of the tensor's type: [count]. */
void qn_qparams_store_scales(const qn_tensor *out, const qn_qparams *p);
void qn_qparams_store_zeros(const qn_tensor *out, const qn_qparams *p);

static inline bool qn_qparams_is_signed(const qn_qparams *p)
{
    return qn_dtype_get(p->dtype)->kind == QN_KIND_INT;
}
static inline bool qn_qparams_is_fixed_point(const qn_qparams *p)
{
    return p->requantization == QN_REQUANTIZE_FIXED_POINT;
}
/* i below count. */
static inline float qn_qparams_scale_at(const qn_qparams *p, int64_t i)
{
    return p->scales ? p->scales[i] : p->scale;
}
static inline int64_t qn_qparams_zero_at(const qn_qparams *p, int64_t i)
{
    return p->zeros ? p->zeros[i] : p->zero;
}
/* One of several can be set only where there are lists, as those of qn_qparams_create have. */
static inline void qn_qparams_set_scale(qn_qparams *p, int64_t i, float scale)
{
    *(p->scales ? &p->scales[i] : &p->scale) = scale;
}
static inline void qn_qparams_set_zero(qn_qparams *p, int64_t i, int64_t zero)
{
    *(p->zeros ? &p->zeros[i] : &p->zero) = zero;
}

#endif
