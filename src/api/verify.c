/* qn_verify_files: the reference backend beside the fast ones, tensor by tensor.
 *
 * Three plans see the same inputs: the reference; the fast backends with every value to be shown, so that
 * nothing is fused; and the plan that a user gets, whose steps are compared with what they leave behind. */
#include "api/beside.h"
#include "api/feed.h"
#include "api/prepare.h"
#include "api/truth.h"
#include <stdio.h>

#include "report/report.h"

typedef struct job {
    qn_feed feed;
    qn_truth truth;
    qn_plan *reference, *single, *fused;
    qn_session *sessions[3];
    qn_session *running;
    qn_beside *beside; /* NULL: ONNX Runtime was not asked for */
    qn_status status;  /* of comparisons inside a run */
} job;

/* ---- What runs tell ----------------------------------------------------------------------------------------- */

static bool observe_all(const void *user, const qn_value *value)
{
    (void)user;
    return value->producer != NULL;
}

static qn_status take(void *user, const qn_observation *seen)
{
    return qn_truth_take(&((job *)user)->truth, seen);
}

/* Where all values lie in this memory each that may differ becomes the reference's; else what is made of it may
 * differ too. */
static bool may_differ(const job *j, const qn_value *value)
{
    const qn_plan *plan = j->running->plan;
    const qn_true_value *known = qn_truth_of(&j->truth, value);
    bool elsewhere = false;
    for (size_t i = 0; i < plan->slots.count; i++)
        elsewhere = elsewhere || plan->slots.at[i].space != QN_HOST;
    return known && (elsewhere ? known->behind : known->is_float);
}

static qn_status compare(void *user, const qn_observation *seen)
{
    job *j = user;
    return qn_truth_compare(&j->truth, seen, "computed alone", may_differ(j, seen->value));
}

/* What is computed in float inside a group does not show, and all that the group writes may differ. */
static bool computes_in_float(const qn_step *step)
{
    for (int32_t i = 0; i < step->n_nodes; i++) {
        if (qn_truth_is_loose(step->nodes[i]))
            return true;
    }
    return false;
}

/* What step i of the fused plan has written; values in other memory are compared once they are copied here. */
static void compare_step(void *user, size_t i)
{
    job *j = user;
    const qn_session *session = j->running;
    const qn_step *step = &session->plan->steps[i];
    for (int32_t o = 0; o < step->n_out && j->status == QN_OK; o++) {
        const qn_slot *slot = step->out[o] < 0 ? NULL : &session->plan->slots.at[step->out[o]];
        if (!slot || slot->space != QN_HOST)
            continue;
        const qn_observation seen = {slot->value, &session->tensors[step->out[o]], slot->layout,
                                     slot->stride};
        j->status = qn_truth_compare(&j->truth, &seen, "fused as planned",
                                     computes_in_float(step) || may_differ(j, slot->value));
    }
}

/* ---- The job -------------------------------------------------------------------------------------------------- */

static qn_status make_plans(job *j, const qn_plan_options *options)
{
    const qn_watch all = {.observe = observe_all};
    qn_context *ctx = j->feed.ctx;
    qn_plan_options plan = *options, reference;
    qn_input_shape *shapes;
    QN_TRY(qn_feed_shapes(&shapes, &plan.graph.n_shapes, &j->feed));
    plan.graph.shapes = shapes;
    reference = plan;
    reference.backend = "ref";
    QN_TRY(qn_plan_create_now(&j->fused, ctx, j->feed.model, &plan));
    QN_TRY(qn_plan_create_watched(&j->single, ctx, j->feed.model, &plan, &all));
    QN_TRY(qn_plan_create_watched(&j->reference, ctx, j->feed.model, &reference, &all));
    qn_plan *const plans[3] = {j->reference, j->single, j->fused};
    for (int i = 0; i < 3; i++)
        QN_TRY(qn_session_create(&j->sessions[i], ctx, plans[i]));
    QN_TRY(qn_truth_init(&j->truth, ctx, j->reference->model->graph));
    return qn_feed_fill(&j->feed, j->fused);
}

