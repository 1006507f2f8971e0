/* Reductions, normalizations by a group's own numbers, ArgMax and ArgMin, IsNaN and IsInf: against
 * the reference, over all sets of axes, with infinities and what is no number, and with the same
 * bits for any number of threads. */
#include "backend_test.h"

/* ---- Inputs ---------------------------------------------------------------------------------- */

static int64_t random_dims(fixture *f, int64_t *dims, int32_t rank)
{
    int64_t count = 1;
    for (int32_t d = 0; d < rank; d++) {
        const int64_t most = pick(f, 4) == 0 ? 100 : 9;
        dims[d] = QN_MIN(1 + pick(f, most), QN_MAX(100000 / count, 1));
        count *= dims[d];
    }
    return count;
}

/* Numbers of [-1, 1]; `odd` in a thousand are infinite or no number. Few different ones where
 * `coarse`. */
static qn_tensor random_input(fixture *f, const qn_value *x, int64_t odd, bool coarse)
{
    static const float strange[] = {INFINITY, -INFINITY, NAN};
    qn_tensor in = {.dtype = QN_FLOAT32, .rank = x->type.rank};
    assert_true(qn_type_is_static(&x->type, in.dims));
    float *data = malloc((size_t)qn_tensor_count(&in) * sizeof *data + 1);
    assert_non_null(data);
    for (int64_t i = 0; i < qn_tensor_count(&in); i++) {
        data[i] = coarse ? (float)pick(f, 5) - 2 : noise(f);
        if (pick(f, 1000) < odd)
            data[i] = strange[pick(f, 3)];
    }
    in.data = data;
    return in;
}

/* Floats: as close as `tolerance` parts of the largest; infinite ones and others bit by bit. */
static void must_agree(const qn_tensor *got, const qn_tensor *wanted, double tolerance)
{
    const int64_t count = qn_tensor_count(wanted);
    double most = 1e-30;
    assert_int_equal(qn_tensor_count(got), count);
    if (wanted->dtype != QN_FLOAT32) {
        assert_memory_equal(got->data, wanted->data, (size_t)count * qn_dtype_size(wanted->dtype));
        return;
    }
    const float *a = got->data, *b = wanted->data;
    for (int64_t i = 0; i < count; i++)
        most = isfinite(b[i]) ? fmax(most, fabs((double)b[i])) : most;
    for (int64_t i = 0; i < count; i++) {
        const bool same = isnan(b[i]) ? isnan(a[i]) : a[i] == b[i];
        if (!same && !(fabs((double)a[i] - (double)b[i]) <= tolerance * most))
            fail_msg("element %d is %g instead of %g", (int)i, (double)a[i], (double)b[i]);
    }
}

/* The graph's outputs by the reference and by users' kernels, of which one has this name. */
static void check(fixture *f, const char *kernel, qn_tensor in, double tolerance)
{
    outcome plain = run_with(f, "ref", &in, 1), fast = run_with(f, NULL, &in, 1);
    must_use(fast.plan, kernel);
    must_agree(qn_session_output(fast.session, 0), qn_session_output(plain.session, 0), tolerance);
    outcome_end(&plain);
    outcome_end(&fast);
    free(in.data);
}

/* ---- Reductions ------------------------------------------------------------------------------ */

static const qn_op *const reductions[] = {
    &qn_op_ReduceL1,  &qn_op_ReduceL2,       &qn_op_ReduceLogSum, &qn_op_ReduceLogSumExp,
    &qn_op_ReduceMax, &qn_op_ReduceMean,     &qn_op_ReduceMin,    &qn_op_ReduceProd,
    &qn_op_ReduceSum, &qn_op_ReduceSumSquare};
enum { REDUCTIONS = (int)QN_COUNT_OF(reductions) };

static qn_value *reduce(fixture *f, const qn_op *op, qn_value *x, int64_t set)
{
    int64_t axes[QN_MAX_RANK];
    size_t count = 0;
    for (int32_t d = 0; d < x->type.rank; d++) {
        if (set & (int64_t)1 << d)
            axes[count++] = pick(f, 2) ? d : d - x->type.rank;
    }
    qn_value *const in[] = {x, add_ints(f, axes, count)};
    qn_node *node = add_node(f, op, 2, in);
    qn_reduce_attrs *a = node->attrs;
    a->keepdims = pick(f, 2);
    a->noop_with_empty_axes = count == 0 && pick(f, 2);
    return result_of(node);
}

