/* Which nodes become integer, which values get parameters, who shares them. Each case is a small
 * graph. */
#include "ops/resize.h"
#include "pass_test.h"
#include "quant/params.h"
#include "quant/pattern.h"

static qn_value *convolve(fixture *f, qn_value *x, int64_t channels)
{
    return apply(f, &qn_op_Conv, 2, x, weights(f, 4, DIMS(8, channels, 3, 3)));
}

static qn_quantizer *quantizer(fixture *f, qn_value *y, const qn_quant_settings *settings)
{
    qn_quantizer *q;
    qn_quant_settings own = *settings;
    own.profile = own.profile ? own.profile : &qn_profiles[0];
    own.bits = own.bits ? own.bits : 8;
    assert_int_equal(qn_graph_add_output(f->graph, y), QN_OK);
    assert_int_equal(qn_graph_infer(f->graph), QN_OK);
    if (qn_quantizer_create(&q, f->model, &own) != QN_OK)
        fail_msg("%s", qn_context_error(f->ctx));
    return q;
}

static void end(fixture *f, qn_quantizer *q)
{
    qn_quantizer_free(q);
    qn_model_free(f->model);
    qn_context_free(f->ctx);
}

static bool is_integer(const qn_quantizer *q, const qn_value *value)
{
    return qn_quant_value_of(q, value)->integer;
}

static bool computes(const qn_quantizer *q, const qn_value *value)
{
    return qn_quant_node_of(q, value->producer)->integer;
}

static bool shares(const qn_quantizer *q, const qn_value *a, const qn_value *b)
{
    return qn_quant_root(q, qn_quant_value_of(q, a)) == qn_quant_root(q, qn_quant_value_of(q, b));
}

static const qn_quant_settings plain = {.bits = 8};

/* Nothing is rounded between a convolution and its Relu, and the last result stays float. */
static void relu_belongs_to_its_convolution(void **state)
{
    fixture f = begin();
    qn_value *x = input(&f, "x", 4, DIMS(1, 4, 12, 12)), *a = convolve(&f, x, 4);
    qn_value *b = apply(&f, &qn_op_Relu, 1, a), *c = convolve(&f, b, 8);
    qn_quantizer *q = quantizer(&f, c, &plain);
    (void)state;
    assert_true(is_integer(q, x));
    assert_false(is_integer(q, a));
    assert_true(is_integer(q, b));
    assert_false(is_integer(q, c));
    assert_true(computes(q, a) && computes(q, b) && computes(q, c));
    end(&f, q);
}

/* Functions of one number that follow each other are one, wherever their constants stand; to a
 * target without tables they are not. */
static void functions_follow_each_other(void **state)
{
    static const char *const targets[] = {"quench", "qdq-generic"};
    (void)state;
    for (int t = 0; t < 2; t++) {
        fixture f = begin();
        qn_quant_settings settings = plain;
        assert_int_equal(qn_profile_find(&settings.profile, f.ctx, targets[t]), QN_OK);
        qn_value *a = convolve(&f, input(&f, "x", 4, DIMS(1, 4, 12, 12)), 4);
        qn_value *b = apply(&f, t ? &qn_op_Mul : &qn_op_HardSwish, t ? 2 : 1, a, number(&f, 3));
        qn_value *c = apply(&f, &qn_op_Mul, 2, number(&f, 0.5), b);
        qn_value *d = apply(&f, &qn_op_Add, 2, c, number(&f, -0.25));
        qn_quantizer *q = quantizer(&f, convolve(&f, d, 8), &settings);
        assert_true(is_integer(q, a) && is_integer(q, d));
        assert_true(computes(q, b) && computes(q, c) && computes(q, d));
        assert_int_equal(is_integer(q, b), t);
        assert_int_equal(is_integer(q, c), t);
        end(&f, q);
    }
}

