/* Label files, and the task of detection from outputs to numbers and drawn pictures; memory that
 * runs out at every single allocation. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/map.h"
#include "fault.h"
#include "files_test.h"
#include "task/average_precision.h"
#include "task/box_labels.h"
#include "task/task.h"

static const qn_picture_place place = {.width = 200, .height = 100};

/* ---- Files ----------------------------------------------------------------------------------- */

/* A grey BMP of 32 x 32. */
static void write_picture(const char *name)
{
    static uint8_t file[54 + 32 * 32 * 3] = {
        'B', 'M', [10] = 54, [14] = 40, [18] = 32, [22] = 32, [26] = 1, [28] = 24};
    memset(file + 54, 90, sizeof file - 54);
    write_file(name, file, sizeof file);
}

static const char coco[] =
    "{\"images\":[{\"id\":9,\"file_name\":\"a.bmp\"},{\"id\":4,\"file_name\":\"in/b.bmp\"}],"
    "\"categories\":[{\"id\":70,\"name\":\"cat\"},{\"id\":3,\"name\":\"dog\"}],"
    "\"annotations\":[{\"image_id\":9,\"category_id\":70,\"bbox\":[2,4,16,8],\"iscrowd\":0},"
    "{\"image_id\":4,\"category_id\":3,\"bbox\":[0,0,5.5,5],\"iscrowd\":1},"
    "{\"image_id\":9,\"category_id\":3,\"bbox\":[1,1,2,2]}]}";

static int make_files(void **state)
{
    (void)state;
    assert_int_equal(folder_make("boxes"), 0);
    assert_int_equal(mkdir(in_folder("pictures"), 0700), 0);
    assert_int_equal(mkdir(in_folder("labels"), 0700), 0);
    assert_int_equal(mkdir(in_folder("json"), 0700), 0);
    write_picture("pictures/a.bmp");
    write_picture("pictures/b.bmp");
    write_text("labels/a.txt", "0 0.25 0.25 0.25 0.25\n");
    write_text("json/coco.json", coco);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    return folder_remove();
}

/* ---- Labels ---------------------------------------------------------------------------------- */

static void expect_box(const qn_box *box, int32_t kind, const double want[4])
{
    const double got[4] = {box->x0, box->y0, box->x1, box->y1};
    assert_int_equal(box->kind, kind);
    for (int i = 0; i < 4; i++)
        assert_true(fabs(got[i] - want[i]) < 1e-4);
}

static void yolo_files(void **state)
{
    qn_context *ctx;
    qn_boxes boxes = {.at = NULL}, again = {.at = NULL};
    (void)state;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    write_text("good", "# made by hand\n\n3 0.5 0.5 0.1 0.2\r\n\t0 .25 .25 .5 .5 0.875\n"
                       "1 0.1 0.2 0.3 0.1 0.2 0.6");
    assert_int_equal(qn_yolo_read(&boxes, ctx, in_folder("good"), &place), QN_OK);
    assert_int_equal(boxes.count, 3);
    expect_box(&boxes.at[0], 3, (double[]){90, 40, 110, 60});
    expect_box(&boxes.at[1], 0, (double[]){0, 0, 100, 50});
    expect_box(&boxes.at[2], 1, (double[]){20, 10, 60, 60});
    /* Written and read back. */
    assert_int_equal(qn_yolo_write(ctx, in_folder("made"), &boxes, &place), QN_OK);
    assert_int_equal(qn_yolo_read(&again, ctx, in_folder("made"), &place), QN_OK);
    assert_int_equal(again.count, 3);
    expect_box(&again.at[2], 1, (double[]){20, 10, 60, 60});
    static const char *const bad[] = {
        "1 0.5 0.5 0.1",          "x 0.5 0.5 0.1 0.1",        "-1 0.5 0.5 0.1 0.1",
        "1.5 0.5 0.5 0.1 0.1",    "1 0.5 0.5 0.1 -0.1",       "1 100 50 20 20",
        "1 nan 0.5 0.1 0.1",      "99999999 0.5 0.5 .1 .1",   "1 0.5 0.5 inf 0.1",
        "1 .1 .1 .2 .2 .3 .3 .4", "1 .1 .1 .2 .2 .3 .3 .4 7",
    };
    for (size_t i = 0; i < QN_COUNT_OF(bad); i++) {
        char text[100];
        snprintf(text, sizeof text, "0 .5 .5 .5 .5\n%s\n", bad[i]);
        write_text("bad", text);
        assert_int_equal(qn_yolo_read(&boxes, ctx, in_folder("bad"), &place), QN_E_FORMAT);
        assert_non_null(strstr(qn_context_error(ctx), "bad:2: "));
    }
    qn_boxes_free(&boxes, ctx);
    qn_boxes_free(&again, ctx);
    qn_context_free(ctx);
}

