/* Every pass does what it says, keeps what is computed, and can be left out by its name. Each case
 * is a small graph; it is evaluated node by node before and after. */
#include <float.h>
#include <time.h>

#include "pass_test.h"

/* 3x3 convolution of the image with or without a border. */
static qn_value *convolve(fixture *f, qn_value *x, int64_t channels, int64_t pad)
{
    qn_value *y = apply(f, &qn_op_Conv, 2, x, weights(f, 4, DIMS(6, channels, 3, 3)));
    qn_window_attrs *a = y->producer->attrs;
    const int64_t pads[4] = {pad, pad, pad, pad};
    assert_int_equal(qn_ints_copy(&a->pads, f->graph, pads, 4), QN_OK);
    return y;
}

static qn_value *normalize(fixture *f, qn_value *x, int64_t channels)
{
    /* A variance is not negative: the square of something. */
    qn_value *variance = weights(f, 1, DIMS(channels));
    for (int64_t c = 0; c < channels; c++)
        ((float *)variance->data->data)[c] *= ((const float *)variance->data->data)[c];
    return apply(f, &qn_op_BatchNormalization, 5, x, weights(f, 1, DIMS(channels)),
                 weights(f, 1, DIMS(channels)), weights(f, 1, DIMS(channels)), variance);
}

/* ---- The passes ------------------------------------------------------------------------------ */

static void folds_batchnorm_forward(void **state)
{
    (void)state;
    fixture f = begin();
    check_pass(&f, normalize(&f, convolve(&f, any_image(&f), 4, 1), 6), "fold-batchnorm", 1,
               &qn_op_Conv);
}

static void folds_batchnorm_backward(void **state)
{
    (void)state;
    fixture f = begin();
    check_pass(&f, convolve(&f, normalize(&f, any_image(&f), 4), 4, 0), "fold-batchnorm", 1,
               &qn_op_Conv);
}

/* The border is zero behind the normalization, not before it. */
static void keeps_batchnorm_before_a_border(void **state)
{
    (void)state;
    fixture f = begin();
    int64_t changes[64];
    const qn_pass_options all = {.skip = NULL};
    qn_value *y = convolve(&f, normalize(&f, any_image(&f), 4), 4, 1);
    assert_int_equal(qn_graph_add_output(f.graph, y), QN_OK);
    assert_int_equal(qn_passes_run(f.model, &all, changes), QN_OK);
    assert_int_equal(changes[pass_index("fold-batchnorm")], 0);
    assert_int_equal(count_op(f.graph, &qn_op_BatchNormalization), 1);
    qn_model_free(f.model);
    qn_context_free(f.ctx);
}

static void folds_scales(void **state)
{
    (void)state;
    fixture f = begin();
    qn_value *y = convolve(&f, any_image(&f), 4, 1);
    y = apply(&f, &qn_op_Mul, 2, y, weights(&f, 3, DIMS(6, 1, 1)));
    y = apply(&f, &qn_op_Sub, 2, number(&f, 0.5), y);
    check_pass(&f, apply(&f, &qn_op_Add, 2, y, weights(&f, 4, DIMS(1, 6, 1, 1))), "fold-mul-add", 1,
               &qn_op_Conv);
}

/* The matrix that two of them share stays what it is for each. */
static void makes_gemms_plain(void **state)
{
    (void)state;
    fixture f = begin();
    qn_value *x = input(&f, "x", 2, DIMS(4, 3)), *w = weights(&f, 2, DIMS(4, 4));
    qn_value *y = apply(&f, &qn_op_Gemm, 3, x, w, number(&f, 0.5));
    qn_gemm_attrs *a = y->producer->attrs;
    a->transA = 1;
    a->alpha = 0.25f;
    a->beta = -2;
    qn_value *z = apply(&f, &qn_op_Gemm, 3, y, w, weights(&f, 1, DIMS(4)));
    check_pass(&f, z, "canonicalize-gemms", 3, &qn_op_Transpose);
}

