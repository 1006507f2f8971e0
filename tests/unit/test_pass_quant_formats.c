/* The forms of quantized files: each says the same network, and can be made of the others. */
#include "ops/qlinear.h"
#include "pass/quant_formats.h"
#include "qdq_test.h"

static void bring(fixture *f, const char *form, const char *name)
{
    const qn_quant_format *row;
    assert_int_equal(qn_quant_format_find(&row, f->ctx, form), QN_OK);
    if (row->apply(f->model) != QN_OK)
        fail_msg("%s as %s: %s", name, form, qn_context_error(f->ctx));
}

static size_t count_quantized(const qn_graph *graph)
{
    size_t count = 0;
    for (const qn_node *node = graph->first; node; node = node->next)
        count += node->op->quant == QN_QUANT_ALREADY;
    return count - count_op(graph, &qn_op_QuantizeLinear) -
           count_op(graph, &qn_op_DequantizeLinear);
}

/* One form after the other, the last of them evaluated as it would be run. */
static const qn_tensor *result_of(fixture *f, qn_arena *arena, size_t c, const char *const *forms)
{
    const qn_pass_options options = {0};
    *f = begin();
    cases[c].build(f);
    assert_int_equal(qn_graph_infer(f->graph), QN_OK);
    for (; *forms; forms++) {
        bring(f, *forms, cases[c].name);
        for (const qn_node *node = f->graph->first; node; node = node->next)
            assert_string_not_equal(node->op->domain, "quench");
        if (strcmp(*forms, "qoperator") != 0)
            assert_int_equal(count_quantized(f->graph), 0);
        if (strcmp(*forms, "fake") == 0) {
            assert_int_equal(count_op(f->graph, &qn_op_QuantizeLinear) +
                                 count_op(f->graph, &qn_op_DequantizeLinear),
                             0);
            return evaluate(f, arena, f->graph);
        }
    }
    assert_int_equal(qn_passes_run(f->model, &options, NULL), QN_OK);
    return evaluate(f, arena, f->graph);
}

/* Operators of integers, there and back, give what Q and D give; float operators are off by a step
 * where a sum is. */
static void test_forms(void **state)
{
    static const char *const ways[5][3] = {
        {"qdq"}, {"qoperator"}, {"qoperator", "qdq"}, {"fake"}, {"qoperator", "fake"}};
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(cases); i++) {
        fixture f[5];
        qn_arena arena;
        qn_context *ctx;
        assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
        qn_arena_init(&arena, &ctx->allocator);
        const qn_tensor *pairs = result_of(&f[0], &arena, i, ways[0]);
        for (int k = 1; k < 5; k++) {
            const qn_tensor *others = result_of(&f[k], &arena, i, ways[k]);
            assert_within(pairs, others, k < 3 ? 0 : cases[i].step * 1.01, cases[i].name);
        }
        for (int k = 0; k < 5; k++)
            end(&f[k]);
        qn_arena_free(&arena);
        qn_context_free(ctx);
    }
}

/* What the file holds: operators of ONNX Runtime where there are any, else Q and D around those of
 * float. */
static void test_operators(void **state)
{
    static const struct {
        void (*build)(fixture *f);
        const qn_op *op;
        /* Q that are left: the input's, and those around a float operator */
        size_t pairs;
    } rows[] = {
        {conv_relu, &qn_op_QLinearConv, 1},
        {conv_clip, &qn_op_Clip, 1},
        {conv_to_float, &qn_op_Conv, 1},
        {conv_unsigned, &qn_op_Conv, 2},
        {gemm, &qn_op_ms_QGemm, 1},
        {matmul_bias, &qn_op_MatMul, 2},
        {matmul_of_two, &qn_op_QLinearMatMul, 2},
        {add, &qn_op_ms_QLinearAdd, 2},
        {sigmoid, &qn_op_ms_QLinearSigmoid, 1},
        {softmax, &qn_op_ms_QLinearSoftmax, 1},
        {layer_norm, &qn_op_LayerNormalization, 2},
        {resize_nearest, &qn_op_Resize, 1},
        {resize_linear, &qn_op_Resize, 2},
        {global_pool, &qn_op_ms_QLinearGlobalAveragePool, 1},
        {reduce_mean, &qn_op_ReduceMean, 2},
    };
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(rows); i++) {
        fixture f = begin();
        rows[i].build(&f);
        assert_int_equal(qn_quant_formats[1].apply(f.model), QN_OK);
        if (count_op(f.graph, rows[i].op) != 1 ||
            count_op(f.graph, &qn_op_QuantizeLinear) != rows[i].pairs)
            fail_msg("%s: %zu of them, %zu Q", rows[i].op->name, count_op(f.graph, rows[i].op),
                     count_op(f.graph, &qn_op_QuantizeLinear));
        end(&f);
    }
}

