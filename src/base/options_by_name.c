/* Options by name: found, set from texts, shown as texts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/number.h"
#include "base/options.h"
#include "base/text.h"

/* ---- Finding --------------------------------------------------------------------------------- */

static bool find_own(qn_option_place *out, const qn_option_table *table, const char *name,
                     size_t length)
{
    for (size_t i = 0; i < table->n_rows; i++) {
        const qn_option *row = &table->rows[i];
        if (strlen(row->field) != length || strncmp(row->field, name, length) != 0)
            continue;
        *out = (qn_option_place){row, table, row->offset};
        return true;
    }
    return false;
}

static bool find_in_part(qn_option_place *out, const qn_option *row, const char *name)
{
    if (!qn_options_find(out, row->part, name))
        return false;
    out->offset += row->offset;
    return true;
}

bool qn_options_find(qn_option_place *out, const qn_option_table *table, const char *name)
{
    const char *dot = strchr(name, '.');
    if (dot && find_own(out, table, name, (size_t)(dot - name)) && out->row->part)
        return find_in_part(out, out->row, dot + 1);
    if (!dot && find_own(out, table, name, strlen(name)))
        return true;
    for (size_t i = 0; i < table->n_rows; i++) {
        if (table->rows[i].part && find_in_part(out, &table->rows[i], name))
            return true;
    }
    return false;
}

static qn_status fail_unknown(qn_context *ctx, const qn_option_table *table, const char *name)
{
    const char *names[64] = {NULL};
    for (size_t i = 0; i < QN_MIN(table->n_rows, QN_COUNT_OF(names) - 1); i++)
        names[i] = table->rows[i].field;
    const char *best = qn_word_nearest(names, name);
    return qn_fail(ctx, QN_E_OPTION, "%s has no option '%s'%s%s%s", table->name, name,
                   best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
}

/* ---- Setting --------------------------------------------------------------------------------- */

static qn_status set_flag(qn_context *ctx, const qn_option *row, int *field, const char *text)
{
    static const char *const words[] = {"false", "true", "0", "1", "False", "True"};
    for (int i = 0; i < (int)QN_COUNT_OF(words); i++) {
        if (strcmp(words[i], text) == 0) {
            *field = i % 2;
            return QN_OK;
        }
    }
    return qn_fail(ctx, QN_E_OPTION, "%s: '%s' is neither true nor false", row->field, text);
}

static qn_status set_real(qn_context *ctx, const qn_option *row, double *field, const char *text)
{
    if (qn_number_parse(field, text, strlen(text)))
        return QN_OK;
    return qn_fail(ctx, QN_E_OPTION, "%s: '%s' is not a number", row->field, text);
}

static qn_status parse_long(int64_t *out, qn_context *ctx, const qn_option *row, const char *text)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    const bool fits = row->kind != QN_OPTION_INT || (*out >= INT32_MIN && *out <= INT32_MAX);
    const bool positive = row->kind != QN_OPTION_SEED && row->kind != QN_OPTION_SIZE;
    if (end != text && !*end && !errno && fits && (positive || *out >= 0))
        return QN_OK;
    return qn_fail(ctx, QN_E_OPTION, "%s: '%s' is not an integer that fits", row->field, text);
}

/* One of a list: a copy that the context keeps, or a number. */
static qn_status set_item(void *out, qn_context *ctx, const qn_option *row, char *text)
{
    if (row->kind == QN_OPTION_REALS)
        return set_real(ctx, row, out, text);
    if (row->kind == QN_OPTION_LONGS)
        return parse_long(out, ctx, row, text);
    *(const char **)out = text;
    return QN_OK;
}

static qn_status set_list(qn_context *ctx, const qn_option *row, char *field, const char *text)
{
    enum { ITEM = 8 };
    size_t count = *text != 0;
    for (const char *c = text; *c; c++)
        count += *c == ',';
    char *items = qn_arena_array(&ctx->options, count + 1, ITEM);
    char *words = qn_arena_text(&ctx->options, text, strlen(text));
    if (!items || !words)
        return qn_fail_nomem(ctx);
    for (size_t i = 0; i < count; i++) {
        char *next = words + strcspn(words, ",");
        *next = 0;
        QN_TRY(set_item(items + i * ITEM, ctx, row, words));
        words = next + 1;
    }
    memcpy(field, &items, sizeof items);
    memcpy(field + sizeof items, &count, sizeof count);
    return QN_OK;
}

