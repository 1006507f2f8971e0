/* What operators say of quantization (`quench ops`) is what the quantizer makes of them, and what
 * it makes of those that files spell in several ways. */
#include "pass_test.h"
#include "quant/quant_classes.h"

/* A tensor, and one number wherever the operator wants more. */
static qn_node *example_of(fixture *f, const qn_op *op)
{
    const bool is_variadic = op->n_in > 0 && (op->in[op->n_in - 1].flags & QN_VARIADIC);
    const int32_t n_in = is_variadic ? QN_MAX(op->n_in, 2) : op->n_in;
    qn_node *node;
    assert_int_equal(qn_node_add(&node, f->graph, op, NULL, n_in, op->n_out), QN_OK);
    for (int32_t i = 0; i < n_in; i++)
        assert_int_equal(qn_node_set_input(node, i, i ? number(f, 2) : f->graph->inputs[0]), QN_OK);
    return node;
}

/* Passes make others of it. */
static bool is_rewritten(const qn_op *op)
{
    return op == &qn_op_BatchNormalization;
}

/* Operators that no longer are, or that only shapes are computed with, are nobody's business. */
static void operators_tell_the_truth(void **state)
{
    fixture f = begin();
    (void)state;
    (void)any_image(&f);
    for (size_t i = 0; i < qn_ops_count; i++) {
        const qn_op *op = qn_ops[i];
        if (*op->domain || op->until || !op->n_in || op->quant == QN_QUANT_SHAPE ||
            is_rewritten(op))
            continue;
        const bool says = op->quant != QN_QUANT_FLOAT && op->quant != QN_QUANT_ALREADY;
        if (says != (qn_quant_class_of(example_of(&f, op)) != NULL))
            fail_msg("%s says that it %s integers", op->name, says ? "has" : "has no");
    }
    qn_model_free(f.model);
    qn_context_free(f.ctx);
}

/* The root over two squares, and what looks alike. */
static void norms_are_told_apart(void **state)
{
    fixture f = begin();
    (void)state;
    qn_value *a = any_image(&f), *b = apply(&f, &qn_op_Neg, 1, a);
    qn_value *squares[] = {apply(&f, &qn_op_Pow, 2, a, number(&f, 2)),
                           apply(&f, &qn_op_Mul, 2, b, b)};
    qn_value *sum = apply(&f, &qn_op_Add, 2, squares[0], squares[1]);
    qn_value *root = apply(&f, &qn_op_Sqrt, 1, sum);
    qn_value *cube = apply(&f, &qn_op_Pow, 2, a, number(&f, 3));
    qn_value *other = apply(&f, &qn_op_Sqrt, 1, apply(&f, &qn_op_Add, 2, cube, b));
    qn_value *const parts[] = {squares[0], squares[1], sum, root};
    qn_value *const others[] = {b, cube, other, other->producer->in[0]};
    for (size_t i = 0; i < QN_COUNT_OF(parts); i++) {
        assert_true(qn_quant_class_is_norm_part(parts[i]->producer));
        assert_false(qn_quant_class_is_norm_part(others[i]->producer));
    }
    qn_model_free(f.model);
    qn_context_free(f.ctx);
}

/* ---- One operator between two convolutions --------------------------------------------------- */

static qn_value *convolve(fixture *f, qn_value *x)
{
    return apply(f, &qn_op_Conv, 2, x, weights(f, 4, DIMS(8, 8, 3, 3)));
}

static qn_value *of_slopes(fixture *f, qn_value *x)
{
    return apply(f, &qn_op_PRelu, 2, x, weights(f, 3, DIMS(8, 1, 1)));
}

static qn_value *of_one_slope(fixture *f, qn_value *x)
{
    return apply(f, &qn_op_PRelu, 2, x, number(f, 0.25));
}

static qn_value *of_computed_slope(fixture *f, qn_value *x)
{
    return apply(f, &qn_op_PRelu, 2, x, apply(f, &qn_op_ReduceMax, 1, x));
}

static qn_value *of_sum(fixture *f, qn_value *x)
{
    qn_value *z = apply(f, &qn_op_Conv, 2, x, weights(f, 4, DIMS(8, 8, 1, 1)));
    return apply(f, &qn_op_Sum, 3, x, z, x);
}

static qn_value *of_quotient(fixture *f, qn_value *x)
{
    return apply(f, &qn_op_Div, 2, x, number(f, 8));
}

static qn_value *of_maximum(fixture *f, qn_value *x)
{
    return apply(f, &qn_op_Max, 2, number(f, 0), x);
}

static qn_value *of_root(fixture *f, qn_value *x)
{
    return apply(f, &qn_op_Sqrt, 1, x);
}

static const struct {
    const char *name, *target;
    qn_value *(*build)(fixture *f, qn_value *x);
    bool integer;
} cases[] = {
    {"PRelu", "quench", of_slopes, true},
    {"PRelu", "TX5368x_TX5339x_TX5335x", of_slopes, true},
    {"PRelu", "ort", of_slopes, false},
    {"PRelu", "openvino", of_slopes, false},
    {"PRelu, one slope", "quench", of_one_slope, true},
    {"PRelu, one slope", "ort", of_one_slope, true},
    {"PRelu, computed slope", "quench", of_computed_slope, false},
    {"Sum", "quench", of_sum, true},
    {"Sum", "tensorrt", of_sum, true},
    {"Div by a number", "quench", of_quotient, true},
    {"Div by a number", "ort", of_quotient, true},
    {"Max with 0", "qdq-generic", of_maximum, true},
    {"Sqrt", "quench", of_root, true},
    {"Sqrt", "ort", of_root, false},
};

/* All nodes compute with integers, or the one in the middle does not. */
static void elements_have_integers(void **state)
{
    const qn_pass_options passes = {.purpose = QN_PURPOSE_QUANTIZE};
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(cases); i++) {
        fixture f = begin();
        qn_quant_settings settings = {.bits = 8};
        qn_quantizer *q = NULL;
        size_t floats = 0;
        assert_int_equal(qn_profile_find(&settings.profile, f.ctx, cases[i].target), QN_OK);
        qn_value *x = convolve(&f, input(&f, "x", 4, DIMS(1, 8, 12, 12)));
        qn_value *y = convolve(&f, cases[i].build(&f, x));
        assert_int_equal(qn_graph_add_output(f.graph, y), QN_OK);
        if (qn_passes_run(f.model, &passes, NULL) != QN_OK ||
            qn_quantizer_create(&q, f.model, &settings) != QN_OK)
            fail_msg("%s for %s: %s", cases[i].name, cases[i].target, qn_context_error(f.ctx));
        for (size_t n = 0; n < q->n_nodes; n++)
            floats += !q->nodes[n].integer;
        if (cases[i].integer != (floats == 0))
            fail_msg("%s for %s: %zu nodes stay float", cases[i].name, cases[i].target, floats);
        qn_quantizer_free(q);
        qn_model_free(f.model);
        qn_context_free(f.ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(operators_tell_the_truth),
                                       cmocka_unit_test(norms_are_told_apart),
                                       cmocka_unit_test(elements_have_integers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
