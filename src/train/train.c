/* qn_train_run: the loop that feeds a training, with its checkpoints, its report and its result. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/pin.h"
#include "executor/eval.h"
#include "export/export.h"
#include "model/save_dir.h"
#include "ops/fingerprint.h"
#include "report/report.h"
#include "run/plan.h"
#include "train/batches.h"
#include "train/checkpoint.h"
#include "train/schedule.h"

typedef struct job {
    qn_context *ctx;
    qn_model *model;
    const qn_train_options *options;
    qn_arena arena;
    qn_training *training;
    qn_batches batches;
    qn_folder_lock lock;
    const char *folder;
    char *checkpoint, *file;
    qn_fingerprint print;
    qn_train_progress progress;
    /* Steps in all, and when the last checkpoint was written */
    int64_t steps;
    double saved, started, seconds;
    int64_t first_step;
    /* Percent on the data of `eval_data`; NaN: not measured */
    double before, after;
} job;

/* ---- Preparing ------------------------------------------------------------------------------- */

static qn_training_settings settings_of(const qn_train_options *o)
{
    return (qn_training_settings){.optimizer = {o->optimizer, o->momentum, o->decay, o->max_norm},
                                  .loss = {o->smoothing, o->distill, o->temperature},
                                  .batch = o->batch,
                                  .threads = o->threads,
                                  .backend = o->backend,
                                  .output = o->output};
}

static qn_status open_data(job *j)
{
    const qn_train_options *o = j->options;
    const qn_batches_settings settings = {.batch = o->batch,
                                          .seed = o->seed,
                                          .crop = o->crop,
                                          .flip = o->flip != 0,
                                          .colour = o->colour,
                                          .loaders = o->data.loaders};
    QN_TRY(qn_batches_open(&j->batches, j->ctx, j->model, &o->data, &settings));
    j->steps = o->iterations ? o->iterations : o->epochs * j->batches.per_epoch;
    const int64_t epochs = (j->steps + j->batches.per_epoch - 1) / j->batches.per_epoch;
    j->progress.epochs = qn_arena_array(&j->arena, (size_t)epochs + 1, sizeof *j->progress.epochs);
    QN_TRY_ALLOC(j->ctx, j->progress.epochs);
    return QN_OK;
}

/* What the bytes of the result depend on. */
static qn_status fingerprint(job *j)
{
    const qn_train_options *o = j->options;
    const double reals[] = {o->rate,      o->momentum, o->decay,       o->max_norm,
                            o->smoothing, o->distill,  o->temperature, o->colour};
    const int64_t ints[] = {
        o->batch,         o->warm_up, o->crop,          o->flip,
        (int64_t)o->seed, j->steps,   j->batches.count, j->training->plan->threads};
    j->print = qn_model_fingerprint(j->model);
    qn_fingerprint_bytes(&j->print, reals, sizeof reals);
    qn_fingerprint_bytes(&j->print, ints, sizeof ints);
    qn_fingerprint_text(&j->print, o->optimizer);
    qn_fingerprint_text(&j->print, o->schedule);
    qn_fingerprint_text(&j->print, o->data.preprocess);
    for (size_t i = 0; i < o->data.n_data; i++)
        qn_fingerprint_text(&j->print, o->data.data[i]);
    for (int64_t i = 0; i < j->batches.count; i++)
        qn_fingerprint_int(&j->print, qn_dataset_label(j->batches.dataset, i));
    return QN_OK;
}

static qn_status find_files(job *j)
{
    j->folder = j->options->save_dir ? j->options->save_dir : "quench_out";
    QN_TRY(qn_folder_make(j->ctx, j->folder));
    QN_TRY(qn_folder_lock_take(&j->lock, j->ctx, &j->arena, j->folder));
    QN_TRY(qn_folder_file(&j->file, &j->arena, j->model, j->folder, "_trained.onnx"));
    QN_TRY(qn_folder_file(&j->checkpoint, &j->arena, j->model, j->folder, ".checkpoint"));
    return qn_folder_spare(j->ctx, j->file, j->model->path, "the model");
}

