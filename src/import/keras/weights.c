/* Where the weights of a layer lie in the file. */
#include <stdio.h>
#include <string.h>

#include "import/keras/keras.h"

enum { MOST_DEPTH = 24, MOST_SETS = 1 << 17 };

/* ---- Keras 3: paths -------------------------------------------------------------------------- */

/* The path with '/' for '\' and without the names of containers, which differ between versions. */
static char *plain(qn_keras_import *import, const char *path)
{
    static const char *const containers[] = {"_layer_checkpoint_dependencies/", "layers/"};
    char *out = qn_arena_text(&import->arena, path, strlen(path));
    if (!out)
        return NULL;
    for (char *at = out; *at; at++)
        *at = *at == '\\' ? '/' : *at;
    for (size_t i = 0; i < QN_COUNT_OF(containers); i++) {
        const size_t length = strlen(containers[i]);
        for (char *at = strstr(out, containers[i]); at; at = strstr(at, containers[i])) {
            if (at == out || at[-1] == '/')
                memmove(at, at + length, strlen(at + length) + 1);
            else
                at += length;
        }
    }
    return out;
}

static qn_status index_group(qn_keras_import *import, const char *group, int depth, size_t *sets)
{
    qn_hdf5_texts names;
    if (depth > MOST_DEPTH)
        return qn_fail(import->ctx, QN_E_FORMAT, "groups lie more than %d deep", MOST_DEPTH);
    QN_TRY(qn_hdf5_members(&names, import->file, &import->arena, group));
    for (size_t i = 0; i < names.count; i++) {
        const char *path = qn_arena_format(&import->arena, "%s%s%s", group,
                                           strcmp(group, "/") == 0 ? "" : "/", names.at[i]);
        QN_TRY_ALLOC(import->ctx, path);
        if (strcmp(path, "/optimizer") == 0)
            continue;
        const qn_hdf5_kind kind = qn_hdf5_kind_of(import->file, path);
        if (kind == QN_HDF5_GROUP)
            QN_TRY(index_group(import, path, depth + 1, sets));
        if (kind != QN_HDF5_ARRAY)
            continue;
        char *key = plain(import, path + 1);
        QN_TRY_ALLOC(import->ctx, key);
        if (++*sets > MOST_SETS)
            return qn_fail(import->ctx, QN_E_FORMAT, "more than %d arrays", MOST_SETS);
        QN_TRY(qn_names_set(&import->paths, key, (void *)(uintptr_t)path));
    }
    return QN_OK;
}

qn_status qn_keras_index_weights(qn_keras_import *import)
{
    size_t sets = 0;
    return import->groups ? QN_OK : index_group(import, "/", 0, &sets);
}

/* ---- .h5: lists of names --------------------------------------------------------------------- */

/* Long lists are cut into weight_names0, weight_names1, ... */
static qn_status names_of(const char ***out, size_t *count, qn_keras_import *import,
                          const char *group)
{
    qn_hdf5_texts part;
    QN_TRY(qn_hdf5_attribute(&part, import->file, &import->arena, group, "weight_names"));
    *out = part.at;
    *count = part.count;
    for (int i = 0; part.count || i == 0; i++) {
        char name[32];
        if (*count && i == 0)
            return QN_OK;
        snprintf(name, sizeof name, "weight_names%d", i);
        QN_TRY(qn_hdf5_attribute(&part, import->file, &import->arena, group, name));
        if (part.count == 0)
            break;
        const char **all =
            qn_arena_widen(&import->arena, *out, *count, *count + part.count, sizeof **out);
        QN_TRY_ALLOC(import->ctx, all);
        memcpy(all + *count, part.at, part.count * sizeof *all);
        *out = all;
        *count += part.count;
    }
    return QN_OK;
}

static bool has_part(const char *path, const char *part)
{
    const size_t length = strlen(part);
    for (const char *at = strstr(path, part); at; at = strstr(at + 1, part)) {
        if ((at == path || at[-1] == '/') && (at[length] == '/' || !at[length]))
            return true;
    }
    return false;
}