/* A function that is no limit gets rounded numbers on both sides. */
static void functions_have_two_sides(void **state)
{
    fixture f = begin();
    qn_value *a = convolve(&f, input(&f, "x", 4, DIMS(1, 4, 12, 12)), 4);
    qn_value *b = apply(&f, &qn_op_Tanh, 1, a), *c = convolve(&f, b, 8);
    qn_quantizer *q = quantizer(&f, c, &plain);
    (void)state;
    assert_true(is_integer(q, a) && is_integer(q, b));
    assert_false(shares(q, a, b));
    end(&f, q);
}

/* The side before the functions that the engine rounds behind has no scale. */
static void some_functions_belong_to_their_product(void **state)
{
    fixture f = begin();
    qn_value *a = convolve(&f, input(&f, "x", 4, DIMS(1, 4, 12, 12)), 4);
    qn_value *b = apply(&f, &qn_op_Swish, 1, a), *c = convolve(&f, b, 8);
    qn_quantizer *q = quantizer(&f, convolve(&f, c, 8), &plain);
    (void)state;
    assert_true(computes(q, a) && computes(q, b) && is_integer(q, b) && is_integer(q, c));
    assert_false(is_integer(q, a));
    end(&f, q);
}

static void ends_stay_float(void **state)
{
    fixture f = begin();
    qn_value *a = convolve(&f, input(&f, "x", 4, DIMS(1, 4, 12, 12)), 4);
    qn_value *b = apply(&f, &qn_op_Sigmoid, 1, a), *c = apply(&f, &qn_op_Softmax, 1, b);
    qn_quantizer *q = quantizer(&f, c, &plain);
    (void)state;
    assert_true(computes(q, a));
    assert_false(computes(q, b) || computes(q, c) || is_integer(q, a) || is_integer(q, b));
    assert_string_equal(qn_quant_node_of(q, b->producer)->why, "its result is wanted in float");
    end(&f, q);
}

static const char *why_of(const qn_quantizer *q, const qn_value *value)
{
    return qn_quant_node_of(q, value->producer)->why;
}

/* Every node that computes says why it stays float; moves and arithmetic of shapes need no word. */
static void all_that_compute_say_why(void **state)
{
    fixture f = begin();
    qn_value *x = input(&f, "x", 4, DIMS(1, 4, 12, 12)), *a = convolve(&f, x, 4);
    qn_value *b = apply(&f, &qn_op_Floor, 1, a), *c = apply(&f, &qn_op_Cast, 1, b);
    ((qn_cast_attrs *)c->producer->attrs)->to = QN_FLOAT16;
    qn_value *d = apply(&f, &qn_op_Relu, 1, c), *e = apply(&f, &qn_op_Identity, 1, d);
    qn_value *shape = apply(&f, &qn_op_Shape, 1, x);
    qn_value *sum = apply(&f, &qn_op_Add, 2, shape, shape);
    qn_value *y = apply(&f, &qn_op_Tile, 2, e, sum);
    qn_quantizer *q = quantizer(&f, y, &plain);
    (void)state;
    assert_string_equal(why_of(q, b), "no integer form of it is known");
    assert_string_equal(why_of(q, d), "its numbers are float16");
    assert_null(why_of(q, e));
    assert_null(why_of(q, shape));
    assert_null(why_of(q, sum));
    end(&f, q);
}

static void moves_share_concat_parts_too(void **state)
{
    fixture f = begin();
    qn_value *x = input(&f, "x", 4, DIMS(1, 4, 12, 12));
    qn_value *a = convolve(&f, x, 4), *b = convolve(&f, x, 4);
    qn_value *t = apply(&f, &qn_op_Transpose, 1, a);
    ((qn_transpose_attrs *)t->producer->attrs)->perm = (qn_ints){DIMS(0, 1, 3, 2), 4};
    qn_value *joined = apply(&f, &qn_op_Concat, 2, t, b);
    ((qn_concat_attrs *)joined->producer->attrs)->axis = 1;
    qn_value *y = convolve(&f, joined, 16);
    qn_quantizer *q = quantizer(&f, y, &plain);
    (void)state;
    assert_true(is_integer(q, a) && is_integer(q, t) && is_integer(q, joined));
    assert_true(shares(q, a, t));
    assert_true(shares(q, b, joined));
    assert_false(shares(q, t, joined));
    end(&f, q);
}

