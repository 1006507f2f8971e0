/* Caffe's files of weights: .caffemodel, and .caffemodel.h5. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/hdf5.h"
#include "import/caffe/caffe.h"

/* ---- Blobs ----------------------------------------------------------------------------------- */

static qn_status read_shape(qn_caffe_blob *out, qn_context *ctx, const qn_proto_message *message,
                            const char *what)
{
    static const uint32_t old[] = {QN_CAFFE_BLOB_NUM, QN_CAFFE_BLOB_CHANNELS, QN_CAFFE_BLOB_HEIGHT,
                                   QN_CAFFE_BLOB_WIDTH};
    const qn_proto_message *shape = qn_proto_get_message(message, QN_CAFFE_BLOB_SHAPE);
    qn_proto_numbers dims = qn_proto_numbers_of(shape, QN_CAFFE_BLOB_SHAPE_DIM);
    bool is_old = false;
    out->rank = 0;
    for (size_t i = 0; i < QN_COUNT_OF(old); i++)
        is_old |= qn_proto_has(message, old[i]);
    if (shape) {
        if (qn_proto_count(shape, QN_CAFFE_BLOB_SHAPE_DIM) > QN_MAX_RANK)
            return qn_fail(ctx, QN_E_FORMAT, "%s has more than %d axes", what, QN_MAX_RANK);
        while (qn_proto_next_int(&out->dims[out->rank], &dims))
            out->rank++;
        return QN_OK;
    }
    for (size_t i = 0; is_old && i < QN_COUNT_OF(old); i++)
        out->dims[out->rank++] = qn_proto_int(message, old[i], 0);
    if (is_old)
        return QN_OK;
    out->rank = 1;
    out->dims[0] = (int64_t)(out->bytes.length / qn_dtype_get(out->dtype)->size);
    return QN_OK;
}

static qn_status read_numbers(qn_caffe_blob *out, qn_context *ctx, const qn_proto_message *message,
                              const char *what)
{
    static const qn_dtype types[] = {[QN_CAFFE_DOUBLE] = QN_FLOAT64,
                                     [QN_CAFFE_FLOAT] = QN_FLOAT32,
                                     [QN_CAFFE_FLOAT16] = QN_FLOAT16};
    out->dtype = QN_FLOAT32;
    out->bytes = qn_proto_packed(message, QN_CAFFE_BLOB_DATA);
    if (out->bytes.length)
        return QN_OK;
    if (qn_proto_has(message, QN_CAFFE_BLOB_RAW_DATA)) {
        const int64_t type = qn_proto_int(message, QN_CAFFE_BLOB_RAW_TYPE, QN_CAFFE_DOUBLE);
        if (type < 0 || type >= (int64_t)QN_COUNT_OF(types))
            return qn_fail(ctx, QN_E_UNSUPPORTED,
                           "%s has raw data of type %lld, which is not DOUBLE, FLOAT or FLOAT16",
                           what, (long long)type);
        out->dtype = types[type];
        out->bytes = qn_proto_string(message, QN_CAFFE_BLOB_RAW_DATA);
    } else if (qn_proto_has(message, QN_CAFFE_BLOB_DOUBLE_DATA)) {
        out->dtype = QN_FLOAT64;
        out->bytes = qn_proto_packed(message, QN_CAFFE_BLOB_DOUBLE_DATA);
    }
    return QN_OK;
}

qn_status qn_caffe_read_blob(qn_caffe_blob *out, qn_context *ctx, const qn_proto_message *message,
                             const char *what)
{
    size_t wanted;
    QN_TRY(read_numbers(out, ctx, message, what));
    QN_TRY(read_shape(out, ctx, message, what));
    if (!qn_tensor_bytes(&wanted, out->dtype, out->rank, out->dims))
        return qn_fail(ctx, QN_E_FORMAT, "%s has a shape that no blob can have", what);
    if (wanted != out->bytes.length)
        return qn_fail(ctx, QN_E_FORMAT, "%s has %zu bytes where its shape asks for %zu", what,
                       out->bytes.length, wanted);
    return QN_OK;
}

/* ---- .caffemodel ----------------------------------------------------------------------------- */

typedef struct weights_form {
    uint32_t layers, name, blobs;
} weights_form;

static const weights_form forms[] = {
    {QN_CAFFE_WEIGHTS_NET_LAYERS, QN_CAFFE_OLD_WEIGHTS_NAME, QN_CAFFE_OLD_WEIGHTS_BLOBS},
    {QN_CAFFE_WEIGHTS_NET_LAYER, QN_CAFFE_WEIGHTS_NAME, QN_CAFFE_WEIGHTS_BLOBS},
};

