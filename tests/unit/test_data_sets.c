/* Data sets of every kind: what they count, read, call and class; the loader's order; memory that
 * runs out at every single allocation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/listing.h"
#include "data/loader.h"
#include "fault.h"
#include "files_test.h"

/* ---- Files ----------------------------------------------------------------------------------- */

/* A BMP file, all of one colour; rows fill whole words. */
static void write_sized(const char *name, uint8_t width, uint8_t height, const uint8_t pixel[3])
{
    enum { HEAD = 54, MOST = 64 };
    uint8_t file[HEAD + 3 * MOST] = {
        'B', 'M', [10] = HEAD, [14] = 40, [18] = width, [22] = height, [26] = 1, [28] = 24};
    const size_t pixels = (size_t)width * height;
    assert_true(pixels <= MOST && width % 4 == 0);
    for (size_t i = 0; i < 3 * pixels; i++)
        file[HEAD + i] = pixel[i % 3];
    write_file(name, file, HEAD + 3 * pixels);
}

/* The picture has 4 x 3 pixels. */
static void write_picture(const char *name, uint8_t red, uint8_t green, uint8_t blue)
{
    write_sized(name, 4, 3, (const uint8_t[]){blue, green, red});
}

static int make_files(void **state)
{
    static uint8_t cifar[3 * 3073];
    static const uint8_t idx[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 7, 8, 9, 10};
    static const float numbers[] = {1, 2, 3, 4, 5, 6};
    static const char *const folders[] = {"flat", "classes", "classes/b", "classes/a",
                                          "raw",  "empty",   "sizes"};
    (void)state;
    if (folder_make("data"))
        return -1;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        mkdir(in_folder(folders[i]), 0700);
    for (int i = 0; i < 3; i++) {
        cifar[i * 3073] = (uint8_t)(9 - i);
        memset(cifar + i * 3073 + 1, 10 * i, 1024);
        memset(cifar + i * 3073 + 1025, 10 * i + 1, 2048);
    }
    write_file("three.bin", cifar, sizeof cifar);
    write_file("two-idx", idx, sizeof idx);
    write_picture("flat/x.bmp", 1, 2, 3);
    write_picture("flat/a.bmp", 4, 5, 6);
    write_picture("flat/m.bmp", 7, 8, 9);
    write_picture("classes/b/1.bmp", 1, 1, 1);
    write_picture("classes/a/2.bmp", 2, 2, 2);
    write_picture("classes/a/1.bmp", 3, 3, 3);
    write_sized("sizes/a.bmp", 4, 3, (const uint8_t[]){1, 2, 3});
    write_sized("sizes/b.bmp", 8, 6, (const uint8_t[]){4, 5, 6});
    write_sized("sizes/c.bmp", 4, 8, (const uint8_t[]){7, 8, 9});
    write_file("raw/0.bin", numbers, 12);
    write_file("raw/1.bin", numbers + 3, 12);
    write_text("labels.txt", "m.bmp 5\n\nx.bmp 3\na.bmp 0\r\n");
    write_text("commas.csv", "\xef\xbb\xbfm.bmp,5\r\nx.bmp, 3\r\na.bmp,0\r\n");
    write_text("plain.txt", "2\n1\n0\n");
    write_text("list.txt", "flat/m.bmp 7\nflat/a.bmp 1\n");
    write_text("names.txt", "x\nm.bmp\n");
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    return folder_remove();
}

/* ---- Reading --------------------------------------------------------------------------------- */

static const qn_value_info picture_input = {"x", QN_FLOAT32, 4, {-1, 3, -1, -1}, {NULL}};
static const qn_value_info grey_input = {"x", QN_FLOAT32, 4, {-1, 1, -1, -1}, {NULL}};
static const qn_value_info vector_input = {"x", QN_FLOAT32, 2, {-1, 3}, {NULL}};

typedef struct want {
    const char *data;
    const qn_value_info *input;
    const char *list, *labels, *preprocess;
} want;

