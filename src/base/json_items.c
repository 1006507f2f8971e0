/* Items of a JSON document: members, elements and what they hold, which must be of the kind that is
 * asked for. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/json.h"

static const char *kind_of(const qn_json *item)
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",  [JSON_STRING] = "a text",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };
    return kinds[json_typeof(item)];
}

static qn_status fail_kind(const qn_json_place *place, const char *wanted)
{
    return qn_json_fail(place, QN_E_FORMAT, "is %s, not %s", kind_of(place->item), wanted);
}

/* ---- Members and elements -------------------------------------------------------------------- */

bool qn_json_find(qn_json_place *out, const qn_json_place *object, const char *key)
{
    *out = (qn_json_place){.document = object->document,
                           .item = json_object_get(object->item, key),
                           .parent = object,
                           .key = key};
    return out->item != NULL;
}

qn_status qn_json_member(qn_json_place *out, const qn_json_place *object, const char *key)
{
    if (!json_is_object(object->item))
        return fail_kind(object, "an object");
    if (!qn_json_find(out, object, key))
        return qn_json_fail(object, QN_E_FORMAT, "has no \"%s\"", key);
    return QN_OK;
}

qn_status qn_json_members(size_t *count, const qn_json_place *object)
{
    if (!json_is_object(object->item))
        return fail_kind(object, "an object");
    *count = json_object_size(object->item);
    return QN_OK;
}

bool qn_json_next(qn_json_place *out, const qn_json_place *object, void **iterator)
{
    json_t *item = (json_t *)(uintptr_t)object->item;
    *iterator = *iterator ? json_object_iter_next(item, *iterator) : json_object_iter(item);
    if (!*iterator)
        return false;
    *out = (qn_json_place){.document = object->document,
                           .item = json_object_iter_value(*iterator),
                           .parent = object,
                           .key = json_object_iter_key(*iterator)};
    return true;
}

qn_status qn_json_only(const qn_json_place *object, const char *const *keys)
{
    qn_json_place member;
    size_t count;
    QN_TRY(qn_json_members(&count, object));
    for (void *i = NULL; qn_json_next(&member, object, &i);) {
        size_t k = 0;
        while (keys[k] && strcmp(keys[k], member.key) != 0)
            k++;
        if (!keys[k])
            return qn_json_fail(&member, QN_E_FORMAT, "nothing of this name is known here");
    }
    return QN_OK;
}

qn_status qn_json_length(size_t *count, const qn_json_place *list)
{
    if (!json_is_array(list->item))
        return fail_kind(list, "a list");
    *count = json_array_size(list->item);
    return QN_OK;
}

qn_json_place qn_json_element(const qn_json_place *list, size_t i)
{
    return (qn_json_place){.document = list->document,
                           .item = json_array_get(list->item, i),
                           .parent = list,
                           .index = i};
}

/* ---- What they hold -------------------------------------------------------------------------- */

bool qn_json_is_null(const qn_json_place *place)
{
    return json_is_null(place->item);
}

bool qn_json_is_object(const qn_json_place *place)
{
    return json_is_object(place->item);
}

bool qn_json_is_text(const qn_json_place *place)
{
    return json_is_string(place->item);
}

bool qn_json_is_bool(const qn_json_place *place)
{
    return json_is_boolean(place->item);
}

bool qn_json_is_int(const qn_json_place *place)
{
    return json_is_integer(place->item);
}

bool qn_json_is_list(const qn_json_place *place)
{
    return json_is_array(place->item);
}

qn_status qn_json_get_text(const char **out, const qn_json_place *place)
{
    if (!json_is_string(place->item))
        return fail_kind(place, "a text");
    *out = json_string_value(place->item);
    return QN_OK;
}

qn_status qn_json_member_text(const char **out, const qn_json_place *object, const char *key)
{
    qn_json_place item = *object;
    QN_TRY(qn_json_member(&item, object, key));
    return qn_json_get_text(out, &item);
}

qn_status qn_json_member_copy(const char **out, qn_arena *arena, const qn_json_place *object,
                              const char *key)
{
    const char *text = NULL;
    QN_TRY(qn_json_member_text(&text, object, key));
    *out = qn_arena_text(arena, text, strlen(text));
    QN_TRY_ALLOC(qn_json_context(object->document), *out);
    return QN_OK;
}

qn_status qn_json_get_int(int64_t *out, const qn_json_place *place, int64_t least, int64_t most)
{
    const int64_t value = json_integer_value(place->item);
    if (!json_is_integer(place->item))
        return fail_kind(place, "a whole number");
    if (value < least || value > most)
        return qn_json_fail(place, QN_E_FORMAT, "is %lld: it must be from %lld to %lld",
                            (long long)value, (long long)least, (long long)most);
    *out = value;
    return QN_OK;
}

qn_status qn_json_get_bool(bool *out, const qn_json_place *place)
{
    if (!json_is_boolean(place->item))
        return fail_kind(place, "true or false");
    *out = json_is_true(place->item);
    return QN_OK;
}

qn_status qn_json_get_double(double *out, const qn_json_place *place)
{
    if (!json_is_number(place->item))
        return fail_kind(place, "a number");
    *out = json_number_value(place->item);
    return QN_OK;
}

qn_status qn_json_get_float(float *out, const qn_json_place *place)
{
    double value = 0;
    QN_TRY(qn_json_get_double(&value, place));
    *out = (float)value;
    if (!isfinite(*out))
        return qn_json_fail(place, QN_E_FORMAT, "is too large for a float");
    return QN_OK;
}
