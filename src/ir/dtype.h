/* Element types: one table, and conversion of elements through the two wide types, double and
 * int64_t, which hold every value of every numeric type (uint64 as its bits). */
#ifndef QN_DTYPE_H
#define QN_DTYPE_H

#include "base/base.h"

typedef enum qn_dtype_kind {
    QN_KIND_NONE,
    QN_KIND_FLOAT,
    /* Signed */
    QN_KIND_INT,
    /* Unsigned */
    QN_KIND_UINT,
    QN_KIND_BOOL,
    QN_KIND_COMPLEX,
    QN_KIND_STRING
} qn_dtype_kind;

/* How a float type of 16 bits or less is built; see dtype_convert.c. */
typedef struct qn_minifloat {
    uint8_t exponent_bits, mantissa_bits;
    int16_t bias;
    /* Finite */
    double largest;
    /* Codes without sign; infinity 0: the type has none */
    uint16_t nan, infinity;
    /* "uz": no negative zero, its code is NaN */
    bool unsigned_zero;
} qn_minifloat;

typedef struct qn_dtype_info {
    /* Numpy's word: "float32" */
    const char *name;
    /* Onnx.proto's word: "FLOAT" */
    const char *onnx_name;
    /* Descr of a .npy file, "<f4"; NULL: numpy has none */
    const char *npy;
    /* Bytes of an element in memory */
    uint8_t size;
    /* The bits of an element in a file; those below 8 are packed. */
    uint8_t bits;
    qn_dtype_kind kind;
    const qn_minifloat *minifloat;
} qn_dtype_info;

/* Never NULL: a number that is none gives QN_UNDEFINED's row. */
const qn_dtype_info *qn_dtype_get(qn_dtype dtype);
/* By numpy's word; QN_UNDEFINED when there is none. */
qn_dtype qn_dtype_by_name(const char *name);
static inline bool qn_dtype_is_float(qn_dtype dtype)
{
    return qn_dtype_get(dtype)->kind == QN_KIND_FLOAT;
}
/* Signed or unsigned integer, or bool. */
bool qn_dtype_is_integer(qn_dtype dtype);

/* Sets of types, for operator tables: bit d stands for dtype d. */
#define QN_SET(d) (UINT32_C(1) << (d))
#define QN_SET_FLOAT                                                                               \
    (QN_SET(QN_FLOAT32) | QN_SET(QN_FLOAT64) | QN_SET(QN_FLOAT16) | QN_SET(QN_BFLOAT16))
#define QN_SET_FLOAT8                                                                              \
    (QN_SET(QN_FLOAT8E4M3FN) | QN_SET(QN_FLOAT8E4M3FNUZ) | QN_SET(QN_FLOAT8E5M2) |                 \
     QN_SET(QN_FLOAT8E5M2FNUZ) | QN_SET(QN_FLOAT8E8M0) | QN_SET(QN_FLOAT4E2M1) |                   \
     QN_SET(QN_FLOAT6E2M3) | QN_SET(QN_FLOAT6E3M2))
#define QN_SET_SIGNED (QN_SET(QN_INT8) | QN_SET(QN_INT16) | QN_SET(QN_INT32) | QN_SET(QN_INT64))
#define QN_SET_UNSIGNED                                                                            \
    (QN_SET(QN_UINT8) | QN_SET(QN_UINT16) | QN_SET(QN_UINT32) | QN_SET(QN_UINT64))
#define QN_SET_SMALL_INT (QN_SET(QN_INT4) | QN_SET(QN_UINT4) | QN_SET(QN_INT2) | QN_SET(QN_UINT2))
#define QN_SET_INT (QN_SET_SIGNED | QN_SET_UNSIGNED)
#define QN_SET_NUMBER (QN_SET_FLOAT | QN_SET_INT)
#define QN_SET_BOOL QN_SET(QN_BOOL)
#define QN_SET_STRING QN_SET(QN_STRING)
#define QN_SET_INDEX (QN_SET(QN_INT32) | QN_SET(QN_INT64))
#define QN_SET_TENSOR (QN_SET(QN_SEQUENCE) - 2) /* all tensor types */
#define QN_SET_SEQUENCE QN_SET(QN_SEQUENCE)
#define QN_SET_OPTIONAL QN_SET(QN_NONE) /* an optional type */
#define QN_SET_ANY (QN_SET_TENSOR | QN_SET_SEQUENCE | QN_SET_OPTIONAL)

/* Elements [first, first + count) of `data` (of type `dtype`) to and from wide numbers. Loading
 * floats as integers truncates and saturates; storing rounds half to even (floats) or wraps
 * (integers). Storing a float that a small float type cannot hold saturates where `saturate`,
 * else becomes infinity or NaN as the type has it. Strings and complex numbers are not for here. */
void qn_load_f64(double *out, qn_dtype dtype, const void *data, int64_t first, int64_t count);
void qn_load_i64(int64_t *out, qn_dtype dtype, const void *data, int64_t first, int64_t count);
void qn_store_f64(void *data, qn_dtype dtype, int64_t first, const double *in, int64_t count);
void qn_store_i64(void *data, qn_dtype dtype, int64_t first, const int64_t *in, int64_t count);

double qn_minifloat_decode(const qn_minifloat *format, uint16_t code);
uint16_t qn_minifloat_encode(const qn_minifloat *format, double value, bool saturate);

#endif
