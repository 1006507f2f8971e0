/* References between layers: ["conv", 0, 0, {...}] of Keras 2, and objects with a keras_history of
 * Keras 3. */
#include <string.h>

#include "import/keras/keras.h"

enum { DEPTH = 16 };

static qn_status add(qn_keras_links *out, qn_keras_import *import, const qn_json_place *list)
{
    qn_keras_link link = {.call = 0};
    qn_json_place item = qn_json_element(list, 0);
    size_t length;
    QN_TRY(qn_json_length(&length, list));
    QN_TRY(qn_json_get_text(&link.layer, &item));
    if (strcmp(link.layer, "_CONSTANT_VALUE") == 0)
        return QN_OK; /* a number in the place of a layer */
    if (length > 1) {
        item = qn_json_element(list, 1);
        QN_TRY(qn_json_get_int(&link.call, &item, 0, INT32_MAX));
    }
    if (length > 2) {
        item = qn_json_element(list, 2);
        QN_TRY(qn_json_get_int(&link.tensor, &item, 0, INT32_MAX));
    }
    if (out->count == out->capacity) {
        const size_t wider = QN_MAX(2 * out->capacity, (size_t)4);
        qn_keras_link *grown =
            qn_arena_widen(&import->arena, out->at, out->count, wider, sizeof *out->at);
        QN_TRY_ALLOC(import->ctx, grown);
        out->at = grown;
        out->capacity = wider;
    }
    out->at[out->count++] = link;
    return QN_OK;
}

/* A list that begins with a name and a number. */
static bool is_link(const qn_json_place *list)
{
    size_t length;
    if (!qn_json_is_list(list) || qn_json_length(&length, list) != QN_OK || length < 3)
        return false;
    const qn_json_place name = qn_json_element(list, 0), call = qn_json_element(list, 1);
    return qn_json_is_text(&name) && qn_json_is_int(&call);
}

/* Places point to those that they are found from, which have to stay. */
static const qn_json_place *keep(qn_keras_import *import, const qn_json_place *place)
{
    return qn_arena_copy(&import->arena, place, sizeof *place);
}

static qn_status walk(qn_keras_links *out, qn_keras_import *import, const qn_json_place *found,
                      int depth);

static qn_status walk_list(qn_keras_links *out, qn_keras_import *import, const qn_json_place *place,
                           int depth)
{
    size_t length;
    QN_TRY(qn_json_length(&length, place));
    for (size_t i = 0; i < length; i++) {
        const qn_json_place item = qn_json_element(place, i);
        QN_TRY(walk(out, import, &item, depth));
    }
    return QN_OK;
}

/* A mask is no input of its own. */
static qn_status walk_keywords(qn_keras_links *out, qn_keras_import *import,
                               const qn_json_place *keywords, int depth)
{
    qn_json_place item;
    void *iterator = NULL;
    out->keywords = *keywords;
    while (qn_json_next(&item, keywords, &iterator)) {
        qn_keras_links inner = {.count = 0};
        const bool is_mask =
            strcmp(item.key, "mask") == 0 || strcmp(item.key, "attention_mask") == 0;
        QN_TRY(walk(is_mask ? &inner : out, import, &item, depth));
        if (is_mask && inner.count == 1)
            out->mask = inner.at[0];
    }
    return QN_OK;
}

static qn_status walk_object(qn_keras_links *out, qn_keras_import *import,
                             const qn_json_place *place, int depth)
{
    qn_json_place item, history;
    void *iterator = NULL;
    if (qn_keras_find(&item, place, "config") && qn_keras_find(&history, &item, "keras_history"))
        return is_link(&history) ? add(out, import, &history) : QN_OK;
    while (qn_json_next(&item, place, &iterator)) {
        if (strcmp(item.key, "kwargs") == 0 && qn_json_is_object(&item)) {
            const qn_json_place *keywords = keep(import, &item);
            QN_TRY_ALLOC(import->ctx, keywords);
            QN_TRY(walk_keywords(out, import, keywords, depth + 1));
        } else {
            QN_TRY(walk(out, import, &item, depth));
        }
    }
    return QN_OK;
}

static qn_status walk(qn_keras_links *out, qn_keras_import *import, const qn_json_place *found,
                      int depth)
{
    const qn_json_place *place = keep(import, found);
    QN_TRY_ALLOC(import->ctx, place);
    if (depth > DEPTH)
        return qn_json_fail(place, QN_E_FORMAT, "lies too deep");
    if (is_link(place)) {
        size_t length;
        QN_TRY(add(out, import, place));
        QN_TRY(qn_json_length(&length, place));
        if (length < 4)
            return QN_OK;
        const qn_json_place item = qn_json_element(place, 3), *keywords = keep(import, &item);
        QN_TRY_ALLOC(import->ctx, keywords);
        return qn_json_is_object(keywords) ? walk_keywords(out, import, keywords, depth + 1)
                                           : QN_OK;
    }
    if (qn_json_is_list(place))
        return walk_list(out, import, place, depth + 1);
    if (!qn_json_is_object(place))
        return QN_OK;
    return walk_object(out, import, place, depth + 1);
}

qn_status qn_keras_find_links(qn_keras_links *out, qn_keras_import *import,
                              const qn_json_place *place)
{
    memset(out, 0, sizeof *out);
    return walk(out, import, place, 0);
}
