/* The task of classification: scores out of outputs, classes from the data set. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "task/box_labels.h"
#include "task/classify.h"
#include "task/draw_boxes.h"
#include "task/task.h"

/* A model's scores of one sample. */
typedef struct row {
    double *scores;
    size_t room;
} row;

typedef struct classification {
    qn_classify counts;
    row own, other;
    /* What was found, for options.label_dir */
    qn_text labels;
} classification;

static qn_status create(qn_task *task)
{
    classification *own = qn_alloc_zero(task->ctx, 1, sizeof *own);
    QN_TRY_ALLOC(task->ctx, own);
    task->own = own;
    qn_text_init(&own->labels, task->ctx);
    return task->options.label_dir ? qn_yolo_start(task->ctx, task->options.label_dir) : QN_OK;
}

static qn_status check(qn_task *task, const qn_dataset *data, bool other)
{
    if (qn_dataset_label(data, 0) >= 0 || other)
        return QN_OK;
    return qn_fail(task->ctx, QN_E_OPTION,
                   "nothing to measure: give labels, or a float model to compare with");
}

static qn_status take_scores(row *r, int64_t *classes, qn_context *ctx,
                             const qn_task_output *output, size_t n_outputs)
{
    if (n_outputs != 1)
        return qn_fail(ctx, QN_E_INVALID, "the model has %zu outputs: say which has the scores",
                       n_outputs);
    *classes = qn_tensor_count(&output->tensor);
    if (*classes < 2)
        return qn_fail(ctx, QN_E_INVALID, "output '%s' has no scores of classes for each sample",
                       output->name);
    QN_TRY_GROW(ctx, r->scores, r->room, (size_t)*classes);
    qn_task_load(r->scores, output, *classes);
    for (int64_t c = 0; c < *classes; c++) {
        if (!isfinite(r->scores[c]))
            return qn_fail(ctx, QN_E_INVALID, "output '%s' has a score that is %s", output->name,
                           isnan(r->scores[c]) ? "not a number" : "infinite");
    }
    return QN_OK;
}

/* A line "name class" with the best one. */
static void note_label(classification *own, const qn_task_sample *s, const qn_scores *scores)
{
    char name[256], class[32];
    qn_dataset_name(name, sizeof name, s->data, s->index);
    const int64_t best = qn_best_class(scores->scores, scores->classes);
    const int length = snprintf(class, sizeof class, " %lld\n", (long long)best);
    qn_text_add(&own->labels, name, strlen(name));
    qn_text_add(&own->labels, class, (size_t)length);
}

/* The label of the data or, where the float model makes labels, its best class. */
static qn_status find_label(qn_scores *sample, const qn_task *task)
{
    if (sample->label >= 0) {
        sample->label += task->options.class_offset;
        if (sample->label < 0)
            return qn_fail(task->ctx, QN_E_INVALID, "the class offset makes the class negative");
    } else if (task->options.label_dir && sample->float_scores) {
        sample->label = qn_best_class(sample->float_scores, sample->classes);
    }
    return QN_OK;
}

static qn_status add(qn_task *task, const qn_task_sample *s)
{
    classification *own = task->own;
    qn_scores sample = {.label = qn_dataset_label(s->data, s->index)};
    int64_t classes = 0;
    QN_TRY(take_scores(&own->own, &sample.classes, task->ctx, s->outputs, s->n_outputs));
    sample.scores = own->own.scores;
    if (s->float_outputs) {
        QN_TRY(take_scores(&own->other, &classes, task->ctx, s->float_outputs, s->n_float_outputs));
        if (classes != sample.classes)
            return qn_fail(task->ctx, QN_E_INVALID,
                           "the float model has %lld classes, the model %lld", (long long)classes,
                           (long long)sample.classes);
        sample.float_scores = own->other.scores;
    }
    QN_TRY(find_label(&sample, task));
    if (task->options.label_dir)
        note_label(own, s, &sample);
    return qn_classify_add(&own->counts, task->ctx, &sample);
}

static qn_status write_labels(qn_task *task, const char *text, size_t length)
{
    qn_arena arena;
    const char *path = NULL;
    qn_arena_init(&arena, &task->ctx->allocator);
    qn_status status =
        qn_renamed_path(&path, task->ctx, &arena, task->options.label_dir, QN_CLASS_LABELS, NULL);
    if (status == QN_OK)
        status = qn_output_save(task->ctx, path, text, length);
    qn_arena_free(&arena);
    return status;
}

static qn_status finish(qn_task *task)
{
    classification *own = task->own;
    char *all = NULL;
    if (!task->options.label_dir)
        return QN_OK;
    const size_t length = own->labels.length;
    const qn_status taken = qn_text_take(&all, &own->labels);
    own->labels.at = NULL;
    QN_TRY(taken);
    const qn_status status = write_labels(task, all, length);
    qn_text_free(task->ctx, all);
    return status;
}

static const qn_hits *hits_of(const classification *own, bool of_float)
{
    return of_float ? &own->counts.float_hits : &own->counts.hits;
}

static void metrics(qn_task_metric *out, const qn_task *task, bool of_float)
{
    const classification *own = task->own;
    const qn_hits *hits = hits_of(own, of_float);
    const double n = own->counts.labelled ? (double)own->counts.labelled : (double)NAN;
    out[0] = (qn_task_metric){"top_1", 100.0 * (double)hits->top1 / n, 100};
    out[1] = (qn_task_metric){"top_5", 100.0 * (double)hits->top5 / n, 100};
}

static void describe(qn_item *root, const qn_task *task)
{
    const qn_classify *counts = &((const classification *)task->own)->counts;
    const double n = (double)counts->samples;
    qn_item_int(root, "samples", counts->samples);
    qn_item_int(root, "classes", counts->classes);
    if (!((const classification *)task->own)->other.scores)
        return;
    qn_item_real(root, "agreement", 100.0 * (double)counts->agreed / n, 2);
    qn_item_int(root, "agreed", counts->agreed);
    qn_item_real(root, "mean_kl", counts->divergence / n, 6);
    qn_item_text(root, "kl_of",
                 counts->probabilities ? "outputs as they are" : "softmax of the outputs");
}

static void describe_model(qn_item *item, const qn_task *task, bool of_float)
{
    const classification *own = task->own;
    const qn_hits *hits = hits_of(own, of_float);
    const double percent = own->counts.labelled ? 100.0 / (double)own->counts.labelled : 0;
    if (!own->counts.labelled)
        return;
    qn_item_real(item, "top_1", percent * (double)hits->top1, 2);
    qn_item_real(item, "top_5", percent * (double)hits->top5, 2);
    qn_item_int(item, "top_1_hits", hits->top1);
    qn_item_int(item, "top_5_hits", hits->top5);
}

static void release(qn_task *task)
{
    classification *own = task->own;
    qn_classify_free(&own->counts, task->ctx);
    qn_free(task->ctx, own->labels.at);
    qn_free(task->ctx, own->own.scores);
    qn_free(task->ctx, own->other.scores);
}

const qn_task_kind qn_task_classification = {
    .name = "classification",
    .create = create,
    .check = check,
    .add = add,
    .finish = finish,
    .metrics = metrics,
    .describe = describe,
    .describe_model = describe_model,
    .free = release,
};
