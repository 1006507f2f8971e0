/* The infer functions that are built in. */
#include <string.h>

#include "base/nearest.h"
#include "executor/feed.h"
#include "executor/functions.h"
#include "executor/infer_default.h"

static const qn_function_row rows[] = {
    {"infer_auto", "random numbers: accuracy means nothing", NULL, NULL, true},
    {"infer_default", "pictures and labels of a run configuration", qn_infer_default,
     qn_infer_default_print, false},
};
/* What stands behind no name where there are data. */
static const qn_function_row of_data = {"the data", "samples of files", NULL, NULL, false};

const char *qn_infer_name(size_t i)
{
    return i < QN_COUNT_OF(rows) ? rows[i].name : NULL;
}

static qn_status fail_unknown(qn_context *ctx, const char *name)
{
    char names[256] = "";
    for (size_t i = 0; i < QN_COUNT_OF(rows); i++)
        qn_word_list(names, sizeof names, "%s", rows[i].name);
    return qn_fail(
        ctx, QN_E_OPTION,
        "there is no infer function '%s': built in are %s; a script or plug-in (`script`) can "
        "have others",
        name, names);
}

static const qn_function_row *find_row(const char *name)
{
    for (size_t i = 0; i < QN_COUNT_OF(rows); i++) {
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    return NULL;
}

/* ---- Random numbers for a script that asks for them ------------------------------------------ */

enum { OPEN_SIZE = 1 };

/* One sample of an input whose sizes may be open. */
static qn_status make_sample(qn_tensor **out, qn_executor *e, qn_arena *arena, size_t i)
{
    qn_value_info info;
    qn_executor_input(&info, e, i);
    if (info.rank < 0 || info.dtype == QN_UNDEFINED)
        return qn_fail(e->ctx, QN_E_INVALID,
                       "input '%s' has an open number of dimensions: there are no random numbers "
                       "for it",
                       info.name);
    for (int32_t d = 0; d < info.rank; d++) {
        const int64_t open = d == 0 ? e->facts.batch_size : OPEN_SIZE;
        info.dims[d] = info.dims[d] < 0 ? open : info.dims[d];
    }
    const qn_type type = qn_type_tensor(info.dtype, info.rank, info.dims);
    return qn_tensor_create(out, e->ctx, arena, &type);
}

static qn_status feed_random(qn_executor *e, qn_arena *arena)
{
    const size_t n = e->facts.n_inputs;
    qn_tensor **made = qn_arena_array(arena, n + 1, sizeof *made);
    qn_tensor *inputs = qn_arena_array(arena, n + 1, sizeof *inputs);
    QN_TRY_ALLOC(e->ctx, made);
    QN_TRY_ALLOC(e->ctx, inputs);
    for (size_t i = 0; i < n; i++)
        QN_TRY(make_sample(&made[i], e, arena, i));
    for (int64_t run = 0; run < e->facts.iteration && !qn_executor_early_stop(e); run++) {
        for (size_t i = 0; i < n; i++) {
            qn_feed_random(made[i], (uint64_t)run * n + i);
            inputs[i] = *made[i];
        }
        QN_TRY(qn_executor_forward(e, inputs, n));
    }
    return QN_OK;
}

/* A qn_infer_fn: what is read side by side where no script is. */
static qn_status infer_auto(qn_executor *e)
{
    qn_arena arena;
    if (qn_executor_stage_of(e)->observes)
        qn_log(e->ctx, QN_LOG_WARN,
               "infer_auto feeds random numbers: ranges and accuracy mean nothing");
    qn_arena_init(&arena, &e->ctx->allocator);
    const qn_status status = feed_random(e, &arena);
    qn_arena_free(&arena);
    return status;
}

qn_status qn_infer_call(double *metric, qn_executor *executor, const char *name)
{
    const qn_function_row *row = find_row(name);
    if (!row)
        return fail_unknown(executor->ctx, name);
    return row->run ? row->run(NULL, executor, metric) : infer_auto(executor);
}

qn_status qn_function_find(const qn_function_row **row, qn_context *ctx, qn_function *function,
                           bool has_data)
{
    *row = NULL;
    if (function->run)
        return QN_OK;
    if (!function->name && has_data) {
        *row = &of_data;
        return QN_OK;
    }
    const char *name = function->name ? function->name : rows[0].name;
    *row = find_row(name);
    if (!*row)
        return fail_unknown(ctx, name);
    function->name = (*row)->name;
    function->run = (*row)->run;
    return QN_OK;
}
