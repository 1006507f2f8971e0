/* qn_verify_files: the reference backend beside the fast ones, tensor by tensor.
 *
 * Plans see the same inputs: the reference; the fast backends with every value to be shown, so that
 * nothing is fused; and the plan that a user gets, whose steps are compared with what they leave
 * behind. The fast ones do so with the threads that were asked for and with one: the reference is
 * what takes the time. */
#include "base/options.h"
#include "compare/reference_values.h"
#include "executor/feed.h"
#include "model/prepare.h"
#include "ort/ort_comparison.h"
#include <stdio.h>

#include "report/report.h"

enum { REFERENCE, ALONE, FUSED, ALONE_NARROW, FUSED_NARROW, RUNS };

typedef struct job {
    qn_feed feed;
    qn_reference_values reference;
    qn_plan *plans[RUNS];
    qn_session *sessions[RUNS];
    /* Without the narrow ones where one thread was asked for */
    size_t n_runs;
    qn_session *running;
    /* It runs, for messages */
    const char *how;
    /* NULL: ONNX Runtime was not asked for */
    qn_ort_comparison *ort;
    /* The status of comparisons inside a run */
    qn_status status;
} job;

/* ---- What runs tell -------------------------------------------------------------------------- */

static bool observe_all(const void *user, const qn_value *value)
{
    (void)user;
    return value->producer != NULL;
}

static qn_status take(void *user, const qn_observation *seen)
{
    return qn_reference_values_keep(&((job *)user)->reference, seen);
}

/* Where all values lie in this memory each that may differ becomes the reference's; else what is
 * made of it may differ too. */
static bool may_differ(const job *j, const qn_value *value)
{
    const qn_plan *plan = j->running->plan;
    const qn_reference_value *known = qn_reference_value_of(&j->reference, value);
    bool elsewhere = false;
    for (size_t i = 0; i < plan->slots.count; i++)
        elsewhere = elsewhere || plan->slots.at[i].space != QN_HOST;
    return known && (elsewhere ? known->behind : known->is_float);
}

static qn_status compare(void *user, const qn_observation *seen)
{
    job *j = user;
    return qn_reference_values_compare(&j->reference, seen, j->how, may_differ(j, seen->value));
}

/* What is computed in float inside a group does not show, and all that the group writes may
 * differ. */
static bool computes_in_float(const qn_step *step)
{
    for (int32_t i = 0; i < step->n_nodes; i++) {
        if (qn_reference_is_loose(step->nodes[i]))
            return true;
    }
    return false;
}

/* What step i of the fused plan has written; values in other memory are compared once they are
 * copied here. */
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
        j->status = qn_reference_values_compare(
            &j->reference, &seen, j->how, computes_in_float(step) || may_differ(j, slot->value));
    }
}

/* ---- The job --------------------------------------------------------------------------------- */

static qn_status make_plans(job *j, const qn_plan_options *options)
{
    const qn_observe_options all = {.observe = observe_all};
    qn_context *ctx = j->feed.ctx;
    qn_plan_options plan = *options, reference;
    qn_input_shape *shapes;
    QN_TRY(qn_feed_shapes(&shapes, &plan.graph.n_shapes, &j->feed));
    plan.graph.shapes = shapes;
    reference = plan;
    reference.backend = "ref";
    QN_TRY(qn_plan_create_observed(&j->plans[REFERENCE], ctx, j->feed.model, &reference, &all));
    for (j->n_runs = 1; j->n_runs < RUNS; plan.threads = 1) {
        QN_TRY(qn_plan_create_observed(&j->plans[j->n_runs++], ctx, j->feed.model, &plan, &all));
        QN_TRY(qn_plan_create_now(&j->plans[j->n_runs++], ctx, j->feed.model, &plan));
        if (j->plans[FUSED]->threads == 1)
            break;
    }
    for (size_t i = 0; i < j->n_runs; i++)
        QN_TRY(qn_session_create(&j->sessions[i], ctx, j->plans[i]));
    QN_TRY(qn_reference_values_init(&j->reference, ctx, j->plans[REFERENCE]->model->graph));
    return qn_feed_fill(&j->feed, j->plans[FUSED]);
}

static qn_status verify_batch(job *j)
{
    static const char *const how[RUNS] = {"", "computed alone", "fused as planned",
                                          "computed alone by one thread",
                                          "fused as planned for one thread"};
    const qn_feed *feed = &j->feed;
    const qn_session_hooks take_it = {.user = j, .seen = take},
                           alone = {.user = j, .seen = compare},
                           fused = {.user = j, .after = compare_step};
    for (size_t i = 0; i < j->n_runs; i++) {
        j->how = how[i];
        QN_TRY(qn_session_sibling(&j->running, j->sessions[i], feed->tensors));
        QN_TRY(qn_session_run_hooked(j->sessions[i], feed->tensors, feed->n_in,
                                     i == REFERENCE ? &take_it
                                     : i % 2        ? &alone
                                                    : &fused));
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
        if (j->ort)
            QN_TRY(qn_ort_comparison_run(j->ort, j->feed.tensors, &j->reference));
        qn_progress(j->feed.ctx, "samples", done + count, samples);
        QN_TRY(qn_check_cancel(j->feed.ctx));
    }
    return QN_OK;
}

