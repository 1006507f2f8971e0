/* Old forms of operators on their way to the latest one, and back where they can go back. */
#include "ops_test.h"

#include "ops/versions.h"

#define TEST(name) static void name(void **state)
#define START bench *b = *state

/* ---- Up -------------------------------------------------------------------------------------- */

TEST(add_aligned_at_an_axis)
{
    START;
    bench_node(b, &qn_op_Add, 2, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 2, 2), VALUES(1, 2, 3, 4)));
    bench_feed(b, 1, numbers(b, QN_FLOAT32, DIMS(2), VALUES(10, 20)));
    ATTR(b, int64_t, "broadcast", 6) = 1;
    ATTR(b, int64_t, "axis", 6) = 1;
    bench_upgrade(b, 6);
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(1, 2, 2), VALUES(11, 12, 23, 24));
    assert_int_equal(b->model->graph->n_nodes, 2); /* with an Unsqueeze */
}

TEST(add_aligned_constant_needs_no_node)
{
    START;
    bench_node(b, &qn_op_Add, 2, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 2, 2), VALUES(1, 2, 3, 4)));
    bench_constant(b, 1, numbers(b, QN_FLOAT32, DIMS(2), VALUES(10, 20)));
    ATTR(b, int64_t, "broadcast", 6) = 1;
    ATTR(b, int64_t, "axis", 6) = -2;
    bench_upgrade(b, 6);
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(1, 2, 2), VALUES(11, 12, 23, 24));
    assert_int_equal(b->model->graph->n_nodes, 1);
}

TEST(prelu_slope_of_channels)
{
    START;
    bench_node(b, &qn_op_PRelu, 2, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 2, 2), VALUES(-1, 2, -3, -4)));
    bench_constant(b, 1, numbers(b, QN_FLOAT32, DIMS(2), VALUES(0.5, 2)));
    bench_upgrade(b, 6);
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(1, 2, 2), VALUES(-0.5, 2, -6, -8));
}

TEST(softmax_flattens_before_13)
{
    START;
    bench_node(b, &qn_op_Softmax, 1, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 2, 2), VALUES(0, 0, 0, 0)));
    bench_upgrade(b, 11); /* axis 1 where absent: over all four */
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(1, 2, 2), VALUES(0.25, 0.25, 0.25, 0.25));
}

TEST(softmax_of_the_last_axis_stays_one_node)
{
    START;
    bench_node(b, &qn_op_Softmax, 1, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 2), VALUES(0, 0)));
    bench_upgrade(b, 9);
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(1, 2), VALUES(0.5, 0.5));
    assert_int_equal(b->model->graph->n_nodes, 1);
}

TEST(selu_had_shorter_defaults)
{
    START;
    bench_node(b, &qn_op_Selu, 1, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT64, DIMS(1), VALUES(1)));
    bench_upgrade(b, 5);
    bench_run(b);
    expect(b, 0, QN_FLOAT64, DIMS(1), VALUES(1.0507));
}

TEST(cast_to_a_name)
{
    START;
    bench_node(b, &qn_op_Cast, 1, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(2), VALUES(1.7, -1.7)));
    ATTR(b, const char *, "to", 5) = "INT32";
    bench_upgrade(b, 5);
    bench_run(b);
    expect(b, 0, QN_INT32, DIMS(2), VALUES(1, -1));
}

TEST(batch_norm_by_element)
{
    START;
    bench_node(b, &qn_op_BatchNormalization, 5, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(2, 1, 2), VALUES(1, 2, 3, 4)));
    bench_constant(b, 1, numbers(b, QN_FLOAT32, DIMS(1, 2), VALUES(1, 10)));
    bench_constant(b, 2, numbers(b, QN_FLOAT32, DIMS(1, 2), VALUES(0, 5)));
    bench_constant(b, 3, numbers(b, QN_FLOAT32, DIMS(1, 2), VALUES(1, 2)));
    bench_constant(b, 4, numbers(b, QN_FLOAT32, DIMS(1, 2), VALUES(1, 1)));
    ATTR(b, int64_t, "spatial", 7) = 0;
    ATTR(b, float, "epsilon", 7) = 0;
    bench_upgrade(b, 7);
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(2, 1, 2), VALUES(0, 5, 2, 25));
}

