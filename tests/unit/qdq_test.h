/* Small graphs of pairs, QuantizeLinear and DequantizeLinear, around operators: for tests of what
 * becomes of them. */
#ifndef QN_QDQ_TEST_H
#define QN_QDQ_TEST_H

#include "ops/nn_attrs.h"
#include "ops/resize.h"
#include "pass_test.h"

/* ---- Quantized graphs ------------------------------------------------------------------------ */

typedef struct meaning {
    qn_dtype dtype;
    double scale;
    int64_t zero;
} meaning;

static inline qn_value *integer(fixture *f, qn_dtype dtype, int64_t x)
{
    qn_value *value;
    assert_int_equal(qn_value_number(&value, f->graph, dtype, (double)x), QN_OK);
    return value;
}

static inline qn_value *quantize(fixture *f, qn_value *x, meaning m)
{
    return apply(f, &qn_op_QuantizeLinear, 3, x, number(f, m.scale), integer(f, m.dtype, m.zero));
}

static inline qn_value *dequantize(fixture *f, qn_value *x, meaning m)
{
    return apply(f, &qn_op_DequantizeLinear, 3, x, number(f, m.scale), integer(f, m.dtype, m.zero));
}

static const meaning wide = {QN_UINT8, 0.04, 120}, narrow = {QN_UINT8, 0.025, 100},
                     positive = {QN_UINT8, 0.03, 0}, centered = {QN_INT8, 0.06, 3},
                     weight = {QN_INT8, 1.0 / 127, 0};

static inline qn_value *both(fixture *f, qn_value *x, meaning m)
{
    return dequantize(f, quantize(f, x, m), m);
}

/* The graph's result, in integers as the last operator gives them and as floats outside. */
static inline void finish(fixture *f, qn_value *y, meaning m)
{
    assert_int_equal(qn_graph_add_output(f->graph, both(f, y, m)), QN_OK);
}

static const int64_t image[4] = {1, 4, 6, 6}, matrix[2] = {3, 8};

/* ---- Cases ----------------------------------------------------------------------------------- */

static inline void conv_relu(fixture *f)
{
    const int64_t filters[4] = {8, 4, 3, 3}, bias[1] = {8};
    qn_value *x = both(f, input(f, "x", 4, image), wide);
    qn_value *w = both(f, weights(f, 4, filters), weight);
    finish(f, apply(f, &qn_op_Relu, 1, apply(f, &qn_op_Conv, 3, x, w, weights(f, 1, bias))),
           positive);
}

/* The zero point is not the least number, so that the limit is an operator of its own. */
static inline void conv_clip(fixture *f)
{
    const int64_t filters[4] = {8, 4, 1, 1};
    qn_value *x = both(f, input(f, "x", 4, image), centered);
    qn_value *y = apply(f, &qn_op_Conv, 2, x, both(f, weights(f, 4, filters), weight));
    finish(f, apply(f, &qn_op_Clip, 3, y, number(f, 0), number(f, 1.5)), centered);
}

static inline void conv_to_float(fixture *f)
{
    const int64_t filters[4] = {8, 4, 3, 3};
    qn_value *x = both(f, input(f, "x", 4, image), wide);
    qn_value *w = both(f, weights(f, 4, filters), weight);
    assert_int_equal(qn_graph_add_output(f->graph, apply(f, &qn_op_Conv, 2, x, w)), QN_OK);
}

/* Filters that have a scale each, that of the first so small that its bias in units does not fit
 * into int32. */
static inline void conv_units(fixture *f, bool dead)
{
    const int64_t filters[4] = {8, 4, 3, 3}, eight[1] = {8};
    qn_value *x = both(f, input(f, "x", 4, image), wide), *w = weights(f, 4, filters),
             *bias = weights(f, 1, eight), *scale = weights(f, 1, eight);
    for (int i = 0; i < 8; i++)
        ((float *)scale->data->data)[i] = i ? (float)weight.scale : 1e-8f;
    for (int i = 0; i < 36 && dead; i++)
        ((float *)w->data->data)[i] = 0;
    ((float *)bias->data->data)[0] = 1.5f;
    w = apply(f, &qn_op_QuantizeLinear, 2, w, scale);
    ((qn_quantize_attrs *)w->producer->attrs)->axis = 0;
    ((qn_quantize_attrs *)w->producer->attrs)->output_dtype = QN_INT8;
    w = apply(f, &qn_op_DequantizeLinear, 2, w, scale);
    ((qn_quantize_attrs *)w->producer->attrs)->axis = 0;
    finish(f, apply(f, &qn_op_Conv, 3, x, w, bias), wide);
}

