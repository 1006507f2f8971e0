/* The task of detection: boxes out of outputs, true ones from label files, the precision between
 * them. */
#include <math.h>
#include <string.h>

#include "base/folder.h"
#include "task/average_precision.h"
#include "task/box_labels.h"
#include "task/box_layouts.h"
#include "task/draw_boxes.h"

/* One of the models. */
typedef struct side {
    qn_box_decoder reading;
    /* The boxes found in the current picture, the best first. */
    qn_boxes found;
    qn_average_precision precision;
    qn_mean_average_precision mean;
    /* The number of boxes found in all pictures. */
    int64_t boxes;
} side;

typedef struct detection {
    qn_detect_options options;
    side own, other;
    /* NULL: the float model's boxes are true, or none are */
    qn_box_labels *ground_truth;
    /* True boxes of the picture at hand */
    qn_boxes wanted;
    int64_t samples;
    /* There are true boxes */
    bool measured;
    /* The name of the current sample. */
    char name[256];
} detection;

/* ---- Beginning ------------------------------------------------------------------------------- */

static qn_status check_options(qn_context *ctx, const qn_detect_options *o)
{
    if (!(o->conf_thres >= 0 && o->conf_thres < 1) || !(o->iou_thres >= 0 && o->iou_thres <= 1))
        return qn_fail(ctx, QN_E_INVALID, "conf_thres and iou_thres are from 0 to 1");
    if (o->max_det < 1 || o->map_det < 1)
        return qn_fail(ctx, QN_E_INVALID, "max_det is at least 1");
    if (o->classes < 0 || o->classes > QN_CLASSES_MAX)
        return qn_fail(ctx, QN_E_INVALID, "nc is from 1 to %d", QN_CLASSES_MAX);
    if (o->classes && o->n_names && (int64_t)o->n_names != o->classes)
        return qn_fail(ctx, QN_E_OPTION, "%zu names for %lld classes", o->n_names,
                       (long long)o->classes);
    if (o->n_anchors % 2)
        return qn_fail(ctx, QN_E_OPTION, "anchors are pairs of width and height, not %zu numbers",
                       o->n_anchors);
    for (size_t i = 0; i < o->n_anchors; i++) {
        if (!(o->anchors[i] > 0 && o->anchors[i] < 1e6))
            return qn_fail(ctx, QN_E_INVALID, "anchor %g is no size in pixels", o->anchors[i]);
    }
    for (size_t i = 0; o->form && qn_box_layout_name(i); i++) {
        if (strcmp(qn_box_layout_name(i), o->form) == 0)
            return QN_OK;
    }
    return o->form ? qn_fail(ctx, QN_E_OPTION, "no form '%s' of outputs", o->form) : QN_OK;
}

static void start_side(side *s, qn_context *ctx, const qn_detect_options *options)
{
    s->reading.ctx = ctx;
    s->reading.options = options;
    s->precision.ctx = ctx;
    s->precision.most = (size_t)options->map_det;
}

static qn_status create(qn_task *task)
{
    detection *d = qn_alloc_zero(task->ctx, 1, sizeof *d);
    QN_TRY_ALLOC(task->ctx, d);
    task->own = d;
    d->options =
        task->options.detect ? *task->options.detect : (qn_detect_options)QN_DETECT_OPTIONS_INIT;
    QN_TRY(check_options(task->ctx, &d->options));
    if (!d->options.classes)
        d->options.classes = (int64_t)d->options.n_names;
    start_side(&d->own, task->ctx, &d->options);
    start_side(&d->other, task->ctx, &d->options);
    if (task->options.labels)
        QN_TRY(qn_box_labels_open(&d->ground_truth, task->ctx, task->options.labels));
    if (d->options.draw_dir)
        QN_TRY(qn_folder_create(task->ctx, d->options.draw_dir, NULL));
    if (task->options.label_dir)
        QN_TRY(qn_yolo_start(task->ctx, task->options.label_dir));
    if (d->ground_truth && !d->options.n_names)
        d->options.names = qn_box_labels_names(&d->options.n_names, d->ground_truth);
    return QN_OK;
}

