/* Which layers stand out, and what would help them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "compare/layer_report.h"
#include "ir/width.h"

/* A layer stands out with an error of its own that is this large, and this many times the one in
 * the middle. */
static const double much = 0.02, times = 3;

static double by_mre(const qn_compare_row *row)
{
    return qn_errors_mre(&row->all);
}

static double by_cos(const qn_compare_row *row)
{
    return 1 - qn_errors_cos(&row->all);
}

static double by_rmse(const qn_compare_row *row)
{
    return qn_errors_rmse(&row->all);
}

static double by_maxdiff(const qn_compare_row *row)
{
    return qn_errors_maxdiff(&row->all);
}

static double by_bias(const qn_compare_row *row)
{
    return fabs(qn_errors_above(&row->all) - qn_errors_below(&row->all));
}

double qn_compare_row_error(const qn_compare_row *row)
{
    return qn_errors_rmse(row->single.count ? &row->single : &row->all);
}

static const qn_compare_measure orders[] = {
    {"index", NULL},   {"single", qn_compare_row_error}, {"mre", by_mre},  {"cos", by_cos},
    {"rmse", by_rmse}, {"maxdiff", by_maxdiff},          {"bias", by_bias}};

double qn_compare_row_worth(const qn_layer_report *c, const qn_compare_row *row)
{
    const double worth = c->measure->of ? c->measure->of(row) : qn_compare_row_error(row);
    return isnan(worth) ? INFINITY : worth;
}

const char *qn_compare_order(size_t i)
{
    return i < QN_COUNT_OF(orders) ? orders[i].name : NULL;
}

/* ---- Sorting --------------------------------------------------------------------------------- */

typedef struct sorted {
    double worth;
    qn_compare_row *row;
} sorted;

static int by_worth(const void *a, const void *b)
{
    const sorted *x = a, *y = b;
    if (x->worth != y->worth)
        return x->worth > y->worth ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static qn_status sort_rows(qn_compare_row **out, const qn_layer_report *c, size_t count, bool worst)
{
    sorted *all = qn_alloc_zero(c->ctx, count + 1, sizeof *all);
    QN_TRY_ALLOC(c->ctx, all);
    for (size_t i = 0; i < count; i++)
        all[i] = (sorted){worst ? qn_compare_row_worth(c, out[i]) : -(double)out[i]->index, out[i]};
    qsort(all, count, sizeof *all, by_worth);
    for (size_t i = 0; i < count; i++)
        out[i] = all[i].row;
    qn_free(c->ctx, all);
    return QN_OK;
}

static qn_status find_measure(qn_layer_report *c)
{
    const char *name = c->options->sort ? c->options->sort : orders[0].name;
    for (size_t i = 0; i < QN_COUNT_OF(orders); i++) {
        c->measure = &orders[i];
        if (strcmp(orders[i].name, name) == 0)
            return QN_OK;
    }
    char list[256] = "";
    for (size_t i = 0; i < QN_COUNT_OF(orders); i++)
        qn_word_list(list, sizeof list, "%s", orders[i].name);
    return qn_fail(c->ctx, QN_E_OPTION, "layers cannot be sorted by '%s', but by %s", name, list);
}

/* ---- Advice ---------------------------------------------------------------------------------- */

const char *qn_compare_row_advice(const qn_compare_row *row)
{
    if (row->dtype == QN_UNDEFINED)
        return "the integers that it reads are too coarse: 16 bits before it";
    if (2 * row->cut > row->single.noise && row->single.noise > 0)
        return "another method, such as min_max: what it cuts off is most of the error";
    const qn_width *width = qn_width_of(row->dtype);
    return !width || qn_width_is_fine(width) ? "float" : "16 bits";
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* The error of the layer in the middle. */
static qn_status find_middle(double *out, const qn_layer_report *c)
{
    double *errors = qn_alloc_zero(c->ctx, c->n_worst + 1, sizeof *errors);
    QN_TRY_ALLOC(c->ctx, errors);
    for (size_t i = 0; i < c->n_worst; i++) {
        const double error = qn_compare_row_error(c->worst[i]);
        errors[i] = isnan(error) ? INFINITY : error;
    }
    qsort(errors, c->n_worst, sizeof *errors, by_size);
    *out = errors[c->n_worst / 2];
    qn_free(c->ctx, errors);
    return QN_OK;
}

static qn_status advise(qn_layer_report *c)
{
    double middle = 0;
    QN_TRY(find_middle(&middle, c));
    for (size_t i = 0; i < c->n_worst; i++) {
        qn_compare_row *row = c->worst[i];
        const double error = qn_compare_row_error(row);
        if (row->single.count && !row->through && error > much && error > times * middle)
            row->advice = qn_compare_row_advice(row);
    }
    return QN_OK;
}

static qn_status report_bad(qn_layer_report *c, const qn_compare_row *row)
{
    char words[128];
    snprintf(words, sizeof words, "%lld of %lld numbers are NaN or infinite",
             (long long)row->all.bad, (long long)(row->all.bad + row->all.count));
    return qn_layer_report_gap(c, row->name, words);
}

qn_status qn_layer_report_judge(qn_layer_report *c)
{
    QN_TRY(find_measure(c));
    c->order = qn_arena_array(&c->arena, c->count + 1, sizeof(qn_compare_row *));
    c->worst = qn_arena_array(&c->arena, c->count + 1, sizeof(qn_compare_row *));
    if (!c->order || !c->worst)
        return qn_fail_nomem(c->ctx);
    for (size_t i = 0; i < c->count; i++) {
        qn_compare_row *row = &c->rows[i];
        if (!row->chosen)
            continue;
        if (row->all.bad)
            QN_TRY(report_bad(c, row));
        if (!row->all.count)
            continue;
        c->order[c->n_order++] = row;
        if (!row->through)
            c->worst[c->n_worst++] = row;
    }
    QN_TRY(sort_rows(c->order, c, c->n_order, c->measure->of != NULL));
    QN_TRY(sort_rows(c->worst, c, c->n_worst, true));
    return advise(c);
}
