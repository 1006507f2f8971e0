/* qn_infer_files: from files through a model to files. */
#include "api/infer.h"

#include "api/prepare.h"
#include "base/clock.h"
#include "base/pin.h"
#include "run/plan.h"

typedef struct job {
    qn_feed feed;
    qn_infer_outputs outputs;
    qn_plan *plan;
    qn_session *session;
    double plan_ms, run_ms;
} job;

static qn_status make_session(job *j, const qn_plan_options *options)
{
    qn_plan_options plan = *options;
    qn_input_shape *shapes;
    QN_TRY(qn_feed_shapes(&shapes, &plan.graph.n_shapes, &j->feed));
    plan.graph.shapes = shapes;
    const double start = qn_clock_ms();
    QN_TRY(qn_plan_create_now(&j->plan, j->feed.ctx, j->feed.model, &plan));
    QN_TRY(qn_session_create(&j->session, j->feed.ctx, j->plan));
    j->plan_ms = qn_clock_ms() - start;
    return qn_feed_fill(&j->feed, j->plan);
}

static qn_status run_all(job *j)
{
    qn_feed *feed = &j->feed;
    const int64_t samples = QN_MAX(feed->samples, 1);
    int64_t count;
    for (int64_t done = 0;; done += count) {
        QN_TRY(qn_feed_next(&count, feed));
        if (count == 0)
            break;
        const double start = qn_clock_ms();
        QN_TRY(qn_session_run(j->session, feed->tensors, feed->n_in));
        j->run_ms += qn_clock_ms() - start;
        QN_TRY(qn_infer_outputs_take(&j->outputs, j->session, count));
        qn_progress(feed->ctx, "samples", done + count, samples);
    }
    /* From here on names appear: the last moment to turn back. */
    QN_TRY(qn_check_cancel(feed->ctx));
    return qn_infer_outputs_commit(&j->outputs);
}

static qn_status fill_report(qn_report *report, const job *j)
{
    qn_item *root = &report->root;
    if (j->feed.samples >= 0)
        qn_item_int(root, "samples", j->feed.samples);
    qn_item_real(root, "plan_ms", j->plan_ms, 3);
    qn_item_real(root, "run_ms", j->run_ms, 3);
    qn_infer_outputs_report(root, &j->outputs);
    return qn_report_finish(report);
}

static qn_status run_job(qn_report *report, job *j, const qn_infer_options *options)
{
    QN_TRY(make_session(j, &options->plan));
    QN_TRY(qn_infer_outputs_init(&j->outputs, &j->feed, options->output_dir));
    const bool pinned = qn_threads_pin(j->plan->threads);
    const qn_status status = run_all(j);
    if (pinned)
        qn_threads_unpin(j->plan->threads);
    QN_TRY(status);
    return fill_report(report, j);
}

qn_status qn_infer_files(qn_report **out, qn_context *ctx, qn_model *model,
                         const qn_infer_options *options)
{
    const qn_infer_options defaults = QN_INFER_OPTIONS_INIT;
    const qn_infer_options *o = options ? options : &defaults;
    const qn_feed_options feed = {.inputs = o->inputs,
                                  .n_inputs = o->n_inputs,
                                  .data = &o->data,
                                  .seed = o->seed,
                                  .graph = &o->plan.graph};
    job j = {.plan = NULL};
    qn_report *report;
    *out = NULL;
    QN_TRY(qn_report_create(&report, ctx));
    qn_status status = qn_feed_open(&j.feed, ctx, model, &feed);
    if (status == QN_OK)
        status = run_job(report, &j, o);
    qn_infer_outputs_discard(&j.outputs);
    qn_session_free(j.session);
    qn_plan_free(j.plan);
    qn_feed_close(&j.feed);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    return status;
}