static qn_status open_set(qn_dataset **out, qn_context *ctx, const want *w)
{
    const char *const data = in_folder(w->data);
    const qn_dataset_spec spec = {.inputs = w->input,
                                  .n_inputs = 1,
                                  .data = &data,
                                  .n_data = 1,
                                  .list = w->list ? in_folder(w->list) : NULL,
                                  .labels = w->labels ? in_folder(w->labels) : NULL,
                                  .preprocess = w->preprocess};
    return qn_dataset_open(out, ctx, &spec);
}

/* The first number of each sample and its class. */
static void check_set(const want *w, int64_t count, const float *first, const int64_t *labels)
{
    qn_context *ctx;
    qn_dataset *data;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    if (open_set(&data, ctx, w) != QN_OK)
        fail_msg("%s: %s", w->data, qn_context_error(ctx));
    assert_int_equal(qn_dataset_count(data), count);
    const qn_dataset_input *in = qn_dataset_inputs(data);
    float *sample = malloc(in->bytes);
    assert_non_null(sample);
    for (int64_t i = count - 1; i >= 0; i--) {
        void *const to[] = {sample};
        assert_int_equal(qn_dataset_read(to, NULL, data, ctx, i), QN_OK);
        assert_true(*sample == first[i]);
        assert_int_equal(qn_dataset_label(data, i), labels ? labels[i] : -1);
    }
    free(sample);
    qn_dataset_free(data);
    qn_context_free(ctx);
}

static void readers(void **state)
{
    (void)state;
    check_set(&(want){.data = "three.bin", .input = &picture_input}, 3, (float[]){0, 10, 20},
              (int64_t[]){9, 8, 7});
    check_set(&(want){.data = "two-idx", .input = &grey_input}, 2, (float[]){7, 9}, NULL);
    check_set(&(want){.data = "flat", .input = &picture_input}, 3, (float[]){4, 7, 1}, NULL);
    check_set(&(want){.data = "flat", .input = &picture_input, .preprocess = "bgr,mean=1,std=2"}, 3,
              (float[]){2.5, 4, 1}, NULL);
    check_set(&(want){.data = "flat", .input = &picture_input, .labels = "labels.txt"}, 3,
              (float[]){4, 7, 1}, (int64_t[]){0, 5, 3});
    check_set(&(want){.data = "flat", .input = &picture_input, .labels = "commas.csv"}, 3,
              (float[]){4, 7, 1}, (int64_t[]){0, 5, 3});
    check_set(&(want){.data = "flat", .input = &picture_input, .labels = "plain.txt"}, 3,
              (float[]){4, 7, 1}, (int64_t[]){2, 1, 0});
    check_set(
        &(want){
            .data = "flat", .input = &picture_input, .list = "names.txt", .labels = "labels.txt"},
        2, (float[]){1, 7}, (int64_t[]){3, 5});
    check_set(&(want){.data = "list.txt", .input = &picture_input}, 2, (float[]){7, 4},
              (int64_t[]){7, 1});
    check_set(&(want){.data = "classes", .input = &picture_input}, 3, (float[]){3, 2, 1},
              (int64_t[]){0, 0, 1});
    check_set(&(want){.data = "raw", .input = &vector_input}, 2, (float[]){1, 4}, NULL);
}

/* ---- What is wrong --------------------------------------------------------------------------- */

static void refuse(const want *w, const char *message)
{
    qn_context *ctx;
    qn_dataset *data;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    if (open_set(&data, ctx, w) == QN_OK)
        fail_msg("%s is taken", w->data);
    if (!strstr(qn_context_error(ctx), message))
        fail_msg("'%s' does not say '%s'", qn_context_error(ctx), message);
    qn_context_free(ctx);
}

