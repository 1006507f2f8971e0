/* Functions that files spell as several nodes are recognized in every spelling, and nothing else
 * is. */
#include "pass_test.h"

static void drops_nan_guards(void **state)
{
    (void)state;
    fixture f = begin();
    qn_value *integers = input(&f, "x", 2, DIMS(3, 8)), *zero;
    integers->type.dtype = QN_UINT8;
    assert_int_equal(qn_value_number(&zero, f.graph, QN_UINT8, 120), QN_OK);
    qn_value *x = apply(&f, &qn_op_DequantizeLinear, 3, integers, number(&f, 0.04), zero);
    qn_value *p = apply(&f, &qn_op_Softmax, 1, x), *is_nan = apply(&f, &qn_op_IsNaN, 1, p);
    check_pass(&f, apply(&f, &qn_op_Where, 3, is_nan, number(&f, 0), p), "drop-nan-guards", 2,
               &qn_op_Softmax);
}

static void recognizes_silu(void **state)
{
    (void)state;
    fixture f = begin();
    qn_value *x = any_image(&f);
    check_pass(&f, apply(&f, &qn_op_Mul, 2, apply(&f, &qn_op_Sigmoid, 1, x), x), "fuse-activations",
               1, &qn_op_Swish);
}

static void recognizes_hard_swish(void **state)
{
    (void)state;
    fixture f = begin();
    qn_value *x = any_image(&f), *shifted = apply(&f, &qn_op_Add, 2, x, number(&f, 3));
    qn_value *gate = apply(&f, &qn_op_Clip, 3, shifted, number(&f, 0), number(&f, 6));
    qn_value *product = apply(&f, &qn_op_Mul, 2, x, gate);
    check_pass(&f, apply(&f, &qn_op_Div, 2, product, number(&f, 6)), "fuse-activations", 1,
               &qn_op_HardSwish);
}

static void recognizes_gelu(void **state)
{
    (void)state;
    fixture f = begin();
    qn_value *x = any_image(&f), *inner = apply(&f, &qn_op_Div, 2, x, number(&f, sqrt(2)));
    qn_value *gate = apply(&f, &qn_op_Add, 2, apply(&f, &qn_op_Erf, 1, inner), number(&f, 1));
    qn_value *product = apply(&f, &qn_op_Mul, 2, x, gate);
    check_pass(&f, apply(&f, &qn_op_Mul, 2, product, number(&f, 0.5)), "fuse-activations", 1,
               &qn_op_Gelu);
}

/* How a file may spell LayerNormalization. */
typedef struct norm_spelling {
    /* Squares by Mul, not by Pow */
    bool multiplies;
    /* In which d meets the deviation */
    enum { DIVIDES, RECIPROCAL, ONE_OVER, POWER, HALF } way;
    enum { NO_SCALE, ONES, SCALE, EARLY_SCALE } scale;
    bool bias;
} norm_spelling;

static qn_value *spell_deviation(fixture *f, const norm_spelling *s, qn_value *variance)
{
    qn_value *root;
    if (s->way == POWER || s->way == HALF)
        return apply(f, &qn_op_Pow, 2, variance, number(f, s->way == POWER ? -0.5 : 0.5));
    root = apply(f, &qn_op_Sqrt, 1, variance);
    if (s->way == RECIPROCAL)
        return apply(f, &qn_op_Reciprocal, 1, root);
    return s->way == ONE_OVER ? apply(f, &qn_op_Div, 2, number(f, 1), root) : root;
}