static qn_status set_text(qn_context *ctx, const char **field, const char *text)
{
    const char *copy = qn_arena_text(&ctx->options, text, strlen(text));
    QN_TRY_ALLOC(ctx, copy);
    *field = copy;
    return QN_OK;
}

static qn_status set_integer(qn_context *ctx, const qn_option *row, void *field, const char *text)
{
    int64_t number;
    QN_TRY(parse_long(&number, ctx, row, text));
    if (row->kind == QN_OPTION_INT)
        *(int *)field = (int)number;
    else
        memcpy(field, &number, row->size);
    return QN_OK;
}

static qn_status set_field(qn_context *ctx, const qn_option *row, void *field, const char *text)
{
    switch (row->kind) {
    case QN_OPTION_FLAG: return set_flag(ctx, row, field, text);
    case QN_OPTION_REAL: return set_real(ctx, row, field, text);
    case QN_OPTION_TEXT: return set_text(ctx, field, text);
    case QN_OPTION_TEXTS:
    case QN_OPTION_REALS:
    case QN_OPTION_LONGS: return set_list(ctx, row, field, text);
    case QN_OPTION_SHAPES:
    case QN_OPTION_PLAIN:
    case QN_OPTION_PART:
        return qn_fail(ctx, QN_E_OPTION, "%s is no text: only code can set it", row->field);
    default: return set_integer(ctx, row, field, text);
    }
}

qn_status qn_options_set(qn_context *ctx, const qn_option_table *table, void *options,
                         const char *name, const char *text)
{
    enum { MOST = 4096 };
    qn_option_place at;
    char copy[MOST];
    if (!qn_options_find(&at, table, name))
        return fail_unknown(ctx, table, name);
    if (table->size > sizeof copy)
        return qn_fail_nomem(ctx);
    memcpy(copy, options, table->size);
    QN_TRY(set_field(ctx, at.row, copy + at.offset, text));
    QN_TRY(qn_options_check_field(ctx, &at, copy));
    memcpy(options, copy, table->size);
    return QN_OK;
}

/* ---- Showing --------------------------------------------------------------------------------- */

static void add_number(qn_text *text, double number)
{
    char digits[QN_NUMBER_SIZE];
    qn_number_format_double(digits, number);
    qn_text_add(text, digits, strlen(digits));
}

static void add_integer(qn_text *text, int64_t number)
{
    char digits[QN_NUMBER_SIZE];
    qn_text_add(text, digits, (size_t)snprintf(digits, sizeof digits, "%lld", (long long)number));
}

static void add_list(qn_text *text, const qn_option *row, const char *field)
{
    const void *at;
    size_t count;
    memcpy(&at, field, sizeof at);
    memcpy(&count, field + sizeof at, sizeof count);
    for (size_t i = 0; i < count; i++) {
        if (i)
            qn_text_add(text, ",", 1);
        if (row->kind == QN_OPTION_REALS)
            add_number(text, ((const double *)at)[i]);
        else if (row->kind == QN_OPTION_LONGS)
            add_integer(text, ((const int64_t *)at)[i]);
        else
            qn_text_add(text, ((const char *const *)at)[i], strlen(((const char *const *)at)[i]));
    }
}

static void add_field(qn_text *text, const qn_option *row, const char *field)
{
    int64_t number = 0;
    const char *word = NULL;
    switch (row->kind) {
    case QN_OPTION_FLAG: word = *(const int *)(const void *)field ? "true" : "false"; break;
    case QN_OPTION_INT: add_integer(text, *(const int *)(const void *)field); break;
    case QN_OPTION_REAL: add_number(text, *(const double *)(const void *)field); break;
    case QN_OPTION_TEXT: memcpy(&word, field, sizeof word); break;
    case QN_OPTION_TEXTS:
    case QN_OPTION_REALS:
    case QN_OPTION_LONGS: add_list(text, row, field); break;
    case QN_OPTION_SHAPES:
    case QN_OPTION_PLAIN:
    case QN_OPTION_PART: break;
    default: memcpy(&number, field, row->size); add_integer(text, number);
    }
    if (word)
        qn_text_add(text, word, strlen(word));
}

qn_status qn_options_get(char **out, qn_context *ctx, const qn_option_table *table,
                         const void *options, const char *name)
{
    qn_option_place at;
    qn_text text;
    *out = NULL;
    if (!qn_options_find(&at, table, name))
        return fail_unknown(ctx, table, name);
    qn_text_init(&text, ctx);
    add_field(&text, at.row, (const char *)options + at.offset);
    return qn_text_take(out, &text);
}
