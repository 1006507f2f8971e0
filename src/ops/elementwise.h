/* Element-wise operators through the wide types: a kernel is a function of doubles, of int64, or of
 * both; loading and storing give every element type. */
#ifndef QN_ELEMENTWISE_H
#define QN_ELEMENTWISE_H

#include "ops/eval.h"
#include "ops/infer.h"

typedef double qn_unary_f64(double x, const void *attrs);
typedef int64_t qn_unary_i64(int64_t x, const void *attrs);
typedef double qn_binary_f64(double a, double b, const void *attrs);
/* uint64 comes as its bits; `is_unsigned` is set where that matters (compare, divide, shift). */
typedef int64_t qn_binary_i64(int64_t a, int64_t b, bool is_unsigned, const void *attrs);

/* out[i] = f(in0[i]); integers go through `g`, or through `f` where g is NULL. */
QN_MUST_CHECK qn_status qn_eval_unary(qn_eval *self, qn_unary_f64 *f, qn_unary_i64 *g);
/* out = f(in0, in1) with numpy's broadcast. Results of f64 functions on bool outputs are true
 * where not zero. */
QN_MUST_CHECK qn_status qn_eval_binary(qn_eval *self, qn_binary_f64 *f, qn_binary_i64 *g);

/* Rows of output 0 under numpy's broadcast of all inputs (at most QN_ROW_OPERANDS), as long as they
 * can be. */
enum { QN_ROW_OPERANDS = 3 };
typedef struct qn_row {
    /* Elements of output 0 */
    int64_t first, count;
    /* First element of each input */
    int64_t at[QN_ROW_OPERANDS];
    /* It is that of the whole row */
    bool repeats[QN_ROW_OPERANDS];
} qn_row;
typedef void qn_row_fn(const qn_eval *self, const qn_row *row, const void *user);
void qn_eval_rows(const qn_eval *self, qn_row_fn *fn, const void *user);

/* The same for any two tensors of equal size and anything as `params`. */
void qn_tensor_map(const qn_tensor *out, const qn_tensor *in, qn_unary_f64 *f, qn_unary_i64 *g,
                   const void *params);

/* ---- Inference: shapes that the graph computes --------------------------------------------------
 * Where contents of small integer inputs are known (qn_type.elements), those of output 0 become
 * known. To be called when output 0 has its type. */

QN_MUST_CHECK qn_status qn_infer_unary_elements(qn_infer *self, qn_unary_i64 *g);
typedef struct qn_binary_rule {
    qn_binary_i64 *g;
    bool has_neutral, commutes;
    /* x op neutral = x: keeps symbols */
    int64_t neutral;
} qn_binary_rule;
QN_MUST_CHECK qn_status qn_infer_binary_elements(qn_infer *self, const qn_binary_rule *rule);

/* ---- Broadcast ------------------------------------------------------------------------------- */

/* Strides, in elements, with which `tensor` is walked to fill `out_rank` dims under broadcast: 0
 * along the dims that repeat. */
void qn_broadcast_strides(int64_t *strides, const qn_tensor *tensor, int32_t out_rank,
                          const int64_t *out_dims);
/* Element offset of flat index `i` of dims under strides. */
int64_t qn_offset_of(int64_t i, int32_t rank, const int64_t *dims, const int64_t *strides);

#endif