static const char *text_of(qn_caffe_net *net, qn_string text)
{
    return qn_arena_text(&net->builder.model->arena, text.text, text.length);
}

/* Numbers with a tag each lie in the tree, which is gone soon; the others in the file. */
static qn_status keep_numbers(qn_caffe_blob *blob, qn_caffe_net *net, const qn_map *map)
{
    const uintptr_t at = (uintptr_t)blob->bytes.text, begin = (uintptr_t)map->data;
    if (blob->bytes.length == 0 || (at >= begin && at - begin < map->size))
        return QN_OK;
    blob->bytes.text =
        qn_arena_copy(&net->builder.model->arena, blob->bytes.text, blob->bytes.length);
    QN_TRY_ALLOC(net->ctx, blob->bytes.text);
    return QN_OK;
}

static qn_status read_blobs(qn_caffe_weights *out, qn_caffe_net *net, const qn_proto_message *layer,
                            const weights_form *form, const qn_map *map)
{
    const uint32_t number = form->blobs;
    char what[256];
    const size_t count = qn_proto_count(layer, number);
    qn_caffe_blob *blobs =
        qn_arena_array(&net->builder.model->arena, QN_MAX(count, (size_t)1), sizeof *blobs);
    QN_TRY_ALLOC(net->ctx, blobs);
    for (size_t i = 0; i < count; i++) {
        snprintf(what, sizeof what, "layer '%.200s': blob %zu", out->name, i);
        QN_TRY(
            qn_caffe_read_blob(&blobs[i], net->ctx, qn_proto_message_at(layer, number, i), what));
        QN_TRY(keep_numbers(&blobs[i], net, map));
    }
    out->blobs = blobs;
    out->count = count;
    return QN_OK;
}

/* The first of several layers of one name counts. */
static qn_status keep(qn_caffe_file *file, qn_caffe_weights *weights)
{
    if (*weights->name == 0)
        file->nameless[file->n_nameless++] = *weights;
    else if (!qn_names_get(&file->by_name, weights->name))
        return qn_names_set(&file->by_name, weights->name, weights);
    return QN_OK;
}

static qn_status read_form(qn_caffe_net *net, const qn_proto_message *root,
                           const weights_form *form, const qn_map *map)
{
    const size_t count = qn_proto_count(root, form->layers);
    qn_caffe_weights *all =
        qn_arena_array(&net->builder.model->arena, QN_MAX(count, (size_t)1), sizeof *all);
    QN_TRY_ALLOC(net->ctx, all);
    for (size_t i = 0; i < count; i++) {
        const qn_proto_message *layer = qn_proto_message_at(root, form->layers, i);
        qn_caffe_weights *weights = &all[i];
        if (qn_proto_count(layer, form->blobs) == 0)
            continue;
        weights->type = form->layers == QN_CAFFE_WEIGHTS_NET_LAYER
                            ? text_of(net, qn_proto_string(layer, QN_CAFFE_WEIGHTS_TYPE))
                            : "";
        weights->name = text_of(net, qn_proto_string(layer, form->name));
        QN_TRY_ALLOC(net->ctx, weights->name);
        QN_TRY_ALLOC(net->ctx, weights->type);
        QN_TRY(read_blobs(weights, net, layer, form, map));
        QN_TRY(keep(&net->file, weights));
    }
    return QN_OK;
}

/* The map stays with the model, whose constants lie in it. */
static qn_status read_binary(qn_caffe_net *net, const qn_map *map)
{
    qn_proto_tree tree;
    qn_status status;
    qn_proto_tree_init(&tree, net->ctx, &qn_caffe_weights_net_schema);
    QN_TRY_OR_DONE(qn_proto_parse_wire(&tree, map->data, map->size));
    const size_t count = qn_proto_count(&tree.root, QN_CAFFE_WEIGHTS_NET_LAYERS) +
                         qn_proto_count(&tree.root, QN_CAFFE_WEIGHTS_NET_LAYER);
    if (count == 0) {
        status = qn_fail(net->ctx, QN_E_FORMAT, "there are no layers in it");
        goto done;
    }
    net->file.nameless =
        qn_arena_array(&net->builder.model->arena, count, sizeof *net->file.nameless);
    status = net->file.nameless ? QN_OK : qn_fail_nomem(net->ctx);
    for (size_t i = 0; i < QN_COUNT_OF(forms) && status == QN_OK; i++)
        status = read_form(net, &tree.root, &forms[i], map);
done:
    qn_proto_tree_free(&tree);
    return status;
}

