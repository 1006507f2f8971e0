/* Contents in files beside the model. Only files inside its folder are opened: a model must not be
 * able to read others. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/onnx/onnx.h"

typedef struct external {
    const char *location;
    uint64_t offset, length;
    bool has_length;
} external;

static bool parse_number(uint64_t *out, qn_string text)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.length; i++) {
        const unsigned digit = (unsigned)(text.text[i] - '0');
        if (digit > 9 || value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return text.length > 0;
}

static bool is_key(qn_string key, const char *word)
{
    return key.length == strlen(word) && memcmp(key.text, word, key.length) == 0;
}

static qn_status read_entries(external *out, qn_onnx_import *import, const qn_proto_message *tensor)
{
    *out = (external){.location = NULL};
    for (size_t i = 0; i < qn_proto_count(tensor, QN_ONNX_TENSOR_EXTERNAL_DATA); i++) {
        const qn_proto_message *entry =
            qn_proto_message_at(tensor, QN_ONNX_TENSOR_EXTERNAL_DATA, i);
        const qn_string key = qn_proto_string(entry, QN_ONNX_ENTRY_KEY);
        const qn_string value = qn_proto_string(entry, QN_ONNX_ENTRY_VALUE);
        bool good = true;
        if (is_key(key, "location"))
            QN_TRY(qn_onnx_name(&out->location, import, value));
        else if (is_key(key, "offset"))
            good = parse_number(&out->offset, value);
        else if (is_key(key, "length"))
            good = out->has_length = parse_number(&out->length, value);
        if (!good)
            return qn_fail(import->ctx, QN_E_FORMAT, "external data: '%.*s' is no %.*s",
                           (int)QN_MIN(value.length, 40), value.text, (int)key.length, key.text);
    }
    return QN_OK;
}

/* Relative, and nowhere upwards. */
static bool is_inside(const char *location)
{
    if (*location == 0 || *location == '/')
        return false;
    for (const char *part = location; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == 0))
            return false;
    }
    return true;
}

/* The resolved path must begin with the resolved folder: links may not lead out of it. */
static qn_status resolve(char path[PATH_MAX], qn_onnx_import *import, const char *location)
{
    char folder[PATH_MAX], joined[PATH_MAX];
    const int length = snprintf(joined, sizeof joined, "%s/%s", import->folder, location);
    if (length < 0 || (size_t)length >= sizeof joined || !realpath(import->folder, folder))
        return qn_fail(import->ctx, QN_E_IO, "external data: the path of '%s' is too long",
                       location);
    if (!realpath(joined, path))
        return qn_fail(import->ctx, QN_E_IO, "external data: '%s' cannot be found", joined);
    const size_t prefix = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    if (strncmp(path, folder, prefix) != 0 || path[prefix] != '/')
        return qn_fail(import->ctx, QN_E_FORMAT,
                       "external data: '%s' leads out of the model's folder; copy it there",
                       location);
    return QN_OK;
}

static qn_status open_file(size_t *out, qn_onnx_import *import, const char *location)
{
    qn_model *model = import->model;
    char path[PATH_MAX];
    if (!is_inside(location))
        return qn_fail(import->ctx, QN_E_FORMAT,
                       "external data: '%s' is outside of the model's folder", location);
    QN_TRY(resolve(path, import, location));
    QN_TRY_GROW(import->ctx, model->maps, model->maps_capacity, model->n_maps + 1);
    QN_TRY(qn_map_open(&model->maps[model->n_maps], import->ctx, path));
    *out = model->n_maps++;
    return qn_names_set(&import->files, location, (void *)(uintptr_t)(*out + 1));
}

qn_status qn_onnx_external(qn_string *out, qn_onnx_import *import, const qn_proto_message *tensor,
                           size_t size)
{
    external e;
    QN_TRY(read_entries(&e, import, tensor));
    if (!e.location)
        return qn_fail(import->ctx, QN_E_FORMAT, "external data without a location");
    if (!import->folder)
        return qn_fail(import->ctx, QN_E_UNSUPPORTED,
                       "external data ('%s') needs a model that is a file", e.location);
    if (e.has_length && e.length != size)
        return qn_fail(import->ctx, QN_E_FORMAT,
                       "external data has %llu bytes where the dimensions ask for %zu",
                       (unsigned long long)e.length, size);
    size_t number = (size_t)(uintptr_t)qn_names_get(&import->files, e.location);
    if (number-- == 0)
        QN_TRY(open_file(&number, import, e.location));
    const qn_map *map = &import->model->maps[number];
    if (e.offset > map->size || size > map->size - e.offset)
        return qn_fail(import->ctx, QN_E_FORMAT,
                       "external data: '%s' has %zu bytes, too few for %zu at offset %llu",
                       e.location, map->size, size, (unsigned long long)e.offset);
    *out = size ? (qn_string){(const char *)map->data + e.offset, size} : (qn_string){"", 0};
    return QN_OK;
}