/* Constants folded into weights round them: a model that is run keeps the numbers of its file. */
static void folds_scales_for_files_only(void **state)
{
    (void)state;
    static const int64_t expected[QN_PURPOSES] = {
        [QN_PURPOSE_QUANTIZE] = 1, [QN_PURPOSE_CONVERT] = 1, [QN_PURPOSE_LINT] = 1};
    for (int i = 0; i < QN_PURPOSES; i++) {
        fixture f = begin();
        int64_t changes[64];
        const qn_pass_options options = {.purpose = (qn_purpose)i};
        qn_value *y = convolve(&f, any_image(&f), 4, 1);
        y = apply(&f, &qn_op_Mul, 2, y, weights(&f, 3, DIMS(6, 1, 1)));
        assert_int_equal(qn_graph_add_output(f.graph, y), QN_OK);
        assert_int_equal(qn_passes_run(f.model, &options, changes), QN_OK);
        assert_int_equal(changes[pass_index("fold-mul-add")], expected[i]);
        assert_int_equal(count_op(f.graph, &qn_op_Mul), 1 - expected[i]);
        qn_model_free(f.model);
        qn_context_free(f.ctx);
    }
}

static void folds_into_groups_and_transposed(void **state)
{
    (void)state;
    fixture f = begin();
    qn_value *y =
        apply(&f, &qn_op_ConvTranspose, 2, any_image(&f), weights(&f, 4, DIMS(4, 3, 2, 2)));
    ((qn_window_attrs *)y->producer->attrs)->group = 2;
    check_pass(&f, normalize(&f, y, 6), "fold-batchnorm", 1, &qn_op_ConvTranspose);
}

static void fuses_pads(void **state)
{
    (void)state;
    fixture f = begin();
    qn_value *padded =
        apply(&f, &qn_op_Pad, 2, any_image(&f), ints(&f, DIMS(0, 0, 1, 2, 0, 0, 3, 0), 8));
    check_pass(&f, convolve(&f, padded, 4, 1), "fuse-pads", 1, &qn_op_Conv);
}

/* A pool of 3x3 behind a Pad of `border`. */
static qn_value *pool_padded(fixture *f, qn_value *x, double border, int64_t width)
{
    const int64_t amounts[8] = {0, 0, width, 1, 0, 0, 0, width};
    x = apply(f, &qn_op_Pad, 3, x, ints(f, amounts, 8), number(f, border));
    x = apply(f, &qn_op_MaxPool, 1, x);
    qn_window_attrs *a = x->producer->attrs;
    assert_int_equal(qn_ints_copy(&a->kernel_shape, f->graph, DIMS(3, 3), 2), QN_OK);
    return x;
}

/* What is never the largest: the least number, or 0 where nothing is below it. */
static void fuses_pads_into_max_pool(void **state)
{
    (void)state;
    fixture f = begin();
    check_pass(&f, pool_padded(&f, any_image(&f), -(double)INFINITY, 1), "fuse-pads", 1,
               &qn_op_MaxPool);
    f = begin();
    check_pass(&f, pool_padded(&f, any_image(&f), -(double)FLT_MAX, 2), "fuse-pads", 1,
               &qn_op_MaxPool);
    f = begin();
    check_pass(&f, pool_padded(&f, apply(&f, &qn_op_Relu, 1, any_image(&f)), 0, 2), "fuse-pads", 2,
               &qn_op_MaxPool);
    f = begin();
    qn_value *clipped = apply(&f, &qn_op_Clip, 3, any_image(&f), number(&f, 0), number(&f, 6));
    check_pass(&f, pool_padded(&f, clipped, 0, 2), "fuse-pads", 2, &qn_op_MaxPool);
}

/* Zeros that may be the largest, and windows of nothing but the border. */
static void keeps_pads_that_count(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 3; wrong++) {
        fixture f = begin();
        int64_t changes[64];
        const qn_pass_options all = {.skip = NULL};
        qn_value *x = wrong ? apply(&f, &qn_op_Relu, 1, any_image(&f)) : any_image(&f);
        qn_value *y = pool_padded(&f, x, wrong == 2 ? 0.5 : 0, wrong == 1 ? 3 : 1);
        assert_int_equal(qn_graph_add_output(f.graph, y), QN_OK);
        assert_int_equal(qn_passes_run(f.model, &all, changes), QN_OK);
        assert_int_equal(changes[pass_index("fuse-pads")], 0);
        qn_model_free(f.model);
        qn_context_free(f.ctx);
    }
}

static void folds_constants(void **state)
{
    (void)state;
    fixture f = begin();
    qn_value *x = any_image(&f), *shape = apply(&f, &qn_op_Shape, 1, x);
    qn_value *first = apply(&f, &qn_op_Gather, 2, shape, ints(&f, DIMS(0), 1));
    qn_value *target = apply(&f, &qn_op_Concat, 2, first, ints(&f, DIMS(-1), 1));
    ((qn_concat_attrs *)target->producer->attrs)->axis = 0;
    check_pass(&f, apply(&f, &qn_op_Reshape, 2, x, target), "fold-constants", 1, &qn_op_Reshape);
}