static void refusals(void **state)
{
    (void)state;
    write_text("bad.txt", "a.bmp 1\nm.bmp one\n");
    write_text("few.txt", "a.bmp 1\nm.bmp 2\n");
    write_text("twice.txt", "a.bmp 1\na.bmp 2\n");
    write_text("gone.txt", "flat/a.bmp\nflat/none.bmp\n");
    write_text("mixed.txt", "flat/a.bmp 1\nflat/m.bmp\n");
    write_text("other.txt", "nobody\n");
    refuse(&(want){.data = "empty", .input = &picture_input}, "no samples");
    refuse(&(want){.data = "nowhere", .input = &picture_input}, "cannot open");
    refuse(&(want){.data = "flat", .input = &picture_input, .labels = "bad.txt"}, "bad.txt:2");
    refuse(&(want){.data = "flat", .input = &picture_input, .labels = "few.txt"},
           "no class for 'x.bmp'");
    refuse(&(want){.data = "flat", .input = &picture_input, .labels = "twice.txt"}, "twice.txt:2");
    refuse(&(want){.data = "two-idx", .input = &grey_input, .labels = "plain.txt"},
           "has 3 classes, the data 2");
    refuse(&(want){.data = "flat", .input = &picture_input, .list = "other.txt"}, "'nobody'");
    refuse(&(want){.data = "gone.txt", .input = &picture_input}, "none.bmp");
    refuse(&(want){.data = "mixed.txt", .input = &picture_input}, "mixed.txt:2");
    refuse(&(want){.data = "flat", .input = &grey_input}, "one channel");
    refuse(&(want){.data = "flat", .input = &vector_input}, "36 numbers");
    refuse(&(want){.data = "flat", .input = &picture_input, .preprocess = "crop=5"},
           "a.bmp: 3 x 4 pixels (height x width) are too small to crop");
    refuse(&(want){.data = "flat", .input = &picture_input, .preprocess = "zoom=2"},
           "unknown step 'zoom'");
    refuse(&(want){.data = "raw", .input = &vector_input, .preprocess = "bgr"},
           "preprocessing is for pictures");
}

/* The layout, by the dimensions or by word. */
static void check_layout(const qn_value_info *input, const char *steps, const int64_t dims[3],
                         float second)
{
    const want w = {.data = "flat", .input = input, .preprocess = steps};
    qn_context *ctx;
    qn_dataset *data;
    float sample[36];
    void *const to[] = {sample};
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    if (open_set(&data, ctx, &w) != QN_OK)
        fail_msg("%s", qn_context_error(ctx));
    const qn_dataset_input *in = qn_dataset_inputs(data);
    assert_int_equal(in->sample.rank, 3);
    assert_memory_equal(in->sample.dims, dims, 3 * sizeof *dims);
    assert_int_equal(qn_dataset_read(to, NULL, data, ctx, 0), QN_OK);
    assert_true(sample[1] == second);
    qn_dataset_free(data);
    qn_context_free(ctx);
}

static void layouts(void **state)
{
    static const qn_value_info open = {"x", QN_FLOAT32, 4, {-1, -1, -1, -1}, {NULL}};
    static const qn_value_info last = {"x", QN_FLOAT32, 4, {-1, -1, -1, 3}, {NULL}};
    static const qn_value_info both = {"x", QN_FLOAT32, 4, {-1, 3, 4, 3}, {NULL}};
    (void)state;
    check_layout(&picture_input, NULL, (int64_t[]){3, 3, 4}, 4);
    check_layout(&last, NULL, (int64_t[]){3, 4, 3}, 5);
    check_layout(&open, NULL, (int64_t[]){3, 3, 4}, 4);
    check_layout(&open, "nhwc", (int64_t[]){3, 4, 3}, 5);
    check_layout(&both, "nhwc", (int64_t[]){3, 4, 3}, 5);
    refuse(&(want){.data = "flat", .input = &both}, "nchw or nhwc");
}

/* docs/data.md lists the presets as they are. */
/* Pictures [3, height, width] of different sizes; NULL: all have the first one's. */
static void check_sizes(const char *steps, const int64_t (*sizes)[2], const int64_t first[2])
{
    const want w = {.data = "sizes", .input = &picture_input, .preprocess = steps};
    qn_context *ctx;
    qn_dataset *data;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    if (open_set(&data, ctx, &w) != QN_OK)
        fail_msg("%s", qn_context_error(ctx));
    const qn_dataset_input *in = qn_dataset_inputs(data);
    float *sample = malloc(in->bytes);
    assert_non_null(sample);
    assert_true(!in->dims == !sizes);
    for (int64_t i = 0; i < 3; i++) {
        const int64_t *size = sizes ? sizes[i] : first;
        qn_tensor described;
        qn_picture_place place;
        void *const to[] = {sample};
        qn_dataset_sample(&described, data, 0, i);
        assert_int_equal(described.dims[0], 3);
        assert_memory_equal(described.dims + 1, size, 2 * sizeof *size);
        assert_int_equal(qn_dataset_read(to, &place, data, ctx, i), QN_OK);
        assert_int_equal(place.input_height, size[0]);
        assert_int_equal(place.input_width, size[1]);
        assert_true(sample[0] == (float)(3 * i + 3)); /* red is the first plane, blue the last */
        assert_true(sample[3 * size[0] * size[1] - 1] == (float)(3 * i + 1));
    }
    free(sample);
    qn_dataset_free(data);
    qn_context_free(ctx);
}