static inline void large_bias(fixture *f)
{
    conv_units(f, false);
}

static inline void dead_filter(fixture *f)
{
    conv_units(f, true);
}

static inline void conv_unsigned(fixture *f)
{
    const int64_t filters[4] = {8, 4, 1, 1};
    qn_value *x = both(f, input(f, "x", 4, image), centered);
    finish(f, apply(f, &qn_op_Conv, 2, x, both(f, weights(f, 4, filters), narrow)), centered);
}

static inline qn_value *transposed(fixture *f, int64_t group, int64_t group_filters)
{
    const int64_t filters[4] = {4, group_filters, 3, 3};
    qn_value *x = both(f, input(f, "x", 4, image), wide);
    qn_value *y = apply(f, &qn_op_ConvTranspose, 2, x, both(f, weights(f, 4, filters), weight));
    ((qn_window_attrs *)y->producer->attrs)->group = group;
    return y;
}

static inline void transposed_groups(fixture *f)
{
    finish(f, transposed(f, 2, 3), centered);
}

static inline void transposed_alone(fixture *f)
{
    finish(f, transposed(f, 4, 1), centered);
}

static inline void transposed_to_float(fixture *f)
{
    assert_int_equal(qn_graph_add_output(f->graph, transposed(f, 2, 3)), QN_OK);
}

static inline void gemm(fixture *f)
{
    const int64_t dims[2] = {8, 5}, bias[1] = {5};
    qn_value *x = both(f, input(f, "x", 2, matrix), wide);
    qn_value *w = both(f, weights(f, 2, dims), weight);
    finish(f, apply(f, &qn_op_Gemm, 3, x, w, weights(f, 1, bias)), wide);
}

static inline void matmul_add(fixture *f, int32_t rank, const int64_t *bias)
{
    const int64_t dims[2] = {8, 5};
    qn_value *x = both(f, input(f, "x", 2, matrix), wide);
    qn_value *y = apply(f, &qn_op_MatMul, 2, x, both(f, weights(f, 2, dims), weight));
    finish(f, apply(f, &qn_op_Add, 2, weights(f, rank, bias), y), wide);
}

static inline void matmul_bias(fixture *f)
{
    const int64_t bias[1] = {5};
    matmul_add(f, 1, bias);
}

/* What is added has more dimensions than the product. */
static inline void matmul_larger(fixture *f)
{
    const int64_t bias[3] = {1, 1, 5};
    matmul_add(f, 3, bias);
}

static inline void matmul_of_two(fixture *f)
{
    const int64_t dims[2] = {8, 5};
    qn_value *x = both(f, input(f, "x", 2, matrix), wide);
    finish(f, apply(f, &qn_op_MatMul, 2, x, both(f, input(f, "z", 2, dims), narrow)),
           (meaning){QN_UINT8, 0.4, 128});
}

static inline void add(fixture *f)
{
    qn_value *x = both(f, input(f, "x", 4, image), wide);
    finish(f, apply(f, &qn_op_Add, 2, x, both(f, input(f, "z", 4, image), narrow)), wide);
}

static inline void mul(fixture *f)
{
    qn_value *x = both(f, input(f, "x", 4, image), wide);
    finish(f, apply(f, &qn_op_Mul, 2, x, both(f, input(f, "z", 4, image), narrow)), centered);
}

static inline void sigmoid(fixture *f)
{
    finish(f, apply(f, &qn_op_Sigmoid, 1, both(f, input(f, "x", 4, image), wide)),
           (meaning){QN_UINT8, 1.0 / 255, 0});
}

/* Channels have a slope each. */
static inline void prelu_of(fixture *f, meaning from, meaning to)
{
    const int64_t channels[3] = {4, 1, 1};
    qn_value *x = both(f, input(f, "x", 4, image), from);
    finish(f, apply(f, &qn_op_PRelu, 2, x, weights(f, 3, channels)), to);
}

static inline void prelu(fixture *f)
{
    prelu_of(f, wide, centered);
}

static inline void prelu_of_words(fixture *f)
{
    prelu_of(f, (meaning){QN_UINT16, 0.0002, 30000}, (meaning){QN_INT16, 0.00015, -77});
}

static inline void prelu_of_one_slope(fixture *f)
{
    const int64_t one[1] = {1};
    qn_value *x = both(f, input(f, "x", 4, image), wide);
    finish(f, apply(f, &qn_op_PRelu, 2, x, weights(f, 1, one)), narrow);
}