/* ---- .caffemodel.h5: /data/LAYER/NUMBER ------------------------------------------------------ */

static qn_status read_array(qn_caffe_blob *out, qn_caffe_net *net, qn_hdf5 *file, const char *path)
{
    qn_hdf5_array array;
    QN_TRY(qn_hdf5_read(&array, file, &net->builder.model->arena, path));
    if (array.dtype != QN_FLOAT32 && array.dtype != QN_FLOAT64 && array.dtype != QN_FLOAT16)
        return qn_fail(net->ctx, QN_E_UNSUPPORTED, "'%s' has no real numbers", path);
    *out = (qn_caffe_blob){.dtype = array.dtype, .rank = array.rank};
    memcpy(out->dims, array.dims, sizeof out->dims);
    out->bytes = (qn_string){array.data, array.size};
    return QN_OK;
}

/* A name may have '/' in it: then its parts are groups in one another. */
static qn_status read_group(qn_caffe_net *net, qn_hdf5 *file, const char *name, int depth)
{
    enum { MOST = 16 };
    qn_arena *arena = &net->builder.model->arena;
    const char *group = qn_arena_format(arena, "data%s%s", *name ? "/" : "", name);
    qn_caffe_weights *weights = qn_arena_alloc(arena, sizeof *weights);
    qn_hdf5_texts members;
    QN_TRY_ALLOC(net->ctx, group);
    QN_TRY_ALLOC(net->ctx, weights);
    QN_TRY(qn_hdf5_members(&members, file, arena, group));
    qn_caffe_blob *blobs = qn_arena_array(arena, MOST, sizeof *blobs);
    QN_TRY_ALLOC(net->ctx, blobs);
    *weights = (qn_caffe_weights){.name = name, .type = "", .blobs = blobs};
    for (size_t i = 0; i < members.count; i++) {
        const char *inner = qn_arena_format(arena, "%s%s%s", name, *name ? "/" : "", members.at[i]);
        const char *path = qn_arena_format(arena, "%s/%s", group, members.at[i]);
        QN_TRY_ALLOC(net->ctx, inner);
        QN_TRY_ALLOC(net->ctx, path);
        if (qn_hdf5_kind_of(file, path) == QN_HDF5_GROUP && depth < MOST)
            QN_TRY(read_group(net, file, inner, depth + 1));
    }
    for (; weights->count < MOST; weights->count++) {
        const char *path = qn_arena_format(arena, "%s/%zu", group, weights->count);
        QN_TRY_ALLOC(net->ctx, path);
        if (qn_hdf5_kind_of(file, path) != QN_HDF5_ARRAY)
            break;
        QN_TRY(read_array(&blobs[weights->count], net, file, path));
    }
    return weights->count && *name ? keep(&net->file, weights) : QN_OK;
}

static qn_status read_hdf5(qn_caffe_net *net, const char *path, const qn_map *map)
{
    qn_hdf5 *file;
    QN_TRY(qn_hdf5_open(&file, net->ctx, path, map));
    const qn_status status =
        qn_hdf5_kind_of(file, "data") == QN_HDF5_GROUP
            ? read_group(net, file, "", 0)
            : qn_fail(net->ctx, QN_E_FORMAT, "it has no group 'data' of layers");
    qn_hdf5_close(file);
    return status;
}

/* ---- The file -------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text), own = strlen(ending);
    return length >= own && strcmp(text + length - own, ending) == 0;
}

/* How well a file's name fits: the network's own, one that begins with it, any; 0: no weights. */
static int rank_name(const char *name, const char *stem, size_t length)
{
    const bool binary = ends_with(name, ".caffemodel");
    if (!binary && !ends_with(name, ".caffemodel.h5"))
        return 0;
    if (strncmp(name, stem, length) != 0)
        return 1;
    return strcmp(name + length, binary ? ".caffemodel" : ".caffemodel.h5") == 0 ? 3 + binary : 2;
}

