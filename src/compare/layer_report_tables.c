/* What was measured as a report and as CSV. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "compare/layer_report.h"

enum { DECIMALS = 6, BAR = 24 };

/* ---- Columns --------------------------------------------------------------------------------- */

/* The tables of options, --rmse and the like, in which a measure stands. */
typedef struct measure {
    /* single_key NULL: told of the whole error only */
    const char *key, *single_key;
    double (*of)(const qn_errors *e);
    bool (*is_on)(const qn_compare_options *o);
} measure;

static bool mre_is_on(const qn_compare_options *o)
{
    return !o->no_mre;
}

static bool cos_is_on(const qn_compare_options *o)
{
    return !o->no_cos;
}

static bool rmse_is_on(const qn_compare_options *o)
{
    return o->rmse != 0;
}

static bool maxdiff_is_on(const qn_compare_options *o)
{
    return o->maxdiff != 0;
}

static bool bias_is_on(const qn_compare_options *o)
{
    return o->bias != 0;
}

static double largest(const qn_errors *e)
{
    return e->largest;
}

static const measure measures[] = {
    {"mre", "single_mre", qn_errors_mre, mre_is_on},
    {"cos", "single_cos", qn_errors_cos, cos_is_on},
    {"rmse", "single_rmse", qn_errors_rmse, rmse_is_on},
    {"maxdiff_rel", NULL, qn_errors_maxdiff, maxdiff_is_on},
    {"maxdiff_abs", NULL, largest, maxdiff_is_on},
    {"bias_above", NULL, qn_errors_above, bias_is_on},
    {"bias_below", NULL, qn_errors_below, bias_is_on},
};

/* "1x64x56x56" */
static const char *shape_words(char out[256], const qn_tensor *shape)
{
    int at = 0;
    out[0] = 0;
    for (int32_t d = 0; d < shape->rank; d++)
        at += snprintf(out + at, 256 - (size_t)at, "%s%" PRId64, d ? "x" : "", shape->dims[d]);
    return out;
}

static const char *type_words(const qn_compare_row *row)
{
    return row->dtype == QN_UNDEFINED ? "float" : qn_dtype_name(row->dtype);
}

/* Asked for, or what the layers are sorted by ("maxdiff": both of its columns). */
static bool is_shown(const qn_layer_report *c, const measure *m)
{
    return m->is_on(c->options) || strncmp(m->key, c->measure->name, strlen(c->measure->name)) == 0;
}

/* ---- Reports --------------------------------------------------------------------------------- */

static void report_measures(qn_item *item, const qn_layer_report *c, const qn_compare_row *row,
                            bool full)
{
    bool singles = false;
    for (size_t i = 0; i < c->count; i++)
        singles = singles || c->rows[i].single.count;
    for (size_t i = 0; i < QN_COUNT_OF(measures); i++) {
        const measure *m = &measures[i];
        if (!full && !is_shown(c, m))
            continue;
        if (singles && m->single_key)
            qn_item_real(item, m->single_key, row->single.count ? m->of(&row->single) : NAN,
                         DECIMALS);
        qn_item_real(item, m->key, m->of(&row->all), DECIMALS);
    }
}

static void report_details(qn_item *item, const qn_compare_row *row, int level)
{
    char words[256];
    const qn_errors *e = &row->all;
    if (level >= 3) {
        qn_item_text(item, "type", type_words(row));
        qn_item_text(item, "shape", shape_words(words, &row->shape));
    }
    if (level >= 4) {
        qn_item_real(item, "left_min", e->least[0], DECIMALS);
        qn_item_real(item, "left_max", e->most[0], DECIMALS);
        qn_item_real(item, "right_min", e->least[1], DECIMALS);
        qn_item_real(item, "right_max", e->most[1], DECIMALS);
    }
    if (level >= 5) {
        const int64_t count = qn_tensor_count(&row->shape);
        qn_item_int(item, "worst_element", count > 0 ? e->worst % count : 0);
        qn_item_real(item, "worst_left", e->worst_left, DECIMALS);
        qn_item_real(item, "worst_right", e->worst_right, DECIMALS);
    }
    if (level >= 6) {
        qn_item_int(item, "numbers", e->count);
        qn_item_int(item, "not_finite", e->bad);
        qn_item_real(item, "scale", (double)row->scale, 9);
    }
}

static const char *bar_of(char out[BAR + 1], const qn_layer_report *c, const qn_compare_row *row)
{
    const double most = c->n_worst ? qn_compare_row_worth(c, c->worst[0]) : 0;
    const double share = most > 0 ? fmin(qn_compare_row_worth(c, row) / most, 1) : 0;
    const size_t length = (size_t)lround(share * BAR);
    memset(out, '#', length);
    out[length] = 0;
    return out;
}

static void report_layers(qn_item *root, const qn_layer_report *c, bool full)
{
    char bar[BAR + 1];
    qn_item *table = qn_item_table(root, "layers");
    for (size_t i = 0; i < c->n_order; i++) {
        const qn_compare_row *row = c->order[i];
        qn_item *item = qn_item_row(table);
        qn_item_int(item, "index", row->index);
        qn_item_text(item, "operator", row->op);
        qn_item_text(item, "tensor", row->name);
        if (full)
            qn_item_text(item, "node", row->node);
        report_measures(item, c, row, full);
        report_details(item, row, full ? 6 : c->options->level);
        if (full)
            qn_item_text(item, "advice", row->advice ? row->advice : "");
        else
            qn_item_text(item, "guilty", row->advice ? "<--" : "");
        if (!full && c->options->plot)
            qn_item_text(item, "plot", bar_of(bar, c, row));
    }
}

