/* What the configuration of a layer says, in the words of any version of Keras. */
#include <string.h>

#include "import/keras/keras.h"

static bool is_null(const qn_json_place *place)
{
    double real;
    return !qn_json_is_object(place) && !qn_json_is_list(place) && !qn_json_is_text(place) &&
           !qn_json_is_bool(place) && !qn_json_is_int(place) &&
           qn_json_get_double(&real, place) != QN_OK;
}

bool qn_keras_find(qn_json_place *out, const qn_json_place *object, const char *key)
{
    return object->item && qn_json_is_object(object) && qn_json_find(out, object, key) &&
           !is_null(out);
}

/* What a layer's configuration has, or the call of a function. */
static bool find(qn_json_place *out, const qn_keras_call *call, const char *key)
{
    return qn_keras_find(out, &call->layer->config, key) ||
           qn_keras_find(out, &call->keywords, key);
}

int64_t qn_keras_int(const qn_keras_call *call, const char *key, int64_t fallback)
{
    qn_json_place place;
    int64_t value;
    if (!find(&place, call, key) || qn_json_get_int(&value, &place, INT32_MIN, INT32_MAX) != QN_OK)
        return fallback;
    return value;
}

double qn_keras_real(const qn_keras_call *call, const char *key, double fallback)
{
    qn_json_place place, inner;
    double value;
    if (!find(&place, call, key))
        return fallback;
    /* An array of one number, as Keras 3 writes numpy's. */
    if (qn_json_is_object(&place) && qn_keras_find(&inner, &place, "config"))
        return qn_keras_find(&place, &inner, "value") && qn_json_get_double(&value, &place) == QN_OK
                   ? value
                   : fallback;
    return qn_json_get_double(&value, &place) == QN_OK ? value : fallback;
}

bool qn_keras_bool(const qn_keras_call *call, const char *key, bool fallback)
{
    qn_json_place place;
    bool value;
    if (!find(&place, call, key) || qn_json_get_bool(&value, &place) != QN_OK)
        return fallback;
    return value;
}

const char *qn_keras_text(const qn_keras_call *call, const char *key, const char *fallback)
{
    qn_json_place place;
    const char *value;
    if (!find(&place, call, key) || !qn_json_is_text(&place) ||
        qn_json_get_text(&value, &place) != QN_OK)
        return fallback;
    return value;
}

bool qn_keras_is(const qn_keras_call *call, const char *key, const char *word)
{
    return strcmp(qn_keras_text(call, key, ""), word) == 0;
}

bool qn_keras_channels_first(const qn_keras_call *call)
{
    return qn_keras_is(call, "data_format", "channels_first");
}

/* Numbers of lists in lists; tuples are objects with `items` in Keras 3. */
static bool collect(int64_t *out, size_t *count, size_t capacity, const qn_json_place *place,
                    int depth)
{
    qn_json_place items;
    size_t length;
    int64_t value;
    if (qn_json_is_object(place))
        return depth < 4 && qn_keras_find(&items, place, "items") &&
               collect(out, count, capacity, &items, depth + 1);
    if (!qn_json_is_list(place)) {
        if (*count >= capacity || !qn_json_is_int(place) ||
            qn_json_get_int(&value, place, INT32_MIN, INT32_MAX) != QN_OK)
            return false;
        out[(*count)++] = value;
        return true;
    }
    if (depth >= 4 || qn_json_length(&length, place) != QN_OK)
        return false;
    for (size_t i = 0; i < length; i++) {
        const qn_json_place item = qn_json_element(place, i);
        if (!collect(out, count, capacity, &item, depth + 1))
            return false;
    }
    return true;
}

bool qn_keras_int_list(int64_t *out, size_t *count, const qn_keras_call *call, const char *key,
                       size_t capacity)
{
    qn_json_place place;
    *count = 0;
    return find(&place, call, key) && collect(out, count, capacity, &place, 0) && *count > 0;
}

bool qn_keras_ints(int64_t *out, size_t count, const qn_keras_call *call, const char *key)
{
    size_t found;
    int64_t values[16];
    if (!qn_keras_int_list(values, &found, call, key, QN_COUNT_OF(values)) ||
        (found != 1 && found != count))
        return false;
    for (size_t i = 0; i < count; i++)
        out[i] = values[found == 1 ? 0 : i];
    return true;
}

bool qn_keras_real_list(float *out, size_t *count, const qn_keras_call *call, const char *key,
                        size_t capacity)
{
    qn_json_place place;
    double value;
    *count = 0;
    if (!find(&place, call, key) || !qn_json_is_list(&place) ||
        qn_json_length(count, &place) != QN_OK || *count > capacity)
        return false;
    for (size_t i = 0; i < *count; i++) {
        const qn_json_place item = qn_json_element(&place, i);
        if (qn_json_get_double(&value, &item) != QN_OK)
            return false;
        out[i] = (float)value;
    }
    return *count > 0;
}

qn_status qn_keras_shape(qn_type *out, const qn_json_place *list)
{
    size_t length;
    *out = (qn_type){.kind = QN_TYPE_TENSOR, .dtype = QN_FLOAT32};
    QN_TRY(qn_json_length(&length, list));
    if (length > QN_MAX_RANK)
        return qn_json_fail(list, QN_E_UNSUPPORTED, "%zu dimensions", length);
    out->rank = (int32_t)length;
    for (size_t i = 0; i < length; i++) {
        const qn_json_place item = qn_json_element(list, i);
        int64_t size = -1;
        if (qn_json_is_int(&item))
            QN_TRY(qn_json_get_int(&size, &item, 1, INT32_MAX));
        out->dims[i] = size < 0 ? qn_dim_unknown() : qn_dim_of(size);
    }
    return QN_OK;
}
