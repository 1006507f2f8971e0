/* What a network is given: `input:` with its dims, Input layers, and data layers of training. */
#include <stdio.h>
#include <string.h>

#include "import/caffe/caffe.h"

static const char *text_of(qn_caffe_net *net, qn_string text)
{
    return qn_arena_text(&net->builder.model->arena, text.text, text.length);
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

static qn_status read_shape(qn_type *out, qn_caffe_net *net, const qn_proto_message *shape,
                            const char *name)
{
    qn_proto_numbers dims = qn_proto_numbers_of(shape, QN_CAFFE_SHAPE_DIM);
    int64_t dim;
    *out = qn_type_tensor(QN_FLOAT32, 0, NULL);
    while (qn_proto_next_int(&dim, &dims)) {
        if (out->rank == QN_MAX_RANK || dim < 1 || dim > QN_CAFFE_MOST)
            return qn_fail(net->ctx, QN_E_FORMAT, "input '%s' has a shape that no blob can have",
                           name);
        out->dims[out->rank++] = qn_dim_of(dim);
    }
    return QN_OK;
}

/* The shape that the options have for the input: by its name, else the next one without a name. */
static const qn_input_shape *given_shape(qn_caffe_net *net, const char *name)
{
    const qn_model_load_options *o = net->options;
    for (size_t i = 0; i < o->n_shapes; i++) {
        if (o->shapes[i].name && strcmp(o->shapes[i].name, name) == 0)
            return &o->shapes[i];
    }
    while (net->next_shape < o->n_shapes) {
        const qn_input_shape *shape = &o->shapes[net->next_shape++];
        if (!shape->name)
            return shape;
    }
    return NULL;
}

/* -1 in a given shape keeps what the network says. */
static qn_status override(qn_type *type, qn_caffe_net *net, const char *name)
{
    const qn_input_shape *given = given_shape(net, name);
    if (!given)
        return QN_OK;
    const qn_type own = *type;
    *type = qn_type_tensor(QN_FLOAT32, given->rank, given->dims);
    for (int32_t i = 0; i < given->rank; i++) {
        if (given->dims[i] < 0 && given->rank == own.rank)
            type->dims[i] = own.dims[i];
        if (type->dims[i].value == 0 || type->dims[i].value > QN_CAFFE_MOST)
            return qn_fail(net->ctx, QN_E_INVALID, "shapes: '%s' cannot have %lld in axis %d", name,
                           (long long)type->dims[i].value, i);
    }
    return QN_OK;
}

static qn_status add(qn_caffe_net *net, const char *name, qn_type *type)
{
    qn_value *value;
    if (qn_graph_build_has(&net->builder, name))
        return qn_fail(net->ctx, QN_E_FORMAT, "there are two inputs '%s'", name);
    QN_TRY(override(type, net, name));
    if (!qn_type_is_static(type, NULL) || type->rank == 0)
        return qn_fail(net->ctx, QN_E_FORMAT,
                       "the network does not say the shape of '%s': give it with `load.shapes`",
                       name);
    if (!qn_type_fits(type))
        return qn_fail(net->ctx, QN_E_FORMAT, "input '%s' has a shape that no blob can have", name);
    return qn_graph_build_input(&value, &net->builder, name, type);
}

/* ---- `input:` -------------------------------------------------------------------------------- */

/* Four numbers of `input_dim` belong to each input, or one `input_shape`. */
static qn_status add_input(qn_caffe_net *net, size_t i, qn_proto_numbers *dims)
{
    const qn_proto_message *root = &net->text.root;
    const char *name = text_of(net, qn_proto_string_at(root, QN_CAFFE_NET_INPUT, i));
    qn_type type = qn_type_tensor(QN_FLOAT32, 0, NULL);
    int64_t dim;
    QN_TRY_ALLOC(net->ctx, name);
    if (i < qn_proto_count(root, QN_CAFFE_NET_INPUT_SHAPE))
        QN_TRY(
            read_shape(&type, net, qn_proto_message_at(root, QN_CAFFE_NET_INPUT_SHAPE, i), name));
    const bool has_shapes = qn_proto_count(root, QN_CAFFE_NET_INPUT_SHAPE) > 0;
    for (int k = 0; k < 4 && !has_shapes && qn_proto_next_int(&dim, dims); k++) {
        if (dim < 1 || dim > QN_CAFFE_MOST)
            return qn_fail(net->ctx, QN_E_FORMAT, "input_dim of '%s' is %lld", name,
                           (long long)dim);
        type.dims[type.rank++] = qn_dim_of(dim);
    }
    return add(net, name, &type);
}

qn_status qn_caffe_add_inputs(qn_caffe_net *net)
{
    qn_proto_numbers dims = qn_proto_numbers_of(&net->text.root, QN_CAFFE_NET_INPUT_DIM);
    for (size_t i = 0; i < qn_proto_count(&net->text.root, QN_CAFFE_NET_INPUT); i++)
        QN_TRY(add_input(net, i, &dims));
    return QN_OK;
}

/* ---- Input layers ---------------------------------------------------------------------------- */

/* One shape is for all tops, else there is one for each. */
qn_status qn_caffe_input(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_INPUT);
    const size_t n = qn_proto_count(param, QN_CAFFE_INPUT_SHAPE);
    for (size_t i = 0; i < layer->tops.count; i++) {
        qn_type type = qn_type_tensor(QN_FLOAT32, 0, NULL);
        const size_t at = n == 1 ? 0 : i;
        if (at < n)
            QN_TRY(read_shape(&type, net, qn_proto_message_at(param, QN_CAFFE_INPUT_SHAPE, at),
                              layer->tops.at[i]));
        QN_TRY(add(net, layer->tops.at[i], &type));
    }
    return QN_OK;
}

