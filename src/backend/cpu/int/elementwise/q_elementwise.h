/* Integer kernels that are no multiply-accumulate, and what their claims share. Formulas:
 * docs/numerics.md; every kernel gives the reference's bits on every instruction set. */
#ifndef QN_CPU_Q_ELEMENTWISE_H
#define QN_CPU_Q_ELEMENTWISE_H

#include "backend/cpu/int/epilogue/q_epilogue.h"
#include "ir/qparams.h"

/* How a kernel reads a tensor of 8 or 16 bits: x = (stored ^ flip) - zero, all unsigned. */
typedef struct qn_q_side {
    /* The top bit of signed types, else 0. */
    int32_t flip;
    /* Shifted by the same. */
    int32_t zero;
    /* 16 bits */
    bool is_int16;
} qn_q_side;

/* rint(x * scale) or, of quantize, rint(x / scale), limited, as numbers of 8 or 16 bits. */
typedef struct qn_q_cast {
    qn_q_side from;
    float scale;
    qn_q_round round;
    /* The result has 16 bits. */
    bool is_int16;
    /* In fixed point: x * scale is exact. */
    bool fixed_point;
} qn_q_cast;

/* a and b to y: the sum fma(a, a_scale, fma(b, b_scale, offset)) of numbers as stored, or the
 * product times a_scale. All have one width. */
typedef struct qn_q_pair {
    qn_q_side a, b;
    float a_scale, b_scale, offset;
    qn_q_round round;
    /* In fixed point: nothing is rounded before the result. */
    bool exact;
} qn_q_pair;

/* x to y: x where it is not negative, x times a slope below. */
typedef struct qn_q_slopes {
    /* Its scale is that of x. */
    qn_q_cast cast;
    float y_scale;
} qn_q_slopes;

/* `rows` rows of `width` elements; a step of 0 uses the same row again. A single operand is one
 * element a row. */
typedef struct qn_q_rows {
    int64_t rows, width;
    /* Elements from row to row. */
    int64_t a_step, b_step;
    bool a_single, b_single;
} qn_q_rows;

/* n rows of `width` numbers: at x + offsets[i], or where that is NULL at x + i * step (bytes). */
typedef struct qn_q_taps {
    const void *x;
    const int64_t *offsets;
    int64_t n, step;
} qn_q_taps;

/* One output row of a linear resize in [.., H, W, C]: two input rows, two taps along W for each
 * position. */
typedef struct qn_q_linear {
    const void *top, *low;
    /* [out_w, 2]. */
    const int64_t *index;
    /* [out_w, 2]. */
    const float *weight;
    float top_weight, low_weight;
    int64_t out_w, channels;
} qn_q_linear;

typedef struct qn_q_norm {
    qn_q_side from;
    float x_scale, epsilon, y_scale;
    /* [n]; beta NULL: none. */
    const float *gamma, *beta;
    qn_q_round round;
} qn_q_norm;

typedef struct qn_q_softmax {
    /* By the distance from the largest. */
    const uint32_t *table;
    bool is_signed;
    float y_scale;
    qn_q_round round;
} qn_q_softmax;

/* `count` columns of n elements side by side; element k lies k * stride behind the first. */
typedef struct qn_q_columns {
    int64_t n, stride, count;
} qn_q_columns;