static qn_status check(qn_task *task, const qn_dataset *data, bool other)
{
    const detection *d = task->own;
    (void)data;
    if (d->ground_truth || other || d->options.draw_dir || task->options.label_dir)
        return QN_OK;
    return qn_fail(task->ctx, QN_E_OPTION,
                   "nothing to measure: give labels, a float model to compare with, or a folder "
                   "to draw into");
}

/* ---- A sample -------------------------------------------------------------------------------- */

static qn_status find_boxes(side *s, const qn_task_output *outputs, size_t n_outputs,
                            const qn_picture_place *place)
{
    const qn_detect_options *o = s->reading.options;
    s->reading.outputs = outputs;
    s->reading.n_outputs = n_outputs;
    s->reading.width = place->input_width;
    s->reading.height = place->input_height;
    QN_TRY(qn_box_decoder_decode(&s->found, &s->reading));
    QN_TRY(qn_boxes_suppress(&s->found, s->reading.ctx, o->iou_thres, (size_t)o->max_det));
    qn_boxes_to_picture(&s->found, place);
    s->boxes += (int64_t)s->found.count;
    return QN_OK;
}

/* Classes of labels must be among the model's. */
static qn_status shift_classes(const qn_task *task, detection *d)
{
    const int64_t classes =
        d->own.reading.classes ? d->own.reading.classes : (int64_t)QN_CLASSES_MAX;
    for (size_t i = 0; i < d->wanted.count; i++) {
        const int64_t kind = d->wanted.at[i].kind + task->options.class_offset;
        if (kind < 0 || kind >= classes)
            return qn_fail(task->ctx, QN_E_INVALID,
                           "a label has class %lld, but the model has 0 to %lld", (long long)kind,
                           (long long)classes - 1);
        d->wanted.at[i].kind = (int32_t)kind;
    }
    return QN_OK;
}

/* Boxes that are taken for true ones, or written as such. */
static double least_true(const qn_detect_options *o)
{
    return o->draw_conf >= 0 ? o->draw_conf : 0.25;
}

/* Pictures show what was asked for; the standard of conf_thres, which is for measuring, asks for
 * nothing. */
static double least_drawn(const qn_detect_options *o)
{
    static const qn_detect_options standard = QN_DETECT_OPTIONS_INIT;
    return o->draw_conf < 0 && o->conf_thres != standard.conf_thres ? o->conf_thres : least_true(o);
}

static qn_status find_ground_truth(qn_task *task, detection *d, const qn_picture_place *place)
{
    d->wanted.count = 0;
    if (d->ground_truth) {
        QN_TRY(qn_box_labels_boxes(&d->wanted, d->ground_truth, d->name, place));
        return shift_classes(task, d);
    }
    for (size_t i = 0; i < d->other.found.count; i++) {
        qn_box box = d->other.found.at[i];
        if (box.score < least_true(&d->options))
            break;
        box.score = 0;
        QN_TRY(qn_boxes_add(&d->wanted, task->ctx, &box));
    }
    return QN_OK;
}

static qn_status save_labels(const qn_task *task, detection *d, const qn_picture_place *place)
{
    qn_arena arena;
    const char *path = NULL;
    qn_boxes good = d->own.found;
    while (good.count && good.at[good.count - 1].score < least_true(&d->options))
        good.count--;
    qn_arena_init(&arena, &task->ctx->allocator);
    qn_status status =
        qn_renamed_path(&path, task->ctx, &arena, task->options.label_dir, d->name, ".txt");
    if (status == QN_OK)
        status = qn_yolo_write(task->ctx, path, &good, place);
    qn_arena_free(&arena);
    return status;
}

/* What is made of the boxes besides numbers. */
static qn_status show(qn_task *task, detection *d, const qn_task_sample *s)
{
    const qn_detect_options *o = &d->options;
    const qn_box_style style = {.names = o->names, .n_names = o->n_names, .least = least_drawn(o)};
    if (o->draw_dir)
        QN_TRY(qn_boxes_draw_to_file(task->ctx, o->draw_dir, s->data, s->index, &d->own.found,
                                     &style));
    return task->options.label_dir ? save_labels(task, d, &s->place) : QN_OK;
}