static void sizes(void **state)
{
    (void)state;
    check_sizes(NULL, (const int64_t[][2]){{3, 4}, {6, 8}, {8, 4}}, NULL);
    check_sizes("resize=6", (const int64_t[][2]){{6, 8}, {6, 8}, {12, 6}}, NULL);
    check_sizes("resize=4x", (const int64_t[][2]){{4, 5}, {4, 5}, {4, 2}}, NULL);
    check_sizes("resize=6x8", NULL, (const int64_t[]){6, 8});
    check_sizes("crop=3", NULL, (const int64_t[]){3, 3});
}

/* A picture that was replaced by another one while the data were in use. */
static void changed_size(void **state)
{
    const want w = {.data = "sizes", .input = &picture_input};
    qn_context *ctx;
    qn_dataset *data;
    static float sample[3 * 64];
    void *const to[] = {sample};
    (void)state;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    assert_int_equal(open_set(&data, ctx, &w), QN_OK);
    write_sized("sizes/c.bmp", 8, 8, (const uint8_t[]){7, 8, 9});
    assert_int_equal(qn_dataset_read(to, NULL, data, ctx, 2), QN_E_INVALID);
    assert_non_null(strstr(qn_context_error(ctx), "c.bmp: the picture has changed"));
    write_sized("sizes/c.bmp", 4, 8, (const uint8_t[]){7, 8, 9});
    qn_dataset_free(data);
    qn_context_free(ctx);
}

static void presets(void **state)
{
    static char page[1 << 16];
    const char *name, *text;
    FILE *file = fopen("docs/data.md", "rb");
    (void)state;
    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = 0;
    fclose(file);
    for (size_t i = 0; (name = qn_preprocess_preset(i, &text)) != NULL; i++) {
        char row[256];
        snprintf(row, sizeof row, "| `%s` | `%s` |", name, text);
        if (!strstr(page, row))
            fail_msg("docs/data.md has no '%s'", row);
    }
}

/* ---- The loader ------------------------------------------------------------------------------ */

static void check_loader(int threads)
{
    enum { COUNT = 50, BATCH = 8 };
    static float numbers[COUNT * 3];
    const want w = {.data = "many.bin", .input = &vector_input};
    const qn_loader_options options = {
        .first = 3, .count = COUNT - 3, .batch = BATCH, .fill = BATCH, .threads = threads};
    qn_context *ctx;
    qn_dataset *data;
    qn_loader *loader;
    const qn_batch *batch = NULL;
    for (int i = 0; i < COUNT * 3; i++)
        numbers[i] = (float)(i / 3);
    write_file("many.bin", numbers, sizeof numbers);
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    assert_int_equal(open_set(&data, ctx, &w), QN_OK);
    assert_int_equal(qn_loader_create(&loader, ctx, data, 1, &options), QN_OK);
    int64_t seen = 0;
    while (qn_loader_next(&batch, loader) == QN_OK && batch) {
        const float *samples = batch->data[0];
        assert_int_equal(batch->first, seen);
        for (int64_t i = 0; i < BATCH; i++) {
            const int64_t place = i < batch->count ? seen + i : seen + batch->count - 1;
            assert_true(samples[3 * i + 2] == (float)(3 + place));
        }
        seen += batch->count;
    }
    assert_null(batch);
    assert_int_equal(seen, COUNT - 3);
    qn_loader_free(loader);
    qn_dataset_free(data);
    qn_context_free(ctx);
}

static void loader(void **state)
{
    (void)state;
    check_loader(-1);
    check_loader(1);
    check_loader(4);
}

