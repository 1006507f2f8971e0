/* Forms of outputs to boxes, suppression, boxes back in the picture. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "task/box_layouts.h"

typedef struct fixture {
    qn_context *ctx;
    qn_detect_options options;
    qn_box_decoder reading;
    qn_boxes boxes;
    qn_task_output outputs[6];
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    assert_int_equal(qn_context_create(&f->ctx, NULL), QN_OK);
    f->options = (qn_detect_options)QN_DETECT_OPTIONS_INIT;
    f->reading = (qn_box_decoder){
        .ctx = f->ctx, .options = &f->options, .outputs = f->outputs, .width = 64, .height = 32};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    qn_box_decoder_free(&f->reading);
    qn_boxes_free(&f->boxes, f->ctx);
    qn_context_free(f->ctx);
    free(f);
    return 0;
}

static void add_output(fixture *f, float *data, int32_t rank, const int64_t *dims)
{
    qn_task_output *out = &f->outputs[f->reading.n_outputs++];
    *out = (qn_task_output){.name = "y", .tensor = {.dtype = QN_FLOAT32, .rank = rank}};
    memcpy(out->tensor.dims, dims, (size_t)rank * sizeof *dims);
    out->tensor.data = data;
}

static void decode(fixture *f, const char *form)
{
    const qn_status status = qn_box_decoder_decode(&f->boxes, &f->reading);
    if (status != QN_OK)
        fail_msg("%s", qn_context_error(f->ctx));
    assert_string_equal(f->reading.layout->name, form);
}

static void expect_box(const fixture *f, size_t i, const double want[6])
{
    const qn_box *b = &f->boxes.at[i];
    const double got[6] = {b->x0, b->y0, b->x1, b->y1, b->score, b->kind};
    assert_true(i < f->boxes.count);
    for (int k = 0; k < 6; k++) {
        if (fabs(got[k] - want[k]) > 1e-5)
            fail_msg("box %zu, number %d: %g, not %g", i, k, got[k], want[k]);
    }
}

/* ---- Forms ----------------------------------------------------------------------------------- */

static void yolov8(void **state)
{
    fixture *f = *state;
    /* 2 classes, 7 boxes. Not a number and infinity are passed over. */
    float y[6][7] = {{10, 20, NAN, 5},
                     {8, 9, 1, 5},
                     {4, INFINITY, 2, 2},
                     {6, 2, 2, -1},
                     {0.9F, 0.8F, 0.7F, 0.6F, NAN},
                     {0.5F, 0, 0, 0, 0.0005F}};
    add_output(f, &y[0][0], 3, (int64_t[]){1, 6, 7});
    decode(f, "yolov8");
    assert_int_equal(f->reading.classes, 2);
    assert_int_equal(f->boxes.count, 2);
    expect_box(f, 0, (double[]){8, 5, 12, 11, 0.9F, 0});
    expect_box(f, 1, (double[]){8, 5, 12, 11, 0.5F, 1});
    /* The other way round, which the number of classes tells. */
    float turned[7][6] = {{10, 8, 4, 6, 0.9F, 0}};
    f->outputs[0].tensor = (qn_tensor){QN_FLOAT32, 3, {1, 7, 6}, turned};
    f->reading.layout = NULL;
    f->options.classes = 2;
    decode(f, "yolov8");
    assert_int_equal(f->boxes.count, 1);
}

enum { CELLS = 8 * 4 + 4 * 2 + 2 * 1 };

static void yolox(void **state)
{
    fixture *f = *state;
    static float y[CELLS][7];
    for (int i = 0; i < CELLS; i++)
        y[i][0] = y[i][1] = 0.4F;
    /* Cell (3, 1) of stride 16. */
    const float box[7] = {0.5F, 0.25F, 0, 0.6931472F, 0.5F, 0.2F, 0.8F};
    memcpy(y[8 * 4 + 1 * 4 + 3], box, sizeof box);
    add_output(f, &y[0][0], 3, (int64_t[]){1, CELLS, 7});
    decode(f, "yolox");
    assert_int_equal(f->boxes.count, 2);
    expect_box(f, 1, (double[]){56 - 8, 20 - 16, 56 + 8, 20 + 16, 0.4, 1});
}

static void rows(void **state)
{
    fixture *f = *state;
    static float y[CELLS][7];
    /* As many as YOLOX has cells, but in pixels: the values tell. */
    for (int i = 0, s = 8; s <= 32; s *= 2) {
        for (int k = 0; k < (64 / s) * (32 / s); k++, i++) {
            y[i][0] = (float)(s * (k % (64 / s)) + s / 2);
            y[i][1] = (float)(s * (k / (64 / s)) + s / 2);
        }
    }
    const float box[7] = {30, 20, 10, 4, 0.5F, 0.2F, 0.0001F};
    memcpy(y[17], box, sizeof box);
    add_output(f, &y[0][0], 3, (int64_t[]){1, CELLS, 7});
    decode(f, "rows");
    assert_int_equal(f->boxes.count, 1);
    expect_box(f, 0, (double[]){25, 18, 35, 22, 0.1, 0});
}

