/* Options: from structs of any version to one of this version, and whether they make sense. */
#include "base/options.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

/* ---- Versions --------------------------------------------------------------------------------
 * A compiler puts fields one behind the other, each at a multiple of its alignment, and a struct's
 * size is a multiple of the largest one. So the rows that a version had say where its fields
 * lie. */

typedef struct layout {
    size_t end, align;
} layout;

static size_t round_up(size_t size, size_t align)
{
    return (size + align - 1) / align * align;
}

/* Copies into `out` what a struct of the version has at `given`; NULL: only measures it. */
static layout read_version(char *out, const qn_option_table *table, const char *given, int version)
{
    layout at = {sizeof version, _Alignof(int)};
    for (size_t i = 0; i < table->n_rows; i++) {
        const qn_option *row = &table->rows[i];
        layout field = {row->size, row->align};
        if (row->since > version)
            continue;
        if (row->part)
            field = read_version(NULL, row->part, NULL, version);
        at.end = round_up(at.end, field.align);
        if (given && row->part)
            read_version(out + row->offset, row->part, given + at.end, version);
        else if (given)
            memcpy(out + row->offset, given + at.end, row->size);
        at.end += field.end;
        at.align = QN_MAX(at.align, field.align);
    }
    at.end = round_up(at.end, at.align);
    return at;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static bool is_listed(const char *const *words, const char *text)
{
    for (; words && *words; words++) {
        if (strcmp(*words, text) == 0)
            return true;
    }
    return false;
}

static bool is_word(const qn_option *row, const char *text)
{
    if (row->open || (!row->words && !row->word) || is_listed(row->words, text))
        return true;
    if (row->known)
        return row->known(text) != 0;
    for (size_t i = 0; row->word && row->word(i); i++) {
        if (strcmp(row->word(i), text) == 0)
            return true;
    }
    return false;
}

static qn_status check_text(qn_context *ctx, const qn_option *row, const char *text)
{
    char list[QN_ERROR_SIZE / 2] = "";
    if (!text || is_word(row, text))
        return QN_OK;
    for (size_t i = 0; row->word && row->word(i); i++)
        qn_word_list(list, sizeof list, "%s", row->word(i));
    for (const char *const *word = row->words; word && *word; word++)
        qn_word_list(list, sizeof list, "%s", *word);
    return qn_fail(ctx, QN_E_OPTION, "%s: '%s' is none of: %s", row->field, text, list);
}

static qn_status check_number(qn_context *ctx, const qn_option *row, double number)
{
    char text[32];
    if (row->word || row->words) {
        snprintf(text, sizeof text, "%.15g", number);
        return check_text(ctx, row, text);
    }
    if (row->least >= row->most || (number >= row->least && number <= row->most))
        return QN_OK;
    return qn_fail(ctx, QN_E_OPTION, "%s: %.15g is not from %.15g to %.15g", row->field, number,
                   row->least, row->most);
}

static double number_of(const qn_option *row, const void *field)
{
    switch (row->kind) {
    case QN_OPTION_INT: return *(const int *)field;
    case QN_OPTION_LONG: return (double)*(const int64_t *)field;
    case QN_OPTION_SEED: return (double)*(const uint64_t *)field;
    case QN_OPTION_SIZE: return (double)*(const size_t *)field;
    default: return *(const double *)field;
    }
}

/* A pointer and how many it points to, as they lie in a struct. */
static size_t read_list(const void **at, const void *field)
{
    size_t count;
    memcpy(at, field, sizeof *at);
    memcpy(&count, (const char *)field + sizeof *at, sizeof count);
    return count;
}

static qn_status check_list(qn_context *ctx, const qn_option *row, const void *field)
{
    const void *at;
    const size_t count = read_list(&at, field);
    if (count && !at)
        return qn_fail(ctx, QN_E_OPTION, "%s: there are %zu, but the pointer is NULL", row->field,
                       count);
    for (size_t i = 0; i < count; i++) {
        if (row->kind == QN_OPTION_TEXTS && !((const char *const *)at)[i])
            return qn_fail(ctx, QN_E_OPTION, "%s: number %zu is NULL", row->field, i);
        if (row->kind == QN_OPTION_TEXTS)
            QN_TRY(check_text(ctx, row, ((const char *const *)at)[i]));
        else if (row->kind == QN_OPTION_REALS)
            QN_TRY(check_number(ctx, row, ((const double *)at)[i]));
        else if (row->kind == QN_OPTION_LONGS)
            QN_TRY(check_number(ctx, row, (double)((const int64_t *)at)[i]));
    }
    return QN_OK;
}

/* Lists that are no standard are given. */
static bool differs(const qn_option_table *table, const qn_option *row, const void *field)
{
    const char *standard = (const char *)table->standard + row->offset;
    const void *at;
    if (row->kind >= QN_OPTION_TEXTS && row->kind <= QN_OPTION_SHAPES)
        return read_list(&at, field) != 0;
    return memcmp(field, standard, row->size) != 0;
}

static qn_status check_row(qn_context *ctx, const qn_option_table *table, const qn_option *row,
                           const void *field)
{
    if (!differs(table, row, field))
        return QN_OK;
    switch (row->kind) {
    case QN_OPTION_FLAG:
    case QN_OPTION_SHAPES:
    case QN_OPTION_PLAIN:
    case QN_OPTION_PART: return QN_OK;
    case QN_OPTION_TEXT: return check_text(ctx, row, *(const char *const *)field);
    case QN_OPTION_TEXTS:
    case QN_OPTION_REALS:
    case QN_OPTION_LONGS: return check_list(ctx, row, field);
    default: return check_number(ctx, row, number_of(row, field));
    }
}

static qn_status check_rule(qn_context *ctx, const qn_option_table *table,
                            const qn_option_rule *rule, const void *options)
{
    if (rule->relation != QN_OPTION_EXCLUDES || !qn_options_is_given(table, options, rule->field) ||
        !qn_options_is_given(table, options, rule->other))
        return QN_OK;
    return qn_fail(ctx, QN_E_OPTION, "`%s` and `%s` exclude each other: %s", rule->field,
                   rule->other, rule->why);
}

static qn_status check_options(qn_context *ctx, const qn_option_table *table, void *options)
{
    const int version = QN_OPTIONS_VERSION;
    memcpy(options, &version, sizeof version);
    for (size_t i = 0; i < table->n_rows; i++) {
        const qn_option *row = &table->rows[i];
        char *field = (char *)options + row->offset;
        if (row->part)
            QN_TRY(check_options(ctx, row->part, field));
        else
            QN_TRY(check_row(ctx, table, row, field));
    }
    for (size_t i = 0; i < table->n_rules; i++)
        QN_TRY(check_rule(ctx, table, &table->rules[i], options));
    return QN_OK;
}

/* ---- The door -------------------------------------------------------------------------------- */

qn_status qn_options_take(void *out, qn_context *ctx, const qn_option_table *table,
                          const void *given)
{
    int version;
    memcpy(out, table->standard, table->size);
    if (!given)
        return QN_OK;
    memcpy(&version, given, sizeof version);
    if (version < 1 || version > QN_OPTIONS_VERSION)
        return qn_fail(ctx, QN_E_OPTION,
                       "%s has version %d, and this library knows 1 to %d: its _INIT sets it",
                       table->name, version, QN_OPTIONS_VERSION);
    read_version(out, table, given, version);
    return check_options(ctx, table, out);
}

qn_status qn_options_check_field(qn_context *ctx, const qn_option_place *at, const void *options)
{
    return check_row(ctx, at->table, at->row, (const char *)options + at->offset);
}

bool qn_options_is_given(const qn_option_table *table, const void *options, const char *name)
{
    qn_option_place at;
    return qn_options_find(&at, table, name) &&
           differs(at.table, at.row, (const char *)options + at.offset);
}