/* Whoever else reads it. */
static void outputs_are_joined_in_float(void **state)
{
    fixture f = begin();
    qn_value *x = input(&f, "x", 4, DIMS(1, 4, 12, 12));
    qn_value *a = convolve(&f, x, 4), *b = convolve(&f, x, 4);
    qn_value *joined = apply(&f, &qn_op_Concat, 2, a, b);
    ((qn_concat_attrs *)joined->producer->attrs)->axis = 1;
    assert_int_equal(qn_graph_add_output(f.graph, joined), QN_OK);
    qn_quantizer *q = quantizer(&f, convolve(&f, joined, 16), &plain);
    (void)state;
    assert_string_equal(why_of(q, joined), "its result is wanted in float");
    assert_false(shares(q, a, joined) || shares(q, b, joined));
    end(&f, q);
}

static void sums_have_three_scales(void **state)
{
    fixture f = begin();
    qn_value *x = input(&f, "x", 4, DIMS(1, 8, 12, 12)), *a = convolve(&f, x, 8);
    qn_value *b = convolve(&f, x, 8), *sum = apply(&f, &qn_op_Add, 2, a, b);
    qn_quantizer *q = quantizer(&f, convolve(&f, sum, 8), &plain);
    (void)state;
    assert_true(is_integer(q, a) && is_integer(q, b) && is_integer(q, sum));
    assert_false(shares(q, a, b) || shares(q, a, sum));
    end(&f, q);
}

static void patterns_choose_nodes(void **state)
{
    const char *const patterns[] = {"Rel?"}, *const wide[] = {"Conv=16"};
    const qn_quant_settings asked = {
        .keep_float = patterns, .n_float = 1, .widths = wide, .n_widths = 1};
    fixture f = begin();
    qn_value *a = convolve(&f, input(&f, "x", 4, DIMS(1, 4, 12, 12)), 4);
    qn_value *b = apply(&f, &qn_op_Relu, 1, a);
    qn_quantizer *q = quantizer(&f, convolve(&f, b, 8), &asked);
    (void)state;
    assert_false(computes(q, b) || is_integer(q, a));
    assert_true(is_integer(q, b));
    assert_int_equal(qn_quant_root(q, qn_quant_value_of(q, b))->bits, 16);
    end(&f, q);
    assert_true(qn_pattern_fits("a*c?e", "abbcde") && qn_pattern_fits("*", ""));
    assert_false(qn_pattern_fits("a*c", "abcd") || qn_pattern_fits("?", ""));
}

static qn_value *pair(fixture *f, qn_value *x, qn_value *scale)
{
    return apply(f, &qn_op_DequantizeLinear, 2, apply(f, &qn_op_QuantizeLinear, 2, x, scale),
                 scale);
}

/* Scales that are there stay: what has a pair gets no other, and only the rest is calibrated. */
static void given_scales_stay(void **state)
{
    fixture f = begin();
    qn_value *x = input(&f, "x", 4, DIMS(1, 4, 12, 12)), *scale = weights(&f, 0, NULL);
    qn_value *given = pair(&f, x, scale), *w = pair(&f, weights(&f, 4, DIMS(8, 4, 3, 3)), scale);
    qn_value *a = apply(&f, &qn_op_Conv, 2, given, w), *b = apply(&f, &qn_op_Relu, 1, a);
    qn_value *c = convolve(&f, given, 4), *y = convolve(&f, b, 8);
    qn_quantizer *q = quantizer(&f, apply(&f, &qn_op_Add, 2, y, convolve(&f, c, 8)), &plain);
    (void)state;
    assert_false(is_integer(q, x) || is_integer(q, given) || is_integer(q, w));
    assert_false(computes(q, a));
    assert_string_equal(qn_quant_node_of(q, a->producer)->why, "its weights are integers already");
    assert_true(computes(q, c) && computes(q, y));
    assert_true(is_integer(q, b) && is_integer(q, c));
    end(&f, q);
}