static void boxes(void **state)
{
    fixture *f = *state;
    float y[8][6] = {{1, 2, 3, 4, 0.9F, 7}, {1, 2, 3, 4, 0.8F, -1}, {4, 2, 3, 4, 0.9F, 7}};
    add_output(f, &y[0][0], 3, (int64_t[]){1, 8, 6});
    decode(f, "boxes");
    assert_int_equal(f->boxes.count, 1);
    expect_box(f, 0, (double[]){1, 2, 3, 4, 0.9F, 7});
}

/* Two grids, two anchors each, one class; the coarse one comes first and has the last anchors. */
static void heads(void **state)
{
    static const double anchors[] = {10, 12, 16, 30, 30, 60, 60, 90};
    fixture *f = *state;
    static float coarse[2 * 6 * 1 * 2], fine[2][2][4][6];
    for (size_t i = 0; i < 24; i++)
        coarse[i] = -20;
    for (size_t i = 0; i < 96; i++)
        (&fine[0][0][0][0])[i] = -20;
    /* Planes of anchor 1 at cell (1, 0); 0 is a sigmoid of a half. */
    for (size_t k = 0; k < 6; k++)
        coarse[(6 + k) * 2 + 1] = 0;
    for (size_t k = 0; k < 6; k++)
        fine[0][1][2][k] = 0;
    add_output(f, coarse, 4, (int64_t[]){1, 12, 1, 2});
    add_output(f, &fine[0][0][0][0], 5, (int64_t[]){1, 2, 2, 4, 6});
    /* Without anchors there is no such form. */
    assert_int_equal(qn_box_decoder_decode(&f->boxes, &f->reading), QN_E_UNSUPPORTED);
    assert_non_null(strstr(qn_context_error(f->ctx), "float32[1,12,1,2], float32[1,2,2,4,6]"));
    assert_non_null(strstr(qn_context_error(f->ctx), "with anchors"));
    f->options.anchors = anchors;
    f->options.n_anchors = 8;
    decode(f, "yolov5-heads");
    assert_int_equal(f->boxes.count, 2);
    expect_box(f, 0, (double[]){40 - 5, 24 - 6, 40 + 5, 24 + 6, 0.25, 0});
    expect_box(f, 1, (double[]){48 - 30, 16 - 45, 48 + 30, 16 + 45, 0.25, 0});
    f->reading.layout = NULL;
    f->options.form = "yolov3-heads";
    fine[0][1][2][2] = 0.6931472F;
    decode(f, "yolov3-heads");
    expect_box(f, 0, (double[]){40 - 10, 24 - 6, 40 + 10, 24 + 6, 0.25, 0});
}

/* Three grids of an input of 64 x 32 with two classes and distances of 3 bins: the scores of all
 * first, as NanoDet's files have them, or raw ones behind their distances. */
static void nanodet(void **state)
{
    fixture *f = *state;
    static float scores[3][32][2], distances[3][32][12];
    static const int64_t cells[3] = {32, 8, 2};
    /* Cell (1, 1) of the middle grid: its middle is at 24, 24. The first bin has all of the left
     * distance, the last one that of the top; right and bottom are 1, the mean of equal bins. */
    scores[1][5][1] = 0.75F;
    distances[1][5][0] = 50;
    distances[1][5][3 + 2] = 50;
    for (size_t i = 0; i < 3; i++)
        add_output(f, &scores[i][0][0], 3, (int64_t[]){1, cells[i], 2});
    for (size_t i = 0; i < 3; i++)
        add_output(f, &distances[i][0][0], 3, (int64_t[]){1, cells[i], 12});
    decode(f, "nanodet");
    assert_int_equal(f->boxes.count, 1);
    expect_box(f, 0, (double[]){24, 24 - 32, 24 + 16, 24 + 16, 0.75, 1});
    f->reading.layout = NULL;
    f->reading.n_outputs = 0;
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < 64; k++)
            scores[i][k / 2][k % 2] = -20;
        add_output(f, &distances[i][0][0], 3, (int64_t[]){1, cells[i], 12});
        add_output(f, &scores[i][0][0], 3, (int64_t[]){1, cells[i], 2});
    }
    scores[1][5][1] = 0;
    decode(f, "nanodet");
    assert_int_equal(f->boxes.count, 1);
    expect_box(f, 0, (double[]){24, 24 - 32, 24 + 16, 24 + 16, 0.5, 1});
}

