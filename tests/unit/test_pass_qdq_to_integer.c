/* The pass qdq-to-integer: what stands between DequantizeLinear and QuantizeLinear becomes the
 * integer operator that docs/numerics.md names, and stays within one step of the float result. */
#include "qdq_test.h"

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(cases); i++) {
        fixture f = begin();
        const qn_pass_options options = {0};
        qn_arena arena;
        qn_arena_init(&arena, &f.ctx->allocator);
        cases[i].build(&f);
        assert_int_equal(qn_graph_infer(f.graph), QN_OK);
        const qn_tensor *before = evaluate(&f, &arena, f.graph);
        if (qn_passes_run(f.model, &options, NULL) != QN_OK)
            fail_msg("%s: %s", cases[i].name, qn_context_error(f.ctx));
        if (count_op(f.graph, cases[i].integer) != 1 || f.graph->n_nodes != cases[i].nodes)
            fail_msg("%s: %zu nodes, of which %zu are %s", cases[i].name, f.graph->n_nodes,
                     count_op(f.graph, cases[i].integer), cases[i].integer->name);
        assert_within(before, evaluate(&f, &arena, f.graph), cases[i].step * 1.01, cases[i].name);
        qn_arena_free(&arena);
        end(&f);
    }
}

/* Tables that are fused give the numbers of those that are not. */
static void test_tables(void **state)
{
    const char *const skip[1] = {"fuse-tables"};
    const qn_pass_options options[2] = {{.skip = skip, .n_skip = 1}, {0}};
    fixture f[2] = {begin(), begin()};
    const qn_tensor *results[2];
    qn_arena arena;
    (void)state;
    qn_arena_init(&arena, &f[0].ctx->allocator);
    for (int i = 0; i < 2; i++) {
        functions(&f[i]);
        assert_int_equal(qn_passes_run(f[i].model, &options[i], NULL), QN_OK);
        assert_int_equal(count_op(f[i].graph, &qn_op_ms_QLinearMul), 1 - i);
        results[i] = evaluate(&f[i], &arena, f[i].graph);
    }
    assert_within(results[0], results[1], 0, "fused tables");
    qn_arena_free(&arena);
    for (int i = 0; i < 2; i++)
        end(&f[i]);
}

/* Who keeps the quantization of a file keeps its nodes. */
static void test_kept(void **state)
{
    fixture f = begin();
    const qn_pass_options options = {.purpose = QN_PURPOSE_CONVERT};
    (void)state;
    conv_relu(&f);
    assert_int_equal(qn_passes_run(f.model, &options, NULL), QN_OK);
    assert_int_equal(count_op(f.graph, &qn_op_Conv), 1);
    assert_int_equal(count_op(f.graph, &qn_op_DequantizeLinear), 3);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_tables),
                                       cmocka_unit_test(test_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