static void coco_files(void **state)
{
    qn_context *ctx;
    qn_box_labels *labels;
    qn_boxes boxes = {.at = NULL};
    size_t count;
    (void)state;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    /* The folder has one .json and nothing else. */
    assert_int_equal(qn_box_labels_open(&labels, ctx, in_folder("json")), QN_OK);
    const char *const *names = qn_box_labels_names(&count, labels);
    assert_int_equal(count, 2);
    assert_string_equal(names[0], "dog");
    assert_int_equal(qn_box_labels_boxes(&boxes, labels, "a.bmp", &place), QN_OK);
    assert_int_equal(boxes.count, 2);
    expect_box(&boxes.at[0], 1, (double[]){2, 4, 18, 12});
    expect_box(&boxes.at[1], 0, (double[]){1, 1, 3, 3});
    assert_int_equal(qn_box_labels_boxes(&boxes, labels, "b.bmp", &place), QN_OK);
    assert_int_equal(boxes.count, 1);
    assert_true(boxes.at[0].crowd);
    assert_int_equal(qn_box_labels_boxes(&boxes, labels, "c.bmp", &place), QN_E_INVALID);
    qn_box_labels_free(labels);
    qn_boxes_free(&boxes, ctx);
    qn_context_free(ctx);
}

static void bad_coco_files(void **state)
{
    static const struct {
        const char *old, *text, *message;
    } cases[] = {
        {"[2,4,16,8]", "[2,4,16]", "annotations[0].bbox: has 3 numbers"},
        {"[2,4,16,8]", "[2,4,-16,8]", "no size of a box"},
        {"[2,4,16,8]", "[1e300,4,16,8]", "no place of a box"},
        {"[2,4,16,8]", "7", "annotations[0].bbox"},
        {"\"category_id\":70", "\"category_id\":71", "category_id 71 is not listed"},
        {"\"image_id\":4", "\"image_id\":5", "image_id 5 is not listed"},
        {"\"iscrowd\":1", "\"iscrowd\":2", "annotations[1].iscrowd"},
        {"\"id\":4", "\"id\":9", "two of them have the id 9"},
        {"\"id\":70", "\"id\":3", "two of them have the id 3"},
        {"\"images\"", "\"pictures\"", "images"},
        {"\"a.bmp\"", "{}", "images[0].file_name"},
    };
    qn_context *ctx;
    qn_box_labels *labels;
    (void)state;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    for (size_t i = 0; i < QN_COUNT_OF(cases); i++) {
        char text[sizeof coco + 100];
        const char *at = strstr(coco, cases[i].old);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - coco), coco, cases[i].text,
                 at + strlen(cases[i].old));
        write_text("bad.json", text);
        assert_int_equal(qn_box_labels_open(&labels, ctx, in_folder("bad.json")), QN_E_FORMAT);
        if (!strstr(qn_context_error(ctx), cases[i].message))
            fail_msg("%zu: %s", i, qn_context_error(ctx));
    }
    assert_int_equal(qn_box_labels_open(&labels, ctx, in_folder("good")), QN_E_INVALID);
    assert_int_equal(qn_box_labels_open(&labels, ctx, in_folder("no.json")), QN_E_IO);
    qn_context_free(ctx);
}

/* ---- The task -------------------------------------------------------------------------------- */

/* One class, eight boxes: x, y, width, height, score. In the picture of 32 x 32 the first is what
 * a.txt wants. */
static float output[5][8] = {{8, 20}, {8, 20}, {8, 6}, {8, 6}, {0.9F, 0.4F}};

static qn_status add_samples(qn_task *task, const qn_dataset *data)
{
    const qn_task_output found = {
        .name = "y", .tensor = {.dtype = QN_FLOAT32, .rank = 3, .dims = {1, 5, 8}, .data = output}};
    qn_task_sample sample = {
        .outputs = &found, .n_outputs = 1, .data = data, .place = {32, 32, 32, 32, 1, 1, 0, 0}};
    for (sample.index = 0; sample.index < 2; sample.index++)
        QN_TRY(qn_task_add(task, &sample));
    return qn_task_finish(task);
}