static void refusals(void **state)
{
    fixture *f = *state;
    static float y[1000];
    static const struct {
        int32_t rank;
        int64_t dims[5], nc;
    } cases[] = {
        {2, {1, 1000}, 0},   {3, {1, 0, 0}, 0},     {3, {1, 4, 250}, 0},
        {3, {1, 200, 5}, 0}, {3, {2, 6, 50}, 0},    {4, {1, 10, 10, 10}, 0},
        {0, {0}, 0},         {3, {1, 10, 100}, 80}, {3, {1, 100, 10}, 80},
    };
    for (size_t i = 0; i < QN_COUNT_OF(cases); i++) {
        f->reading.n_outputs = 0;
        f->options.classes = cases[i].nc;
        add_output(f, y, cases[i].rank, cases[i].dims);
        assert_int_equal(qn_box_decoder_decode(&f->boxes, &f->reading), QN_E_UNSUPPORTED);
        assert_non_null(strstr(qn_context_error(f->ctx), "yolov8 [1,4+nc,N]"));
    }
    f->reading.n_outputs = 0;
    assert_int_equal(qn_box_decoder_decode(&f->boxes, &f->reading), QN_E_UNSUPPORTED);
    f->reading.width = 0;
    assert_int_equal(qn_box_decoder_decode(&f->boxes, &f->reading), QN_E_UNSUPPORTED);
}

/* ---- Boxes ----------------------------------------------------------------------------------- */

static void add(fixture *f, double x, double score, int32_t kind)
{
    const qn_box box = {.x0 = x, .y0 = 0, .x1 = x + 10, .y1 = 10, .score = score, .kind = kind};
    assert_int_equal(qn_boxes_add(&f->boxes, f->ctx, &box), QN_OK);
}

static void suppression(void **state)
{
    fixture *f = *state;
    add(f, 0, 0.5, 0);
    add(f, 1, 0.5, 0); /* as good as the first, and later */
    add(f, 1, 0.9, 1); /* another class */
    add(f, 5, 0.7, 0); /* a third of the first */
    add(f, 40, 0.1, 0);
    assert_int_equal(qn_boxes_suppress(&f->boxes, f->ctx, 0.6, 300), QN_OK);
    assert_int_equal(f->boxes.count, 4);
    expect_box(f, 0, (double[]){1, 0, 11, 10, 0.9, 1});
    expect_box(f, 1, (double[]){5, 0, 15, 10, 0.7, 0});
    expect_box(f, 2, (double[]){0, 0, 10, 10, 0.5, 0});
    assert_int_equal(qn_boxes_suppress(&f->boxes, f->ctx, 0.3, 2), QN_OK);
    assert_int_equal(f->boxes.count, 2);
}

/* Far more candidates than are looked at, of many classes: the best are kept, in time. */
static void many(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 3 * QN_CANDIDATES_MAX; i++)
        add(f, (double)(i % 977), 0.5 + i * 1e-6, i % 7);
    assert_int_equal(qn_boxes_suppress(&f->boxes, f->ctx, 0.5, 300), QN_OK);
    assert_int_equal(f->boxes.count, 300);
    for (size_t i = 1; i < f->boxes.count; i++)
        assert_true(f->boxes.at[i - 1].score >= f->boxes.at[i].score);
    assert_true(f->boxes.at[0].score == 0.5 + (3 * QN_CANDIDATES_MAX - 1) * 1e-6);
}

static void back(void **state)
{
    fixture *f = *state;
    const qn_picture_place place = {.width = 100,
                                    .height = 50,
                                    .input_width = 64,
                                    .input_height = 64,
                                    .scale_x = 0.64,
                                    .scale_y = 0.64,
                                    .top = 16};
    const qn_box box = {.x0 = -5, .y0 = 22.4, .x1 = 32, .y1 = 63};
    assert_int_equal(qn_boxes_add(&f->boxes, f->ctx, &box), QN_OK);
    qn_boxes_to_picture(&f->boxes, &place);
    expect_box(f, 0, (double[]){0, 10, 50, 50, 0, 0});
    /* What is no box is not taken. */
    const qn_box bad[] = {{.x0 = NAN}, {.x1 = INFINITY}, {.x0 = 2, .x1 = 1}, {.y0 = -1e10}};
    for (size_t i = 0; i < QN_COUNT_OF(bad); i++)
        assert_int_equal(qn_boxes_add(&f->boxes, f->ctx, &bad[i]), QN_OK);
    assert_int_equal(f->boxes.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(yolov8, set_up, tear_down),
        cmocka_unit_test_setup_teardown(yolox, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(boxes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(heads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nanodet, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refusals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(suppression, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many, set_up, tear_down),
        cmocka_unit_test_setup_teardown(back, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