static inline void quotient(fixture *f)
{
    qn_value *x = both(f, input(f, "x", 4, image), wide);
    finish(f, apply(f, &qn_op_Div, 2, x, number(f, 1.7)), narrow);
}

static inline void sum_of_two(fixture *f)
{
    qn_value *x = both(f, input(f, "x", 4, image), wide);
    finish(f, apply(f, &qn_op_Sum, 2, x, both(f, input(f, "z", 4, image), narrow)), wide);
}

static inline void softmax(fixture *f)
{
    finish(f, apply(f, &qn_op_Softmax, 1, both(f, input(f, "x", 2, matrix), wide)),
           (meaning){QN_UINT8, 1.0 / 255, 0});
}

static inline void layer_norm(fixture *f)
{
    const int64_t row[1] = {8};
    qn_value *x = both(f, input(f, "x", 2, matrix), wide);
    finish(f, apply(f, &qn_op_LayerNormalization, 3, x, weights(f, 1, row), weights(f, 1, row)),
           wide);
}

static inline void reduce_mean(fixture *f)
{
    const int64_t axes[2] = {2, -1};
    qn_value *x = both(f, input(f, "x", 4, image), wide);
    finish(f, apply(f, &qn_op_ReduceMean, 2, x, ints(f, axes, 2)), narrow);
}

static inline void resize(fixture *f, int64_t mode)
{
    const int64_t four[1] = {4};
    qn_value *scales = weights(f, 1, four);
    for (int i = 0; i < 4; i++)
        ((float *)scales->data->data)[i] = i < 2 ? 1 : 2;
    qn_value *y = apply(f, &qn_op_Resize, 3, both(f, input(f, "x", 4, image), wide), NULL, scales);
    ((qn_resize_attrs *)y->producer->attrs)->mode = mode;
    finish(f, y, wide);
}

static inline void resize_nearest(fixture *f)
{
    resize(f, QN_RESIZE_NEAREST);
}

static inline void resize_linear(fixture *f)
{
    resize(f, QN_RESIZE_LINEAR);
}

static inline void global_pool(fixture *f)
{
    finish(f, apply(f, &qn_op_GlobalAveragePool, 1, both(f, input(f, "x", 4, image), wide)),
           narrow);
}

/* A function, a product and a sum with numbers, on either side: one table. */
static inline void functions(fixture *f)
{
    const meaning unit = {QN_UINT8, 1.0 / 255, 0}, single = {QN_INT8, 0.017, -20};
    qn_value *y = apply(f, &qn_op_Sigmoid, 1, both(f, input(f, "x", 4, image), wide));
    y = apply(f, &qn_op_Mul, 2, both(f, number(f, 1.6), single), both(f, y, unit));
    y = apply(f, &qn_op_Add, 2, both(f, y, centered), both(f, number(f, 0.31), single));
    finish(f, y, centered);
}

/* Nothing is rounded between the product and what becomes of it. */
static inline void conv_function(fixture *f)
{
    const int64_t filters[4] = {8, 4, 1, 1};
    qn_value *x = both(f, input(f, "x", 4, image), wide);
    qn_value *w = both(f, weights(f, 4, filters), weight);
    qn_value *y = apply(f, &qn_op_HardSwish, 1, apply(f, &qn_op_Conv, 2, x, w));
    y = apply(f, &qn_op_Mul, 2, number(f, 0.75), y);
    finish(f, apply(f, &qn_op_Add, 2, y, number(f, 0.125)), centered);
}

/* Copies with the same meaning on both sides, then one into another meaning. */
static inline void reshape(fixture *f)
{
    const int64_t flat[2] = {1, 144};
    qn_value *x = both(f, input(f, "x", 4, image), wide);
    finish(f, apply(f, &qn_op_Reshape, 2, both(f, x, wide), ints(f, flat, 2)), narrow);
}

static inline void padded(fixture *f)
{
    const int64_t pads[8] = {0, 0, 1, 1, 0, 0, 1, 1};
    qn_value *x = both(f, input(f, "x", 4, image), wide);
    finish(f, apply(f, &qn_op_Pad, 3, x, ints(f, pads, 8), number(f, 1)), wide);
}

/* No Q stands between the functions, and their numbers are float. */
static inline void unrounded_functions(fixture *f)
{
    const int64_t one[4] = {1, 1, 1, 1};
    qn_value *x = both(f, input(f, "x", 4, image), wide);
    qn_value *h = apply(f, &qn_op_HardSwish, 1, x);
    qn_value *scaled = apply(f, &qn_op_Mul, 2, weights(f, 4, one), h);
    finish(f, apply(f, &qn_op_Sub, 2, number(f, 0.3), scaled), narrow);
}

