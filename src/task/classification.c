/* The task of classification: scores out of outputs, classes from the data set. */
#include <math.h>

#include "task/classify.h"
#include "task/task.h"

/* A model's scores of one sample. */
typedef struct row {
    double *scores;
    size_t room;
} row;

typedef struct classification {
    qn_classify counts;
    row own, other;
} classification;

static qn_status create(qn_task *task)
{
    task->own = qn_alloc_zero(task->ctx, 1, sizeof(classification));
    QN_TRY_ALLOC(task->ctx, task->own);
    return QN_OK;
}

static qn_status check(qn_task *task, const qn_dataset *data, bool other)
{
    if (qn_dataset_label(data, 0) >= 0 || other)
        return QN_OK;
    return qn_fail(task->ctx, QN_E_INVALID,
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
    if (sample.label >= 0) {
        sample.label += task->options.class_offset;
        if (sample.label < 0)
            return qn_fail(task->ctx, QN_E_INVALID, "the class offset makes the class negative");
    }
    return qn_classify_add(&own->counts, task->ctx, &sample);
}

static qn_status finish(qn_task *task)
{
    (void)task;
    return QN_OK;
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

static void tell(qn_item *root, const qn_task *task)
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

static void tell_model(qn_item *item, const qn_task *task, bool of_float)
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
    .tell = tell,
    .tell_model = tell_model,
    .free = release,
};