/* ---- Data layers ----------------------------------------------------------------------------- */

/* What the file says of pictures: [batch, channels, height, width], -1 where it does not. */
static void read_picture(int64_t dims[4], const qn_caffe_layer *layer)
{
    static const uint32_t params[] = {QN_CAFFE_LAYER_DATA, QN_CAFFE_LAYER_IMAGE_DATA,
                                      QN_CAFFE_LAYER_MEMORY_DATA, QN_CAFFE_LAYER_HDF5_DATA};
    static const uint32_t fields[][2] = {
        {0, QN_CAFFE_DATA_BATCH_SIZE}, {1, QN_CAFFE_DATA_CHANNELS},   {2, QN_CAFFE_DATA_HEIGHT},
        {3, QN_CAFFE_DATA_WIDTH},      {2, QN_CAFFE_DATA_NEW_HEIGHT}, {3, QN_CAFFE_DATA_NEW_WIDTH},
        {2, QN_CAFFE_DATA_CROP_SIZE},  {3, QN_CAFFE_DATA_CROP_SIZE}};
    const qn_proto_message *transform = qn_caffe_param(layer, QN_CAFFE_LAYER_TRANSFORM);
    const qn_proto_message *resize = qn_proto_get_message(transform, QN_CAFFE_TRANSFORM_RESIZE);
    for (size_t p = 0; p <= QN_COUNT_OF(params); p++) {
        const qn_proto_message *param =
            p < QN_COUNT_OF(params) ? qn_caffe_param(layer, params[p]) : resize;
        for (size_t f = 0; f < QN_COUNT_OF(fields); f++) {
            const int64_t value = qn_proto_int(param, fields[f][1], 0);
            if (value > 0)
                dims[fields[f][0]] = value;
        }
        if (param && !qn_proto_int(param, QN_CAFFE_DATA_IS_COLOR, 1))
            dims[1] = 1;
    }
    const int64_t crop = qn_proto_int(transform, QN_CAFFE_TRANSFORM_CROP_SIZE, 0);
    if (crop > 0)
        dims[2] = dims[3] = crop;
    if (qn_proto_int(transform, QN_CAFFE_TRANSFORM_FORCE_GRAY, 0))
        dims[1] = 1;
}

static void note_transform(const qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *t = qn_caffe_param(layer, QN_CAFFE_LAYER_TRANSFORM);
    const qn_string mean = qn_proto_string(t, QN_CAFFE_TRANSFORM_MEAN_FILE);
    char means[QN_CAFFE_MEAN_TEXT];
    if (!mean.length && !qn_proto_count(t, QN_CAFFE_TRANSFORM_MEAN_VALUE) &&
        !qn_proto_has(t, QN_CAFFE_TRANSFORM_SCALE))
        return;
    qn_caffe_find_mean(means, net->ctx, net->builder.model->path, mean);
    qn_log(net->ctx, QN_LOG_NOTE,
           "layer '%s' prepares its data, which the converted model leaves to its caller: mean "
           "%s%.*s%s%s, scale %g",
           layer->name, mean.length ? "of the file " : "of mean_value",
           (int)QN_MIN(mean.length, (size_t)200), mean.text, *means ? ", by channel " : "", means,
           qn_proto_real(t, QN_CAFFE_TRANSFORM_SCALE, 1));
}