/* A sample that cannot be read is named when its batch is asked for, not before. */
static void loader_failure(void **state)
{
    const want w = {.data = "flat", .input = &picture_input};
    const qn_loader_options options = {.count = 3, .batch = 1, .threads = 2};
    qn_context *ctx;
    qn_dataset *data;
    qn_loader *loader;
    const qn_batch *batch = NULL;
    (void)state;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    assert_int_equal(open_set(&data, ctx, &w), QN_OK);
    write_text("flat/m.bmp", "BM and nothing else");
    assert_int_equal(qn_loader_create(&loader, ctx, data, 1, &options), QN_OK);
    assert_int_equal(qn_loader_next(&batch, loader), QN_OK);
    assert_int_equal(qn_loader_next(&batch, loader), QN_E_FORMAT);
    assert_non_null(strstr(qn_context_error(ctx), "m.bmp"));
    qn_loader_free(loader);
    qn_dataset_free(data);
    qn_context_free(ctx);
    write_picture("flat/m.bmp", 7, 8, 9);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static qn_status attempt(fault *f, const want *w, char *message)
{
    const qn_loader_options options = {.count = 2, .batch = 2, .threads = -1};
    qn_context *ctx = NULL;
    qn_dataset *data = NULL;
    qn_loader *l = NULL;
    const qn_batch *batch;
    qn_status status = fault_context(&ctx, f);
    if (status == QN_OK)
        status = open_set(&data, ctx, w);
    if (status == QN_OK)
        status = qn_loader_create(&l, ctx, data, 1, &options);
    if (status == QN_OK)
        status = qn_loader_next(&batch, l);
    snprintf(message, 200, "%s", qn_context_error(ctx));
    qn_loader_free(l);
    qn_dataset_free(data);
    qn_context_free(ctx);
    return status;
}

static void every_allocation(const want *w)
{
    char message[200];
    for (long n = 0;; n++) {
        fault f = {.until = n};
        const qn_status status = attempt(&f, w, message);
        if (f.live != 0)
            fail_msg("%s: allocation %ld fails: %ld blocks are left", w->data, n, f.live);
        if (!f.struck) {
            if (status != QN_OK)
                fail_msg("%s: %s", w->data, message);
            assert_true(n > 10);
            return;
        }
        if (status != QN_E_NOMEM || !message[0])
            fail_msg("%s: allocation %ld fails: status %d, '%s'", w->data, n, (int)status, message);
    }
}

static void short_memory(void **state)
{
    (void)state;
    every_allocation(&(want){
        .data = "three.bin", .input = &picture_input, .preprocess = "resize=8,crop=5,grey"});
    every_allocation(&(want){.data = "two-idx", .input = &grey_input});
    every_allocation(&(want){.data = "raw", .input = &vector_input});
    every_allocation(&(want){.data = "flat",
                             .input = &picture_input,
                             .list = "names.txt",
                             .labels = "labels.txt",
                             .preprocess = "letterbox=6:opencv-linear"});
    every_allocation(
        &(want){.data = "classes", .input = &picture_input, .preprocess = "resize=x7"});
    every_allocation(&(want){.data = "list.txt", .input = &picture_input});
    every_allocation(&(want){.data = "sizes", .input = &picture_input});
}

/* What is decoded somewhere is a sample; what no build decodes is named and left out. */
static void kinds_of_files(void **state)
{
    static const char *const pictures[] = {"a.jpg", "a.PNG", "a.webp", "a.tif", "a.TIFF", "a.bmp"};
    static const char *const others[] = {"a.gif", "a.heic", "a.avif", "a.jp2"};
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(pictures); i++)
        assert_int_equal(qn_file_kind_of(pictures[i]), QN_FILE_PICTURE);
    for (size_t i = 0; i < QN_COUNT_OF(others); i++)
        assert_int_equal(qn_file_kind_of(others[i]), QN_FILE_UNDECODABLE);
    assert_int_equal(qn_file_kind_of("README"), QN_FILE_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_of_files), cmocka_unit_test(readers),      cmocka_unit_test(layouts),
        cmocka_unit_test(presets),        cmocka_unit_test(refusals),     cmocka_unit_test(loader),
        cmocka_unit_test(loader_failure), cmocka_unit_test(short_memory), cmocka_unit_test(sizes),
        cmocka_unit_test(changed_size),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