static qn_status run_task(qn_task_metric metrics[QN_TASK_METRICS], qn_context *ctx,
                          const qn_task_options *options)
{
    const qn_value_info input = {
        .name = "x", .dtype = QN_FLOAT32, .rank = 4, .dims = {1, 3, 32, 32}};
    const char *path = in_folder("pictures");
    const qn_dataset_spec spec = {.inputs = &input, .n_inputs = 1, .data = &path, .n_data = 1};
    qn_dataset *data = NULL;
    qn_task *task = NULL;
    qn_status status = qn_dataset_open(&data, ctx, &spec);
    if (status == QN_OK)
        status = qn_task_create(&task, ctx, "detection", options);
    if (status == QN_OK)
        status = add_samples(task, data);
    if (status == QN_OK)
        qn_task_metrics(metrics, task, false);
    qn_task_free(task);
    qn_dataset_free(data);
    return status;
}

static void whole_task(void **state)
{
    const char *const names[] = {"thing"};
    qn_detect_options detect = QN_DETECT_OPTIONS_INIT;
    qn_task_options options = {.detect = &detect};
    qn_task_metric metrics[QN_TASK_METRICS];
    qn_context *ctx;
    char labels[256], drawn[256], saved[256];
    (void)state;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    snprintf(labels, sizeof labels, "%s/labels", folder);
    snprintf(drawn, sizeof drawn, "%s/deep/drawn", folder);
    snprintf(saved, sizeof saved, "%s/saved", folder);
    options.labels = labels;
    detect.names = names;
    detect.n_names = 1;
    detect.draw_dir = drawn;
    options.label_dir = saved;
    assert_int_equal(run_task(metrics, ctx, &options), QN_OK);
    assert_true(metrics[0].value > 0.999 && metrics[1].value > 0.999);
    assert_int_equal(access(in_folder("deep/drawn/a.png"), R_OK), 0);
    assert_int_equal(access(in_folder("saved/b.txt"), R_OK), 0);
    /* Again into the same folder; but not over what people made. */
    assert_int_equal(run_task(metrics, ctx, &options), QN_OK);
    options.label_dir = labels;
    assert_int_equal(run_task(metrics, ctx, &options), QN_E_INVALID);
    assert_non_null(strstr(qn_context_error(ctx), "not generated"));
    options.label_dir = NULL;
    /* A class that the model does not have; options that make no sense. */
    options.class_offset = 1;
    assert_int_equal(run_task(metrics, ctx, &options), QN_E_INVALID);
    options.class_offset = 0;
    detect.classes = 2;
    assert_int_equal(run_task(metrics, ctx, &options), QN_E_OPTION);
    qn_context_free(ctx);
}

static void short_memory(void **state)
{
    qn_detect_options detect = QN_DETECT_OPTIONS_INIT;
    char labels[256], drawn[256], saved[256];
    (void)state;
    snprintf(drawn, sizeof drawn, "%s/short", folder);
    snprintf(saved, sizeof saved, "%s/short-labels", folder);
    snprintf(labels, sizeof labels, "%s/json/coco.json", folder);
    detect.draw_dir = drawn;
    detect.label_dir = saved;
    detect.classes = 1;
    write_text("json/coco.json", "{\"images\":[{\"id\":1,\"file_name\":\"a.bmp\"},{\"id\":2,"
                                 "\"file_name\":\"b.bmp\"}],\"categories\":[{\"id\":1,\"name\":"
                                 "\"c\"}],\"annotations\":[{\"image_id\":1,\"category_id\":1,"
                                 "\"bbox\":[4,4,8,8]}]}");
    for (long n = 0;; n++) {
        fault f = {.until = n};
        const qn_task_options options = {.detect = &detect, .labels = labels};
        qn_task_metric metrics[QN_TASK_METRICS];
        qn_context *ctx = NULL;
        qn_status status = fault_context(&ctx, &f);
        if (status == QN_OK)
            status = run_task(metrics, ctx, &options);
        if (f.struck ? status != QN_E_NOMEM : status != QN_OK)
            fail_msg("allocation %ld: status %d, '%s'", n, (int)status, qn_context_error(ctx));
        qn_context_free(ctx);
        assert_int_equal(f.live, 0);
        if (!f.struck) {
            assert_true(n > 40);
            return;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(yolo_files),     cmocka_unit_test(coco_files),
        cmocka_unit_test(bad_coco_files), cmocka_unit_test(whole_task),
        cmocka_unit_test(short_memory),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
