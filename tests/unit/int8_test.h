/* Graphs of 8- and 16-bit integers for backend_test.h: the fast backends must give the reference's
 * bits. */
#ifndef QN_INT8_TEST_H
#define QN_INT8_TEST_H

#include "backend_test.h"
#include "ops/fixed_point.h"

static inline qn_dtype pick_byte(fixture *f)
{
    return pick(f, 2) ? QN_UINT8 : QN_INT8;
}

/* 16 bits one time in three. */
static inline qn_dtype pick_width(fixture *f, qn_dtype byte)
{
    return pick(f, 3) ? byte : byte == QN_UINT8 ? QN_UINT16 : QN_INT16;
}

/* Numbers of 16 bits are 256 times as many in the same range. */
static inline double unit_of(qn_dtype dtype)
{
    return qn_dtype_size(dtype) == 2 ? 1 / 256.0 : 1;
}

/* All values of a byte, the extreme ones more often. */
static inline void fill_bytes(fixture *f, void *data, int64_t count, bool extreme)
{
    static const uint8_t ends[] = {0, 255, 127, 128};
    for (int64_t i = 0; i < count; i++)
        ((uint8_t *)data)[i] = extreme ? ends[pick(f, 4)] : (uint8_t)pick(f, 256);
}

/* Numbers for a quantizer of scale 0.01 .. 0.1; some lie halfway, outside, or are none at all. */
static inline void fill_floats(fixture *f, float *x, int64_t count)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN, 1e30f, -0.0f};
    for (int64_t i = 0; i < count; i++)
        x[i] = pick(f, 50) ? 8 * noise(f) : odd[pick(f, 5)];
}

static inline qn_value *add_byte_input(fixture *f, qn_dtype dtype, int32_t rank,
                                       const int64_t *dims)
{
    qn_value *value = add_input(f, rank, dims);
    value->type.dtype = dtype;
    return value;
}

static inline qn_tensor *constant_tensor(fixture *f, qn_dtype dtype, int32_t rank,
                                         const int64_t *dims)
{
    const qn_type type = qn_type_tensor(dtype, rank, dims);
    qn_tensor *tensor;
    assert_int_equal(qn_tensor_create(&tensor, f->ctx, f->graph->arena, &type), QN_OK);
    return tensor;
}

static inline qn_value *constant_value(fixture *f, const qn_tensor *tensor)
{
    qn_value *value;
    assert_int_equal(qn_value_constant(&value, f->graph, "c", tensor), QN_OK);
    return value;
}

static inline qn_value *add_bytes(fixture *f, qn_dtype dtype, int32_t rank, const int64_t *dims)
{
    qn_tensor *tensor = constant_tensor(f, dtype, rank, dims);
    fill_bytes(f, tensor->data, qn_tensor_count(tensor) * (int64_t)qn_dtype_size(dtype),
               pick(f, 4) == 0);
    return constant_value(f, tensor);
}

/* A zero point: mostly at an end of the range or in its middle. */
static inline qn_value *add_zero(fixture *f, qn_dtype dtype)
{
    static const uint8_t usual[] = {0, 128, 255, 127};
    qn_tensor *tensor = constant_tensor(f, dtype, 0, NULL);
    const uint8_t byte = pick(f, 3) ? usual[pick(f, 4)] : (uint8_t)pick(f, 256);
    const bool low = pick(f, 2);
    if (qn_dtype_size(dtype) == 2)
        *(uint16_t *)tensor->data = (uint16_t)(byte << 8 | (low ? byte & 1 ? 255 : 0 : byte));
    else
        *(uint8_t *)tensor->data = byte;
    return constant_value(f, tensor);
}

