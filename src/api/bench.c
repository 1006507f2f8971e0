/* qn_bench_run: how long a model takes, and where. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/inspect.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/options.h"
#include "base/pin.h"
#include "executor/feed.h"
#include "model/prepare.h"
#include "ops/infer.h"
#include "report/report.h"
#include "run/session.h"

enum { LEAST_RUNS = 5, LEAST_WARM_UP = 3 };

typedef struct bench {
    qn_context *ctx;
    const qn_bench_options *options;
    qn_plan *plan;
    qn_session *session;
    qn_feed feed;
    double plan_ms, first_ms;
    /* The times of the runs, ascending once measured */
    double *times;
    size_t n_times, capacity;
    /* The time of each step, all profiled runs together */
    double *step_ms;
    /* Clock at the end of the last step */
    double last_ms;
    int64_t profiled;
} bench;

/* ---- Measuring ------------------------------------------------------------------------------- */

static qn_status run_once(bench *b, double *ms)
{
    const double start = qn_clock_ms();
    QN_TRY(qn_session_run(b->session, b->feed.tensors, b->feed.n_in));
    *ms = qn_clock_ms() - start;
    return QN_OK;
}

/* A tenth of the time, so that caches, clock and thread pool are where they will be. */
static qn_status warm_up(bench *b, double seconds)
{
    const double until = qn_clock_ms() + seconds * 100;
    double ms;
    QN_TRY(run_once(b, &b->first_ms));
    for (int i = 1; i < LEAST_WARM_UP || qn_clock_ms() < until; i++)
        QN_TRY(run_once(b, &ms));
    return QN_OK;
}

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static qn_status measure(bench *b, double seconds)
{
    const double start = qn_clock_ms(), until = start + seconds * 1e3;
    while (b->n_times < LEAST_RUNS || qn_clock_ms() < until) {
        QN_TRY_GROW(b->ctx, b->times, b->capacity, b->n_times + 1);
        QN_TRY(run_once(b, &b->times[b->n_times]));
        b->n_times++;
        const double gone = qn_clock_ms() - start, done = (double)b->n_times;
        qn_progress(b->ctx, "runs", (int64_t)done,
                    (int64_t)(done * QN_MAX(1, seconds * 1e3 / gone)));
    }
    qsort(b->times, b->n_times, sizeof *b->times, compare_times);
    return QN_OK;
}

static void note_step(void *user, size_t step)
{
    bench *b = user;
    const double now = qn_clock_ms();
    b->step_ms[step] += now - b->last_ms;
    b->last_ms = now;
}

static qn_status measure_steps(bench *b, double seconds)
{
    const double until = qn_clock_ms() + seconds * 1e3;
    const qn_session_hooks hooks = {.user = b, .after = note_step};
    b->step_ms = qn_arena_array(&b->feed.arena, b->plan->n_steps + 1, sizeof *b->step_ms);
    QN_TRY_ALLOC(b->ctx, b->step_ms);
    while (b->profiled < LEAST_RUNS || qn_clock_ms() < until) {
        b->last_ms = qn_clock_ms();
        QN_TRY(qn_session_run_hooked(b->session, b->feed.tensors, b->feed.n_in, &hooks));
        b->profiled++;
    }
    return QN_OK;
}

/* The time that `share` of the runs did not exceed. */
static double percentile(const bench *b, double share)
{
    const double place = ceil(share * (double)b->n_times) - 1;
    return b->times[place < 0 ? 0 : (size_t)place];
}

/* ---- Reporting ------------------------------------------------------------------------------- */

static int64_t count_macs(const qn_graph *graph)
{
    int64_t macs = 0;
    for (const qn_node *node = graph->first; node; node = node->next)
        macs += qn_node_macs(node);
    return macs;
}

static void add_setting(qn_item *root, const bench *b)
{
    const qn_model *origin = b->plan->model->origin;
    qn_tensor input = {.rank = 0};
    if (b->feed.n_in)
        input = b->feed.tensors[0];
    if (origin && origin->path)
        qn_item_text(root, "model", origin->path);
    qn_item_text(root, "instruction_set", qn_isa_name(qn_cpu_isa()));
    qn_item_int(root, "threads", b->plan->threads);
    qn_item_int(root, "batch", input.rank > 0 ? input.dims[0] : 1);
    qn_item_int(root, "runs", (int64_t)b->n_times);
}