static qn_status verify_batch(job *j)
{
    const qn_feed *feed = &j->feed;
    const qn_session_hooks hooks[3] = {{.user = j, .seen = take},
                                       {.user = j, .seen = compare},
                                       {.user = j, .after = compare_step}};
    for (int i = 0; i < 3; i++) {
        QN_TRY(qn_session_sibling(&j->running, j->sessions[i], feed->tensors));
        QN_TRY(qn_session_run_hooked(j->sessions[i], feed->tensors, feed->n_in, &hooks[i]));
        QN_TRY(j->status);
    }
    return QN_OK;
}

static qn_status verify_all(job *j)
{
    const int64_t samples = QN_MAX(j->feed.samples, 1);
    int64_t count;
    for (int64_t done = 0;; done += count) {
        QN_TRY(qn_feed_next(&count, &j->feed));
        if (count == 0)
            break;
        QN_TRY(verify_batch(j));
        if (j->beside)
            QN_TRY(qn_beside_run(j->beside, j->feed.tensors, &j->truth));
        qn_progress(j->feed.ctx, "samples", done + count, samples);
        QN_TRY(qn_check_cancel(j->feed.ctx));
    }
    if (j->truth.differing)
        return qn_fail(j->feed.ctx, QN_E_INVALID, "%s (%lld tensors differ)", j->truth.first,
                       (long long)j->truth.differing);
    return QN_OK;
}

static qn_status fill_report(qn_report *report, const job *j)
{
    const qn_truth *truth = &j->truth;
    char words[64];
    int64_t exact = 0, real = 0;
    const char *first_float = NULL;
    for (size_t i = 0; i < truth->count; i++) {
        const qn_true_value *value = &truth->values[i];
        exact += value->compared && !value->is_float;
        real += value->compared && value->is_float;
        if (value->compared && value->is_float && !first_float)
            first_float = value->node;
    }
    snprintf(words, sizeof words, "bit-exact: %lld tensors", (long long)exact);
    qn_item_text(&report->root, "result", words);
    qn_item_int(&report->root, "samples", QN_MAX(j->feed.samples, 1));
    qn_item_int(&report->root, "threads", j->fused->threads);
    if (real) {
        qn_item_int(&report->root, "float_tensors", real);
        qn_item_text(&report->root, "float_from", first_float);
        qn_item_real(&report->root, "float_error", truth->float_error, 9);
    }
    if (j->beside)
        qn_beside_report(&report->root, j->beside);
    else
        qn_item_text(&report->root, "onnx_runtime", "not compared: its library was not named");
    return qn_report_finish(report);
}

static qn_status run_job(qn_report *report, job *j, const qn_verify_options *options)
{
    QN_TRY(make_plans(j, &options->plan));
    if (options->runtime)
        QN_TRY(qn_beside_open(&j->beside, j->feed.ctx, j->feed.model, options->runtime));
    QN_TRY(verify_all(j));
    return fill_report(report, j);
}

qn_status qn_verify_files(qn_report **out, qn_context *ctx, qn_model *model,
                          const qn_verify_options *options)
{
    const qn_verify_options defaults = QN_VERIFY_OPTIONS_INIT;
    const qn_verify_options *o = options ? options : &defaults;
    const qn_feed_options feed = {.inputs = o->inputs,
                                  .n_inputs = o->n_inputs,
                                  .data = &o->data,
                                  .seed = o->seed,
                                  .graph = &o->plan.graph};
    job j = {.status = QN_OK};
    qn_report *report;
    *out = NULL;
    QN_TRY(qn_report_create(&report, ctx));
    qn_status status = qn_feed_open(&j.feed, ctx, model, &feed);
    if (status == QN_OK)
        status = run_job(report, &j, o);
    for (int i = 0; i < 3; i++)
        qn_session_free(j.sessions[i]);
    qn_plan_free(j.reference);
    qn_plan_free(j.single);
    qn_plan_free(j.fused);
    qn_beside_close(j.beside);
    qn_truth_free(&j.truth);
    qn_feed_close(&j.feed);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    return status;
}