static qn_status add(qn_task *task, const qn_task_sample *s)
{
    detection *d = task->own;
    const bool other = s->float_outputs != NULL;
    qn_dataset_name(d->name, sizeof d->name, s->data, s->index);
    QN_TRY(find_boxes(&d->own, s->outputs, s->n_outputs, &s->place));
    if (other)
        QN_TRY(find_boxes(&d->other, s->float_outputs, s->n_float_outputs, &s->place));
    QN_TRY(show(task, d, s));
    d->samples++;
    d->measured = d->ground_truth || other;
    if (!d->measured)
        return QN_OK;
    QN_TRY(find_ground_truth(task, d, &s->place));
    QN_TRY(qn_average_precision_add(&d->own.precision, &d->own.found, &d->wanted));
    return other ? qn_average_precision_add(&d->other.precision, &d->other.found, &d->wanted)
                 : QN_OK;
}

/* ---- The end --------------------------------------------------------------------------------- */

static qn_status finish(qn_task *task)
{
    detection *d = task->own;
    if (d->ground_truth && d->samples && qn_box_labels_missing(d->ground_truth) == d->samples)
        return qn_fail(task->ctx, QN_E_INVALID, "%s has a label file for none of the pictures",
                       task->options.labels);
    if (d->ground_truth && qn_box_labels_generated(d->ground_truth) &&
        qn_box_labels_missing(d->ground_truth))
        return qn_fail(
            task->ctx, QN_E_INVALID,
            "%s was generated from fewer pictures, %lld are missing: let the float model "
            "make it anew with all",
            task->options.labels, (long long)qn_box_labels_missing(d->ground_truth));
    QN_TRY(qn_average_precision_finish(&d->own.mean, &d->own.precision));
    return qn_average_precision_finish(&d->other.mean, &d->other.precision);
}

static void metrics(qn_task_metric *out, const qn_task *task, bool of_float)
{
    const detection *d = task->own;
    const side *s = of_float ? &d->other : &d->own;
    out[0] = (qn_task_metric){"map50_95", s->mean.map50_95, 1};
    out[1] = (qn_task_metric){"map50", s->mean.map50, 1};
}

static const char *labels_word(const detection *d)
{
    if (!d->ground_truth)
        return "generated: the float model's boxes";
    return qn_box_labels_generated(d->ground_truth) ? "generated: a model's boxes" : "given";
}

static void describe(qn_item *root, const qn_task *task)
{
    const detection *d = task->own;
    qn_item_int(root, "samples", d->samples);
    qn_item_text(root, "form", d->own.reading.layout ? d->own.reading.layout->name : "");
    qn_item_int(root, "classes", d->own.reading.classes);
    if (!d->measured)
        return;
    qn_item_text(root, "labels", labels_word(d));
    qn_item_int(root, "true_boxes", d->own.precision.n_ground_truth);
    qn_item_int(root, "true_classes", d->own.mean.classes);
    if (d->ground_truth && qn_box_labels_missing(d->ground_truth))
        qn_item_int(root, "pictures_without_label_file", qn_box_labels_missing(d->ground_truth));
}

static void describe_model(qn_item *row, const qn_task *task, bool of_float)
{
    const detection *d = task->own;
    const side *s = of_float ? &d->other : &d->own;
    if (d->measured && s->mean.classes) {
        qn_item_real(row, "map50", s->mean.map50, 4);
        qn_item_real(row, "map50_95", s->mean.map50_95, 4);
    }
    qn_item_int(row, "boxes", s->boxes);
}

static void free_side(side *s, qn_context *ctx)
{
    s->reading.ctx = s->precision.ctx = ctx;
    qn_box_decoder_free(&s->reading);
    qn_average_precision_free(&s->precision);
    qn_boxes_free(&s->found, ctx);
}

static void release(qn_task *task)
{
    detection *d = task->own;
    free_side(&d->own, task->ctx);
    free_side(&d->other, task->ctx);
    qn_boxes_free(&d->wanted, task->ctx);
    qn_box_labels_free(d->ground_truth);
}

const qn_task_kind qn_task_detection = {
    .name = "detection",
    .own_labels = true,
    .create = create,
    .check = check,
    .add = add,
    .finish = finish,
    .metrics = metrics,
    .describe = describe,
    .describe_model = describe_model,
    .free = release,
};