/* No tensor that must be equal is no proof that all are. */
static qn_status judge(const job *j, int64_t exact)
{
    const qn_reference_values *t = &j->reference;
    if (!exact)
        return qn_fail(
            j->feed.ctx, QN_E_UNSUPPORTED,
            "nothing to prove: this model has no tensors of integers, which must be equal");
    if (!t->differing)
        return QN_OK;
    return qn_fail(j->feed.ctx, QN_E_INVALID,
                   "tensor '%s' of node '%s', %s: element %lld is %.9g, the reference has %.9g "
                   "(%lld tensors differ)",
                   t->first.value->name, t->first.value->node, t->first.how,
                   (long long)t->first.element, t->first.got, t->first.reference,
                   (long long)t->differing);
}

static void report_difference(qn_item *root, const qn_reference_values *t)
{
    qn_item *first = qn_item_group(root, "first_difference");
    qn_item_int(root, "differing", t->differing);
    qn_item_text(first, "tensor", t->first.value->name);
    qn_item_text(first, "node", t->first.value->node);
    qn_item_text(first, "how", t->first.how);
    qn_item_int(first, "element", t->first.element);
    qn_item_real(first, "value", t->first.got, 9);
    qn_item_real(first, "reference", t->first.reference, 9);
}

/* "bit_exact" is neither true nor false where nothing was compared. */
static void report_result(qn_item *root, const qn_reference_values *reference, int64_t exact)
{
    char words[64];
    if (!exact)
        snprintf(words, sizeof words, "nothing to prove: no tensors of integers");
    else if (reference->differing)
        snprintf(words, sizeof words, "differs: %lld of %lld tensors",
                 (long long)reference->differing, (long long)exact);
    else
        snprintf(words, sizeof words, "bit-exact: %lld tensors", (long long)exact);
    qn_item_text(root, "result", words);
    if (exact)
        qn_item_bool(root, "bit_exact", !reference->differing);
    qn_item_int(root, "tensors", exact);
    if (reference->differing)
        report_difference(root, reference);
}

static qn_status fill_report(qn_report *report, int64_t *exact, const job *j)
{
    const qn_reference_values *reference = &j->reference;
    int64_t real = 0;
    const char *first_float = NULL;
    *exact = 0;
    for (size_t i = 0; i < reference->count; i++) {
        const qn_reference_value *value = &reference->values[i];
        *exact += value->compared && !value->is_float;
        real += value->compared && value->is_float;
        if (value->compared && value->is_float && !first_float)
            first_float = value->node;
    }
    report_result(&report->root, reference, *exact);
    qn_item_int(&report->root, "samples", QN_MAX(j->feed.samples, 1));
    qn_item_int(&report->root, "threads", j->plans[FUSED]->threads);
    if (j->n_runs == RUNS)
        qn_item_int(&report->root, "also_with_threads", 1);
    if (real) {
        qn_item_int(&report->root, "float_tensors", real);
        qn_item_text(&report->root, "float_from", first_float);
        qn_item_real(&report->root, "float_error", reference->float_error, 9);
    }
    if (j->ort)
        qn_ort_comparison_report(&report->root, j->ort);
    else
        qn_item_text(&report->root, "onnx_runtime", "not compared: its library was not named");
    return qn_report_finish(report);
}

/* With a difference, or nothing to compare, there is a report too. */
static qn_status run_job(qn_report **out, qn_report *report, job *j,
                         const qn_verify_options *options)
{
    int64_t exact;
    QN_TRY(make_plans(j, &options->plan));
    if (options->runtime)
        QN_TRY(qn_ort_comparison_open(&j->ort, j->feed.ctx, j->feed.model, options->runtime));
    QN_TRY(verify_all(j));
    QN_TRY(fill_report(report, &exact, j));
    *out = report;
    return judge(j, exact);
}

qn_status qn_verify_files(qn_report **out, qn_context *ctx, qn_model *model,
                          const qn_verify_options *options)
{
    *out = NULL;
    QN_TAKE_OPTIONS(qn_verify_options, taken, ctx, options);
    const qn_verify_options *o = &taken;
    const qn_feed_options feed = {.inputs = o->inputs,
                                  .n_inputs = o->n_inputs,
                                  .data = &o->data,
                                  .seed = o->seed,
                                  .graph = &o->plan.graph};
    job j = {.status = QN_OK};
    qn_report *report;
    QN_TRY(qn_report_create(&report, ctx));
    qn_status status = qn_feed_open(&j.feed, ctx, model, &feed);
    if (status == QN_OK)
        status = run_job(out, report, &j, o);
    for (size_t i = 0; i < RUNS; i++) {
        qn_session_free(j.sessions[i]);
        qn_plan_free(j.plans[i]);
    }
    qn_ort_comparison_close(j.ort);
    qn_reference_values_free(&j.reference);
    qn_feed_close(&j.feed);
    if (!*out)
        qn_report_free(report);
    return status;
}