static qn_status resume(job *j)
{
    const int64_t epochs = (j->steps + j->batches.per_epoch - 1) / j->batches.per_epoch;
    bool found;
    if (j->options->fresh)
        return QN_OK;
    QN_TRY(qn_checkpoint_load(&found, j->training, j->checkpoint, j->print, &j->progress, epochs));
    if (found)
        qn_log(j->ctx, QN_LOG_NOTE, "%s: going on after step %lld of %lld", j->checkpoint,
               (long long)j->progress.step, (long long)j->steps);
    return QN_OK;
}

static qn_status shapes_of(qn_input_shape **out, job *j)
{
    const qn_batches *b = &j->batches;
    *out = qn_arena_array(&j->arena, b->n_inputs + 1, sizeof **out);
    QN_TRY_ALLOC(j->ctx, *out);
    for (size_t i = 0; i < b->n_inputs; i++) {
        qn_input_shape *shape = &(*out)[i];
        shape->name = b->infos[i].name;
        shape->rank = b->tensors[i].rank;
        memcpy(shape->dims, b->tensors[i].dims, sizeof shape->dims);
    }
    return QN_OK;
}

static qn_status prepare(job *j)
{
    qn_training_settings settings = settings_of(j->options);
    qn_input_shape *shapes;
    QN_TRY(find_files(j));
    QN_TRY(open_data(j));
    QN_TRY(shapes_of(&shapes, j));
    settings.shapes = shapes;
    settings.n_shapes = j->batches.n_inputs;
    QN_TRY(qn_training_create(&j->training, j->ctx, j->model, &settings));
    if (j->training->has_labels)
        QN_TRY(qn_batches_check_labels(&j->batches, j->training->classes));
    QN_TRY(fingerprint(j));
    return resume(j);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static qn_status save_checkpoint(job *j)
{
    j->saved = qn_clock_ms();
    return qn_checkpoint_save(j->training, j->checkpoint, j->print, &j->progress);
}

static void tell_epoch(job *j, const qn_train_sums *sums)
{
    const double seconds = (qn_clock_ms() - j->started) / 1e3;
    const int64_t done = j->progress.step - j->first_step;
    const double rate = (double)(done * j->options->batch) / seconds;
    const double left = (double)(j->steps - j->progress.step) * seconds / (double)done;
    char right[64] = "";
    if (j->training->has_labels)
        snprintf(right, sizeof right, ", accuracy %.2f %%",
                 100 * sums->correct / (double)(sums->steps * j->options->batch));
    qn_log(j->ctx, QN_LOG_NOTE, "epoch %lld: loss %.4f%s, %.0f images/s, %.0f s left",
           (long long)j->progress.n_epochs, sums->loss / (double)sums->steps, right, rate, left);
}

static void count_step(job *j, const qn_training_result *result)
{
    qn_train_progress *p = &j->progress;
    p->step++;
    p->now.loss += result->loss;
    p->now.correct += result->correct;
    p->now.steps++;
    if (p->step % j->batches.per_epoch && p->step < j->steps)
        return;
    p->epochs[p->n_epochs++] = p->now;
    p->now = (qn_train_sums){0, 0, 0};
    tell_epoch(j, &p->epochs[p->n_epochs - 1]);
}

static qn_status take_step(job *j)
{
    const qn_train_options *o = j->options;
    const qn_rate_schedule schedule = {o->schedule, o->rate, o->warm_up, j->steps};
    qn_training_result result;
    QN_TRY(qn_check_cancel(j->ctx));
    QN_TRY(qn_batches_next(&j->batches));
    const qn_training_batch batch = {.inputs = j->batches.tensors,
                                     .labels = j->batches.labels,
                                     .rate = qn_rate_at(&schedule, j->progress.step),
                                     .step = j->progress.step + 1};
    QN_TRY(qn_training_step(&result, j->training, &batch));
    count_step(j, &result);
    qn_progress(j->ctx, "steps", j->progress.step, j->steps);
    return QN_OK;
}

static bool is_time(const job *j)
{
    return j->progress.step < j->steps && qn_clock_ms() - j->saved >= j->options->checkpoint * 60e3;
}

/* A failure leaves the checkpoint that was written last. */
static qn_status take_steps(job *j)
{
    j->first_step = j->progress.step;
    j->started = j->saved = qn_clock_ms();
    if (j->progress.step < j->steps)
        QN_TRY(qn_batches_seek(&j->batches, j->progress.step));
    while (j->progress.step < j->steps) {
        QN_TRY(take_step(j));
        if (is_time(j))
            QN_TRY(save_checkpoint(j));
    }
    return QN_OK;
}

static qn_status train(job *j)
{
    const int threads = j->training->plan->threads;
    const bool pinned = qn_threads_pin(threads);
    const qn_status status = take_steps(j);
    j->seconds = (qn_clock_ms() - j->started) / 1e3;
    if (pinned)
        qn_threads_unpin(threads);
    return status;
}

/* ---- The result ------------------------------------------------------------------------------ */

static qn_status judge(double *points, job *j, qn_model *model)
{
    qn_eval_options o = QN_EVAL_OPTIONS_INIT;
    o.data = j->options->data;
    o.data.data = j->options->eval_data;
    o.data.n_data = j->options->n_eval_data;
    o.data.samples = 0;
    o.output = j->options->output;
    o.plan.threads = j->options->threads;
    return qn_eval_score(points, j->ctx, model, &o);
}

static qn_status write_model(job *j)
{
    qn_model *trained;
    QN_TRY(qn_training_model(&trained, j->training));
    const qn_export_options export = {.opset = 0};
    qn_status status = QN_OK;
    if (j->options->n_eval_data) {
        status = judge(&j->before, j, j->model);
        if (status == QN_OK)
            status = judge(&j->after, j, trained);
    }
    if (status == QN_OK)
        status = qn_export_onnx(j->ctx, trained, j->file, &export);
    qn_model_free(trained);
    if (status == QN_OK)
        unlink(j->checkpoint);
    return status;
}

static qn_status fill_report(qn_report *report, const job *j)
{
    qn_item *root = &report->root;
    const int64_t done = j->progress.step - j->first_step;
    qn_item_text(root, "file", j->file);
    qn_item_int(root, "steps", j->progress.step);
    qn_item_int(root, "batch", j->options->batch);
    qn_item_int(root, "samples", j->batches.count);
    if (done > 0)
        qn_item_real(root, "samples_per_second", (double)(done * j->options->batch) / j->seconds,
                     1);
    if (j->options->n_eval_data) {
        qn_item_real(root, "accuracy_before", j->before, 2);
        qn_item_real(root, "accuracy_after", j->after, 2);
    }
    qn_item *table = qn_item_table(root, "epochs");
    for (int64_t i = 0; i < j->progress.n_epochs; i++) {
        const qn_train_sums *s = &j->progress.epochs[i];
        qn_item *row = qn_item_row(table);
        qn_item_int(row, "epoch", i + 1);
        qn_item_int(row, "steps", s->steps);
        qn_item_real(row, "loss", s->loss / (double)s->steps, 4);
        if (j->training->has_labels)
            qn_item_real(row, "accuracy", 100 * s->correct / (double)(s->steps * j->options->batch),
                         2);
    }
    return qn_report_finish(report);
}

static qn_status run_job(qn_report *report, job *j)
{
    QN_TRY(prepare(j));
    QN_TRY(train(j));
    QN_TRY(write_model(j));
    return fill_report(report, j);
}

qn_status qn_train_run(qn_report **out, qn_context *ctx, qn_model *model,
                       const qn_train_options *options)
{
    *out = NULL;
    QN_TAKE_OPTIONS(qn_train_options, taken, ctx, options);
    job j = {.ctx = ctx, .model = model, .options = &taken};
    qn_report *report;
    QN_TRY(qn_report_create(&report, ctx));
    qn_arena_init(&j.arena, &ctx->allocator);
    const qn_status status = run_job(report, &j);
    qn_batches_close(&j.batches);
    qn_training_free(j.training);
    qn_folder_lock_drop(&j.lock);
    qn_arena_free(&j.arena);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    return status;
}

const char *qn_train_optimizer(size_t i)
{
    return qn_optimizer_name(i);
}

const char *qn_train_schedule(size_t i)
{
    return qn_schedule_name(i);
}