/* The result of a dead node is memory for nothing. */
static void leaves_the_dead_unfolded(void **state)
{
    (void)state;
    fixture f = begin();
    int64_t changes[64];
    const qn_pass_options options = {.purpose = QN_PURPOSE_RUN};
    qn_value *y = apply(&f, &qn_op_Exp, 1, any_image(&f));
    apply(&f, &qn_op_Exp, 1, weights(&f, 2, DIMS(4, 4)));
    assert_int_equal(qn_graph_add_output(f.graph, y), QN_OK);
    assert_int_equal(qn_passes_run(f.model, &options, changes), QN_OK);
    assert_int_equal(changes[pass_index("fold-constants")], 0);
    assert_int_equal(count_op(f.graph, &qn_op_Exp), 1);
    qn_model_free(f.model);
    qn_context_free(f.ctx);
}

static void removes_identities(void **state)
{
    (void)state;
    fixture f = begin();
    qn_value *y = apply(&f, &qn_op_Identity, 1, apply(&f, &qn_op_Exp, 1, any_image(&f)));
    check_pass(&f, apply(&f, &qn_op_Mul, 2, y, number(&f, 1)), "remove-identities", 1, &qn_op_Exp);
}

/* The float behind 1 is not 1: nothing but decomposed functions is read to some precision. */
static void keeps_what_is_nearly_an_identity(void **state)
{
    (void)state;
    static const struct {
        const qn_op *op;
        double number;
    } cases[] = {{&qn_op_Mul, 1 + (double)FLT_EPSILON},
                 {&qn_op_Div, 1 - (double)FLT_EPSILON / 2},
                 {&qn_op_Add, (double)FLT_MIN}};
    for (size_t i = 0; i < QN_COUNT_OF(cases); i++) {
        fixture f = begin();
        int64_t changes[64];
        const qn_pass_options all = {.skip = NULL};
        qn_value *y = apply(&f, cases[i].op, 2, any_image(&f), number(&f, cases[i].number));
        assert_int_equal(qn_graph_add_output(f.graph, apply(&f, &qn_op_Exp, 1, y)), QN_OK);
        assert_int_equal(qn_passes_run(f.model, &all, changes), QN_OK);
        assert_int_equal(f.graph->n_nodes, 2);
        qn_model_free(f.model);
        qn_context_free(f.ctx);
    }
}

static void merges_common(void **state)
{
    (void)state;
    fixture f = begin();
    qn_value *x = any_image(&f), *a = apply(&f, &qn_op_Exp, 1, x), *b = apply(&f, &qn_op_Exp, 1, x);
    check_pass(&f, apply(&f, &qn_op_Add, 2, a, b), "merge-common", 2, &qn_op_Exp);
}

/* Equal constants make nodes equal; one attribute or number that differs keeps both. */
static void merges_what_is_equal_only(void **state)
{
    (void)state;
    fixture f = begin();
    qn_value *x = any_image(&f), *y = x;
    for (int i = 0; i < 6; i++) {
        qn_value *sum = apply(&f, &qn_op_Add, 2, x, number(&f, 1 + i % 3));
        qn_value *leaky = apply(&f, &qn_op_LeakyRelu, 1, sum);
        ((qn_activation_attrs *)leaky->producer->attrs)->alpha = i < 5 ? 0.1f : 0.2f;
        y = apply(&f, &qn_op_Mul, 2, y, leaky);
    }
    check_pass(&f, y, "merge-common", 3 + 4 + 6, NULL);
}

/* Time must not grow with the square of the nodes: of many that read one value, and of a long
 * chain. */
static void takes_many_nodes(void **state)
{
    enum { MANY = 20000, SECONDS = 4 };
    (void)state;
    fixture f = begin();
    const qn_pass_options all = {.skip = NULL};
    qn_value *x = any_image(&f), *chain = x, *product = x;
    for (int i = 0; i < MANY; i++) {
        qn_value *sum = apply(&f, &qn_op_Add, 2, x, number(&f, i + 1));
        product = apply(&f, &qn_op_Mul, 2, product, sum);
        chain = apply(&f, &qn_op_Sigmoid, 1, chain);
    }
    assert_int_equal(qn_graph_add_output(f.graph, product), QN_OK);
    assert_int_equal(qn_graph_add_output(f.graph, chain), QN_OK);
    const clock_t start = clock();
    assert_int_equal(qn_passes_run(f.model, &all, NULL), QN_OK);
    assert_true(clock() - start < SECONDS * CLOCKS_PER_SEC);
    assert_int_equal(f.graph->n_nodes, 3 * MANY);
    qn_model_free(f.model);
    qn_context_free(f.ctx);
}