static qn_value *spell_layer_norm(fixture *f, const norm_spelling *s)
{
    qn_value *x = any_image(f), *axis = ints(f, DIMS(-1), 1);
    qn_value *d = apply(f, &qn_op_Sub, 2, x, apply(f, &qn_op_ReduceMean, 2, x, axis));
    qn_value *square =
        apply(f, s->multiplies ? &qn_op_Mul : &qn_op_Pow, 2, d, s->multiplies ? d : number(f, 2));
    qn_value *variance = apply(f, &qn_op_ReduceMean, 2, square, ints(f, DIMS(3), 1));
    variance = apply(f, &qn_op_Add, 2, variance, number(f, 1e-5));
    qn_value *scale = weights(f, 1, DIMS(6));
    for (int64_t i = 0; s->scale == ONES && i < 6; i++)
        ((float *)scale->data->data)[i] = 1;
    if (s->scale == EARLY_SCALE)
        d = apply(f, &qn_op_Mul, 2, scale, d);
    const bool divides = s->way == DIVIDES || s->way == HALF;
    qn_value *y =
        apply(f, divides ? &qn_op_Div : &qn_op_Mul, 2, d, spell_deviation(f, s, variance));
    if (s->scale == ONES || s->scale == SCALE)
        y = apply(f, &qn_op_Mul, 2, scale, y);
    return s->bias ? apply(f, &qn_op_Add, 2, y, weights(f, 1, DIMS(6))) : y;
}

static void recognizes_layer_norm(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2 * 5 * 4 * 2; i++) {
        const norm_spelling s = {i & 1, i / 4 % 5, i / 20, i & 2};
        fixture f = begin();
        check_pass(&f, spell_layer_norm(&f, &s), "fuse-norms", 1, &qn_op_LayerNormalization);
    }
}

/* Squares of something else, cubes, a factor that is no deviation. */
static void keeps_what_is_no_layer_norm(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 3; wrong++) {
        fixture f = begin();
        int64_t changes[64];
        const qn_pass_options all = {.skip = NULL};
        qn_value *y = spell_layer_norm(&f, &(norm_spelling){false, RECIPROCAL, NO_SCALE, false});
        qn_node *mul = y->producer, *pow = NULL;
        for (qn_node *node = f.graph->first; node; node = node->next)
            pow = node->op == &qn_op_Pow ? node : pow;
        if (wrong == 0)
            assert_int_equal(qn_node_set_input(pow, 0, f.graph->inputs[0]), QN_OK);
        else if (wrong == 1)
            assert_int_equal(qn_node_set_input(pow, 1, number(&f, 3)), QN_OK);
        else
            assert_int_equal(qn_node_set_input(mul, 1, weights(&f, 4, DIMS(2, 4, 5, 1))), QN_OK);
        assert_int_equal(qn_graph_add_output(f.graph, y), QN_OK);
        assert_int_equal(qn_passes_run(f.model, &all, changes), QN_OK);
        assert_int_equal(changes[pass_index("fuse-norms")], 0);
        qn_model_free(f.model);
        qn_context_free(f.ctx);
    }
}

static void recognizes_softmax(void **state)
{
    (void)state;
    fixture f = begin();
    qn_value *x = any_image(&f), *axis = ints(&f, DIMS(1), 1);
    qn_value *e = apply(&f, &qn_op_Sub, 2, x, apply(&f, &qn_op_ReduceMax, 2, x, axis));
    e = apply(&f, &qn_op_Exp, 1, e);
    check_pass(&f, apply(&f, &qn_op_Div, 2, e, apply(&f, &qn_op_ReduceSum, 2, e, axis)),
               "fuse-norms", 1, &qn_op_Softmax);
}

/* The number may stand on either side, and limits in a row are one. */
static void recognizes_limits(void **state)
{
    (void)state;
    for (int side = 0; side < 2; side++) {
        fixture f = begin();
        qn_value *x = any_image(&f), *zero = number(&f, 0);
        check_pass(&f, apply(&f, &qn_op_Max, 2, side ? zero : x, side ? x : zero), "fuse-clips", 1,
                   &qn_op_Relu);
        f = begin();
        x = any_image(&f);
        qn_value *y = apply(&f, side ? &qn_op_Max : &qn_op_Min, 2, x, number(&f, side ? -0.5 : 2));
        y = apply(&f, side ? &qn_op_Min : &qn_op_Max, 2, y, number(&f, side ? 2 : -0.5));
        check_pass(&f, y, "fuse-clips", 1, &qn_op_Clip);
        f = begin();
        y = apply(&f, &qn_op_Relu, 1, any_image(&f));
        check_pass(&f, apply(&f, &qn_op_Clip, 3, y, number(&f, side ? -1 : 1), number(&f, 3)),
                   "fuse-clips", 1, &qn_op_Clip);
    }
}

