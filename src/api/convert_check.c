/* What a converted file gives, beside the framework's own runtime or the graph before the
 * passes. */
#include "api/convert_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "executor/feed.h"
#include "ir/dtype.h"
#include "model/prepare.h"
#include "pass/quant_formats.h"

/* Parts of the largest number of an output. Sums of floats in another order differ by some 1e-6 in
 * networks of a hundred layers; a wrong padding or axis by more than 1e-2. */
#define TOLERANCE 2e-4
/* Integers, and what was computed of them, may round otherwise by this many steps of a range of
 * 8 bits. Kernels of one and the same runtime differ by up to 29 behind a Softmax, so that another
 * one can ask for no less. */
enum { STEPS = 2, RUNTIME_STEPS = 32, HALF_RANGE = 127 };

typedef struct check {
    qn_context *ctx;
    qn_model *model, *written;
    const qn_convert_options *options;
    qn_feed feed;
    qn_plan *plans[2];
    qn_session *sessions[2];
    /* Some nodes of the model compute with integers. */
    bool is_quantized;
    /* The other side is the framework's runtime. */
    bool is_runtime;
    /* The worst output so far, in parts of what is allowed; 0: all are equal. */
    double worst, difference;
    bool in_steps;
    const char *output;
    size_t compared;
} check;

/* ---- One output ------------------------------------------------------------------------------ */

/* max |a - b| and max |a|, where both are finite; infinite where only one is. */
static void measure(double *apart, double *largest, const qn_tensor *a, const qn_tensor *b)
{
    enum { PIECE = 512 };
    const int64_t count = qn_tensor_count(a);
    double x[PIECE], y[PIECE];
    *apart = *largest = 0;
    for (int64_t at = 0; at < count; at += PIECE) {
        const int64_t n = QN_MIN(count - at, PIECE);
        qn_load_f64(x, a->dtype, a->data, at, n);
        qn_load_f64(y, b->dtype, b->data, at, n);
        for (int64_t i = 0; i < n; i++) {
            if (isfinite(x[i]))
                *largest = QN_MAX(*largest, fabs(x[i]));
            if (isfinite(x[i]) != isfinite(y[i]))
                *apart = INFINITY;
            else if (isfinite(x[i]))
                *apart = QN_MAX(*apart, fabs(x[i] - y[i]));
        }
    }
}

static bool is_number(const qn_tensor *tensor)
{
    const qn_dtype_kind kind = qn_dtype_get(tensor->dtype)->kind;
    return tensor->data && kind != QN_KIND_STRING && kind != QN_KIND_COMPLEX &&
           tensor->dtype != QN_SEQUENCE && tensor->dtype != QN_NONE;
}

