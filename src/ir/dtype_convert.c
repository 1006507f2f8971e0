/* Elements of every type loaded and stored as doubles and integers. */
#include <math.h>
#include <string.h>

#include "ir/dtype.h"

/* ---- Small floats ---------------------------------------------------------------------------- */

double qn_minifloat_decode(const qn_minifloat *f, uint16_t code)
{
    const unsigned sign_shift = (unsigned)f->exponent_bits + f->mantissa_bits;
    /* float8e8m0 is the one type without a sign and without zero: 2^(code - bias). */
    if (f->mantissa_bits == 0)
        return code == f->nan ? (double)NAN : ldexp(1.0, code - f->bias);
    const uint16_t magnitude = code & (uint16_t)((1u << sign_shift) - 1);
    const double sign = (code >> sign_shift) & 1 ? -1.0 : 1.0;
    if (f->unsigned_zero ? code == f->nan : f->nan && !f->infinity && magnitude == f->nan)
        return (double)NAN;
    if (f->infinity && magnitude >= f->infinity)
        return magnitude == f->infinity ? sign * (double)INFINITY : (double)NAN;
    const int exponent = magnitude >> f->mantissa_bits;
    const int mantissa = magnitude & ((1 << f->mantissa_bits) - 1);
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - f->bias - f->mantissa_bits);
    return sign * ldexp(mantissa + (1 << f->mantissa_bits), exponent - f->bias - f->mantissa_bits);
}

static uint16_t encode_e8m0(const qn_minifloat *f, double value)
{
    if (isnan(value))
        return f->nan;
    const double limited = fmin(fmax(fabs(value), 0x1p-127), f->largest);
    return (uint16_t)(ilogb(limited) + (limited > ldexp(1.5, ilogb(limited))) + f->bias);
}

static uint16_t encode_overflow(const qn_minifloat *f, uint16_t sign, bool saturate)
{
    if (saturate || (!f->infinity && !f->nan)) {
        const uint16_t top = (uint16_t)((1u << (f->exponent_bits + f->mantissa_bits)) - 1);
        /* The largest finite code is the one below infinity, below NaN, or the top itself. */
        const uint16_t largest = f->infinity                   ? (uint16_t)(f->infinity - 1)
                                 : f->nan && !f->unsigned_zero ? (uint16_t)(f->nan - 1)
                                                               : top;
        return sign | largest;
    }
    if (f->infinity)
        return sign | f->infinity;
    return f->unsigned_zero ? f->nan : (uint16_t)(sign | f->nan);
}

uint16_t qn_minifloat_encode(const qn_minifloat *f, double value, bool saturate)
{
    if (f->mantissa_bits == 0)
        return encode_e8m0(f, value);
    const unsigned sign_shift = (unsigned)f->exponent_bits + f->mantissa_bits;
    const uint16_t sign = signbit(value) ? (uint16_t)(1u << sign_shift) : 0;
    if (isnan(value))
        return f->unsigned_zero ? f->nan : (uint16_t)(sign | f->nan);
    double magnitude = fabs(value);
    const int smallest = 1 - f->bias; /* exponent of the smallest normal number */
    if (isfinite(magnitude) && magnitude > 0) {
        const int exponent = QN_MAX(ilogb(magnitude), smallest);
        const double step = ldexp(1.0, exponent - f->mantissa_bits);
        magnitude = rint(magnitude / step) * step;
    }
    if (magnitude > f->largest)
        return encode_overflow(f, sign, saturate);
    if (magnitude == 0)
        return f->unsigned_zero ? 0 : sign;
    int exponent = ilogb(magnitude);
    if (exponent < smallest)
        return sign | (uint16_t)ldexp(magnitude, f->mantissa_bits - smallest);
    const double fraction = ldexp(magnitude, f->mantissa_bits - exponent);
    const unsigned mantissa = (unsigned)fraction - (1u << f->mantissa_bits);
    exponent += f->bias;
    return sign | (uint16_t)(((unsigned)exponent << f->mantissa_bits) | mantissa);
}

/* ---- Wide loads and stores ---------------------------------------------------------------------
 * One row per C type behind a dtype; small floats go through their codes. */

#define FOR_EACH_PLAIN(X)                                                                          \
    X(QN_FLOAT32, float)                                                                           \
    X(QN_FLOAT64, double)                                                                          \
    X(QN_UINT8, uint8_t)                                                                           \
    X(QN_BOOL, uint8_t)                                                                            \
    X(QN_INT8, int8_t)                                                                             \
    X(QN_UINT16, uint16_t)                                                                         \
    X(QN_INT16, int16_t)                                                                           \
    X(QN_UINT32, uint32_t)                                                                         \
    X(QN_INT32, int32_t)                                                                           \
    X(QN_UINT64, uint64_t)                                                                         \
    X(QN_INT64, int64_t)                                                                           \
    X(QN_UINT4, uint8_t)                                                                           \
    X(QN_INT4, int8_t)                                                                             \
    X(QN_UINT2, uint8_t)                                                                           \
    X(QN_INT2, int8_t)