static double reduce_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    int64_t dims[5];
    const int32_t rank = 1 + (int32_t)pick(&f, 5);
    random_dims(&f, dims, rank);
    qn_value *x = add_input(&f, rank, dims);
    add_output(&f, reduce(&f, reductions[seed % REDUCTIONS], x, pick(&f, (int64_t)1 << rank)));
    check(&f, "reduce", random_input(&f, x, pick(&f, 3) ? 0 : 20, false), 1e-6);
    fixture_end(&f);
    return 0;
}

static void test_reduces(void **state)
{
    (void)state;
    run_cases(reduce_case, 600, 0);
}

/* Long groups that threads share: one number of all, a few rows, columns, and both at once. */
static const struct {
    int64_t dims[3], set;
} long_shapes[] = {{{1, 1, 300001}, 7}, {{3, 1, 70001}, 4}, {{1, 30001, 19}, 2},
                   {{40, 3, 5003}, 5},  {{2, 70001, 2}, 2}, {{1, 9001, 65}, 3}};

static void test_long_groups(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < QN_COUNT_OF(long_shapes) * REDUCTIONS; i++) {
        fixture f = fixture_begin(i);
        qn_value *x = add_input(&f, 3, long_shapes[i / REDUCTIONS].dims);
        add_output(&f, reduce(&f, reductions[i % REDUCTIONS], x, long_shapes[i / REDUCTIONS].set));
        check(&f, "reduce", random_input(&f, x, 0, false), 1e-6);
        fixture_end(&f);
    }
}

/* Sums that floats would lose: a large number and many small ones, and squares beyond what a float
 * holds. */
static void test_exact(void **state)
{
    static const struct {
        const qn_op *op;
        float first, others, result;
    } rows[] = {{&qn_op_ReduceSum, 1e8f, 1, 100999999.0f}, {&qn_op_ReduceL2, 3e30f, 0, 3e30f}};
    enum { COUNT = 1000000 };
    const int64_t dims[] = {1, COUNT};
    (void)state;
    for (size_t r = 0; r < QN_COUNT_OF(rows); r++) {
        fixture f = fixture_begin(2);
        qn_value *x = add_input(&f, 2, dims);
        add_output(&f, reduce(&f, rows[r].op, x, 2));
        qn_tensor in = random_input(&f, x, 0, false);
        for (int64_t i = 0; i < COUNT; i++)
            ((float *)in.data)[i] = i ? rows[r].others : rows[r].first;
        outcome fast = run_with(&f, NULL, &in, 1);
        const float got = *(const float *)qn_session_output(fast.session, 0)->data;
        assert_float_equal(got, rows[r].result, 0);
        outcome_end(&fast);
        free(in.data);
        fixture_end(&f);
    }
}

/* ---- Normalizations -------------------------------------------------------------------------- */

static double channel_norm_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const int64_t groups = 1 + pick(&f, 5), each = 1 + pick(&f, 4), channels = groups * each;
    const int64_t side = pick(&f, 5) == 0 ? 200 : 1 + pick(&f, 20);
    const int64_t dims[] = {1 + pick(&f, 3), channels, side, 1 + pick(&f, 20)};
    const bool grouped = pick(&f, 2);
    qn_value *x = add_input(&f, 2 + (int32_t)pick(&f, 3), dims);
    qn_value *const in[] = {x, add_weights(&f, 1, &channels), add_weights(&f, 1, &channels)};
    qn_node *node =
        add_node(&f, grouped ? &qn_op_GroupNormalization : &qn_op_InstanceNormalization, 3, in);
    ((qn_norm_attrs *)node->attrs)->num_groups = groups;
    ((qn_norm_attrs *)node->attrs)->stash_type = QN_FLOAT32;
    ((qn_norm_attrs *)node->attrs)->epsilon = 1e-3f;
    add_output(&f, result_of(node));
    qn_tensor data = random_input(&f, x, pick(&f, 4) ? 0 : 1, false);
    const bool single = qn_tensor_count(&data) == dims[0] * (grouped ? groups : channels);
    check(&f, single ? NULL : "norm", data, 1e-5);
    fixture_end(&f);
    return 0;
}

/* One group of many elements, far from 0. */
static void test_one_group(void **state)
{
    const int64_t dims[] = {1, 4, 150, 301}, channels = 4;
    fixture f = fixture_begin(2);
    (void)state;
    qn_value *x = add_input(&f, 4, dims);
    qn_value *const in[] = {x, add_weights(&f, 1, &channels), add_weights(&f, 1, &channels)};
    qn_node *node = add_node(&f, &qn_op_GroupNormalization, 3, in);
    ((qn_norm_attrs *)node->attrs)->num_groups = 1;
    ((qn_norm_attrs *)node->attrs)->stash_type = QN_FLOAT32;
    add_output(&f, result_of(node));
    qn_tensor data = random_input(&f, x, 0, false);
    for (int64_t i = 0; i < qn_tensor_count(&data); i++)
        ((float *)data.data)[i] += 300;
    check(&f, "norm", data, 3e-5);
    fixture_end(&f);
}