TEST(batch_norm_outputs_that_nobody_reads)
{
    START;
    bench_node(b, &qn_op_BatchNormalization, 5, 5);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 1), VALUES(1)));
    for (int32_t o = 1; o < 5; o++)
        b->node->out[o]->is_output = false;
    bench_upgrade(b, 9);
    assert_int_equal(b->node->n_out, 1);
}

TEST(dropout_mask_was_a_number)
{
    START;
    bench_node(b, &qn_op_Dropout, 1, 2);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(2), VALUES(3, 4)));
    ATTR(b, float, "ratio", 7) = 0.25f;
    bench_upgrade(b, 7);
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(2), VALUES(3, 4));
    expect(b, 1, QN_FLOAT32, DIMS(2), VALUES(1, 1));
}

TEST(group_norm_of_groups)
{
    START;
    bench_node(b, &qn_op_GroupNormalization, 3, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 4), VALUES(-1, 1, 0, 4)));
    bench_feed(b, 1, numbers(b, QN_FLOAT32, DIMS(2), VALUES(1, 10)));
    bench_feed(b, 2, numbers(b, QN_FLOAT32, DIMS(2), VALUES(0, 100)));
    ATTR(b, int64_t, "num_groups", 18) = 2;
    ATTR(b, float, "epsilon", 18) = 0;
    bench_upgrade(b, 18);
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(1, 4), VALUES(-1, 1, 90, 110));
}

TEST(lp_pool_with_a_float)
{
    START;
    bench_node(b, &qn_op_LpPool, 1, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 1, 2), VALUES(-3, 4)));
    ATTR(b, qn_ints, "kernel_shape", 1) = INTS(2);
    ATTR(b, float, "p", 1) = 1;
    bench_upgrade(b, 1);
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(1, 1, 1), VALUES(7));
}

TEST(roi_align_half_a_pixel_off)
{
    START;
    bench_node(b, &qn_op_RoiAlign, 3, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 1, 1, 4), VALUES(0, 1, 2, 3)));
    bench_feed(b, 1, numbers(b, QN_FLOAT32, DIMS(1, 4), VALUES(1, 0, 2, 0)));
    bench_feed(b, 2, numbers(b, QN_INT64, DIMS(1), VALUES(0)));
    bench_upgrade(b, 10);
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(1, 1, 1, 1), VALUES(1.5)); /* 1.0 with half_pixel */
}

/* ---- Up and back ----------------------------------------------------------------------------- */

TEST(clip_limits)
{
    START;
    bench_node(b, &qn_op_Clip, 1, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT64, DIMS(3), VALUES(-1, 3, 9)));
    ATTR(b, float, "min", 6) = 0;
    ATTR(b, float, "max", 6) = 6;
    bench_upgrade(b, 6);
    assert_int_equal(b->node->n_in, 3);
    assert_int_equal(b->node->in[1]->type.dtype, QN_FLOAT64);
    bench_run(b);
    expect(b, 0, QN_FLOAT64, DIMS(3), VALUES(0, 3, 6));
    assert_int_equal(qn_node_downgrade(&b->node, 6), QN_OK);
    assert_int_equal(b->node->n_in, 1);
    assert_true(ATTR(b, float, "max", 6) == 6);
}

TEST(reduction_axes)
{
    START;
    bench_node(b, &qn_op_ReduceSum, 1, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(2, 2), VALUES(1, 2, 3, 4)));
    ATTR(b, qn_ints, "axes", 11) = INTS(-1);
    bench_upgrade(b, 11);
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(2, 1), VALUES(3, 7));
    assert_int_equal(qn_node_downgrade(&b->node, 11), QN_OK);
    assert_int_equal(b->node->n_in, 1);
    assert_int_equal(ATTR(b, qn_ints, "axes", 11).at[0], -1);
}

