/* What tests of integer kernels that are no multiply-accumulate begin and end with: tensors of 8 or
 * 16 bits, channels last or row-major, with scales and zero points. */
#ifndef QN_INT8_ELEM_H
#define QN_INT8_ELEM_H

#include "int8_test.h"

static inline int64_t dim(const qn_value *value, int32_t d)
{
    return value->type.dims[d].value;
}

static inline int64_t channels(fixture *f)
{
    return pick(f, 2) ? 16 * (1 + pick(f, 6)) : 1 + pick(f, 40);
}

static inline qn_dtype pick_narrow(fixture *f)
{
    static const qn_dtype types[] = {QN_UINT8, QN_INT8, QN_UINT16, QN_INT16};
    return types[pick(f, 3) ? pick(f, 2) : pick(f, 4)];
}

/* A zero point of any narrow type. */
static inline qn_value *zero_of(fixture *f, qn_dtype dtype)
{
    if (qn_dtype_size(dtype) == 1)
        return add_zero(f, dtype);
    qn_tensor *tensor = constant_tensor(f, dtype, 0, NULL);
    *(uint16_t *)tensor->data = (uint16_t)(pick(f, 3) ? pick(f, 65536) : 32768 * pick(f, 2));
    return constant_value(f, tensor);
}

static inline double scale_size(qn_dtype dtype)
{
    return qn_dtype_size(dtype) == 1 ? 0.02 : 0.0001;
}

static inline qn_value *scale_of(fixture *f, qn_dtype dtype)
{
    return add_scales(f, 0, scale_size(dtype));
}

/* A tensor [N, C, H, W], often channels last: out of a pool that changes nothing, which works
 * so. */
static inline qn_value *image(fixture *f, qn_dtype dtype)
{
    const int64_t dims[] = {1 + pick(f, 2), channels(f), 1 + pick(f, 9), 1 + pick(f, 9)};
    const int64_t ones[] = {1, 1};
    qn_value *x = add_byte_input(f, dtype, 4, dims);
    if (qn_dtype_size(dtype) == 2 || pick(f, 3) == 0)
        return x;
    qn_node *node = add_node(f, &qn_op_MaxPool, 1, &x);
    ((qn_window_attrs *)node->attrs)->kernel_shape = keep_ints(f, ones, 2);
    return result_of(node);
}

/* Limits behind a value, now and then. */
static inline qn_value *limited(fixture *f, qn_value *x)
{
    if (pick(f, 2) || qn_dtype_size(x->type.dtype) == 2)
        return x;
    qn_value *const in[] = {x, add_zero(f, x->type.dtype), add_zero(f, x->type.dtype)};
    return result_of(add_node(f, &qn_op_Clip, pick(f, 2) ? 2 : 3, in));
}

static inline double finish(fixture *f, qn_value *y, const char *kernel)
{
    add_output(f, y);
    const double count = differing(f, kernel);
    fixture_end(f);
    return count;
}

#endif
