/* A comparison of layers: measured, chosen, sorted, written. */
#include "compare/layer_report.h"

#include <math.h>
#include <string.h>

#include "base/map.h"
#include "model/save_dir.h"
#include "ops/quantize.h"
#include "quant/pattern.h"

/* ---- Measuring ------------------------------------------------------------------------------- */

enum { BLOCK = 256 };

typedef struct ends {
    double low, high;
} ends;

/* Numbers that the layer's integers reach to. */
static ends ends_of(const qn_compare_row *row)
{
    const qn_limits limits = qn_limits_of(row->dtype);
    const double scale = (double)row->scale;
    return (ends){(double)(limits.min - row->zero) * scale,
                  (double)(limits.max - row->zero) * scale};
}

static void add_cut(qn_compare_row *row, const double *left, int64_t count)
{
    if (row->dtype == QN_UNDEFINED || row->smoothed || row->through)
        return;
    const ends at = ends_of(row);
    for (int64_t i = 0; i < count; i++) {
        const double beyond = fmax(fmax(left[i] - at.high, at.low - left[i]), 0);
        row->cut += isfinite(beyond) ? beyond * beyond : 0;
    }
}

qn_bin_range qn_compare_row_bins(const qn_compare_row *row)
{
    const double low = fmin(row->all.least[0], row->all.least[1]),
                 high = fmax(row->all.most[0], row->all.most[1]), step = (double)row->scale;
    const qn_bin_range plain = {low, (high - low) / QN_COMPARE_BINS, QN_COMPARE_BINS};
    if (row->dtype == QN_UNDEFINED || row->smoothed || !(step > 0) || !(high > low))
        return plain;
    /* Steps lie in the middle between edges. */
    const double first = floor(low / step + 0.5), last = floor(high / step + 0.5);
    const double steps = ceil((last - first + 1) / QN_COMPARE_BINS);
    const double count = ceil((last - first + 1) / steps);
    if (!(count >= 1 && count <= QN_COMPARE_BINS))
        return plain;
    return (qn_bin_range){(first - 0.5) * step, steps * step, (int)count};
}

static void add_bins(int64_t *bins, const qn_bin_range *range, const double *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(x[i]) || !(range->width >= 0))
            continue;
        const double place = range->width > 0 ? (x[i] - range->low) / range->width : 0;
        bins[(int)fmin(fmax(place, 0), range->count - 1)]++;
    }
}

static void take_block(const qn_layer_report *c, qn_compare_row *row, const double *left,
                       const double *right, int64_t count, bool single)
{
    if (c->drawing) {
        const qn_bin_range range = qn_compare_row_bins(row);
        add_bins(row->bins[0], &range, left, count);
        add_bins(row->bins[1], &range, right, count);
        return;
    }
    qn_errors_add(single ? &row->single : &row->all, left, right, count);
    if (!single)
        add_cut(row, left, count);
}

qn_status qn_layer_report_add(qn_layer_report *c, qn_compare_row *row, const qn_tensor *left,
                              const qn_tensor *right, bool single)
{
    double blocks[2][BLOCK];
    const int64_t count = qn_tensor_count(left);
    if (!row->chosen || (c->drawing && (single || !row->drawn)))
        return QN_OK;
    row->shape = *left;
    row->shape.data = NULL;
    for (int64_t first = 0; first < count; first += BLOCK) {
        const int64_t n = QN_MIN(count - first, BLOCK);
        qn_load_f64(blocks[0], left->dtype, left->data, first, n);
        qn_load_f64(blocks[1], right->dtype, right->data, first, n);
        take_block(c, row, blocks[0], blocks[1], n, single);
    }
    return QN_OK;
}