static double axis_norm_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    int64_t dims[4], axes[4];
    const int32_t rank = 1 + (int32_t)pick(&f, 4);
    size_t count = 0;
    random_dims(&f, dims, rank);
    qn_value *x = add_input(&f, rank, dims);
    qn_node *node;
    if (pick(&f, 2)) {
        node = add_node(&f, &qn_op_LpNormalization, 1, &x);
        ((qn_lp_attrs *)node->attrs)->p = 1 + pick(&f, 2);
        ((qn_lp_attrs *)node->attrs)->axis = pick(&f, 2 * rank) - rank;
    } else {
        node = add_node(&f, &qn_op_MeanVarianceNormalization, 1, &x);
        for (int32_t d = 0; d < rank; d++) {
            axes[count] = d;
            count += (size_t)pick(&f, 2);
        }
        axes[0] = count ? axes[0] : rank - 1;
        ((qn_mvn_attrs *)node->attrs)->axes = keep_ints(&f, axes, QN_MAX(count, 1));
    }
    add_output(&f, result_of(node));
    check(&f, "norm", random_input(&f, x, 0, false), 1e-5);
    fixture_end(&f);
    return 0;
}

static double log_softmax_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    int64_t dims[4];
    const int32_t rank = 1 + (int32_t)pick(&f, 4);
    random_dims(&f, dims, rank);
    qn_value *x = add_input(&f, rank, dims);
    qn_node *node = add_node(&f, &qn_op_LogSoftmax, 1, &x);
    ((qn_softmax_attrs *)node->attrs)->axis = pick(&f, 2 * rank) - rank;
    add_output(&f, result_of(node));
    qn_tensor in = random_input(&f, x, pick(&f, 4) ? 0 : 20, false);
    for (int64_t i = 0; seed % 2 && i < qn_tensor_count(&in); i++)
        ((float *)in.data)[i] *= 300;
    check(&f, "norm", in, 1e-6);
    fixture_end(&f);
    return 0;
}

/* Rows that are scaled element by element, their mean kept. */
static double rms_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const int64_t dims[] = {1 + pick(&f, 5), 1 + pick(&f, 9), 1 + pick(&f, 99)};
    const int32_t axis = (int32_t)pick(&f, 3);
    qn_value *x = add_input(&f, 3, dims);
    qn_value *const in[] = {x, add_weights(&f, 3 - axis, dims + axis)};
    qn_node *node = add_node(&f, &qn_op_RMSNormalization, 2, in);
    qn_norm_attrs *a = node->attrs;
    *a = (qn_norm_attrs){.epsilon = 1e-5f, .axis = axis, .stash_type = QN_FLOAT32};
    add_output(&f, result_of(node));
    check(&f, "layer norm", random_input(&f, x, 0, false), 1e-5);
    fixture_end(&f);
    return 0;
}

/* A scale with as many numbers as a row, but one for each row. */
static void test_scale_by_row(void **state)
{
    const int64_t dims[] = {6, 6}, column[] = {6, 1};
    fixture f = fixture_begin(1);
    (void)state;
    qn_value *x = add_input(&f, 2, dims);
    add_output(&f, apply(&f, &qn_op_LayerNormalization, x, add_weights(&f, 2, column)));
    check(&f, NULL, random_input(&f, x, 0, false), 1e-5);
    fixture_end(&f);
}

/* Rows of one number, and rows far from 0 beside what they differ by: their mean must not be
 * rounded away. */
static void test_flat_rows(void **state)
{
    enum { LENGTH = 771 };
    const int64_t dims[] = {4, LENGTH}, row[] = {LENGTH};
    const float centres[] = {3.1f, -1000.1f, 10.3f, 500.7f};
    fixture f = fixture_begin(1);
    (void)state;
    qn_value *x = add_input(&f, 2, dims);
    add_output(&f, apply(&f, &qn_op_LayerNormalization, x, add_weights(&f, 1, row)));
    qn_tensor in = random_input(&f, x, 0, false);
    float *at = in.data;
    for (int64_t i = 0; i < 4 * LENGTH; i++)
        at[i] = centres[i / LENGTH] + (i < 2 * LENGTH ? 0 : at[i] / 256);
    check(&f, "layer norm", in, 1e-5);
    fixture_end(&f);
}