static uint16_t load_code(qn_dtype dtype, const void *data, int64_t i)
{
    if (qn_dtype_size(dtype) == 1)
        return ((const uint8_t *)data)[i];
    return ((const uint16_t *)data)[i];
}

static void store_code(void *data, qn_dtype dtype, int64_t i, uint16_t code)
{
    if (qn_dtype_size(dtype) == 1)
        ((uint8_t *)data)[i] = (uint8_t)code;
    else
        ((uint16_t *)data)[i] = code;
}

void qn_load_f64(double *out, qn_dtype dtype, const void *data, int64_t first, int64_t count)
{
    const qn_minifloat *small = qn_dtype_get(dtype)->minifloat;
    for (int64_t i = 0; small && i < count; i++)
        out[i] = qn_minifloat_decode(small, load_code(dtype, data, first + i));
    switch (dtype) {
#define LOAD(D, T)                                                                                 \
    case D:                                                                                        \
        for (int64_t i = 0; i < count; i++)                                                        \
            out[i] = (double)((const T *)data)[first + i];                                         \
        break;
        FOR_EACH_PLAIN(LOAD)
#undef LOAD
    default: break;
    }
}

/* Truncates, saturates, and takes NaN for 0: the conversion C itself leaves undefined. */
static int64_t to_int64(double value)
{
    if (isnan(value))
        return 0;
    if (value >= 0x1p63)
        return INT64_MAX;
    return value < -0x1p63 ? INT64_MIN : (int64_t)value;
}

void qn_load_i64(int64_t *out, qn_dtype dtype, const void *data, int64_t first, int64_t count)
{
    if (qn_dtype_is_float(dtype)) {
        for (int64_t i = 0; i < count; i++) {
            double value = 0;
            qn_load_f64(&value, dtype, data, first + i, 1);
            out[i] = to_int64(value);
        }
        return;
    }
    switch (dtype) {
#define LOAD(D, T)                                                                                 \
    case D:                                                                                        \
        for (int64_t i = 0; i < count; i++)                                                        \
            out[i] = (int64_t)((const T *)data)[first + i];                                        \
        break;
        FOR_EACH_PLAIN(LOAD)
#undef LOAD
    default: break;
    }
}

/* What of an integer stays in a type of `bits`: wrapped as two's complement. */
static int64_t wrap(int64_t value, unsigned bits, bool is_signed)
{
    const uint64_t mask = (UINT64_C(1) << bits) - 1, low = (uint64_t)value & mask;
    const bool negative = is_signed && (low >> (bits - 1)) & 1;
    return negative ? (int64_t)(low | ~mask) : (int64_t)low;
}

/* The bits that the type has, as the wide number that they mean. */
static int64_t narrowed(int64_t value, const qn_dtype_info *info)
{
    if (info->kind == QN_KIND_BOOL)
        return value != 0;
    return info->bits < 8 ? wrap(value, info->bits, info->kind == QN_KIND_INT) : value;
}

void qn_store_i64(void *data, qn_dtype dtype, int64_t first, const int64_t *in, int64_t count)
{
    const qn_dtype_info *info = qn_dtype_get(dtype);
    const bool whole = info->bits >= 8 && info->kind != QN_KIND_BOOL;
    for (int64_t i = 0; info->minifloat && i < count; i++) {
        const double wide = (double)in[i];
        qn_store_f64(data, dtype, first + i, &wide, 1);
    }
    switch (dtype) {
#define STORE(D, T)                                                                                \
    case D:                                                                                        \
        for (int64_t i = 0; whole && i < count; i++)                                               \
            ((T *)data)[first + i] = (T)in[i];                                                     \
        for (int64_t i = 0; !whole && i < count; i++)                                              \
            ((T *)data)[first + i] = (T)narrowed(in[i], info);                                     \
        break;
        FOR_EACH_PLAIN(STORE)
#undef STORE
    default: break;
    }
}

static void store_floats(float *out, const double *in, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)in[i];
}

void qn_store_f64(void *data, qn_dtype dtype, int64_t first, const double *in, int64_t count)
{
    const qn_minifloat *small = qn_dtype_get(dtype)->minifloat;
    if (dtype == QN_FLOAT32) {
        store_floats((float *)data + first, in, count);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (small)
            store_code(data, dtype, first + i, qn_minifloat_encode(small, in[i], false));
        else if (dtype == QN_FLOAT64)
            ((double *)data)[first + i] = in[i];
        else if (dtype == QN_UINT64 && in[i] >= 0x1p63)
            ((uint64_t *)data)[first + i] = in[i] >= 0x1p64 ? UINT64_MAX : (uint64_t)in[i];
        else if (dtype == QN_BOOL) /* true for every number but zero, 0.5 included */
            ((uint8_t *)data)[first + i] = in[i] != 0;
        else {
            const int64_t value = to_int64(in[i]);
            qn_store_i64(data, dtype, first + i, &value, 1);
        }
    }
}
