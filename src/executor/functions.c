/* The infer functions that are built in. */
#include <string.h>

#include "base/nearest.h"
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
        "there is no infer function '%s': built in are %s; a script or plug-in (-uds) can "
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

qn_status qn_infer_call(double *metric, qn_executor *executor, const char *name)
{
    const qn_function_row *row = find_row(name);
    if (!row || !row->run)
        return fail_unknown(executor->ctx, name);
    return row->run(NULL, executor, metric);
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