/* The weights of a layer in a model that is a layer itself: those of its name. */
static qn_status choose(qn_keras_layer *layer, qn_keras_import *import, const qn_keras_scope *scope)
{
    layer->sets = qn_arena_array(&import->arena, scope->n_sets + 1, sizeof *layer->sets);
    QN_TRY_ALLOC(import->ctx, layer->sets);
    for (size_t i = 0; i < scope->n_sets; i++) {
        if (has_part(scope->sets[i], layer->name))
            layer->sets[layer->n_sets++] = scope->sets[i];
    }
    /* The names of weights need not have that of a model in between. */
    if (layer->n_sets == 0 && !layer->op) {
        layer->sets = scope->sets;
        layer->n_sets = scope->n_sets;
    }
    return QN_OK;
}

static qn_status place_by_names(qn_keras_layer *layer, qn_keras_import *import,
                                const qn_keras_scope *scope)
{
    const char **names;
    size_t count;
    if (scope->sets)
        return choose(layer, import, scope);
    const char *group = qn_arena_format(&import->arena, "%s/%s", import->groups, layer->name);
    QN_TRY_ALLOC(import->ctx, group);
    if (qn_hdf5_kind_of(import->file, group) != QN_HDF5_GROUP)
        return QN_OK;
    QN_TRY(names_of(&names, &count, import, group));
    layer->sets = qn_arena_array(&import->arena, count + 1, sizeof *layer->sets);
    QN_TRY_ALLOC(import->ctx, layer->sets);
    for (size_t i = 0; i < count; i++) {
        layer->sets[i] = qn_arena_format(&import->arena, "%s/%s", group, names[i]);
        QN_TRY_ALLOC(import->ctx, layer->sets[i]);
    }
    layer->n_sets = count;
    return QN_OK;
}

qn_status qn_keras_place_weights(qn_keras_layer *layer, qn_keras_import *import,
                                 const qn_keras_scope *scope, const char *counted)
{
    if (import->groups)
        return place_by_names(layer, import, scope);
    layer->group = qn_arena_format(&import->arena, "%s%s/", scope->group, counted);
    QN_TRY_ALLOC(import->ctx, layer->group);
    return QN_OK;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static const char *path_of(const qn_keras_call *call, const qn_keras_weight_id *id)
{
    const qn_keras_layer *layer = call->layer;
    if (call->import->groups)
        return id->flat < layer->n_sets ? layer->sets[id->flat] : NULL;
    const char *key = qn_arena_format(&call->import->arena, "%s%s%svars/%zu", layer->group,
                                      id->part, *id->part ? "/" : "", id->i);
    return key ? qn_names_get(&call->import->paths, key) : NULL;
}

qn_status qn_keras_weight(qn_value **out, const qn_keras_call *call, qn_keras_weight_id id)
{
    qn_hdf5_array array;
    qn_graph_builder *b = &call->import->builder;
    const char *path = path_of(call, &id);
    if (!path)
        return qn_keras_fail(call, QN_E_FORMAT, "its weight %zu%s%s is not in the file", id.i,
                             *id.part ? " of " : "", id.part);
    QN_TRY(qn_hdf5_read(&array, call->import->file, &b->model->arena, path));
    const qn_type type = qn_type_tensor(array.dtype, array.rank, array.dims);
    QN_TRY(qn_graph_build_constant(out, b, call->layer->name, &type,
                                   (qn_string){array.data, array.size}));
    if (array.dtype == QN_FLOAT32 || !qn_dtype_is_float(array.dtype))
        return QN_OK;
    return qn_graph_build(out, b, &qn_op_Cast, QN_INPUTS(*out),
                          QN_WITH(QN_A_INT("to", QN_FLOAT32)));
}

qn_status qn_keras_own_weight(qn_value **out, const qn_keras_call *call, size_t i)
{
    return qn_keras_weight(out, call, (qn_keras_weight_id){"", i, i});
}