static void add_times(qn_item *root, const bench *b, double peak)
{
    const int64_t macs = count_macs(b->plan->model->graph);
    const double median = percentile(b, 0.5), rate = (double)macs / (median * 1e6);
    double sum = 0;
    for (size_t i = 0; i < b->n_times; i++)
        sum += b->times[i];
    qn_item_real(root, "median_ms", median, 3);
    qn_item_real(root, "min_ms", b->times[0], 3);
    qn_item_real(root, "mean_ms", sum / (double)b->n_times, 3);
    qn_item_real(root, "p90_ms", percentile(b, 0.9), 3);
    qn_item_real(root, "p99_ms", percentile(b, 0.99), 3);
    qn_item_real(root, "max_ms", b->times[b->n_times - 1], 3);
    qn_item_real(root, "first_ms", b->first_ms, 3);
    qn_item_real(root, "plan_ms", b->plan_ms, 1);
    qn_item_int(root, "macs", macs);
    qn_item_real(root, "gmacs", rate, 2);
    if (peak > 0) {
        qn_item_real(root, "peak_gmacs", peak, 2);
        qn_item_real(root, "peak_share", rate / peak, 3);
    }
    qn_item_int(root, "weight_bytes", (int64_t)b->plan->weight_bytes);
    qn_item_int(root, "arena_bytes", (int64_t)qn_plan_arena_bytes(b->plan));
    qn_item_int(root, "scratch_bytes", (int64_t)qn_plan_scratch_bytes(b->plan));
}

/* "Conv+Relu" of the step's nodes; a step without nodes changes a layout. */
static const char *step_label(qn_report *report, const qn_step *step, bool names)
{
    const char *label = step->n_nodes ? "" : "(layout)";
    for (int32_t n = 0; n < step->n_nodes && label; n++) {
        const qn_node *node = step->nodes[n];
        label = qn_arena_format(&report->arena, "%s%s%s", label, n ? "+" : "",
                                names ? node->name : node->op->name);
    }
    report->failed = report->failed || !label;
    return label ? label : "";
}

static int64_t step_macs(const qn_step *step)
{
    int64_t macs = 0;
    for (int32_t n = 0; n < step->n_nodes; n++)
        macs += qn_node_macs(step->nodes[n]);
    return macs;
}

/* The reference kernels are for being right: where one runs, something faster is missing. */
static bool is_slow(const qn_step *step)
{
    return strcmp(step->backend->name, "ref") == 0;
}

static const char *backend_note(const qn_step *step)
{
    return is_slow(step) ? "ref (slow)" : step->backend->name;
}

static void add_steps(qn_item *root, const bench *b, double total)
{
    qn_item *table = qn_item_table(root, "steps");
    for (size_t i = 0; i < b->plan->n_steps && !root->report->failed; i++) {
        const qn_step *step = &b->plan->steps[i];
        const double ms = b->step_ms[i] / (double)b->profiled;
        char type[128] = "";
        if (step->n_out > 0 && step->out[0] >= 0) {
            const qn_type shape = qn_type_of(&b->plan->slots.at[step->out[0]].shape);
            qn_type_format(type, sizeof type, &shape);
        }
        qn_item *row = qn_item_row(table);
        qn_item_int(row, "step", (int64_t)i);
        qn_item_real(row, "ms", ms, 4);
        qn_item_real(row, "estimate_ms", qn_step_cost(b->plan, step), 4);
        qn_item_real(row, "share", ms / total, 3);
        qn_item_real(row, "gmacs", ms > 0 ? (double)step_macs(step) / (ms * 1e6) : 0, 1);
        qn_item_text(row, "operators", step_label(root->report, step, false));
        qn_item_text(row, "backend", backend_note(step));
        qn_item_text(row, "kernel", step->kernel->name);
        qn_item_text(row, "output", type);
        qn_item_text(row, "nodes", step_label(root->report, step, true));
    }
}

typedef struct op_line {
    const char *label, *backend, *kernel;
    int64_t count, macs;
    double ms;
} op_line;

static int compare_lines(const void *a, const void *b)
{
    const double x = ((const op_line *)a)->ms, y = ((const op_line *)b)->ms;
    return (x < y) - (x > y);
}

static op_line *find_line(op_line *lines, size_t *count, const op_line *like)
{
    for (size_t i = 0; i < *count; i++) {
        if (lines[i].backend == like->backend && strcmp(lines[i].kernel, like->kernel) == 0 &&
            strcmp(lines[i].label, like->label) == 0)
            return &lines[i];
    }
    lines[*count] = *like;
    return &lines[(*count)++];
}