/* `count` scales about `size`; 0: one number. */
static inline qn_value *add_scales(fixture *f, int64_t count, double size)
{
    qn_tensor *tensor = constant_tensor(f, QN_FLOAT32, count ? 1 : 0, &count);
    for (int64_t i = 0; i < qn_tensor_count(tensor); i++)
        ((float *)tensor->data)[i] = (float)(size * (1.5 + (double)noise(f)));
    return constant_value(f, tensor);
}

/* A node of more inputs than add_node takes. */
static inline qn_node *add_wide_node(fixture *f, const qn_op *op, int32_t n_in, qn_value *const *in)
{
    qn_node *node;
    qn_value *out;
    assert_int_equal(qn_node_add(&node, f->graph, op, NULL, n_in, 1), QN_OK);
    for (int32_t i = 0; i < n_in; i++)
        assert_int_equal(qn_node_set_input(node, i, in[i]), QN_OK);
    assert_int_equal(qn_value_create(&out, f->graph, NULL), QN_OK);
    qn_node_set_output(node, 0, out);
    return node;
}

/* Elements of both runs that differ, of all outputs. `kernel`: see compare. */
static inline double differing_once(fixture *f, const char *kernel, const qn_tensor *in,
                                    size_t n_in)
{
    double count = 0;
    outcome plain = run_with(f, "ref", in, n_in), fast = run_with(f, NULL, in, n_in);
    for (size_t o = 0; o < f->graph->n_outputs; o++) {
        const qn_tensor *a = qn_session_output(fast.session, o);
        const qn_tensor *b = qn_session_output(plain.session, o);
        const size_t size = qn_dtype_size(b->dtype);
        assert_int_equal(qn_tensor_count(a), qn_tensor_count(b));
        for (int64_t i = 0; i < qn_tensor_count(b); i++)
            count += memcmp((const char *)a->data + (size_t)i * size,
                            (const char *)b->data + (size_t)i * size, size) != 0;
    }
    must_use(fast.plan, kernel);
    outcome_end(&plain);
    outcome_end(&fast);
    return count;
}

/* The model's convolutions round twice; false where it has none of bytes. */
static inline bool rounds_twice(fixture *f)
{
    bool found = false;
    assert_int_equal(qn_model_set_numerics(f->model, QN_NUMERICS_DOUBLE_ROUNDING, 1), QN_OK);
    for (const qn_node *node = f->graph->first; node; node = node->next)
        found |= qn_node_requantization(node) == QN_REQUANTIZE_TWICE;
    return found;
}

/* The same for random inputs: as the graph is, with two roundings, in fixed point. */
static inline double differing(fixture *f, const char *kernel)
{
    qn_tensor in[8];
    const size_t n_in = f->graph->n_inputs;
    if (getenv("QUENCH_SAVE"))
        assert_int_equal(qn_model_save(f->ctx, f->model, getenv("QUENCH_SAVE"), NULL), QN_OK);
    assert_true(n_in <= QN_COUNT_OF(in));
    for (size_t i = 0; i < n_in; i++) {
        const qn_type *type = &f->graph->inputs[i]->type;
        in[i] = (qn_tensor){.dtype = type->dtype, .rank = type->rank};
        assert_true(qn_type_is_static(type, in[i].dims));
        const int64_t numbers = qn_tensor_count(&in[i]);
        const size_t size = qn_dtype_size(type->dtype);
        in[i].data = malloc((size_t)numbers * size + 1);
        if (type->dtype == QN_FLOAT32)
            fill_floats(f, in[i].data, numbers);
        else
            fill_bytes(f, in[i].data, numbers * (int64_t)size, pick(f, 4) == 0);
    }
    double count = differing_once(f, kernel, in, n_in);
    if (rounds_twice(f))
        count += differing_once(f, kernel, in, n_in);
    assert_int_equal(qn_model_set_numerics(f->model, QN_NUMERICS_FIXED_POINT, 1), QN_OK);
    count += differing_once(f, kernel, in, n_in);
    for (size_t i = 0; i < n_in; i++)
        free(in[i].data);
    return count;
}

#endif
