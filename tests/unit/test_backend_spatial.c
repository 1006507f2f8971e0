/* GridSample and RoiAlign against the reference, with points and regions that lie outside or
 * nowhere. */
#include "int8_test.h"
#include "ops/grid_sample.h"
#include "ops/roi.h"

/* x with a few elements that are infinite or no number. */
static qn_value *spoiled(fixture *f, qn_value *x, int32_t rank, const int64_t *dims)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN};
    qn_tensor *t = constant_tensor(f, QN_FLOAT32, rank, dims);
    for (int64_t i = 0; i < qn_tensor_count(t); i++)
        ((float *)t->data)[i] = pick(f, 40) ? 0 : odd[pick(f, 3)];
    return apply(f, &qn_op_Add, x, constant_value(f, t));
}

/* Most inside, on a corner or between; some outside, far outside, or none at all. */
static qn_value *grid(fixture *f, int32_t rank, const int64_t *dims)
{
    static const float odd[] = {-1, 1, 0, 1.2f, -3, 100, -1e20f, INFINITY, NAN};
    qn_tensor *t = constant_tensor(f, QN_FLOAT32, rank, dims);
    const bool inside = pick(f, 2);
    for (int64_t i = 0; i < qn_tensor_count(t); i++)
        ((float *)t->data)[i] =
            inside || pick(f, 6) ? 0.7f * noise(f) : odd[pick(f, (int64_t)QN_COUNT_OF(odd))];
    return constant_value(f, t);
}

static double grid_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const int32_t rank = 3 + (int32_t)pick(&f, 3);
    int64_t x[5] = {1 + pick(&f, 2), 1 + pick(&f, 5)}, g[5] = {x[0]};
    for (int32_t d = 2; d < rank; d++) {
        x[d] = 1 + pick(&f, pick(&f, 2) ? 4 : 20);
        g[d - 1] = 1 + pick(&f, rank == 5 ? 6 : 30);
    }
    g[rank - 1] = rank - 2;
    qn_value *data = add_input(&f, rank, x);
    if (pick(&f, 3) == 0)
        data = spoiled(&f, data, rank, x);
    qn_value *const in[] = {data, grid(&f, rank, g)};
    qn_node *node = add_node(&f, &qn_op_GridSample, 2, in);
    qn_grid_attrs *a = node->attrs;
    a->mode = pick(&f, 3);
    a->padding_mode = pick(&f, 3);
    a->align_corners = pick(&f, 2);
    add_output(&f, result_of(node));
    const double worst = compare(&f, "grid sample");
    fixture_end(&f);
    return worst;
}

/* From x1, y1 to x2, y2; a few are empty, reversed or far outside. */
static qn_value *regions(fixture *f, int64_t count, int64_t height, int64_t width)
{
    const int64_t dims[] = {count, 4};
    qn_tensor *t = constant_tensor(f, QN_FLOAT32, 2, dims);
    float *roi = t->data;
    for (int64_t r = 0; r < count; r++, roi += 4) {
        for (int k = 0; k < 4; k++)
            roi[k] = (noise(f) + 0.5f) * (float)(k % 2 ? height : width);
        if (pick(f, 3) == 0) /* samples that lie on elements */
            for (int k = 0; k < 4; k++)
                roi[k] = rintf(roi[k]);
        if (pick(f, 8))
            for (int k = 0; k < 2; k++)
                roi[k + 2] = roi[k] + fabsf(roi[k + 2] - roi[k]);
    }
    return constant_value(f, t);
}

static double roi_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const int64_t x[] = {1 + pick(&f, 3), 1 + pick(&f, 6), 1 + pick(&f, 30), 1 + pick(&f, 30)};
    const int64_t count = 1 + pick(&f, 9);
    qn_value *data = add_input(&f, 4, x);
    if (pick(&f, 4) == 0)
        data = spoiled(&f, data, 4, x);
    qn_tensor *images = constant_tensor(&f, QN_INT64, 1, &count);
    for (int64_t r = 0; r < count; r++)
        ((int64_t *)images->data)[r] = pick(&f, x[0]);
    qn_value *const in[] = {data, regions(&f, count, x[2], x[3]), constant_value(&f, images)};
    qn_node *node = add_node(&f, &qn_op_RoiAlign, 3, in);
    qn_roi_attrs *a = node->attrs;
    a->mode = pick(&f, 2);
    a->coordinate_transformation_mode = pick(&f, 2);
    a->output_height = 1 + pick(&f, 8);
    a->output_width = 1 + pick(&f, 8);
    a->sampling_ratio = pick(&f, 4);
    a->spatial_scale = pick(&f, 2) ? 1 : 0.3f;
    add_output(&f, result_of(node));
    const double worst = compare(&f, "roi align");
    fixture_end(&f);
    return worst;
}

static void test_grid_sample(void **state)
{
    (void)state;
    run_cases(grid_case, 300, 1e-5);
}

static void test_roi_align(void **state)
{
    (void)state;
    run_cases(roi_case, 300, 1e-5);
}

/* Regions come as data: one of an image that is not there is an error, not a read outside. */
static void test_bad_regions(void **state)
{
    (void)state;
    static const struct {
        int64_t image;
        float right;
        const char *message;
    } cases[] = {{2, 3, "region 0 is of image 2, there are 2"},
                 {-1, 3, "region 0 is of image -1"},
                 {1, 1e30f, "region 0 is too large"},
                 {1, 3, NULL}};
    static float x[2 * 1 * 4 * 4];
    const int64_t dims[] = {2, 1, 4, 4}, roi_dims[] = {1, 4}, one = 1;
    fixture f = fixture_begin(1);
    qn_value *const in[] = {add_input(&f, 4, dims), add_input(&f, 2, roi_dims),
                            add_input(&f, 1, &one)};
    in[2]->type.dtype = QN_INT64;
    add_output(&f, result_of(add_node(&f, &qn_op_RoiAlign, 3, in)));
    qn_plan_options options = QN_PLAN_OPTIONS_INIT;
    qn_plan *plan;
    qn_session *session;
    assert_int_equal(qn_plan_create(&plan, f.ctx, f.model, &options), QN_OK);
    assert_int_equal(qn_session_create(&session, f.ctx, plan), QN_OK);
    must_use(plan, "roi align");
    for (size_t i = 0; i < QN_COUNT_OF(cases); i++) {
        float roi[] = {0, 0, cases[i].right, 3};
        int64_t image = cases[i].image;
        const qn_tensor fed[] = {{.dtype = QN_FLOAT32, .rank = 4, .dims = {2, 1, 4, 4}, .data = x},
                                 {.dtype = QN_FLOAT32, .rank = 2, .dims = {1, 4}, .data = roi},
                                 {.dtype = QN_INT64, .rank = 1, .dims = {1}, .data = &image}};
        const qn_status status = qn_session_run(session, fed, 3);
        assert_int_equal(status, cases[i].message ? QN_E_INVALID : QN_OK);
        if (cases[i].message)
            assert_non_null(strstr(qn_context_error(f.ctx), cases[i].message));
    }
    qn_session_free(session);
    qn_plan_free(plan);
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_grid_sample),
                                       cmocka_unit_test(test_roi_align),
                                       cmocka_unit_test(test_bad_regions)};
    return RUN_TESTS_OF("cpu", tests);
}