/* Steps of the same operators, backend and kernel together, the slowest first. */
static void add_operators(qn_item *root, const bench *b, double total)
{
    qn_report *report = root->report;
    qn_item *table = qn_item_table(root, "operators");
    op_line *lines = qn_arena_array(&report->arena, b->plan->n_steps + 1, sizeof *lines);
    size_t count = 0;
    report->failed = report->failed || !lines;
    for (size_t i = 0; i < b->plan->n_steps && !report->failed; i++) {
        const qn_step *step = &b->plan->steps[i];
        const op_line like = {.label = step_label(report, step, false),
                              .backend = backend_note(step),
                              .kernel = step->kernel->name};
        op_line *line = find_line(lines, &count, &like);
        line->count++;
        line->macs += step_macs(step);
        line->ms += b->step_ms[i] / (double)b->profiled;
    }
    if (report->failed)
        return;
    qsort(lines, count, sizeof *lines, compare_lines);
    for (size_t i = 0; i < count; i++) {
        qn_item *row = qn_item_row(table);
        qn_item_real(row, "ms", lines[i].ms, 4);
        qn_item_real(row, "share", lines[i].ms / total, 3);
        qn_item_int(row, "count", lines[i].count);
        qn_item_real(row, "gmacs",
                     lines[i].ms > 0 ? (double)lines[i].macs / (lines[i].ms * 1e6) : 0, 1);
        qn_item_text(row, "backend", lines[i].backend);
        qn_item_text(row, "kernel", lines[i].kernel);
        qn_item_text(row, "operators", lines[i].label);
    }
}

static void add_profile(qn_item *root, const bench *b)
{
    double total = 0, ref = 0;
    for (size_t i = 0; i < b->plan->n_steps; i++) {
        const double ms = b->step_ms[i] / (double)b->profiled;
        total += ms;
        if (strcmp(b->plan->steps[i].backend->name, "ref") == 0)
            ref += ms;
    }
    total = total > 0 ? total : 1;
    qn_item_real(root, "profiled_ms", total, 3);
    qn_item_real(root, "reference_share", ref / total, 3);
    qn_inspect_plugins(root, b->plan->backends);
    add_operators(root, b, total);
    add_steps(root, b, total);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static qn_status bench_prepare(bench *b)
{
    qn_plan_options plan = b->options->plan;
    qn_input_shape *shapes;
    QN_TRY(qn_feed_shapes(&shapes, &plan.graph.n_shapes, &b->feed));
    plan.graph.shapes = shapes;
    const double start = qn_clock_ms();
    QN_TRY(qn_plan_create_now(&b->plan, b->ctx, b->feed.model, &plan));
    QN_TRY(qn_session_create(&b->session, b->ctx, b->plan));
    b->plan_ms = qn_clock_ms() - start;
    return qn_feed_fill(&b->feed, b->plan);
}

/* The peak that the first backend of the build knows; 0: none does. */
static double measure_peak(int threads)
{
    for (size_t i = 0; qn_backends[i]; i++) {
        if (qn_backends[i]->peak)
            return qn_backends[i]->peak(threads);
    }
    return 0;
}

/* What is left of a model's speed where most of its work has no fast kernel, as in float64. */
static void log_slow(const bench *b)
{
    int64_t slow = 0, all = 0;
    for (size_t i = 0; i < b->plan->n_steps; i++) {
        const qn_step *step = &b->plan->steps[i];
        const int64_t macs = step_macs(step);
        all += macs;
        slow += is_slow(step) ? macs : 0;
    }
    if (slow > all / 2 && !b->options->plan.backend)
        qn_log(b->ctx, QN_LOG_NOTE,
               "%.0f %% of the multiply-accumulates run in reference kernels, which are slow "
               "(`profile` tells which)",
               100.0 * (double)slow / (double)all);
}

static qn_status bench_measure(bench *b, qn_item *root)
{
    const double seconds = b->options->seconds > 0 ? b->options->seconds : 1.0;
    const bool pinned = qn_threads_pin(b->plan->threads);
    qn_status status = warm_up(b, seconds);
    if (status == QN_OK)
        status = measure(b, seconds);
    if (status == QN_OK && b->options->profile)
        status = measure_steps(b, seconds);
    const double peak = status == QN_OK ? measure_peak(b->plan->threads) : 0;
    if (pinned)
        qn_threads_unpin(b->plan->threads);
    QN_TRY(status);
    log_slow(b);
    add_setting(root, b);
    add_times(root, b, peak);
    if (b->options->profile)
        add_profile(root, b);
    return qn_report_finish(root->report);
}

qn_status qn_bench_run(qn_report **out, qn_context *ctx, qn_model *model,
                       const qn_bench_options *options)
{
    *out = NULL;
    QN_TAKE_OPTIONS(qn_bench_options, taken, ctx, options);
    const qn_bench_options *o = &taken;
    const qn_feed_options feed = {
        .inputs = o->inputs, .n_inputs = o->n_inputs, .seed = o->seed, .graph = &o->plan.graph};
    bench b = {.ctx = ctx, .options = o};
    qn_report *report;
    QN_TRY(qn_report_create(&report, ctx));
    qn_status status = qn_feed_open(&b.feed, ctx, model, &feed);
    if (status == QN_OK)
        status = bench_prepare(&b);
    if (status == QN_OK)
        status = bench_measure(&b, &report->root);
    qn_session_free(b.session);
    qn_plan_free(b.plan);
    qn_feed_close(&b.feed);
    qn_free(ctx, b.times);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    return status;
}