static const struct {
    const char *name;
    void (*build)(fixture *f);
    /* What must be there once */
    const qn_op *integer;
    /* Left in the graph */
    size_t nodes;
    /* The result's: how far it may be off, and a half more */
    double step;
} cases[] = {
    {"Conv, Relu", conv_relu, &qn_op_QLinearConv, 3, 0.03},
    {"Conv, Clip", conv_clip, &qn_op_Clip, 4, 0.06},
    {"Conv into float", conv_to_float, &qn_op_qn_ConvIntegerToFloat, 2, 1e-5},
    {"Conv, bias too large", large_bias, &qn_op_Conv, 5, 0},
    {"Conv, filter of zeros", dead_filter, &qn_op_QLinearConv, 3, 0.04},
    {"Conv of int8 and uint8", conv_unsigned, &qn_op_QLinearConv, 3, 0.06},
    {"ConvTranspose of groups", transposed_groups, &qn_op_qn_QLinearConvTranspose, 3, 0.06},
    {"ConvTranspose of channels", transposed_alone, &qn_op_qn_QLinearConvTranspose, 3, 0.06},
    {"ConvTranspose into float", transposed_to_float, &qn_op_qn_ConvTransposeIntegerToFloat, 2,
     1e-5},
    {"Gemm", gemm, &qn_op_ms_QGemm, 3, 0.04},
    {"MatMul, Add", matmul_bias, &qn_op_qn_QMatMul, 3, 0.04},
    {"MatMul, larger Add", matmul_larger, &qn_op_Add, 5, 0.04},
    {"MatMul of two", matmul_of_two, &qn_op_QLinearMatMul, 4, 0.4},
    {"Add", add, &qn_op_ms_QLinearAdd, 4, 0.04},
    {"Mul", mul, &qn_op_ms_QLinearMul, 4, 0.06},
    {"Sigmoid", sigmoid, &qn_op_qn_QTable, 3, 1.0 / 255},
    {"HardSwish, Mul, Sub at once", unrounded_functions, &qn_op_qn_QTable, 3, 0.025},
    {"Sigmoid, Mul, Add", functions, &qn_op_qn_QTable, 3, 0.06},
    {"Conv, HardSwish, Mul, Add", conv_function, &qn_op_qn_QFunction, 4, 0.06},
    {"PRelu", prelu, &qn_op_qn_QPRelu, 3, 0},
    {"PRelu of 16 bits", prelu_of_words, &qn_op_qn_QPRelu, 3, 0},
    {"PRelu with one slope", prelu_of_one_slope, &qn_op_qn_QTable, 3, 0},
    {"Div by a number", quotient, &qn_op_qn_QTable, 3, 0},
    {"Sum", sum_of_two, &qn_op_ms_QLinearAdd, 4, 0.04},
    {"Softmax", softmax, &qn_op_ms_QLinearSoftmax, 3, 1.0 / 255},
    {"LayerNormalization", layer_norm, &qn_op_qn_QLayerNormalization, 3, 0.04},
    {"ReduceMean", reduce_mean, &qn_op_ms_QLinearReduceMean, 3, 0.025},
    {"GlobalAveragePool", global_pool, &qn_op_ms_QLinearGlobalAveragePool, 3, 0.025},
    {"Resize, nearest", resize_nearest, &qn_op_Resize, 3, 1e-6},
    {"Resize, linear", resize_linear, &qn_op_qn_QLinearResize, 3, 0.04},
    {"Reshape", reshape, &qn_op_qn_Requantize, 4, 0.025},
    {"Pad", padded, &qn_op_Pad, 3, 1e-6},
};

static inline void assert_within(const qn_tensor *a, const qn_tensor *b, double most,
                                 const char *name)
{
    assert_int_equal(a->rank, b->rank);
    assert_int_equal(qn_tensor_count(a), qn_tensor_count(b));
    for (int64_t i = 0; i < qn_tensor_count(a); i++) {
        const double x = qn_tensor_f64(a, i), y = qn_tensor_f64(b, i);
        if (fabs(x - y) > most * fmax(1, fabs(x)))
            fail_msg("%s, element %lld: %.9g became %.9g", name, (long long)i, x, y);
    }
}

static inline void end(fixture *f)
{
    qn_model_free(f->model);
    qn_context_free(f->ctx);
}

#endif