/* The form without integers cannot be made where a result is one. */
static void test_no_fake(void **state)
{
    fixture f = begin();
    (void)state;
    assert_int_equal(qn_graph_add_output(f.graph, quantize(&f, input(&f, "x", 2, matrix), wide)),
                     QN_OK);
    assert_int_equal(qn_fake_quantize(f.model), QN_E_UNSUPPORTED);
    assert_non_null(strstr(qn_context_error(f.ctx), "output of the model"));
    const qn_quant_format *row;
    assert_int_equal(qn_quant_format_find(&row, f.ctx, "float"), QN_E_INVALID);
    end(&f);
}

/* ---- Operators of integers that other tools write -------------------------------------------- */

/* The largest step of the results below. */
static const double a_step = 0.1;

/* Raised, it is off by a step at most; lowered again it gives the numbers that it gave before.
 * `stays`: it is not raised. */
static void assert_raised(void (*build)(fixture *f), const char *name, bool stays)
{
    const qn_pass_options options = {0};
    fixture f = begin();
    qn_arena arena;
    qn_arena_init(&arena, &f.ctx->allocator);
    build(&f);
    assert_int_equal(qn_graph_infer(f.graph), QN_OK);
    const qn_tensor *before = evaluate(&f, &arena, f.graph);
    bring(&f, "qdq", name);
    if ((count_quantized(f.graph) != 0) != stays)
        fail_msg("%s: %zu operators of integers are left", name, count_quantized(f.graph));
    assert_int_equal(qn_graph_infer(f.graph), QN_OK);
    assert_within(before, evaluate(&f, &arena, f.graph), a_step, name);
    assert_int_equal(qn_passes_run(f.model, &options, NULL), QN_OK);
    assert_within(before, evaluate(&f, &arena, f.graph), 0, name);
    qn_arena_free(&arena);
    end(&f);
}

static qn_value *scaled(fixture *f, const qn_op *op, qn_value *x, meaning y)
{
    return apply(f, op, 5, x, number(f, wide.scale), integer(f, wide.dtype, wide.zero),
                 number(f, y.scale), integer(f, y.dtype, y.zero));
}

static void give(fixture *f, qn_value *y, meaning m)
{
    assert_int_equal(qn_graph_add_output(f->graph, dequantize(f, y, m)), QN_OK);
}

static qn_value *picture(fixture *f)
{
    return quantize(f, input(f, "x", 4, image), wide);
}

static void average(fixture *f, int64_t channels_last)
{
    qn_value *y = scaled(f, &qn_op_ms_QLinearAveragePool, picture(f), narrow);
    qn_qpool_attrs *attrs = y->producer->attrs;
    static const int64_t two[2] = {2, 2};
    attrs->window.kernel_shape = (qn_ints){two, 2};
    attrs->channels_last = channels_last;
    give(f, y, narrow);
}

static void average_pool(fixture *f)
{
    average(f, 0);
}

static void average_pool_last(fixture *f)
{
    average(f, 1);
}

static void leaky_relu(fixture *f)
{
    give(f, scaled(f, &qn_op_ms_QLinearLeakyRelu, picture(f), centered), centered);
}

static void mean_of_axes(fixture *f)
{
    static const int64_t axes[2] = {2, 3};
    qn_value *y = scaled(f, &qn_op_ms_QLinearReduceMean, picture(f), narrow);
    ((qn_reduce_attrs *)y->producer->attrs)->axes = (qn_ints){axes, 2};
    ((qn_reduce_attrs *)y->producer->attrs)->keepdims = 0;
    give(f, y, narrow);
}

/* Before opset 13 a Softmax over all that follows its axis. */
static void softmax_of_old(fixture *f)
{
    const meaning unit = {QN_UINT8, 1.0 / 256, 0};
    qn_value *y = scaled(f, &qn_op_ms_QLinearSoftmax, picture(f), unit);
    *(qn_qsoftmax_attrs *)y->producer->attrs = (qn_qsoftmax_attrs){.axis = 1, .opset = 12};
    give(f, y, unit);
}

static void joined(fixture *f)
{
    const meaning other = {QN_UINT8, 0.1, 7};
    qn_value *second = quantize(f, input(f, "z", 4, image), other);
    qn_value *y = apply(f, &qn_op_ms_QLinearConcat, 8, number(f, narrow.scale),
                        integer(f, narrow.dtype, narrow.zero), picture(f), number(f, wide.scale),
                        integer(f, wide.dtype, wide.zero), second, number(f, other.scale),
                        integer(f, other.dtype, other.zero));
    ((qn_qconcat_attrs *)y->producer->attrs)->axis = 1;
    give(f, y, narrow);
}

