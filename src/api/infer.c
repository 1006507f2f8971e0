/* qn_infer_files: from files through a model to files. */
#include "api/infer.h"

#include "base/clock.h"

static qn_status make_session(qn_infer_job *job)
{
    qn_plan_options plan = job->options->plan;
    qn_input_shape *shapes;
    QN_TRY(qn_infer_shapes(&shapes, &plan.graph.n_shapes, job));
    plan.graph.shapes = shapes;
    QN_TRY(qn_plan_create(&job->plan, job->ctx, job->model, &plan));
    return qn_session_create(&job->session, job->ctx, job->plan);
}

static qn_status run_all(qn_infer_job *job)
{
    const int64_t samples = QN_MAX(job->samples, 1), batch = job->samples < 0 ? 1 : job->batch;
    for (int64_t first = 0; first < samples; first += batch) {
        const int64_t count = QN_MIN(samples - first, batch);
        QN_TRY(qn_infer_select(job, first, count));
        const double start = qn_clock_ms();
        QN_TRY(qn_session_run(job->session, job->tensors, job->n_in));
        job->run_ms += qn_clock_ms() - start;
        QN_TRY(qn_infer_take_outputs(job, count));
        qn_progress(job->ctx, "samples", first + count, samples);
    }
    return QN_OK;
}

static qn_status job_run(qn_infer_job *job)
{
    job->n_in = qn_model_input_count(job->model);
    job->n_out = qn_model_output_count(job->model);
    job->in = qn_arena_array(&job->arena, job->n_in + 1, sizeof *job->in);
    job->out = qn_arena_array(&job->arena, job->n_out + 1, sizeof *job->out);
    if (!job->in || !job->out)
        return qn_fail_nomem(job->ctx);
    QN_TRY(qn_infer_open_inputs(job));
    QN_TRY(make_session(job));
    QN_TRY(qn_infer_fill_inputs(job));
    QN_TRY(qn_infer_name_outputs(job));
    QN_TRY(run_all(job));
    QN_TRY(qn_check_cancel(job->ctx));
    return qn_infer_commit_outputs(job);
}

static qn_status report(qn_report **out, const qn_infer_job *job)
{
    QN_TRY(qn_report_create(out, job->ctx));
    qn_item *root = &(*out)->root;
    if (job->samples >= 0)
        qn_item_int(root, "samples", job->samples);
    qn_item_real(root, "run_ms", job->run_ms, 3);
    qn_infer_report_outputs(root, job);
    const qn_status status = qn_report_finish(*out);
    if (status != QN_OK) {
        qn_report_free(*out);
        *out = NULL;
    }
    return status;
}

qn_status qn_infer_files(qn_report **out, qn_context *ctx, qn_model *model,
                         const qn_infer_options *options)
{
    const qn_infer_options defaults = QN_INFER_OPTIONS_INIT;
    qn_infer_job job = {
        .ctx = ctx, .model = model, .options = options ? options : &defaults, .samples = -1};
    *out = NULL;
    qn_arena_init(&job.arena, &ctx->allocator);
    qn_status status = job_run(&job);
    if (status == QN_OK)
        status = report(out, &job);
    qn_infer_discard_outputs(&job);
    qn_infer_close_inputs(&job);
    qn_session_free(job.session);
    qn_plan_free(job.plan);
    qn_arena_free(&job.arena);
    return status;
}