/* The file beside the network that fits best; NULL where there is none, or two fit as well. */
static qn_status find_beside(const char **out, qn_caffe_net *net, const char *path)
{
    qn_arena *arena = &net->builder.model->arena;
    const char *slash = strrchr(path, '/'), *stem = slash ? slash + 1 : path;
    const char *dot = strrchr(stem, '.');
    const size_t length = dot ? (size_t)(dot - stem) : strlen(stem);
    const char *folder = slash ? qn_arena_text(arena, path, (size_t)(stem - path)) : "./";
    int best = 0;
    *out = NULL;
    QN_TRY_ALLOC(net->ctx, folder);
    DIR *dir = opendir(folder);
    for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        const int rank = rank_name(entry->d_name, stem, length);
        if (rank == best)
            *out = NULL;
        if (rank > best) {
            best = rank;
            *out = qn_arena_format(arena, "%s%s", slash ? folder : "", entry->d_name);
        }
    }
    if (dir)
        closedir(dir);
    return QN_OK;
}

static qn_status read_file(qn_caffe_net *net, const char *path, qn_map *map)
{
    if (map->size && qn_hdf5_is_file(map->data, map->size))
        return read_hdf5(net, path, map);
    return read_binary(net, map);
}

qn_status qn_caffe_open_weights(qn_caffe_net *net, const char *path)
{
    const char *file = net->options->weights;
    qn_map map = {.data = NULL};
    qn_names_init(&net->file.by_name, net->ctx);
    if (!file)
        QN_TRY(find_beside(&file, net, path));
    if (!file)
        return QN_OK;
    net->file.path = qn_arena_text(&net->builder.model->arena, file, strlen(file));
    QN_TRY_ALLOC(net->ctx, net->file.path);
    if (!net->options->weights)
        qn_log(net->ctx, QN_LOG_INFO, "weights: %s", file);
    QN_TRY(qn_map_open(&map, net->ctx, file));
    qn_status status = read_file(net, file, &map);
    if (status == QN_OK)
        status = qn_import_keep_map(net->builder.model, &map);
    qn_map_close(&map);
    return status == QN_OK ? QN_OK
                           : qn_fail_within(net->ctx, status, "the weights '%s'", net->file.path);
}

void qn_caffe_close_weights(qn_caffe_net *net)
{
    qn_names_free(&net->file.by_name);
}

/* ---- Layers and their blobs ------------------------------------------------------------------ */

/* Layers without a name have the blobs of the next one of their type that has none either. */
static const qn_caffe_weights *next_nameless(qn_caffe_file *file, const char *type)
{
    for (size_t i = file->next_nameless; i < file->n_nameless; i++) {
        if (strcmp(file->nameless[i].type, type) != 0)
            continue;
        file->next_nameless = i + 1;
        return &file->nameless[i];
    }
    return NULL;
}

/* `param { name: ... }`: the first layer that has blobs owns those that are called so. */
static qn_status share(qn_caffe_net *net, qn_caffe_layer *layer)
{
    const size_t n = qn_proto_count(layer->message, QN_CAFFE_LAYER_PARAM);
    qn_arena *arena = &net->builder.model->arena;
    size_t count = layer->weights ? layer->weights->count : 0;
    qn_caffe_blob *blobs = qn_arena_array(arena, QN_MAX(count, n) + 1, sizeof *blobs);
    qn_caffe_weights *weights = qn_arena_alloc(arena, sizeof *weights);
    QN_TRY_ALLOC(net->ctx, blobs);
    QN_TRY_ALLOC(net->ctx, weights);
    for (size_t i = 0; i < count; i++)
        blobs[i] = layer->weights->blobs[i];
    for (size_t i = 0; i < n; i++) {
        const qn_proto_message *param =
            qn_proto_message_at(layer->message, QN_CAFFE_LAYER_PARAM, i);
        const char *name = text_of(net, qn_proto_string(param, QN_CAFFE_SHARE_NAME));
        QN_TRY_ALLOC(net->ctx, name);
        const qn_caffe_blob *owned = *name ? qn_names_get(&net->shared, name) : NULL;
        if (owned && i <= count) {
            blobs[i] = *owned;
            count = QN_MAX(count, i + 1);
        } else if (*name && i < count) {
            QN_TRY(qn_names_set(&net->shared, name, &blobs[i]));
        }
    }
    *weights = (qn_caffe_weights){layer->name, layer->type, blobs, count};
    layer->weights = weights;
    return QN_OK;
}

qn_status qn_caffe_assign_weights(qn_caffe_net *net, qn_caffe_layer *layers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        qn_caffe_layer *layer = &layers[i];
        layer->weights = layer->is_named ? qn_names_get(&net->file.by_name, layer->name)
                                         : next_nameless(&net->file, layer->type);
        if (qn_proto_count(layer->message, QN_CAFFE_LAYER_PARAM))
            QN_TRY(share(net, layer));
    }
    return QN_OK;
}