/* Beside rmse, which every row of the worst layers has. */
static void report_sorted_by(qn_item *item, const qn_layer_report *c, const qn_compare_row *row)
{
    for (size_t i = 0; i < QN_COUNT_OF(measures); i++) {
        const measure *m = &measures[i];
        if (is_shown(c, m) && !m->is_on(c->options) && strcmp(m->key, "rmse") != 0)
            qn_item_real(item, m->key, m->of(&row->all), DECIMALS);
    }
}

static void report_worst(qn_item *root, const qn_layer_report *c)
{
    const size_t shown = (size_t)QN_MAX(QN_MIN((int64_t)c->n_worst, c->options->shown), 0);
    qn_item *table = qn_item_table(root, "worst_layers");
    for (size_t i = 0; i < shown; i++) {
        const qn_compare_row *row = c->worst[i];
        qn_item *item = qn_item_row(table);
        qn_item_int(item, "index", row->index);
        qn_item_text(item, "operator", row->op);
        qn_item_text(item, "tensor", row->name);
        if (row->single.count)
            qn_item_real(item, "single_rmse", qn_errors_rmse(&row->single), DECIMALS);
        qn_item_real(item, "rmse", qn_errors_rmse(&row->all), DECIMALS);
        report_sorted_by(item, c, row);
        if (row->single.count)
            qn_item_text(item, "advice", row->advice ? row->advice : "");
    }
}

static void report_gaps(qn_item *root, const qn_layer_report *c)
{
    if (!c->n_gaps)
        return;
    qn_item *table = qn_item_table(root, "not_compared");
    for (size_t i = 0; i < c->n_gaps; i++) {
        qn_item *item = qn_item_row(table);
        qn_item_text(item, "layer", c->gaps[i].name);
        qn_item_text(item, "why", c->gaps[i].why);
    }
}

qn_status qn_layer_report_describe(qn_report *report, const qn_layer_report *c, bool full)
{
    qn_item *root = &report->root;
    const int level = full ? 6 : c->options->level;
    size_t guilty = 0;
    for (size_t i = 0; i < c->n_order; i++)
        guilty += c->order[i]->advice != NULL;
    qn_item_text(root, "left", c->left);
    qn_item_text(root, "right", c->right);
    qn_item_int(root, "samples", c->samples);
    qn_item_int(root, "layers_compared", (int64_t)c->n_order);
    qn_item_int(root, "layers_that_stand_out", (int64_t)guilty);
    if (c->options->save_dir && !full)
        qn_item_text(root, "files", c->options->save_dir);
    if (level >= 1)
        report_worst(root, c);
    if (level >= 2)
        report_layers(root, c, full);
    report_gaps(root, c);
    return qn_report_finish(report);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

/* In quotes, those inside doubled. */
static void add_text(qn_text *out, const char *text)
{
    qn_text_add(out, "\"", 1);
    for (; *text; text++)
        qn_text_add(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    qn_text_add(out, "\"", 1);
}

static void add_number(qn_text *out, double value)
{
    char room[QN_NUMBER_SIZE];
    qn_text_add(out, ",", 1);
    qn_number_format_double(room, value);
    qn_text_add(out, room, strlen(room));
}

static void add_titles(qn_text *out)
{
    static const char before[] = "index,operator,node,tensor,type,scale,shape,numbers,not_finite";
    qn_text_add(out, before, sizeof before - 1);
    for (int single = 0; single < 2; single++) {
        for (size_t i = 0; i < QN_COUNT_OF(measures); i++) {
            qn_text_add(out, single ? ",single_" : ",", single ? 8 : 1);
            qn_text_add(out, measures[i].key, strlen(measures[i].key));
        }
    }
    qn_text_add(out, ",advice\n", 8);
}

static void add_errors(qn_text *out, const qn_errors *e)
{
    for (size_t i = 0; i < QN_COUNT_OF(measures); i++) {
        if (e->count)
            add_number(out, measures[i].of(e));
        else
            qn_text_add(out, ",", 1);
    }
}

static void add_row(qn_text *out, const qn_compare_row *row)
{
    char words[256];
    const char *const texts[] = {row->op, row->node, row->name, type_words(row)};
    const int length = snprintf(words, sizeof words, "%" PRId64, row->index);
    qn_text_add(out, words, (size_t)length);
    for (size_t i = 0; i < QN_COUNT_OF(texts); i++) {
        qn_text_add(out, ",", 1);
        add_text(out, texts[i]);
    }
    add_number(out, (double)row->scale);
    qn_text_add(out, ",", 1);
    add_text(out, shape_words(words, &row->shape));
    add_number(out, (double)row->all.count);
    add_number(out, (double)row->all.bad);
    add_errors(out, &row->all);
    add_errors(out, &row->single);
    qn_text_add(out, ",", 1);
    add_text(out, row->advice ? row->advice : "");
    qn_text_add(out, "\n", 1);
}

qn_status qn_layer_report_csv(char **out, const qn_layer_report *c)
{
    qn_text text;
    qn_text_init(&text, c->ctx);
    add_titles(&text);
    for (size_t i = 0; i < c->n_order; i++)
        add_row(&text, c->order[i]);
    return qn_text_take(out, &text);
}