static void test_zeros(void **state)
{
    const int64_t dims[] = {3, 20};
    fixture f = fixture_begin(1);
    (void)state;
    qn_value *x = add_input(&f, 2, dims);
    add_output(&f, apply(&f, &qn_op_LpNormalization, x, NULL));
    qn_tensor in = random_input(&f, x, 0, false);
    memset(in.data, 0, 40 * sizeof(float));
    check(&f, "norm", in, 1e-6);
    fixture_end(&f);
}

static void test_norms(void **state)
{
    (void)state;
    run_cases(channel_norm_case, 200, 0);
    run_cases(axis_norm_case, 200, 0);
    run_cases(rms_case, 60, 0);
    run_cases(log_softmax_case, 100, 0);
}

/* ---- Arguments and predicates ---------------------------------------------------------------- */

static double arg_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    int64_t dims[4];
    const int32_t rank = 1 + (int32_t)pick(&f, 4);
    random_dims(&f, dims, rank);
    qn_value *x = add_input(&f, rank, dims);
    qn_node *node = add_node(&f, pick(&f, 2) ? &qn_op_ArgMax : &qn_op_ArgMin, 1, &x);
    qn_arg_attrs *a = node->attrs;
    a->axis = pick(&f, 2 * rank) - rank;
    a->keepdims = pick(&f, 2);
    a->select_last_index = pick(&f, 2);
    add_output(&f, result_of(node));
    check(&f, "arg", random_input(&f, x, pick(&f, 2) ? 0 : 50, pick(&f, 2)), 0);
    fixture_end(&f);
    return 0;
}

static void test_args(void **state)
{
    (void)state;
    run_cases(arg_case, 400, 0);
}

static void test_predicates(void **state)
{
    const int64_t dims[] = {7, 333};
    (void)state;
    for (uint32_t i = 0; i < 4; i++) { /* IsNaN, and IsInf of each sign and of both */
        fixture f = fixture_begin(i);
        qn_value *x = add_input(&f, 2, dims);
        qn_node *node = add_node(&f, i ? &qn_op_IsInf : &qn_op_IsNaN, 1, &x);
        if (i) {
            ((qn_isinf_attrs *)node->attrs)->detect_negative = i & 1;
            ((qn_isinf_attrs *)node->attrs)->detect_positive = i >> 1;
        }
        add_output(&f, result_of(node));
        check(&f, "cast", random_input(&f, x, 300, false), 0);
        fixture_end(&f);
    }
}

/* ---- Threads --------------------------------------------------------------------------------- */

/* The bits of a sum and of a norm, by 1 + seed % 3 threads. */
static void run_threads(float *out, uint32_t seed, int64_t set, const qn_op *op)
{
    const int64_t dims[] = {3, 5, 20011};
    fixture f = fixture_begin(seed);
    f.state = 1;
    qn_value *x = add_input(&f, 3, dims);
    add_output(&f, op ? reduce(&f, op, x, set) : apply(&f, &qn_op_LpNormalization, x, NULL));
    qn_tensor in = random_input(&f, x, 0, false);
    outcome fast = run_with(&f, NULL, &in, 1);
    const qn_tensor *y = qn_session_output(fast.session, 0);
    memcpy(out, y->data, (size_t)QN_MIN(qn_tensor_count(y), 20011 * 5) * sizeof *out);
    outcome_end(&fast);
    free(in.data);
    fixture_end(&f);
}

static void test_threads(void **state)
{
    static float one[20011 * 5], more[20011 * 5];
    (void)state;
    for (int64_t set = 0; set < 8; set++) {
        run_threads(one, 0, set, set ? &qn_op_ReduceSum : NULL);
        for (uint32_t seed = 1; seed < 3; seed++) {
            memcpy(more, one, sizeof one);
            run_threads(more, seed, set, set ? &qn_op_ReduceSum : NULL);
            assert_memory_equal(one, more, sizeof one);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reduces),   cmocka_unit_test(test_long_groups),
        cmocka_unit_test(test_exact),     cmocka_unit_test(test_norms),
        cmocka_unit_test(test_one_group), cmocka_unit_test(test_flat_rows),
        cmocka_unit_test(test_zeros),     cmocka_unit_test(test_scale_by_row),
        cmocka_unit_test(test_args),      cmocka_unit_test(test_predicates),
        cmocka_unit_test(test_threads)};
    return RUN_TESTS_OF("cpu", tests);
}
