/* What converters of layers share: bottoms and tops, blobs, and nodes that come up often. */
#include <stdio.h>
#include <string.h>

#include "import/caffe/caffe.h"

const qn_proto_message *qn_caffe_param(const qn_caffe_layer *layer, uint32_t number)
{
    return qn_proto_get_message(layer->message, number);
}

qn_status qn_caffe_in(qn_value **out, qn_caffe_net *net, const qn_caffe_layer *layer, size_t i)
{
    if (i >= layer->bottoms.count)
        return QN_CAFFE_FAIL(net, "it has %zu bottoms, one more is needed", layer->bottoms.count);
    QN_TRY(qn_graph_build_find(out, &net->builder, layer->bottoms.at[i]));
    if ((*out)->type.kind != QN_TYPE_TENSOR || (*out)->type.rank < 0)
        return QN_CAFFE_REFUSE(net, "the shape of '%s' is not known", layer->bottoms.at[i]);
    return QN_OK;
}

/* Whether the value is called after a blob. */
static bool is_called(const qn_graph_builder *b, const qn_value *value)
{
    return qn_names_get(&b->named, value->name) == value;
}

/* A value takes the name of its top, from an inner one of its layer too, but where another blob has
 * it: layers in place keep their own. */
static qn_status take_name(qn_graph_builder *b, qn_value *value, const char *name)
{
    qn_value *holder = qn_graph_value(b->graph, name);
    if (!value->producer || value->is_output || is_called(b, value) || holder == value)
        return QN_OK;
    if (holder && (holder->is_input || holder->is_output || is_called(b, holder)))
        return QN_OK;
    if (holder)
        QN_TRY(qn_value_rename(holder, name)); /* a taken name gets a number */
    return qn_value_rename(value, name);
}

qn_status qn_caffe_out(qn_caffe_net *net, const qn_caffe_layer *layer, size_t i, qn_value *value)
{
    qn_graph_builder *b = &net->builder;
    if (i >= layer->tops.count)
        return QN_OK;
    QN_TRY(take_name(b, value, layer->tops.at[i]));
    return qn_graph_build_define(b, layer->tops.at[i], value);
}

qn_status qn_caffe_axis(int64_t *axis, qn_caffe_net *net, int64_t rank)
{
    if (*axis < -rank || *axis >= rank)
        return QN_CAFFE_FAIL(net, "axis %lld of a blob that has %lld", (long long)*axis,
                             (long long)rank);
    *axis += *axis < 0 ? rank : 0;
    return QN_OK;
}

qn_status qn_caffe_count(int64_t *out, qn_caffe_net *net, const qn_value *value, int64_t first,
                         int64_t end)
{
    *out = 1;
    for (int64_t i = first; i < end; i++) {
        const int64_t dim = qn_caffe_dim(value, i);
        if (dim < 0)
            return QN_CAFFE_REFUSE(net, "axis %lld of '%s' depends on the data", (long long)i,
                                   value->name);
        if (!qn_mul_int64(out, *out, dim))
            return QN_CAFFE_FAIL(net, "'%s' has too many elements", value->name);
    }
    return QN_OK;
}

qn_status qn_caffe_check(qn_caffe_net *net, const char *what, int64_t value, int64_t least,
                         int64_t most)
{
    if (value >= least && value <= most)
        return QN_OK;
    return QN_CAFFE_FAIL(net, "%s is %lld; it is to be from %lld to %lld", what, (long long)value,
                         (long long)least, (long long)most);
}

/* ---- Blobs ----------------------------------------------------------------------------------- */

/* Equal but for axes of 1. */
static bool same_shape(const qn_caffe_blob *blob, int32_t rank, const int64_t *dims)
{
    int32_t i = 0, k = 0;
    for (;;) {
        while (i < blob->rank && blob->dims[i] == 1)
            i++;
        while (k < rank && dims[k] == 1)
            k++;
        if (i == blob->rank || k == rank)
            return i == blob->rank && k == rank;
        if (blob->dims[i++] != dims[k++])
            return false;
    }
}