static void removes_dead(void **state)
{
    (void)state;
    fixture f = begin();
    qn_value *x = any_image(&f);
    apply(&f, &qn_op_Sqrt, 1, apply(&f, &qn_op_Abs, 1, x));
    check_pass(&f, apply(&f, &qn_op_Exp, 1, x), "remove-dead", 1, &qn_op_Exp);
}

static void cancels_transposes(void **state)
{
    (void)state;
    fixture f = begin();
    const int64_t there[] = {0, 2, 3, 1}, back[] = {0, 3, 1, 2};
    qn_value *y = apply(&f, &qn_op_Transpose, 1, any_image(&f));
    assert_int_equal(
        qn_ints_copy(&((qn_transpose_attrs *)y->producer->attrs)->perm, f.graph, there, 4), QN_OK);
    y = apply(&f, &qn_op_Mul, 2, apply(&f, &qn_op_Exp, 1, y), number(&f, 2));
    y = apply(&f, &qn_op_Transpose, 1, y);
    assert_int_equal(
        qn_ints_copy(&((qn_transpose_attrs *)y->producer->attrs)->perm, f.graph, back, 4), QN_OK);
    check_pass(&f, y, "cancel-transposes", 2, &qn_op_Exp);
}

static void lowers_einsum(void **state)
{
    static const struct {
        const char *equation;
        /* Dims, 0 behind the last */
        int64_t a[4], b[4];
        size_t nodes;
    } rows[] = {{"bhid,bhjd->bhij", {2, 3, 4, 5}, {2, 3, 6, 5}, 5},
                {"bhij,bhjd->bihd", {2, 3, 4, 5}, {2, 3, 5, 6}, 5},
                {"nc,kcd->nkd", {3, 4}, {5, 4, 2}, 5},
                {"i,i->", {7}, {7}, 4},
                {"ab, cd -> dbca", {2, 3}, {4, 5}, 7}};
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(rows); i++) {
        fixture f = begin();
        int32_t ranks[2] = {0, 0};
        for (int d = 0; d < 4; d++) {
            ranks[0] += rows[i].a[d] > 0;
            ranks[1] += rows[i].b[d] > 0;
        }
        qn_value *a = input(&f, "a", ranks[0], rows[i].a), *b = input(&f, "b", ranks[1], rows[i].b);
        qn_value *y = apply(&f, &qn_op_Einsum, 2, a, b);
        ((qn_einsum_attrs *)y->producer->attrs)->equation = rows[i].equation;
        check_pass(&f, y, "einsum-to-matmul", rows[i].nodes, &qn_op_MatMul);
    }
}

static void refuses_an_unknown_name(void **state)
{
    (void)state;
    fixture f = begin();
    const char *name = "fold-everything";
    const qn_pass_options options = {.skip = &name, .n_skip = 1};
    assert_int_equal(qn_passes_run(f.model, &options, NULL), QN_E_INVALID);
    assert_non_null(strstr(qn_context_error(f.ctx), name));
    qn_model_free(f.model);
    qn_context_free(f.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folds_batchnorm_forward),
        cmocka_unit_test(folds_batchnorm_backward),
        cmocka_unit_test(keeps_batchnorm_before_a_border),
        cmocka_unit_test(folds_scales),
        cmocka_unit_test(makes_gemms_plain),
        cmocka_unit_test(folds_scales_for_files_only),
        cmocka_unit_test(folds_into_groups_and_transposed),
        cmocka_unit_test(fuses_pads),
        cmocka_unit_test(fuses_pads_into_max_pool),
        cmocka_unit_test(keeps_pads_that_count),
        cmocka_unit_test(folds_constants),
        cmocka_unit_test(leaves_the_dead_unfolded),
        cmocka_unit_test(removes_identities),
        cmocka_unit_test(keeps_what_is_nearly_an_identity),
        cmocka_unit_test(merges_common),
        cmocka_unit_test(merges_what_is_equal_only),
        cmocka_unit_test(takes_many_nodes),
        cmocka_unit_test(removes_dead),
        cmocka_unit_test(cancels_transposes),
        cmocka_unit_test(lowers_einsum),
        cmocka_unit_test(refuses_an_unknown_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