static bool have_same_shape(const qn_tensor *a, const qn_tensor *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

/* Output i of the file, and what it should be. */
static void compare(check *c, size_t i, const qn_tensor *wanted)
{
    const qn_tensor *have = qn_session_output(c->sessions[1], i);
    double apart = INFINITY, largest = 0;
    if (!is_number(have) || !is_number(wanted))
        return;
    if (have_same_shape(wanted, have))
        measure(&apart, &largest, wanted, have);
    const bool whole = qn_dtype_get(have->dtype)->kind != QN_KIND_FLOAT;
    const double relative = largest > 0 ? apart / largest : apart;
    const double steps = c->is_quantized && c->is_runtime ? RUNTIME_STEPS : STEPS;
    const double allowed = whole             ? apart / steps
                           : c->is_quantized ? relative * HALF_RANGE / steps
                                             : relative / TOLERANCE;
    c->compared++;
    if (c->output && allowed <= c->worst)
        return;
    c->worst = allowed;
    c->difference = whole ? apart : relative;
    c->in_steps = whole;
    c->output = qn_model_output_name(c->written, i);
}

/* ---- Running --------------------------------------------------------------------------------- */

static qn_status make_plans(check *c)
{
    static const char *const all[] = {"all"};
    const qn_observe_options nothing = {.purpose = QN_PURPOSE_RUN};
    qn_plan_options plan = QN_PLAN_OPTIONS_INIT;
    plan.graph = c->options->graph;
    QN_TRY(qn_plan_create_observed(&c->plans[1], c->ctx, c->written, &plan, &nothing));
    plan.graph.skip = all;
    plan.graph.n_skip = 1;
    QN_TRY(qn_plan_create_observed(&c->plans[0], c->ctx, c->model, &plan, &nothing));
    for (size_t i = 0; i < 2; i++)
        QN_TRY(qn_session_create(&c->sessions[i], c->ctx, c->plans[i]));
    return QN_OK;
}

static qn_status run_written(check *c)
{
    const qn_feed_options random = {.graph = &c->options->graph};
    QN_TRY(qn_feed_open(&c->feed, c->ctx, c->model, &random));
    QN_TRY(make_plans(c));
    QN_TRY(qn_feed_fill(&c->feed, c->plans[0]));
    return qn_session_run(c->sessions[1], c->feed.tensors, c->feed.n_in);
}

static qn_status run_before_passes(check *c)
{
    QN_TRY(qn_session_run(c->sessions[0], c->feed.tensors, c->feed.n_in));
    for (size_t i = 0; i < qn_model_output_count(c->model); i++)
        compare(c, i, qn_session_output(c->sessions[0], i));
    return QN_OK;
}

/* ---- The framework's own runtime ------------------------------------------------------------- */

static void take(void *user, size_t output, const qn_tensor *tensor)
{
    compare(user, output, tensor);
}

/* QN_E_UNSUPPORTED: it is not there, or cannot run this model. */
static qn_status run_framework(char version[QN_RUNTIME_VERSION], check *c)
{
    const size_t n_in = c->feed.n_in, n_out = qn_model_output_count(c->written);
    const char **names = qn_arena_array(&c->feed.arena, n_in + n_out + 1, sizeof *names);
    QN_TRY_ALLOC(c->ctx, names);
    for (size_t i = 0; i < n_in; i++)
        names[i] = qn_model_input_name(c->model, i);
    for (size_t i = 0; i < n_out; i++)
        names[n_in + i] = qn_model_output_name(c->written, i);
    const qn_runtime_run run = {.framework = c->model->framework,
                                .model = c->model->path,
                                .input_names = names,
                                .inputs = c->feed.tensors,
                                .n_inputs = n_in,
                                .output_names = names + n_in,
                                .n_outputs = n_out,
                                .take = take,
                                .taker = c};
    return c->options->runtime(c->options->runtime_user, c->ctx, version, &run);
}

/* *with says what the file was compared with. */
static qn_status run_other(char with[QN_RUNTIME_VERSION], check *c)
{
    if (c->options->runtime) {
        c->is_runtime = true;
        const qn_status status = run_framework(with, c);
        if (status != QN_E_UNSUPPORTED)
            return status;
        c->is_runtime = false;
        qn_log(c->ctx, QN_LOG_NOTE, "%s: the file is compared with the graph before the passes",
               qn_context_error(c->ctx));
    }
    snprintf(with, QN_RUNTIME_VERSION, "the graph before the passes");
    return run_before_passes(c);
}

/* ---- The result ------------------------------------------------------------------------------ */

static qn_status judge(qn_item *root, const check *c, const char *with)
{
    qn_item *group = qn_item_group(root, "comparison");
    qn_item_text(group, "with", with);
    qn_item_int(group, "outputs", (int64_t)c->compared);
    if (c->in_steps)
        qn_item_int(group, "largest_steps", (int64_t)QN_MIN(c->difference, INT32_MAX));
    else
        qn_item_real(group, "largest_difference", c->difference, 7);
    if (!(c->worst > 1))
        return QN_OK;
    return qn_fail(c->ctx, QN_E_INVALID,
                   "output '%s' is %.3g%s from what %s gives: the file that was written does not "
                   "compute what the model does",
                   c->output, c->difference, c->in_steps ? " steps" : " of its largest number",
                   with);
}

static qn_status run(qn_item *root, check *c)
{
    char with[QN_RUNTIME_VERSION] = "";
    const qn_status status = run_written(c);
    if (status == QN_E_INVALID || status == QN_E_UNSUPPORTED || status == QN_E_OPTION) {
        qn_log(c->ctx, QN_LOG_NOTE, "the file is not compared with the model: %s",
               qn_context_error(c->ctx));
        return QN_OK;
    }
    QN_TRY(status);
    QN_TRY(run_other(with, c));
    return judge(root, c, with);
}

qn_status qn_runtime_fail(qn_context *ctx, qn_status status, const char *message)
{
    return qn_fail(ctx, status, "%s", message);
}

qn_status qn_convert_check(qn_item *root, qn_model *model, qn_model *written,
                           const qn_convert_options *options)
{
    check c = {.ctx = root->report->ctx,
               .model = model,
               .written = written,
               .options = options,
               .is_quantized = qn_graph_is_quantized(model->graph)};
    if (options->no_compare || !model->framework || strcmp(model->framework, "onnx") == 0)
        return QN_OK;
    const qn_status status = run(root, &c);
    for (size_t i = 0; i < 2; i++) {
        qn_session_free(c.sessions[i]);
        qn_plan_free(c.plans[i]);
    }
    qn_feed_close(&c.feed);
    return status;
}