/* A top that is the same in every run: one number, beside inputs that are data. */
static qn_status add_filled(bool *done, qn_caffe_net *net, const char *name, const qn_type *type,
                            const qn_proto_message *filler)
{
    const qn_string kind = qn_proto_string(filler, QN_CAFFE_FILLER_TYPE);
    const float value = (float)qn_proto_real(filler, QN_CAFFE_FILLER_VALUE, 0);
    int64_t count, dims[QN_MAX_RANK];
    qn_tensor *tensor;
    qn_value *y;
    *done = filler && net->builder.graph->n_inputs > 0 &&
            (kind.length == 0 || (kind.length == 8 && memcmp(kind.text, "constant", 8) == 0)) &&
            qn_type_is_static(type, dims) && qn_dims_count(&count, type->rank, dims) &&
            count <= 1 << 22;
    if (!*done)
        return QN_OK;
    QN_TRY(qn_model_tensor(&tensor, net->builder.model, type));
    for (int64_t i = 0; i < count; i++)
        ((float *)tensor->data)[i] = value;
    QN_TRY(qn_value_constant(&y, net->builder.graph, name, tensor));
    return qn_graph_build_define(&net->builder, name, y);
}

/* Numbers in the place of data: their shapes are known. */
static qn_status add_dummy(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    static const uint32_t old[] = {QN_CAFFE_DUMMY_NUM, QN_CAFFE_DUMMY_CHANNELS,
                                   QN_CAFFE_DUMMY_HEIGHT, QN_CAFFE_DUMMY_WIDTH};
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_DUMMY);
    const size_t n = qn_proto_count(param, QN_CAFFE_DUMMY_SHAPE);
    for (size_t i = 0; i < layer->tops.count; i++) {
        qn_type type = qn_type_tensor(QN_FLOAT32, 0, NULL);
        const size_t at = n == 1 ? 0 : i;
        if (at < n)
            QN_TRY(read_shape(&type, net, qn_proto_message_at(param, QN_CAFFE_DUMMY_SHAPE, at),
                              layer->tops.at[i]));
        for (size_t k = 0; k < QN_COUNT_OF(old) && n == 0; k++) {
            qn_proto_numbers numbers = qn_proto_numbers_of(param, old[k]);
            int64_t dim = 0;
            for (size_t j = 0; j <= i && qn_proto_next_int(&dim, &numbers); j++)
                continue;
            QN_TRY(qn_caffe_check(net, "a dim", dim, 1, QN_CAFFE_MOST));
            type.dims[type.rank++] = qn_dim_of(dim);
        }
        const size_t fillers = qn_proto_count(param, QN_CAFFE_DUMMY_FILLER);
        const size_t filler = fillers == 1 ? 0 : i;
        bool done = false;
        if (filler < fillers)
            QN_TRY(add_filled(&done, net, layer->tops.at[i], &type,
                              qn_proto_message_at(param, QN_CAFFE_DUMMY_FILLER, filler)));
        if (!done)
            QN_TRY(add(net, layer->tops.at[i], &type));
    }
    return QN_OK;
}

qn_status qn_caffe_add_data(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    int64_t dims[] = {-1, 3, -1, -1};
    if (layer->tops.count == 0 || qn_graph_build_has(&net->builder, layer->tops.at[0]))
        return QN_OK;
    if (qn_caffe_param(layer, QN_CAFFE_LAYER_DUMMY))
        return add_dummy(net, layer);
    read_picture(dims, layer);
    note_transform(net, layer);
    qn_type type = qn_type_tensor(QN_FLOAT32, 4, dims);
    for (size_t i = 1; i < layer->tops.count; i++)
        QN_TRY(qn_names_set(&net->cut, layer->tops.at[i], net));
    return add(net, layer->tops.at[0], &type);
}