static void nothing_is_left_of_integers(void **state)
{
    qn_quantizer *q;
    qn_quant_settings own = plain;
    fixture f = begin();
    qn_value *x = input(&f, "x", 4, DIMS(1, 4, 12, 12)), *scale = weights(&f, 0, NULL);
    qn_value *w = pair(&f, weights(&f, 4, DIMS(8, 4, 3, 3)), scale);
    qn_value *y = apply(&f, &qn_op_Conv, 2, pair(&f, x, scale), w);
    (void)state;
    own.profile = &qn_profiles[0];
    assert_int_equal(qn_graph_add_output(f.graph, y), QN_OK);
    assert_int_equal(qn_graph_infer(f.graph), QN_OK);
    assert_int_equal(qn_quantizer_create(&q, f.model, &own), QN_E_UNSUPPORTED);
    assert_non_null(strstr(qn_context_error(f.ctx), "quantized already"));
    end(&f, NULL);
}

static void doubles_are_reported(void **state)
{
    qn_quantizer *q;
    qn_quant_settings own = plain;
    fixture f = begin();
    qn_value *x = input(&f, "x", 4, DIMS(1, 4, 12, 12)), *w = input(&f, "w", 4, DIMS(8, 4, 3, 3));
    (void)state;
    x->type.dtype = w->type.dtype = QN_FLOAT64;
    own.profile = &qn_profiles[0];
    assert_int_equal(qn_graph_add_output(f.graph, apply(&f, &qn_op_Conv, 2, x, w)), QN_OK);
    assert_int_equal(qn_graph_infer(f.graph), QN_OK);
    assert_int_equal(qn_quantizer_create(&q, f.model, &own), QN_E_UNSUPPORTED);
    assert_non_null(strstr(qn_context_error(f.ctx), "float64"));
    end(&f, NULL);
}

static void zero_is_hit_exactly(void **state)
{
    fixture f = begin();
    qn_qparams *p = NULL;
    (void)state;
    assert_int_equal(qn_qparams_create(&p, f.ctx, f.graph->arena, QN_UINT8, 1), QN_OK);
    qn_params_from_range(p, 0, 6, false);
    assert_int_equal(p->zero, 0);
    assert_int_equal(qn_params_quantize(p, 0, 6), 255);
    qn_params_from_range(p, -1, 3, false);
    assert_int_equal(qn_params_quantize(p, 0, 0), p->zero);
    assert_int_equal(qn_params_quantize(p, 0, -9), 0);
    qn_params_from_range(p, 2, 4, false);
    assert_int_equal(p->zero, 0);
    assert_int_equal(qn_qparams_create(&p, f.ctx, f.graph->arena, QN_INT8, 1), QN_OK);
    qn_params_from_range(p, -2, 1, true);
    assert_int_equal(p->zero, 0);
    assert_int_equal(qn_params_quantize(p, 0, -2), -127);
    end(&f, NULL);
}

/* Axis, filters and channels follow the operator. */
static void weights_know_their_channels(void **state)
{
    fixture f = begin();
    int64_t filter, channel;
    qn_weighted_node mac;
    qn_value *x = input(&f, "x", 2, DIMS(1, 5));
    qn_value *y = apply(&f, &qn_op_Gemm, 2, x, weights(&f, 2, DIMS(7, 5)));
    (void)state;
    ((qn_gemm_attrs *)y->producer->attrs)->transB = 1;
    assert_true(qn_weighted_node_of(&mac, y->producer));
    assert_int_equal(mac.axis, 0);
    qn_weight_position(&mac, 5 * 3 + 2, &filter, &channel);
    assert_int_equal(filter, 3);
    assert_int_equal(channel, 2);
    qn_value *z = apply(&f, &qn_op_ConvTranspose, 2, input(&f, "z", 4, DIMS(1, 4, 3, 3)),
                        weights(&f, 4, DIMS(4, 3, 2, 2)));
    ((qn_window_attrs *)z->producer->attrs)->group = 2;
    assert_true(qn_weighted_node_of(&mac, z->producer));
    assert_int_equal(mac.axis, 1);
    assert_int_equal(mac.filters, 6);
    qn_weight_position(&mac, (3 * 3 + 1) * 4 + 3, &filter, &channel);
    assert_int_equal(filter, 4);
    assert_int_equal(channel, 3);
    end(&f, NULL);
}

