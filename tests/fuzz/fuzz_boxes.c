/* The first byte chooses what the rest is: a YOLO label file, COCO's JSON, or the outputs of a
 * detector: how many there are, each one's shape, and numbers that are repeated as often as the
 * shapes need. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "task/average_precision.h"
#include "task/box_labels.h"
#include "task/box_layouts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const qn_picture_place place = {.width = 64, .height = 32};

static const char *file_path(const char *ending)
{
    static char path[80];
    snprintf(path, sizeof path, "/tmp/quench-fuzz-%ld%s", (long)getpid(), ending);
    return path;
}

static void write_file(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        abort();
}

static void must_tell(qn_status status, const qn_context *ctx)
{
    if (status != QN_OK && !qn_context_error(ctx)[0])
        abort(); /* a failure without a message */
}

static void read_labels(qn_context *ctx, const uint8_t *data, size_t size, bool json)
{
    const char *path = file_path(json ? ".json" : ".txt");
    qn_boxes boxes = {.at = NULL};
    qn_box_labels *labels;
    write_file(path, data, size);
    if (!json) {
        must_tell(qn_yolo_read(&boxes, ctx, path, &place), ctx);
    } else if (qn_box_labels_open(&labels, ctx, path) == QN_OK) {
        must_tell(qn_box_labels_boxes(&boxes, labels, "a.jpg", &place), ctx);
        qn_box_labels_free(labels);
    } else if (!qn_context_error(ctx)[0]) {
        abort();
    }
    qn_boxes_free(&boxes, ctx);
    remove(path);
}

/* ---- Outputs --------------------------------------------------------------------------------- */

enum { MOST_OUTPUTS = 4, MOST_NUMBERS = 1 << 14 };

typedef struct bytes {
    const uint8_t *at;
    size_t left;
} bytes;

static unsigned next_byte(bytes *b)
{
    if (!b->left)
        return 0;
    b->left--;
    return *b->at++;
}

/* Dims from 0 to 64, as many numbers as fit the limit; the first one is mostly 1. */
static void take_shape(qn_tensor *t, bytes *b)
{
    int64_t count = 1;
    *t = (qn_tensor){.dtype = QN_FLOAT32, .rank = (int32_t)(next_byte(b) % 6)};
    for (int32_t d = 0; d < t->rank; d++) {
        const int64_t dim = next_byte(b) % 65;
        t->dims[d] = d == 0 && dim > 4 ? 1 : count * dim > MOST_NUMBERS ? 1 : dim;
        count *= t->dims[d];
    }
}

static void decode(qn_context *ctx, bytes b)
{
    static float numbers[MOST_NUMBERS];
    static const double anchors[] = {10, 13, 16, 30, 33, 23, 30, 61, 62, 45, 59, 119};
    qn_detect_options options = QN_DETECT_OPTIONS_INIT;
    qn_task_output outputs[MOST_OUTPUTS] = {{.name = NULL}};
    qn_box_decoder r = {
        .ctx = ctx, .options = &options, .outputs = outputs, .width = 64, .height = 32};
    qn_average_precision precision = {.ctx = ctx};
    qn_boxes found = {.at = NULL}, truth = {.at = NULL};
    qn_mean_average_precision mean;
    options.classes = next_byte(&b) % 4;
    options.n_anchors = 2 * (next_byte(&b) % 7);
    options.anchors = anchors;
    options.form = qn_box_layout_name(next_byte(&b) % 8);
    r.n_outputs = next_byte(&b) % (MOST_OUTPUTS + 1);
    for (size_t i = 0; i < r.n_outputs; i++) {
        outputs[i].name = "y";
        take_shape(&outputs[i].tensor, &b);
        outputs[i].tensor.data = numbers;
    }
    for (size_t i = 0; b.left >= 4 && i < MOST_NUMBERS; i++)
        memcpy(&numbers[i], b.at + i * 4 % (b.left / 4 * 4), sizeof *numbers);
    const qn_status status = qn_box_decoder_decode(&found, &r);
    must_tell(status, ctx);
    if (status == QN_OK && qn_boxes_suppress(&found, ctx, 0.6, 300) == QN_OK &&
        qn_average_precision_add(&precision, &found, &truth) == QN_OK &&
        qn_average_precision_finish(&mean, &precision) == QN_OK && found.count > 300)
        abort();
    qn_box_decoder_free(&r);
    qn_average_precision_free(&precision);
    qn_boxes_free(&found, ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qn_context *ctx;
    if (size == 0 || qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    if (data[0] % 3 == 2)
        decode(ctx, (bytes){data + 1, size - 1});
    else
        read_labels(ctx, data + 1, size - 1, data[0] % 3 == 1);
    qn_context_free(ctx);
    return 0;
}
