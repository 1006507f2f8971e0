/* Builds the tree of a report. */
#include "report/report.h"

#include <string.h>

qn_status qn_report_create(qn_report **out, qn_context *ctx)
{
    qn_report *report = qn_alloc_zero(ctx, 1, sizeof *report);
    *out = report;
    QN_TRY_ALLOC(ctx, report);
    report->ctx = ctx;
    report->root.report = report->spare.report = report;
    qn_arena_init(&report->arena, &ctx->allocator);
    return QN_OK;
}

void qn_report_free(qn_report *report)
{
    if (!report)
        return;
    qn_arena_free(&report->arena);
    qn_free(report->ctx, report);
}

qn_status qn_report_finish(const qn_report *report)
{
    return report->failed ? qn_fail_nomem(report->ctx) : QN_OK;
}

static qn_item *item_add(qn_item *parent, const char *key, qn_item_kind kind)
{
    qn_report *report = parent->report;
    qn_item *item = report->failed ? NULL : qn_arena_alloc(&report->arena, sizeof *item);
    if (!item) {
        report->failed = true;
        return &report->spare;
    }
    *item = (qn_item){.report = report, .kind = kind, .key = key, .parent = parent};
    if (parent->last)
        parent->last->next = item;
    else
        parent->first = item;
    parent->last = item;
    return item;
}

qn_item *qn_item_group(qn_item *parent, const char *key)
{
    return item_add(parent, key, QN_ITEM_GROUP);
}

qn_item *qn_item_table(qn_item *parent, const char *key)
{
    return item_add(parent, key, QN_ITEM_TABLE);
}

qn_item *qn_item_row(qn_item *table)
{
    return item_add(table, NULL, QN_ITEM_GROUP);
}

void qn_item_text(qn_item *parent, const char *key, const char *text)
{
    qn_item *item = item_add(parent, key, QN_ITEM_TEXT);
    item->text = text ? qn_arena_text(&parent->report->arena, text, strlen(text)) : NULL;
    if (!item->text)
        parent->report->failed = true;
}

void qn_item_int(qn_item *parent, const char *key, int64_t value)
{
    item_add(parent, key, QN_ITEM_INT)->integer = value;
}

void qn_item_real(qn_item *parent, const char *key, double value, int decimals)
{
    qn_item *item = item_add(parent, key, QN_ITEM_REAL);
    item->real = value;
    item->decimals = decimals;
}

void qn_item_range(qn_item *parent, const char *key, double first, double last)
{
    qn_item *item = item_add(parent, key, QN_ITEM_RANGE);
    item->real = first;
    item->end = last;
}

void qn_item_bool(qn_item *parent, const char *key, bool value)
{
    item_add(parent, key, QN_ITEM_BOOL)->integer = value;
}

void qn_item_none(qn_item *parent, const char *key)
{
    item_add(parent, key, QN_ITEM_NONE);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* `item`, or what stands first in it, or what follows. */
static const qn_item *cell_from(const qn_item *row, const qn_item *item)
{
    while (item && !qn_item_is_value(item)) {
        if (item->first) {
            item = item->first;
            continue;
        }
        while (item != row && !item->next)
            item = item->parent;
        item = item == row ? NULL : item->next;
    }
    return item;
}

const qn_item *qn_row_first(const qn_item *row)
{
    return row->first ? cell_from(row, row->first) : NULL;
}

const qn_item *qn_row_next(const qn_item *row, const qn_item *cell)
{
    while (cell != row && !cell->next)
        cell = cell->parent;
    return cell == row ? NULL : cell_from(row, cell->next);
}

void qn_report_title(qn_text *out, const qn_item *cell)
{
    if (cell->parent->key) {
        qn_report_key(out, cell->parent->key);
        qn_text_add(out, " ", 1);
    }
    qn_report_key(out, cell->key);
}

size_t qn_report_title_width(const qn_item *cell)
{
    const char *group = cell->parent->key;
    return strlen(cell->key) + (group ? strlen(group) + 1 : 0);
}