qn_status qn_layer_report_gap(qn_layer_report *c, const char *name, const char *why)
{
    if (c->drawing)
        return QN_OK;
    QN_TRY_GROW(c->ctx, c->gaps, c->gaps_capacity, c->n_gaps + 1);
    c->gaps[c->n_gaps] = (qn_compare_gap){qn_arena_text(&c->arena, name, strlen(name)),
                                          qn_arena_text(&c->arena, why, strlen(why))};
    QN_TRY_ALLOC(c->ctx, c->gaps[c->n_gaps].name);
    QN_TRY_ALLOC(c->ctx, c->gaps[c->n_gaps].why);
    c->n_gaps++;
    return QN_OK;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static qn_status write_file(const qn_layer_report *c, const char *folder, const char *name,
                            const char *text)
{
    qn_arena arena;
    qn_arena_init(&arena, &c->ctx->allocator);
    const char *path = qn_arena_format(&arena, "%s/%s", folder, name);
    const qn_status status =
        path ? qn_output_save(c->ctx, path, text, strlen(text)) : qn_fail_nomem(c->ctx);
    qn_arena_free(&arena);
    return status;
}

static qn_status write_json(const qn_layer_report *c, const char *folder)
{
    qn_report *report;
    char *text = NULL;
    QN_TRY(qn_report_create(&report, c->ctx));
    qn_status status = qn_layer_report_describe(report, c, true);
    if (status == QN_OK)
        status = qn_report_json(&text, report);
    if (status == QN_OK)
        status = write_file(c, folder, "compare.json", text);
    qn_text_free(c->ctx, text);
    qn_report_free(report);
    return status;
}

static qn_status write_csv(const qn_layer_report *c, const char *folder)
{
    char *text = NULL;
    QN_TRY(qn_layer_report_csv(&text, c));
    const qn_status status = write_file(c, folder, "compare.csv", text);
    qn_text_free(c->ctx, text);
    return status;
}

static qn_status write_all(qn_layer_report *c, const char *folder)
{
    QN_TRY(qn_folder_make(c->ctx, folder));
    QN_TRY(write_csv(c, folder));
    QN_TRY(write_json(c, folder));
    return qn_layer_report_draw(c, folder);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static bool fits_any(const char *pattern, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (qn_pattern_fits(pattern, texts[i]))
            return true;
    }
    return false;
}

static bool fits_name(const char *pattern, const qn_compare_row *row)
{
    return qn_pattern_fits(pattern, row->name) || qn_pattern_fits(pattern, row->node) ||
           fits_any(pattern, row->names, row->n_names);
}

static bool fits_operator(const char *pattern, const qn_compare_row *row)
{
    const char *last = strrchr(row->op, '+');
    return qn_pattern_fits(pattern, row->op) || (last && qn_pattern_fits(pattern, last + 1)) ||
           fits_any(pattern, row->ops, row->n_ops);
}

typedef bool fits_fn(const char *pattern, const qn_compare_row *row);

static bool is_wanted(const qn_compare_row *row, fits_fn *fits, const char *const *patterns,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fits(patterns[i], row))
            return true;
    }
    return count == 0;
}

/* Every pattern must choose something: a misspelt name would else look like a good result. */
static qn_status check_names(const qn_layer_report *c)
{
    const qn_compare_options *o = c->options;
    for (size_t k = 0; k < o->n_names + o->n_operators; k++) {
        const bool op = k >= o->n_names;
        const char *const *pattern = op ? &o->operators[k - o->n_names] : &o->names[k];
        bool found = false;
        for (size_t i = 0; i < c->count && !found; i++)
            found = is_wanted(&c->rows[i], op ? fits_operator : fits_name, pattern, 1);
        if (!found)
            return qn_fail(c->ctx, QN_E_OPTION, "%s '%s' fits no layer that both sides have",
                           op ? "`operators`" : "`names`", *pattern);
    }
    return QN_OK;
}

qn_status qn_layer_report_choose(qn_layer_report *c)
{
    const qn_compare_options *o = c->options;
    for (size_t i = 0; i < c->count; i++) {
        qn_compare_row *row = &c->rows[i];
        row->chosen = is_wanted(row, fits_name, o->names, o->n_names) &&
                      is_wanted(row, fits_operator, o->operators, o->n_operators) &&
                      row->index >= o->first && (o->last < 0 || row->index <= o->last);
    }
    return check_names(c);
}

static qn_status fail_empty(const qn_layer_report *c)
{
    if (c->n_gaps)
        return qn_fail(c->ctx, QN_E_INVALID,
                       "no layer can be compared; the first that cannot, '%s': %s", c->gaps[0].name,
                       c->gaps[0].why);
    return qn_fail(c->ctx, QN_E_OPTION,
                   "no layer is left to compare: see `names`, `operators` and `last`");
}

static void choose_drawn(qn_layer_report *c)
{
    const qn_compare_options *o = c->options;
    for (size_t i = 0; i < o->n_looked_at; i++) {
        for (size_t k = 0; k < c->n_order; k++)
            c->order[k]->drawn = c->order[k]->drawn || c->order[k]->index == o->looked_at[i];
    }
    for (size_t i = 0; o->n_looked_at == 0 && i < c->n_worst; i++)
        c->worst[i]->drawn = (int64_t)i < o->shown;
}

static qn_status work(qn_report *report, qn_layer_report *c)
{
    const qn_compare_options *o = c->options;
    for (size_t i = 0; i < c->count; i++)
        c->rows[i].chosen = true;
    QN_TRY(c->run(c));
    QN_TRY(qn_layer_report_judge(c));
    if (c->n_order == 0)
        return fail_empty(c);
    if (o->histograms && o->save_dir) {
        choose_drawn(c);
        c->drawing = true;
        QN_TRY(c->run(c));
    }
    if (o->save_dir)
        QN_TRY(write_all(c, o->save_dir));
    return qn_layer_report_describe(report, c, false);
}

qn_status qn_layer_report_run(qn_report **out, qn_layer_report *c)
{
    qn_report *report;
    *out = NULL;
    QN_TRY(qn_report_create(&report, c->ctx));
    const qn_status status = work(report, c);
    qn_free(c->ctx, c->gaps);
    if (status == QN_OK)
        *out = report;
    else
        qn_report_free(report);
    return status;
}
