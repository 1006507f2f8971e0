/* Reports as Markdown: headings and tables. */
#include <string.h>

#include "report/report.h"

static void add(qn_text *out, const char *text)
{
    qn_text_add(out, text, strlen(text));
}

/* A cell's text, with nothing in it that Markdown would read. */
static void add_plain(qn_text *out, const char *text)
{
    while (*text) {
        const char *letter;
        const size_t length = qn_text_letter(&letter, &text);
        if (strchr("\\`*_<|", *letter))
            add(out, "\\");
        qn_text_add(out, letter, length);
    }
}

static void add_value(qn_text *out, const qn_item *cell)
{
    char room[QN_ITEM_TEXT_SIZE];
    add_plain(out, qn_item_format(room, cell));
}

/* Numbers stand on the right. */
static void add_rule(qn_text *out, const qn_item *cell)
{
    add(out, cell->kind == QN_ITEM_TEXT ? "---" : "---:");
}

static void add_row(qn_text *out, const qn_item *row, void (*part)(qn_text *, const qn_item *))
{
    for (const qn_item *cell = qn_row_first(row); cell; cell = qn_row_next(row, cell)) {
        add(out, cell == qn_row_first(row) ? "| " : " | ");
        part(out, cell);
    }
    add(out, " |\n");
}

static void add_table(qn_text *out, const qn_item *table)
{
    if (!table->first) {
        add(out, "none\n");
        return;
    }
    add_row(out, table->first, qn_report_title);
    add_row(out, table->first, add_rule);
    for (const qn_item *row = table->first; row; row = row->next)
        add_row(out, row, add_value);
}

static void add_values(qn_text *out, const qn_item *group)
{
    for (const qn_item *item = group->first; item; item = item->next) {
        if (!qn_item_is_value(item))
            continue;
        add(out, "- ");
        qn_report_key(out, item->key);
        add(out, ": ");
        add_value(out, item);
        add(out, "\n");
    }
}

static void add_group(qn_text *out, const qn_item *group, size_t level)
{
    add_values(out, group);
    for (const qn_item *item = group->first; item; item = item->next) {
        if (qn_item_is_value(item) || item->audience == QN_FOR_PROGRAMS)
            continue;
        if (out->length)
            add(out, "\n");
        qn_text_fill(out, '#', level);
        add(out, " ");
        qn_report_key(out, item->key);
        add(out, "\n\n");
        if (item->kind == QN_ITEM_TABLE)
            add_table(out, item);
        else
            add_group(out, item, level + 1);
    }
}

qn_status qn_report_markdown(char **out, const qn_report *report)
{
    qn_text text;
    qn_text_init(&text, report->ctx);
    add_group(&text, &report->root, 1);
    return qn_text_take(out, &text);
}