typedef struct qn_q_kernels {
    /* The least of the numbers and 0, and the largest. What is no number counts for nothing. */
    void (*ends)(float ends[2], const float *x, int64_t count);
    void (*quantize)(void *y, const float *x, int64_t count, const qn_q_cast *cast);
    void (*dequantize)(float *y, const void *x, int64_t count, const qn_q_cast *cast);
    void (*requantize)(void *y, const void *x, int64_t count, const qn_q_cast *cast);
    void (*add)(void *y, const void *a, const void *b, const qn_q_pair *pair,
                const qn_q_rows *rows);
    void (*multiply)(void *y, const void *a, const void *b, const qn_q_pair *pair,
                     const qn_q_rows *rows);
    /* The slopes are operand b. */
    void (*prelu)(void *y, const void *x, const float *slope, const qn_q_slopes *slopes,
                  const qn_q_rows *rows);
    /* Bytes, as the type orders them: flip makes them so. Limits are flipped too. */
    void (*clip)(uint8_t *y, const uint8_t *x, int64_t count, qn_q_side side,
                 const int32_t limits[2]);
    /* table[256] by the byte itself */
    void (*table)(uint8_t *y, const uint8_t *x, int64_t count, const uint8_t *table);
    void (*largest)(uint8_t *y, const qn_q_taps *taps, int64_t width, int32_t flip);
    void (*largest_uint16)(uint8_t *y, const qn_q_taps *taps, int64_t width, int32_t flip);
    /* The largest of n neighbours, as it is stored. */
    uint8_t (*largest_row)(const uint8_t *x, int64_t n, int32_t flip);
    /* The mean over taps, scaled by cast->scale. */
    void (*mean)(void *y, const qn_q_taps *taps, int64_t width, const qn_q_cast *cast);
    /* The mean of `n` neighbours. */
    void (*mean_row)(void *y, const void *x, int64_t n, const qn_q_cast *cast);
    void (*linear)(void *y, const qn_q_linear *line, const qn_q_cast *cast);
    /* Rows of n bytes; `scratch` has room for n numbers of 32 bits. */
    void (*softmax)(uint8_t *y, const uint8_t *x, int64_t n, const qn_q_softmax *softmax,
                    uint32_t *scratch);
    /* scratch: n vectors, n < 256. */
    void (*softmax_columns)(uint8_t *y, const uint8_t *x, const qn_q_columns *columns,
                            const qn_q_softmax *softmax, uint32_t *scratch);
    void (*norm)(uint8_t *y, const uint8_t *x, int64_t n, const qn_q_norm *norm);
    /* y[c * y_step + r] = x[r * x_step + c], bytes; steps in elements. */
    void (*transpose_uint8)(uint8_t *y, const uint8_t *x, int64_t y_step, int64_t x_step,
                            int64_t rows, int64_t columns);
    void (*transpose_uint16)(uint16_t *y, const uint16_t *x, int64_t y_step, int64_t x_step,
                             int64_t rows, int64_t columns);
} qn_q_kernels;

/* Those of the best instruction set that CPU and environment allow. */
const qn_q_kernels *qn_q_kernels_get(void);

extern const qn_q_kernels qn_q_kernels_base;
extern const qn_q_kernels qn_q_kernels_avx2;
extern const qn_q_kernels qn_q_kernels_avx512;
/* The fastest look-up in tables of 256 bytes. */
typedef void qn_q_look_up_fn(uint8_t *y, const uint8_t *x, int64_t count, const uint8_t *table);
qn_q_look_up_fn *qn_q_look_up_get(void);
/* By permutations of whole registers. */
void qn_q_table_vbmi(uint8_t *y, const uint8_t *x, int64_t count, const uint8_t *table);

/* ---- For claims ------------------------------------------------------------------------------ */

#define QN_LAST ((qn_layout){QN_LAYOUT_CHANNELS_LAST, 0})

/* An integer type of 8 or 16 bits. */
bool qn_q_is_integer(qn_dtype dtype);
/* The constant scale and zero point at inputs `scale` and `zero` (which may be left out). */
bool qn_q_param_of(qn_qparams *out, const qn_node *node, int32_t scale, int32_t zero);
qn_q_side qn_q_side_of(qn_dtype dtype, int64_t zero);
/* Its scale in fixed point. */
void qn_q_cast_fixed_point(qn_q_cast *cast);
/* All of the type's range. */
qn_q_round qn_q_round_of(qn_dtype dtype, int64_t zero);
/* The nodes behind *value that only limit it join the claim; *value becomes the last one's
 * output. */
void qn_q_take_clips(qn_claim *claim, qn_value **value, qn_q_round *round);
/* The layout in which a tensor of integers is best kept: channels last where it has that
 * already. */
qn_layout qn_q_layout(const qn_claim *claim, const qn_value *value);
/* Some reader of floats works in blocks of channels (qn_layout_native). */
bool qn_q_wants_blocks(const qn_value *value);

/* Elements an item of work has; below ALONE items one thread works. */
enum { QN_Q_CHUNK = 4096, QN_Q_ALONE = 8 };

#endif
