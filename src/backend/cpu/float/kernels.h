/* The kernels of one instruction set: compiled from the same sources (the *_kernels.h files),
 * chosen when a plan is made. */
#ifndef QN_CPU_KERNELS_H
#define QN_CPU_KERNELS_H

#include "backend/cpu/float/conv/depthwise.h"
#include "backend/cpu/float/conv/pointwise.h"
#include "backend/cpu/float/conv/winograd.h"
#include "backend/cpu/float/elementwise/chain.h"

/* y[i] = f(x[i]) for `count` floats. `operand` NULL: the function has none. */
typedef void qn_map_fn(float *y, const float *x, int64_t count, const qn_stage *stage,
                       const float *operand, qn_spread spread);

/* Parameters of a normalization over rows; bias may be NULL. */
typedef struct qn_norm_row {
    /* [n]. */
    const float *scale, *bias;
    float epsilon;
    /* The mean is taken out. */
    bool centered;
} qn_norm_row;

/* How the elements of a group are joined; `shift` is the group's. (reduction.h) */
typedef enum qn_reduction {
    QN_REDUCTION_SUM,
    /* Sum of |x| */
    QN_REDUCTION_ABS,
    /* Sum of x^2. */
    QN_REDUCTION_SQUARE,
    /* Sum of (x - shift)^2. */
    QN_REDUCTION_DEVIATION,
    /* Sum of e^(x - shift). */
    QN_REDUCTION_EXP,
    QN_REDUCTION_PRODUCT,
    /* What is no number is the largest and the smallest. */
    QN_REDUCTION_MAX,
    QN_REDUCTION_MIN,
    QN_REDUCTIONS
} qn_reduction;

/* Reduces x[r * result_step + k * step] for k < n into totals[r], for r < count. */
typedef struct qn_reduction_block {
    /* [count], with room for whole vectors. */
    double *totals;
    const float *x;
    /* [count]; NULL: none. */
    const float *shift;
    int64_t count, result_step;
    int64_t n, step;
} qn_reduction_block;
typedef void qn_reduction_fn(const qn_reduction_block *block);

/* y = (x - centre) * factor + bias */
typedef struct qn_center {
    /* One for a row, one for each lane. */
    const float *centre, *factor, *bias;
} qn_center;
typedef void qn_center_fn(float *y, const float *x, int64_t n, const qn_center *center);

/* Which of the elements that are equally good: the first or the last. What is no number is the
 * best. */
typedef enum qn_arg { QN_ARG_MAX, QN_ARG_MAX_LAST, QN_ARG_MIN, QN_ARG_MIN_LAST, QN_ARGS } qn_arg;
/* For each of `count` rows, or lanes, of n elements that are `stride` floats apart. */
typedef struct qn_arg_block {
    int64_t *y;
    const float *x;
    int64_t count, n, stride;
} qn_arg_block;
typedef void qn_arg_fn(const qn_arg_block *block);
enum { QN_ARG_MOST = 1 << 24 }; /* elements: floats count them */

/* What is added to the scores of one head: floats, or booleans that say which keys are seen. Other
 * keys, and those outside the range that a query sees, count for nothing. */
typedef struct qn_attention_mask {
    /* NULL: none */
    const void *data;
    bool is_bool;
    /* Elements from query to query and from key to key, and how many keys there are. */
    int64_t query_step, key_step, keys;
    /* Query i sees keys i - before .. i + behind; -1: all of that side. */
    int64_t before, behind;
} qn_attention_mask;

/* One head of attention; strides in floats from row to row. */
typedef struct qn_attention_head {
    /* [queries, size], [keys, size], [keys, value_size]. */
    const float *q, *k, *v;
    /* [queries, value_size]. */
    float *y;
    int64_t q_stride, k_stride, v_stride, y_stride;
    int64_t queries, keys, size, value_size;
    /* The factor of the scores, and what bounds them; 0: nothing does. */
    float scale, softcap;
    /* NULL: every query sees every key */
    const qn_attention_mask *mask;
    /* (size + 4) * keys, rounded up to whole vectors */
    float *scratch;
} qn_attention_head;

/* A tile that is transposed: y[c * y_step + r] = x[r * x_step + c] for r < rows, c < columns, at
 * most `width` of each. With `fill` the rest of y's `width` lanes becomes 0. */
typedef struct qn_transpose_tile {
    float *y;
    const float *x;
    int64_t y_step, x_step, rows, columns;
    bool fill;
} qn_transpose_tile;

