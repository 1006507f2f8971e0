/* Options told in files that were made with them: members of a JSON object, texts of metadata. */
#include <stdio.h>
#include <string.h>

#include "base/options_record.h"

const qn_option *qn_options_recorded(const qn_option_table *table, size_t i)
{
    for (size_t k = 0; k < table->n_rows; k++) {
        if (table->rows[k].result && i-- == 0)
            return &table->rows[k];
    }
    return NULL;
}

static size_t list_of(const char *const **at, const qn_option *row, const void *options)
{
    size_t count;
    memcpy(at, (const char *)options + row->offset, sizeof *at);
    memcpy(&count, (const char *)options + row->offset + sizeof *at, sizeof count);
    return count;
}

static bool is_empty(const qn_option *row, const void *options)
{
    const char *field = (const char *)options + row->offset;
    const char *const *at;
    if (row->kind == QN_OPTION_TEXTS)
        return list_of(&at, row, options) == 0;
    for (size_t i = 0; i < row->size; i++) {
        if (field[i])
            return false;
    }
    return true;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static qn_json *texts_of(qn_context *ctx, const qn_option *row, const void *options)
{
    const char *const *at;
    const size_t count = list_of(&at, row, options);
    qn_json *list = qn_json_array();
    bool good = list != NULL;
    for (size_t i = 0; good && i < count; i++)
        good = qn_json_push(list, qn_json_text(ctx, at[i]));
    if (good)
        return list;
    qn_json_free(list);
    return NULL;
}

static qn_json *json_of(qn_context *ctx, const qn_option *row, const void *options)
{
    const void *field = (const char *)options + row->offset;
    const char *text;
    switch (row->kind) {
    case QN_OPTION_FLAG: return qn_json_bool(*(const int *)field != 0);
    case QN_OPTION_INT: return qn_json_int(*(const int *)field);
    case QN_OPTION_LONG: return qn_json_int(*(const int64_t *)field);
    case QN_OPTION_REAL: return qn_json_real(*(const double *)field);
    case QN_OPTION_TEXT: memcpy(&text, field, sizeof text); return qn_json_text(ctx, text);
    default: return texts_of(ctx, row, options);
    }
}

bool qn_options_put(qn_json *object, qn_context *ctx, const qn_option_table *table,
                    const void *options)
{
    const qn_option *row;
    bool good = true;
    for (size_t i = 0; good && (row = qn_options_recorded(table, i)) != NULL; i++) {
        if (row->kind == QN_OPTION_TEXTS || !is_empty(row, options))
            good = qn_json_set(object, row->result, json_of(ctx, row, options));
    }
    return good;
}

static qn_status read_texts(void *field, qn_arena *arena, const qn_json_place *list)
{
    size_t count = 0;
    QN_TRY(qn_json_length(&count, list));
    const char **at = qn_arena_array(arena, count + 1, sizeof *at);
    QN_TRY_ALLOC(qn_json_context(list->document), at);
    for (size_t i = 0; i < count; i++) {
        const qn_json_place item = qn_json_element(list, i);
        QN_TRY(qn_json_get_text(&at[i], &item));
    }
    memcpy(field, &at, sizeof at);
    memcpy((char *)field + sizeof at, &count, sizeof count);
    return QN_OK;
}

static qn_status read_number(double *out, const qn_option *row, const qn_json_place *item)
{
    QN_TRY(qn_json_get_double(out, item));
    if (row->least < row->most && !(*out >= row->least && *out <= row->most))
        return qn_json_fail(item, QN_E_FORMAT, "is not from %.15g to %.15g", row->least, row->most);
    return QN_OK;
}

static qn_status read_field(void *field, qn_arena *arena, const qn_option *row,
                            const qn_json_place *item)
{
    int64_t whole = 0;
    bool flag = false;
    switch (row->kind) {
    case QN_OPTION_FLAG:
        QN_TRY(qn_json_get_bool(&flag, item));
        *(int *)field = flag;
        return QN_OK;
    case QN_OPTION_INT:
        QN_TRY(qn_json_get_int(&whole, item, (int64_t)row->least, (int64_t)row->most));
        *(int *)field = (int)whole;
        return QN_OK;
    case QN_OPTION_LONG:
        return qn_json_get_int(field, item, (int64_t)row->least, (int64_t)row->most);
    case QN_OPTION_REAL: return read_number(field, row, item);
    case QN_OPTION_TEXT: return qn_json_get_text(field, item);
    default: return read_texts(field, arena, item);
    }
}

qn_status qn_options_read(void *options, qn_arena *arena, const qn_option_table *table,
                          const qn_json_place *object)
{
    const qn_option *row;
    qn_json_place item;
    for (size_t i = 0; (row = qn_options_recorded(table, i)) != NULL; i++) {
        if (qn_json_find(&item, object, row->result))
            QN_TRY(read_field((char *)options + row->offset, arena, row, &item));
    }
    return QN_OK;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static void add_texts(qn_text *text, const qn_option *row, const void *options)
{
    static const char between[] = ", ";
    const char *const *at;
    const size_t count = list_of(&at, row, options);
    for (size_t i = 0; i < count; i++) {
        if (i)
            qn_text_add(text, between, sizeof between - 1);
        qn_text_add(text, at[i], strlen(at[i]));
    }
}

bool qn_options_describe(qn_text *text, const qn_option *row, const void *options)
{
    const void *field = (const char *)options + row->offset;
    char number[32] = "";
    const char *word = number;
    if (is_empty(row, options))
        return false;
    switch (row->kind) {
    case QN_OPTION_FLAG:
    case QN_OPTION_INT: snprintf(number, sizeof number, "%d", *(const int *)field); break;
    case QN_OPTION_LONG:
        snprintf(number, sizeof number, "%lld", (long long)*(const int64_t *)field);
        break;
    case QN_OPTION_REAL: snprintf(number, sizeof number, "%.9g", *(const double *)field); break;
    case QN_OPTION_TEXT: memcpy(&word, field, sizeof word); break;
    default: add_texts(text, row, options); return true;
    }
    qn_text_add(text, word, strlen(word));
    return true;
}