/* Operators that move: a pool, parts of it padded, limited and put together again. */
static void moved(fixture *f)
{
    static const int64_t two[2] = {2, 2}, one[2] = {1, 1};
    qn_value *x = apply(f, &qn_op_MaxPool, 1, picture(f)), *low, *high, *zero;
    qn_window_attrs *pool = x->producer->attrs;
    pool->kernel_shape = (qn_ints){two, 2};
    pool->strides = (qn_ints){one, 2};
    qn_value *pads = ints(f, DIMS(0, 0, 1, 1, 0, 0, 0, 0), 8);
    zero = integer(f, wide.dtype, 9);
    low = integer(f, wide.dtype, 100);
    high = integer(f, wide.dtype, 200);
    qn_value *padded_x = apply(f, &qn_op_Pad, 3, x, pads, zero);
    qn_value *plain = apply(f, &qn_op_Pad, 2, x, pads);
    qn_value *limited = apply(f, &qn_op_Clip, 3, padded_x, low, high);
    qn_value *y = apply(f, &qn_op_Concat, 3, limited, plain, padded_x);
    ((qn_concat_attrs *)y->producer->attrs)->axis = 1;
    give(f, y, wide);
}

/* The number that fills up is the one that is the zero point, too. */
static void padded_by_zero(fixture *f)
{
    qn_value *zero = integer(f, wide.dtype, wide.zero), *scale = number(f, wide.scale);
    qn_value *x = apply(f, &qn_op_QuantizeLinear, 3, input(f, "x", 4, image), scale, zero);
    qn_value *first = apply(f, &qn_op_DequantizeLinear, 3, x, scale, zero);
    qn_value *y = apply(f, &qn_op_Pad, 3, x, ints(f, DIMS(0, 0, 1, 1, 0, 0, 1, 1), 8), zero);
    y = apply(f, &qn_op_DequantizeLinear, 3, y, scale, zero);
    assert_int_equal(qn_graph_add_output(f->graph, y), QN_OK);
    assert_int_equal(qn_graph_add_output(f->graph, first), QN_OK);
}

/* An equal D of the same constant stands behind the operator that reads it. */
static void read_later(fixture *f)
{
    qn_value *part, *scale = number(f, wide.scale), *zero = integer(f, wide.dtype, wide.zero);
    assert_int_equal(qn_value_number(&part, f->graph, QN_UINT8, 200), QN_OK);
    qn_value *sum = apply(f, &qn_op_ms_QLinearAdd, 8, picture(f), scale, zero, part, scale, zero,
                          number(f, 0.1), integer(f, QN_UINT8, 110));
    qn_value *y = dequantize(f, sum, (meaning){QN_UINT8, 0.1, 110});
    qn_value *late = apply(f, &qn_op_DequantizeLinear, 3, part, scale, zero);
    assert_int_equal(qn_graph_add_output(f->graph, apply(f, &qn_op_Add, 2, y, late)), QN_OK);
}

/* Filters with one scale and a zero point each. */
static void several_zeros(fixture *f)
{
    const int64_t eight[1] = {8}, filters[4] = {8, 4, 1, 1};
    const qn_type row = qn_type_tensor(QN_UINT8, 1, eight),
                  all = qn_type_tensor(QN_UINT8, 4, filters);
    qn_tensor *zeros, *integers;
    qn_value *w, *zero;
    assert_int_equal(qn_tensor_create(&zeros, f->ctx, f->graph->arena, &row), QN_OK);
    assert_int_equal(qn_tensor_create(&integers, f->ctx, f->graph->arena, &all), QN_OK);
    for (int i = 0; i < 32; i++)
        ((uint8_t *)integers->data)[i] = (uint8_t)(i * 37);
    for (int i = 0; i < 8; i++)
        ((uint8_t *)zeros->data)[i] = (uint8_t)(120 + i);
    assert_int_equal(qn_value_constant(&zero, f->graph, "zeros", zeros), QN_OK);
    assert_int_equal(qn_value_constant(&w, f->graph, "integers", integers), QN_OK);
    qn_value *y = apply(f, &qn_op_QLinearConv, 8, picture(f), number(f, wide.scale),
                        integer(f, wide.dtype, wide.zero), w, number(f, 0.01), zero, number(f, 0.1),
                        integer(f, QN_UINT8, 128));
    give(f, y, (meaning){QN_UINT8, 0.1, 128});
}

static void test_raised(void **state)
{
    (void)state;
    assert_raised(padded_by_zero, "Pad with the zero point", false);
    assert_raised(read_later, "QLinearAdd before a D", false);
    assert_raised(several_zeros, "QLinearConv with several zero points", false);
    assert_raised(average_pool, "QLinearAveragePool", false);
    assert_raised(average_pool_last, "QLinearAveragePool, channels last", true);
    assert_raised(leaky_relu, "QLinearLeakyRelu", false);
    assert_raised(mean_of_axes, "QLinearReduceMean", false);
    assert_raised(softmax_of_old, "QLinearSoftmax of opset 12", true);
    assert_raised(joined, "QLinearConcat", false);
    assert_raised(moved, "MaxPool, Pad, Clip, Concat", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms), cmocka_unit_test(test_operators),
        cmocka_unit_test(test_no_fake), cmocka_unit_test(test_raised)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