/* Elements of another type. */
typedef void qn_cast_fn(void *y, const void *x, int64_t count);
typedef enum qn_cast_type {
    QN_CAST_F32,
    QN_CAST_F64,
    QN_CAST_F16,
    QN_CAST_BF16,
    QN_CAST_I8,
    QN_CAST_U8,
    QN_CAST_I32,
    QN_CAST_I64,
    QN_CAST_BOOL,
    QN_CAST_TYPES
} qn_cast_type;

/* One row of a function of rows.def, or of Where by the size of an element. Bit i of `single`:
 * operand i is one element. */
typedef void qn_row_kernel(void *y, const void *const *in, int64_t count, int single);
typedef enum qn_row_fn_id {
#define QN_ROW(id, Operator, dtype, Y, X, expression) QN_ROW_##id,
#include "backend/cpu/float/elementwise/rows.def"
#undef QN_ROW
    QN_ROW_WHERE_1,
    QN_ROW_WHERE_2,
    QN_ROW_WHERE_4,
    QN_ROW_WHERE_8,
    QN_ROW_COUNT
} qn_row_fn_id;

/* Rows of numbers times a matrix M [depth, panels * panel], which is packed as [panels, depth,
 * panel]; a panel is QN_PANEL_VECTORS vectors of columns. */
enum { QN_PANEL_VECTORS = 2 };
typedef struct qn_product {
    /* [rows, panels * panel]: the products are added to what is there. */
    float *y;
    int64_t y_stride;
    /* One pointer a row, to `depth` numbers. */
    const float *const *x;
    const float *m;
    int64_t rows, depth, panels;
} qn_product;

/* One step of one item of a recurrent node, from the sums of its gates. */
typedef struct qn_gates {
    /* The sums of each gate, `pitch` apart. */
    const float *sums;
    int64_t pitch;
    /* GRU_LINEAR: what the reset gate is for. */
    const float *recurrent;
    /* The state before, not read by LSTM and RNN. */
    const float *h;
    /* The state behind; GRU_RESET: the state as the reset gate leaves it. */
    float *next;
    /* LSTM. */
    float *c;
} qn_gates;
/* Units [first, last), whole vectors. */
typedef void qn_gates_fn(const qn_gates *step, int64_t first, int64_t last);
typedef enum qn_cell_fn {
    QN_CELL_LSTM,
    QN_CELL_GRU,
    QN_CELL_GRU_RESET,
    QN_CELL_GRU_LINEAR,
    QN_CELL_RNN_TANH,
    QN_CELL_RNN_RELU,
    QN_CELL_COUNT
} qn_cell_fn;

struct qn_kernels {
    /* The lanes of a vector, which are also the channel block of blocked layouts. */
    int width;
    /* By qn_fn. */
    qn_map_fn *const *map;
    void (*transpose)(const qn_transpose_tile *transpose);
    /* NULL: none. */
    const qn_winograd_kernels *wino;
    /* NULL: none. */
    const qn_pointwise_kernels *pointwise;
    /* By kernel (3, 5) and stride (1, 2); NULL: none. */
    qn_depthwise_fn *const (*depthwise)[2];
    /* From, to; NULL: none. */
    qn_cast_fn *const (*cast)[QN_CAST_TYPES];
    /* Bool to bool; float to bool. */
    qn_cast_fn *negate, *is_nan;
    /* By qn_row_fn_id. */
    qn_row_kernel *const *rows;
    /* By negative and positive; NULL: none. */
    qn_cast_fn *const (*is_inf)[2];
    /* y, x: [rows, n] */
    void (*softmax_rows)(float *y, const float *x, int64_t rows, int64_t n);
    /* At most `width` lanes side by side; their elements are `stride` floats apart. */
    void (*softmax_lanes)(float *y, const float *x, int64_t n, int64_t stride, int64_t count);
    void (*attend)(const qn_attention_head *head);
    void (*product)(const qn_product *product);
    /* By qn_cell_fn. */
    qn_gates_fn *const *gates;
    void (*norm_rows)(float *y, const float *x, int64_t rows, int64_t n, const qn_norm_row *norm);
    /* By qn_reduction; rows (step is 1), lanes (result_step is 1). */
    qn_reduction_fn *const (*reduction)[2];
    qn_center_fn *center_row, *center_lanes;
    /* By qn_arg; rows (stride is 1), lanes (count of them at most `width`). */
    qn_arg_fn *const (*arg)[2];
    /* QN_PEAK_CHAINS vectors of multiply-adds a round, and nothing else: the core's peak. */
    float (*peak)(int64_t rounds);
};

/* Those of the best instruction set that CPU and environment allow. */
const qn_kernels *qn_kernels_get(void);

extern const qn_kernels qn_kernels_base;
extern const qn_kernels qn_kernels_avx2;
extern const qn_kernels qn_kernels_avx512;

#endif