TEST(softmax_of_an_inner_axis_is_turned)
{
    START;
    bench_node(b, &qn_op_Softmax, 1, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(2, 1), VALUES(3, 3)));
    ATTR(b, int64_t, "axis", 23) = 0;
    assert_int_equal(qn_graph_infer(b->model->graph), QN_OK);
    assert_int_equal(qn_node_downgrade(&b->node, 12), QN_OK);
    assert_int_equal(b->model->graph->n_nodes, 3);
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(2, 1), VALUES(0.5, 0.5));
}

TEST(gemm_without_c_gets_one_back)
{
    START;
    bench_node(b, &qn_op_Gemm, 2, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 1), VALUES(2)));
    bench_feed(b, 1, numbers(b, QN_FLOAT32, DIMS(1, 1), VALUES(3)));
    assert_int_equal(qn_graph_infer(b->model->graph), QN_OK);
    assert_int_equal(qn_node_downgrade(&b->node, 9), QN_OK);
    assert_int_equal(b->node->n_in, 3);
    bench_run(b);
    expect(b, 0, QN_FLOAT32, DIMS(1, 1), VALUES(6));
}

/* ---- What cannot go back --------------------------------------------------------------------- */

static void expect_refusal(bench *b, int to, const char *part)
{
    assert_int_equal(qn_graph_infer(b->model->graph), QN_OK);
    assert_int_equal(qn_node_downgrade(&b->node, to), QN_E_UNSUPPORTED);
    if (!strstr(qn_context_error(b->ctx), part))
        fail_msg("'%s' does not say '%s'", qn_context_error(b->ctx), part);
}

TEST(new_element_types_stay)
{
    START;
    bench_node(b, &qn_op_Relu, 1, 1);
    bench_feed(b, 0, numbers(b, QN_INT32, DIMS(1), VALUES(1)));
    expect_refusal(b, 13, "int32");
}

TEST(new_attributes_stay)
{
    START;
    bench_node(b, &qn_op_AveragePool, 1, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 1, 2), VALUES(1, 2)));
    ATTR(b, qn_ints, "kernel_shape", 23) = INTS(2);
    ATTR(b, int64_t, "ceil_mode", 23) = 1;
    expect_refusal(b, 9, "ceil_mode");
}

TEST(new_operators_stay)
{
    START;
    bench_node(b, &qn_op_BitwiseNot, 1, 1);
    bench_feed(b, 0, numbers(b, QN_INT32, DIMS(1), VALUES(1)));
    expect_refusal(b, 17, "18");
}

TEST(computed_axes_stay)
{
    START;
    bench_node(b, &qn_op_ReduceMax, 2, 1);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(2), VALUES(1, 2)));
    bench_feed(b, 1, numbers(b, QN_INT64, DIMS(1), VALUES(0)));
    expect_refusal(b, 17, "constant");
}

/* Outputs that nobody reads are no reason, others are the reason that is told. */
TEST(layer_norm_statistics_stay)
{
    START;
    bench_node(b, &qn_op_LayerNormalization, 2, 3);
    bench_feed(b, 0, numbers(b, QN_FLOAT32, DIMS(1, 2), VALUES(1, 3)));
    bench_feed(b, 1, numbers(b, QN_FLOAT32, DIMS(2), VALUES(1, 1)));
    expect_refusal(b, 13, "before opset 17 its outputs Mean and InvStdDev have no form");
}

#define T(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {T(add_aligned_at_an_axis),
                                       T(add_aligned_constant_needs_no_node),
                                       T(prelu_slope_of_channels),
                                       T(softmax_flattens_before_13),
                                       T(softmax_of_the_last_axis_stays_one_node),
                                       T(selu_had_shorter_defaults),
                                       T(cast_to_a_name),
                                       T(batch_norm_by_element),
                                       T(batch_norm_outputs_that_nobody_reads),
                                       T(dropout_mask_was_a_number),
                                       T(group_norm_of_groups),
                                       T(lp_pool_with_a_float),
                                       T(roi_align_half_a_pixel_off),
                                       T(clip_limits),
                                       T(reduction_axes),
                                       T(gemm_without_c_gets_one_back),
                                       T(new_element_types_stay),
                                       T(new_attributes_stay),
                                       T(new_operators_stay),
                                       T(computed_axes_stay),
                                       T(layer_norm_statistics_stay),
                                       T(softmax_of_an_inner_axis_is_turned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