/* ONNX Runtime has integer convolutions only with integer results, and Sigmoid, but no other
 * function. */
static void runtime_wants_rounded_results(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        fixture f = begin();
        qn_quant_settings settings = plain;
        qn_value *x = input(&f, "x", 4, DIMS(1, 4, 12, 12)), *a = convolve(&f, x, 4);
        qn_value *b = apply(&f, &qn_op_Sigmoid, 1, a), *c = convolve(&f, b, 8);
        qn_value *d = apply(&f, &qn_op_Relu, 1, c);
        assert_int_equal(qn_profile_find(&settings.profile, f.ctx, i ? "ort" : "quench"), QN_OK);
        qn_quantizer *q = quantizer(&f, apply(&f, &qn_op_Exp, 1, d), &settings);
        assert_true(computes(q, b));
        assert_false(is_integer(q, c));
        assert_int_equal(is_integer(q, d), i);
        end(&f, q);
    }
}

/* Behind a pair it makes what it cannot run of a cubic Resize and of a pool whose windows have
 * gaps. */
static void runtime_reads_some_in_float(void **state)
{
    static const int64_t two[2] = {2, 2};
    (void)state;
    for (int i = 0; i < 4; i++) {
        fixture f = begin();
        qn_quant_settings settings = plain;
        qn_value *a = convolve(&f, input(&f, "x", 4, DIMS(1, 4, 12, 12)), 4), *b, *c;
        b = apply(&f, &qn_op_Relu, 1, a);
        if (i & 1) {
            c = apply(&f, &qn_op_AveragePool, 1, b);
            qn_window_attrs *pool = c->producer->attrs;
            pool->kernel_shape = pool->dilations = (qn_ints){two, 2};
        } else {
            c = apply(&f, &qn_op_Resize, 4, b, NULL, NULL, ints(&f, DIMS(1, 8, 7, 7), 4));
            ((qn_resize_attrs *)c->producer->attrs)->mode = QN_RESIZE_CUBIC;
        }
        assert_int_equal(qn_profile_find(&settings.profile, f.ctx, i < 2 ? "ort" : "quench"),
                         QN_OK);
        qn_quantizer *q = quantizer(&f, convolve(&f, c, 8), &settings);
        assert_int_equal(is_integer(q, b), i == 2); /* quench has the Resize */
        assert_false(is_integer(q, a));
        end(&f, q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relu_belongs_to_its_convolution),
        cmocka_unit_test(functions_have_two_sides),
        cmocka_unit_test(outputs_are_joined_in_float),
        cmocka_unit_test(functions_follow_each_other),
        cmocka_unit_test(some_functions_belong_to_their_product),
        cmocka_unit_test(ends_stay_float),
        cmocka_unit_test(moves_share_concat_parts_too),
        cmocka_unit_test(sums_have_three_scales),
        cmocka_unit_test(patterns_choose_nodes),
        cmocka_unit_test(given_scales_stay),
        cmocka_unit_test(nothing_is_left_of_integers),
        cmocka_unit_test(doubles_are_reported),
        cmocka_unit_test(all_that_compute_say_why),
        cmocka_unit_test(zero_is_hit_exactly),
        cmocka_unit_test(weights_know_their_channels),
        cmocka_unit_test(runtime_wants_rounded_results),
        cmocka_unit_test(runtime_reads_some_in_float),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