/* Limits per channel, limits that leave nothing as it is, more than two, and what somebody else
 * reads as well. */
static void keeps_what_is_no_limit(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 4; wrong++) {
        fixture f = begin();
        int64_t changes[64];
        const qn_pass_options all = {.skip = NULL};
        qn_value *x = any_image(&f), *y;
        if (wrong == 0)
            y = apply(&f, &qn_op_Max, 2, x, weights(&f, 3, DIMS(4, 1, 1)));
        else if (wrong == 1)
            y = apply(&f, &qn_op_Max, 2, x, number(&f, (double)INFINITY));
        else if (wrong == 2)
            y = apply(&f, &qn_op_Max, 3, x, number(&f, 0), number(&f, 1));
        else {
            qn_value *relu = apply(&f, &qn_op_Relu, 1, x);
            y = apply(&f, &qn_op_Clip, 3, relu, number(&f, 0), number(&f, 1));
            y = apply(&f, &qn_op_Add, 2, y, relu);
        }
        assert_int_equal(qn_graph_add_output(f.graph, y), QN_OK);
        assert_int_equal(qn_passes_run(f.model, &all, changes), QN_OK);
        assert_int_equal(changes[pass_index("fuse-clips")], 0);
        qn_model_free(f.model);
        qn_context_free(f.ctx);
    }
}

/* Words that quantization has no integers for become those that it has. */
static void makes_elements_plain(void **state)
{
    (void)state;
    fixture f = begin();
    qn_value *x = any_image(&f), *z = input(&f, "z", 4, DIMS(1, 4, 1, 6));
    check_pass(&f, apply(&f, &qn_op_Sum, 3, x, z, apply(&f, &qn_op_Tanh, 1, x)),
               "canonicalize-elements", 3, &qn_op_Tanh);
    f = begin();
    check_pass(&f, apply(&f, &qn_op_Div, 2, any_image(&f), weights(&f, 3, DIMS(4, 1, 1))),
               "canonicalize-elements", 1, &qn_op_Mul);
    f = begin();
    x = any_image(&f);
    qn_value *slopes = weights(&f, 3, DIMS(4, 1, 1));
    for (int i = 0; i < 4; i++)
        ((float *)slopes->data->data)[i] = 0.25f;
    check_pass(&f, apply(&f, &qn_op_PRelu, 2, x, slopes), "canonicalize-elements", 1,
               &qn_op_LeakyRelu);
}

/* Quotients by 0, by what is computed, and slopes that differ. */
static void keeps_other_elements(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 3; wrong++) {
        fixture f = begin();
        int64_t changes[64];
        const qn_pass_options all = {.purpose = QN_PURPOSE_QUANTIZE};
        qn_value *x = any_image(&f);
        qn_value *other = wrong == 0   ? number(&f, 0)
                          : wrong == 1 ? apply(&f, &qn_op_Exp, 1, x)
                                       : weights(&f, 3, DIMS(4, 1, 1));
        qn_value *y = apply(&f, wrong == 2 ? &qn_op_PRelu : &qn_op_Div, 2, x, other);
        assert_int_equal(qn_graph_add_output(f.graph, y), QN_OK);
        assert_int_equal(qn_passes_run(f.model, &all, changes), QN_OK);
        assert_int_equal(changes[pass_index("canonicalize-elements")], 0);
        qn_model_free(f.model);
        qn_context_free(f.ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drops_nan_guards),       cmocka_unit_test(recognizes_silu),
        cmocka_unit_test(recognizes_hard_swish),  cmocka_unit_test(recognizes_gelu),
        cmocka_unit_test(recognizes_layer_norm),  cmocka_unit_test(keeps_what_is_no_layer_norm),
        cmocka_unit_test(recognizes_softmax),     cmocka_unit_test(recognizes_limits),
        cmocka_unit_test(keeps_what_is_no_limit), cmocka_unit_test(makes_elements_plain),
        cmocka_unit_test(keeps_other_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
