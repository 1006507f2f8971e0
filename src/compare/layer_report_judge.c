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

typedef struct order_row {
    const char *name;
    /* The larger the worse; NULL: the network's order */
    double (*of)(const qn_compare_row *row);
} order_row;

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

static const order_row orders[] = {
    {"index", NULL},   {"single", qn_compare_row_error}, {"mre", by_mre},  {"cos", by_cos},
    {"rmse", by_rmse}, {"maxdiff", by_maxdiff},          {"bias", by_bias}};

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

/* NaN counts as the worst. */
static qn_status sort_rows(qn_compare_row **out, const qn_layer_report *c, size_t count,
                           double (*of)(const qn_compare_row *))
{
    sorted *all = qn_alloc_zero(c->ctx, count + 1, sizeof *all);
    QN_TRY_ALLOC(c->ctx, all);
    for (size_t i = 0; i < count; i++) {
        const double worth = of ? of(out[i]) : -(double)out[i]->index;
        all[i] = (sorted){isnan(worth) ? INFINITY : worth, out[i]};
    }
    qsort(all, count, sizeof *all, by_worth);
    for (size_t i = 0; i < count; i++)
        out[i] = all[i].row;
    qn_free(c->ctx, all);
    return QN_OK;
}

static qn_status find_order(const order_row **out, const qn_layer_report *c)
{
    const char *name = c->options->sort ? c->options->sort : orders[0].name;
    for (size_t i = 0; i < QN_COUNT_OF(orders); i++) {
        *out = &orders[i];
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

/* The worst first. */
static void advise(qn_layer_report *c)
{
    const double middle = c->n_worst ? qn_compare_row_error(c->worst[c->n_worst / 2]) : 0;
    for (size_t i = 0; i < c->n_worst; i++) {
        qn_compare_row *row = c->worst[i];
        const double error = qn_compare_row_error(row);
        if (row->single.count && !row->through && error > much && error > times * middle)
            row->advice = qn_compare_row_advice(row);
    }
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
    const order_row *order = NULL;
    QN_TRY(find_order(&order, c));
    c->order = qn_arena_array(&c->arena, c->count + 1, sizeof(qn_compare_row *));
    c->worst = qn_arena_array(&c->arena, c->count + 1, sizeof(qn_compare_row *));
    if (!c->order || !c->worst)
        return qn_fail_nomem(c->ctx);
    for (size_t i = 0; i < c->count; i++) {
        qn_compare_row *row = &c->rows[i];
        if (row->all.bad)
            QN_TRY(report_bad(c, row));
        if (!row->all.count)
            continue;
        c->order[c->n_order++] = row;
        if (!row->through)
            c->worst[c->n_worst++] = row;
    }
    QN_TRY(sort_rows(c->order, c, c->n_order, order->of));
    QN_TRY(sort_rows(c->worst, c, c->n_worst, qn_compare_row_error));
    advise(c);
    return QN_OK;
}
