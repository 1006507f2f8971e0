/* Renders a report as JSON. */
#include "base/json.h"
#include "report/report.h"

static qn_json *item_json(const qn_item *item);

/* A group or table with all that it holds; NULL when memory is short. */
static qn_json *container_json(const qn_item *item)
{
    const bool group = item->kind == QN_ITEM_GROUP;
    qn_json *json = group ? qn_json_object() : qn_json_array();
    bool good = json != NULL;
    for (const qn_item *child = item->first; good && child; child = child->next) {
        if (child->audience == QN_FOR_PEOPLE || child->kind == QN_ITEM_NONE)
            continue;
        good = group ? qn_json_set(json, child->key, item_json(child))
                     : qn_json_push(json, item_json(child));
    }
    if (good)
        return json;
    qn_json_free(json);
    return NULL;
}

static qn_json *range_json(const qn_item *item)
{
    qn_json *json = qn_json_array();
    if (json && qn_json_push(json, qn_json_real(item->real)) &&
        qn_json_push(json, qn_json_real(item->end)))
        return json;
    qn_json_free(json);
    return NULL;
}

static qn_json *item_json(const qn_item *item)
{
    switch (item->kind) {
    case QN_ITEM_TEXT: return qn_json_text(item->report->ctx, item->text);
    case QN_ITEM_INT: return qn_json_int(item->integer);
    case QN_ITEM_REAL: return qn_json_real(item->real);
    case QN_ITEM_RANGE: return range_json(item);
    case QN_ITEM_BOOL: return qn_json_bool(item->integer != 0);
    default: return container_json(item);
    }
}

qn_status qn_report_json(char **out, const qn_report *report)
{
    *out = NULL;
    qn_json *json = item_json(&report->root);
    QN_TRY_ALLOC(report->ctx, json);
    const qn_status status = qn_json_write(out, report->ctx, json);
    qn_json_free(json);
    return status;
}
