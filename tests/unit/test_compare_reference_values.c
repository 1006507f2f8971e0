/* What `quench verify` compares with: a value that differs is seen and named, in any layout. */
#include "pass_test.h"

#include "compare/reference_values.h"
#include "ops/resize.h"

/* x, 8-bit integers [1, 2, 2, 2], through a Reshape of integers and a Sigmoid in float. */
typedef struct scene {
    fixture f;
    qn_value *integers, *real;
    qn_reference_values reference;
} scene;

static const int64_t dims[4] = {1, 2, 2, 2};

static void open_scene(scene *s)
{
    s->f = begin();
    qn_value *x = input(&s->f, "x", 4, dims);
    x->type.dtype = QN_INT8;
    s->integers = apply(&s->f, &qn_op_Reshape, 2, x, ints(&s->f, dims, 4));
    s->real = apply(&s->f, &qn_op_Sigmoid, 1,
                    apply(&s->f, &qn_op_DequantizeLinear, 2, s->integers, number(&s->f, 0.5)));
    assert_int_equal(qn_graph_add_output(s->f.graph, s->real), QN_OK);
    assert_int_equal(qn_graph_infer(s->f.graph), QN_OK);
    assert_int_equal(qn_reference_values_init(&s->reference, s->f.ctx, s->f.graph), QN_OK);
}

static void close_scene(scene *s)
{
    qn_reference_values_free(&s->reference);
    qn_model_free(s->f.model);
    qn_context_free(s->f.ctx);
}

static qn_observation observe(const qn_value *value, qn_tensor *tensor, void *data,
                              qn_layout layout)
{
    *tensor = (qn_tensor){value->type.dtype, 4, {1, 2, 2, 2}, data};
    return (qn_observation){value, tensor, layout, 8 * qn_dtype_size(value->type.dtype)};
}

static void test_integers(void **state)
{
    int8_t rows[8] = {1, 2, 3, 4, 5, 6, 7, 8}, last[8] = {1, 5, 2, 6, 3, 7, 4, 8};
    qn_tensor tensor;
    scene s;
    (void)state;
    open_scene(&s);
    qn_observation seen = observe(s.integers, &tensor, rows, QN_ROWS);
    assert_int_equal(qn_reference_values_keep(&s.reference, &seen), QN_OK);
    seen = observe(s.integers, &tensor, last, (qn_layout){QN_LAYOUT_CHANNELS_LAST, 0});
    assert_int_equal(qn_reference_values_compare(&s.reference, &seen, "as it is", false), QN_OK);
    assert_int_equal(s.reference.differing, 0);
    last[3] = 7; /* row-major element 5 */
    assert_int_equal(qn_reference_values_compare(&s.reference, &seen, "as it is", false), QN_OK);
    assert_int_equal(s.reference.differing, 1);
    assert_ptr_equal(s.reference.first.value, qn_reference_value_of(&s.reference, s.integers));
    assert_int_equal(s.reference.first.element, 5);
    assert_true(s.reference.first.got == 7 && s.reference.first.reference == 6);
    close_scene(&s);
}

/* Arithmetic in float has no fixed order: a difference is measured, not counted, and what follows
 * reads the reference's numbers. */
static void test_floats(void **state)
{
    float rows[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    qn_tensor tensor;
    scene s;
    (void)state;
    open_scene(&s);
    qn_observation seen = observe(s.real, &tensor, rows, QN_ROWS);
    assert_int_equal(qn_reference_values_keep(&s.reference, &seen), QN_OK);
    rows[0] = 1.5f;
    assert_int_equal(qn_reference_values_compare(&s.reference, &seen, "as it is", true), QN_OK);
    assert_int_equal(s.reference.differing, 0);
    assert_true(fabs(s.reference.float_error - 0.5 / 8) < 1e-12);
    assert_true(rows[0] == 1);
    close_scene(&s);
}

/* One that moves numbers has the reference's bits, one that computes need not. */
static void test_loose(void **state)
{
    const int64_t twice[4] = {1, 2, 4, 4};
    (void)state;
    fixture f = begin();
    qn_value *y =
        apply(&f, &qn_op_Resize, 4, input(&f, "x", 4, dims), NULL, NULL, ints(&f, twice, 4));
    qn_resize_attrs *a = y->producer->attrs;
    assert_int_equal(qn_graph_infer(f.graph), QN_OK);
    assert_false(qn_reference_is_loose(y->producer));
    a->mode = QN_RESIZE_LINEAR;
    assert_true(qn_reference_is_loose(y->producer));
    qn_model_free(f.model);
    qn_context_free(f.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_integers),
                                       cmocka_unit_test(test_floats), cmocka_unit_test(test_loose)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