static void shape_text(char *out, size_t size, int32_t rank, const int64_t *dims)
{
    size_t at = (size_t)snprintf(out, size, "[");
    for (int32_t i = 0; i < rank && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%lld", i ? "," : "", (long long)dims[i]);
    if (at < size)
        snprintf(out + at, size - at, "]");
}

static qn_status find_blob(const qn_caffe_blob **out, qn_caffe_net *net,
                           const qn_caffe_layer *layer, size_t i, const qn_type *stored)
{
    char wanted[160], found[160];
    int64_t dims[QN_MAX_RANK];
    if (!qn_type_is_static(stored, dims))
        return QN_CAFFE_REFUSE(net, "the shape of its weights depends on the data");
    shape_text(wanted, sizeof wanted, stored->rank, dims);
    if (!net->file.path)
        return QN_CAFFE_FAIL(net, "it needs weights; give the .caffemodel with `weights`");
    if (!qn_caffe_has_blob(layer, i))
        return QN_CAFFE_FAIL(net,
                             "blob %zu %s is not in the weights '%s', which has %zu for this layer",
                             i, wanted, net->file.path, layer->weights ? layer->weights->count : 0);
    const qn_caffe_blob *blob = *out = &layer->weights->blobs[i];
    if (same_shape(blob, stored->rank, dims))
        return QN_OK;
    shape_text(found, sizeof found, blob->rank, blob->dims);
    return QN_CAFFE_FAIL(net,
                         "blob %zu is %s in the weights '%s' where the network wants %s; are they "
                         "of another network?",
                         i, found, net->file.path, wanted);
}

/* The numbers of a blob in another form than float. */
static qn_status widen(qn_string *out, qn_caffe_net *net, const qn_caffe_blob *blob)
{
    enum { PIECE = 512 };
    double piece[PIECE], aligned[PIECE];
    const size_t size = qn_dtype_get(blob->dtype)->size;
    const int64_t count = (int64_t)(blob->bytes.length / size);
    const qn_type type = qn_type_tensor(QN_FLOAT32, 1, &count);
    qn_tensor *tensor;
    *out = blob->bytes;
    if (blob->dtype == QN_FLOAT32)
        return QN_OK;
    QN_TRY(qn_model_tensor(&tensor, net->builder.model, &type));
    for (int64_t at = 0; at < count; at += PIECE) {
        const int64_t n = QN_MIN(count - at, (int64_t)PIECE);
        memcpy(aligned, blob->bytes.text + (size_t)at * size, (size_t)n * size);
        qn_load_f64(piece, blob->dtype, aligned, 0, n);
        qn_store_f64(tensor->data, QN_FLOAT32, at, piece, n);
    }
    *out = (qn_string){tensor->data, (size_t)count * sizeof(float)};
    return QN_OK;
}

qn_status qn_caffe_constant_as(qn_value **out, qn_caffe_net *net, const qn_caffe_layer *layer,
                               size_t i, const qn_type *stored, const qn_type *wanted)
{
    const qn_caffe_blob *blob;
    qn_string bytes;
    char name[256];
    QN_TRY(find_blob(&blob, net, layer, i, stored));
    QN_TRY(widen(&bytes, net, blob));
    snprintf(name, sizeof name, "%.240s.%zu", layer->name, i);
    return qn_graph_build_constant(out, &net->builder, name, wanted, bytes);
}

qn_status qn_caffe_constant(qn_value **out, qn_caffe_net *net, const qn_caffe_layer *layer,
                            size_t i, int32_t rank, const int64_t *dims)
{
    const qn_type type = qn_type_tensor(QN_FLOAT32, rank, dims);
    return qn_caffe_constant_as(out, net, layer, i, &type, &type);
}

qn_status qn_caffe_floats(float **out, qn_caffe_net *net, const qn_caffe_layer *layer, size_t i,
                          int64_t count)
{
    const qn_type type = qn_type_tensor(QN_FLOAT32, 1, &count);
    const qn_caffe_blob *blob;
    qn_string bytes;
    QN_TRY(find_blob(&blob, net, layer, i, &type));
    QN_TRY(widen(&bytes, net, blob));
    *out = qn_arena_copy(&net->builder.model->arena, bytes.text, bytes.length);
    QN_TRY_ALLOC(net->ctx, *out);
    return QN_OK;
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

qn_status qn_caffe_op1(qn_value **out, qn_caffe_net *net, const qn_op *op, qn_value *x)
{
    return qn_graph_build(out, &net->builder, op, QN_INPUTS(x), QN_PLAIN);
}

qn_status qn_caffe_op2(qn_value **out, qn_caffe_net *net, const qn_op *op, qn_value *x, qn_value *y)
{
    return qn_graph_build(out, &net->builder, op, QN_INPUTS(x, y), QN_PLAIN);
}

qn_status qn_caffe_op_real(qn_value **out, qn_caffe_net *net, const qn_op *op, qn_value *x,
                           double y)
{
    qn_value *number;
    QN_TRY(qn_graph_build_real(&number, &net->builder, (float)y));
    return qn_caffe_op2(out, net, op, x, number);
}

qn_status qn_caffe_reshape(qn_value **out, qn_caffe_net *net, qn_value *x, int32_t rank,
                           const int64_t *dims)
{
    qn_value *shape;
    QN_TRY(qn_graph_build_ints(&shape, &net->builder, dims, (size_t)rank));
    return qn_caffe_op2(out, net, &qn_op_Reshape, x, shape);
}

qn_status qn_caffe_slice(qn_value **out, qn_caffe_net *net, qn_value *x, int64_t axis,
                         int64_t begin, int64_t end)
{
    qn_value *from, *to, *axes;
    QN_TRY(qn_graph_build_ints(&from, &net->builder, &begin, 1));
    QN_TRY(qn_graph_build_ints(&to, &net->builder, &end, 1));
    QN_TRY(qn_graph_build_ints(&axes, &net->builder, &axis, 1));
    return qn_graph_build(out, &net->builder, &qn_op_Slice, QN_INPUTS(x, from, to, axes), QN_PLAIN);
}

qn_status qn_caffe_reduce(qn_value **out, qn_caffe_net *net, const qn_op *op, qn_value *x,
                          const int64_t *range, bool keep)
{
    int64_t list[QN_MAX_RANK];
    size_t count = 0;
    qn_value *axes;
    for (int64_t axis = range[0]; axis < range[1]; axis++)
        list[count++] = axis;
    QN_TRY(qn_graph_build_ints(&axes, &net->builder, list, count));
    return qn_graph_build(out, &net->builder, op, QN_INPUTS(x, axes),
                          QN_WITH(QN_A_INT("keepdims", keep)));
}

qn_status qn_caffe_concat(qn_value **out, qn_caffe_net *net, qn_value *const *parts, size_t count,
                          int64_t axis)
{
    return qn_graph_build(out, &net->builder, &qn_op_Concat, (qn_graph_build_inputs){parts, count},
                          QN_WITH(QN_A_INT("axis", axis)));
}

qn_status qn_caffe_transpose(qn_value **out, qn_caffe_net *net, qn_value *x, const int64_t *perm)
{
    return qn_graph_build(out, &net->builder, &qn_op_Transpose, QN_INPUTS(x),
                          QN_WITH(QN_A_INT_LIST("perm", perm, (size_t)x->type.rank)));
}

qn_status qn_caffe_cast(qn_value **out, qn_caffe_net *net, qn_value *x, qn_dtype dtype)
{
    return qn_graph_build(out, &net->builder, &qn_op_Cast, QN_INPUTS(x),
                          QN_WITH(QN_A_INT("to", dtype)));
}
