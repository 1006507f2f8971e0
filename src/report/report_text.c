/* Reports as aligned text: the values of a group side by side with their names, then its tables and
 * groups, each under its name. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/report.h"

enum { GAP = 2 };

bool qn_item_is_value(const qn_item *item)
{
    return item->kind != QN_ITEM_GROUP && item->kind != QN_ITEM_TABLE;
}

const char *qn_item_format(char room[QN_ITEM_TEXT_SIZE], const qn_item *item)
{
    switch (item->kind) {
    case QN_ITEM_TEXT: return item->text;
    case QN_ITEM_BOOL: return item->integer ? "yes" : "no";
    case QN_ITEM_NONE: return "";
    case QN_ITEM_RANGE:
        snprintf(room, QN_ITEM_TEXT_SIZE, "%.5g..%.5g", item->real, item->end);
        return room;
    case QN_ITEM_INT: snprintf(room, QN_ITEM_TEXT_SIZE, "%" PRId64, item->integer); return room;
    default: snprintf(room, QN_ITEM_TEXT_SIZE, "%.*f", item->decimals, item->real); return room;
    }
}

/* Columns that a text takes. */
static size_t text_width(const char *text)
{
    const char *letter;
    size_t width = 0;
    for (; *text; width++)
        qn_text_letter(&letter, &text);
    return width;
}

/* Names come from files: nothing that a terminal would obey gets through. */
static void add_clean(qn_text *out, const char *text)
{
    while (*text) {
        const char *letter;
        const size_t length = qn_text_letter(&letter, &text);
        qn_text_add(out, letter, length);
    }
}

void qn_report_key(qn_text *out, const char *key)
{
    for (; *key; key++)
        qn_text_add(out, *key == '_' ? " " : key, 1);
}

static void add_cell(qn_text *out, const char *text, size_t width, bool right)
{
    const size_t own = text_width(text), pad = width > own ? width - own : 0;
    if (right)
        qn_text_fill(out, ' ', pad);
    add_clean(out, text);
    if (!right)
        qn_text_fill(out, ' ', pad);
}

/* ---- Groups ---------------------------------------------------------------------------------- */

static void add_values(qn_text *out, const qn_item *group, size_t indent)
{
    char room[QN_ITEM_TEXT_SIZE];
    size_t width = 0;
    for (const qn_item *item = group->first; item; item = item->next) {
        if (qn_item_is_value(item))
            width = QN_MAX(width, strlen(item->key));
    }
    for (const qn_item *item = group->first; item; item = item->next) {
        if (!qn_item_is_value(item))
            continue;
        qn_text_fill(out, ' ', indent);
        qn_report_key(out, item->key);
        qn_text_fill(out, ' ', width - strlen(item->key) + GAP);
        add_clean(out, qn_item_format(room, item));
        qn_text_add(out, "\n", 1);
    }
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static size_t column_width(const qn_item *table, size_t column, size_t title)
{
    char room[QN_ITEM_TEXT_SIZE];
    size_t width = title;
    for (const qn_item *row = table->first; row; row = row->next) {
        const qn_item *cell = qn_row_first(row);
        for (size_t c = 0; cell && c < column; c++)
            cell = qn_row_next(row, cell);
        if (cell)
            width = QN_MAX(width, text_width(qn_item_format(room, cell)));
    }
    return width;
}

static void trim_end(qn_text *out)
{
    while (out->length > 0 && out->at[out->length - 1] == ' ')
        out->length--;
    qn_text_add(out, "\n", 1);
}

/* The keys when `titles`, else the values; the widths are those of the columns. */
static void add_row(qn_text *out, const qn_item *row, const size_t *widths, size_t indent,
                    bool titles)
{
    char room[QN_ITEM_TEXT_SIZE];
    size_t column = 0;
    qn_text_fill(out, ' ', indent);
    for (const qn_item *cell = qn_row_first(row); cell; cell = qn_row_next(row, cell), column++) {
        const bool right = cell->kind != QN_ITEM_TEXT && cell->kind != QN_ITEM_RANGE;
        if (titles && right)
            qn_text_fill(out, ' ', widths[column] - qn_report_title_width(cell));
        if (titles)
            qn_report_title(out, cell);
        if (titles && !right)
            qn_text_fill(out, ' ', widths[column] - qn_report_title_width(cell));
        if (!titles)
            add_cell(out, qn_item_format(room, cell), widths[column], right);
        qn_text_fill(out, ' ', GAP);
    }
    trim_end(out);
}

static void add_table(qn_text *out, const qn_item *table, size_t indent)
{
    enum { MOST_COLUMNS = 40 };
    size_t widths[MOST_COLUMNS] = {0}, column = 0;
    if (!table->first) {
        qn_text_fill(out, ' ', indent);
        qn_text_add(out, "none\n", 5);
        return;
    }
    for (const qn_item *cell = qn_row_first(table->first); cell && column < MOST_COLUMNS;
         cell = qn_row_next(table->first, cell), column++)
        widths[column] = column_width(table, column, qn_report_title_width(cell));
    add_row(out, table->first, widths, indent, true);
    for (const qn_item *row = table->first; row; row = row->next)
        add_row(out, row, widths, indent, false);
}

static void add_group(qn_text *out, const qn_item *group, size_t indent)
{
    add_values(out, group, indent);
    for (const qn_item *item = group->first; item; item = item->next) {
        if (qn_item_is_value(item) || item->audience == QN_FOR_PROGRAMS)
            continue;
        if (out->length)
            qn_text_add(out, "\n", 1);
        qn_text_fill(out, ' ', indent);
        qn_report_key(out, item->key);
        qn_text_add(out, "\n", 1);
        if (item->kind == QN_ITEM_TABLE)
            add_table(out, item, indent + GAP);
        else
            add_group(out, item, indent + GAP);
    }
}

qn_status qn_report_text(char **out, const qn_report *report)
{
    qn_text text;
    qn_text_init(&text, report->ctx);
    add_group(&text, &report->root, 0);
    return qn_text_take(out, &text);
}
