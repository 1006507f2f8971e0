/* Layers that move numbers: Concat, Slice, Split, Flatten, Reshape, Permute, Crop, Tile and their
 * kin. */
#include <string.h>

#include "import/caffe/caffe.h"

/* Dropout, Split and what else hands its bottom on. */
qn_status qn_caffe_pass(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    qn_value *x;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    for (size_t i = 0; i < layer->tops.count; i++)
        QN_TRY(qn_caffe_out(net, layer, i, x));
    return QN_OK;
}

qn_status qn_caffe_silence(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    (void)net;
    (void)layer;
    return QN_OK;
}

/* ---- Together and apart ---------------------------------------------------------------------- */

qn_status qn_caffe_concat_layer(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_CONCAT);
    int64_t axis =
        qn_proto_int(param, QN_CAFFE_CONCAT_AXIS, qn_proto_int(param, QN_CAFFE_CONCAT_DIM, 1));
    qn_value **parts =
        qn_arena_array(&net->builder.model->arena, layer->bottoms.count + 1, sizeof(qn_value *));
    qn_value *y;
    QN_TRY_ALLOC(net->ctx, parts);
    QN_TRY(qn_caffe_in(&parts[0], net, layer, 0));
    for (size_t i = 1; i < layer->bottoms.count; i++)
        QN_TRY(qn_caffe_in(&parts[i], net, layer, i));
    QN_TRY(qn_caffe_axis(&axis, net, parts[0]->type.rank));
    y = parts[0];
    if (layer->bottoms.count > 1)
        QN_TRY(qn_caffe_concat(&y, net, parts, layer->bottoms.count, axis));
    return qn_caffe_out(net, layer, 0, y);
}

/* The sizes of the pieces: between slice points, or all the same. */
static qn_status read_pieces(int64_t *sizes, qn_caffe_net *net, const qn_caffe_layer *layer,
                             int64_t whole)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_SLICE);
    qn_proto_numbers points = qn_proto_numbers_of(param, QN_CAFFE_SLICE_POINT);
    const size_t given = qn_proto_count(param, QN_CAFFE_SLICE_POINT), n = layer->tops.count;
    int64_t before = 0, point;
    if (given ? given + 1 != n : whole % (int64_t)n != 0)
        return QN_CAFFE_FAIL(net, "%zu slice points in %lld for %zu tops", given, (long long)whole,
                             n);
    for (size_t i = 0; i < n; i++) {
        if (!given)
            point = before + whole / (int64_t)n;
        else if (!qn_proto_next_int(&point, &points))
            point = whole;
        QN_TRY(qn_caffe_check(net, "a slice point", point, before + 1, whole));
        sizes[i] = point - before;
        before = point;
    }
    return QN_OK;
}

qn_status qn_caffe_slice_layer(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_SLICE);
    const size_t n = layer->tops.count;
    qn_arena *arena = &net->builder.model->arena;
    int64_t axis =
        qn_proto_int(param, QN_CAFFE_SLICE_AXIS, qn_proto_int(param, QN_CAFFE_SLICE_DIM, 1));
    int64_t *sizes = qn_arena_array(arena, n + 1, sizeof *sizes), whole;
    qn_value **parts = qn_arena_array(arena, n + 1, sizeof(qn_value *));
    qn_value *x, *list;
    QN_TRY_ALLOC(net->ctx, sizes);
    QN_TRY_ALLOC(net->ctx, parts);
    if (n < 2)
        return qn_caffe_pass(net, layer);
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(qn_caffe_axis(&axis, net, x->type.rank));
    QN_TRY(qn_caffe_count(&whole, net, x, axis, axis + 1));
    QN_TRY(read_pieces(sizes, net, layer, whole));
    QN_TRY(qn_graph_build_ints(&list, &net->builder, sizes, n));
    QN_TRY(qn_graph_build_several(parts, n, &net->builder, &qn_op_Split, QN_INPUTS(x, list),
                                  QN_WITH(QN_A_INT("axis", axis))));
    for (size_t i = 0; i < n; i++)
        QN_TRY(qn_caffe_out(net, layer, i, parts[i]));
    return QN_OK;
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

/* Without a second dim that depends on the data, Reshape infers one. */
static qn_status set_dims(qn_value **out, qn_caffe_net *net, qn_value *x, int32_t rank,
                          int64_t *dims)
{
    int32_t open = 0;
    for (int32_t i = 0; i < rank; i++)
        open += dims[i] < 0;
    if (open > 1)
        return QN_CAFFE_REFUSE(net, "more than one axis depends on the data");
    return qn_caffe_reshape(out, net, x, rank, dims);
}

qn_status qn_caffe_flatten(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_FLATTEN);
    int64_t axis = qn_proto_int(param, QN_CAFFE_SIMPLE_AXIS, 1);
    int64_t end = qn_proto_int(param, QN_CAFFE_SIMPLE_END_AXIS, -1), dims[QN_MAX_RANK];
    int32_t rank = 0;
    qn_value *x;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(qn_caffe_axis(&axis, net, x->type.rank));
    QN_TRY(qn_caffe_axis(&end, net, x->type.rank));
    QN_TRY(qn_caffe_check(net, "end_axis", end, axis, x->type.rank - 1));
    if (axis == 1 && end == x->type.rank - 1) {
        QN_TRY(qn_graph_build(&x, &net->builder, &qn_op_Flatten, QN_INPUTS(x),
                              QN_WITH(QN_A_INT("axis", 1))));
        return qn_caffe_out(net, layer, 0, x);
    }
    for (int64_t i = 0; i < axis; i++)
        dims[rank++] = qn_caffe_dim(x, i);
    QN_TRY(qn_caffe_count(&dims[rank++], net, x, axis, end + 1));
    for (int64_t i = end + 1; i < x->type.rank; i++)
        dims[rank++] = qn_caffe_dim(x, i);
    QN_TRY(set_dims(&x, net, x, rank, dims));
    return qn_caffe_out(net, layer, 0, x);
}

/* The axes [first, end) become those of the parameters, where 0 keeps an axis and -1 is what is
 * left. An axis that stays where it is is 0 in ONNX's too, and need not be known. */
static qn_status read_reshape(int64_t *dims, int32_t *rank, qn_caffe_net *net, const qn_value *x,
                              const qn_proto_message *param)
{
    qn_proto_numbers list = qn_proto_numbers_of(qn_proto_get_message(param, QN_CAFFE_RESHAPE_SHAPE),
                                                QN_CAFFE_SHAPE_DIM);
    int64_t first = qn_proto_int(param, QN_CAFFE_RESHAPE_AXIS, 0), dim;
    const int64_t count = qn_proto_int(param, QN_CAFFE_RESHAPE_NUM_AXES, -1);
    first += first < 0 ? x->type.rank + 1 : 0;
    QN_TRY(qn_caffe_check(net, "axis", first, 0, x->type.rank));
    QN_TRY(qn_caffe_check(net, "num_axes", count, -1, x->type.rank - first));
    const int64_t end = count < 0 ? x->type.rank : first + count;
    *rank = 0;
    for (; *rank < first; ++*rank)
        dims[*rank] = 0;
    while (qn_proto_next_int(&dim, &list)) {
        QN_TRY(qn_caffe_check(net, "a dim", dim, -1, QN_CAFFE_MOST));
        QN_TRY(qn_caffe_check(net, "the number of axes", *rank, 0, QN_MAX_RANK - 1));
        if (dim == 0 && *rank >= x->type.rank)
            return QN_CAFFE_FAIL(net, "dim 0 keeps axis %d, which '%s' does not have", *rank,
                                 x->name);
        dims[(*rank)++] = dim;
    }
    for (int64_t i = end; i < x->type.rank; i++) {
        QN_TRY(qn_caffe_check(net, "the number of axes", *rank, 0, QN_MAX_RANK - 1));
        dims[*rank] = *rank == i ? 0 : qn_caffe_dim(x, i);
        ++*rank;
    }
    return QN_OK;
}

qn_status qn_caffe_reshape_layer(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    int64_t dims[QN_MAX_RANK];
    int32_t rank;
    qn_value *x;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(read_reshape(dims, &rank, net, x, qn_caffe_param(layer, QN_CAFFE_LAYER_RESHAPE)));
    QN_TRY(set_dims(&x, net, x, rank, dims));
    return qn_caffe_out(net, layer, 0, x);
}

/* Axes that the order leaves out follow in their own. */
qn_status qn_caffe_permute(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    qn_proto_numbers order =
        qn_proto_numbers_of(qn_caffe_param(layer, QN_CAFFE_LAYER_PERMUTE), QN_CAFFE_PERMUTE_ORDER);
    int64_t perm[QN_MAX_RANK], axis;
    bool is_taken[QN_MAX_RANK] = {false};
    int32_t count = 0;
    qn_value *x;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    while (qn_proto_next_int(&axis, &order)) {
        QN_TRY(qn_caffe_check(net, "an axis of the order", axis, 0, x->type.rank - 1));
        if (is_taken[axis])
            return QN_CAFFE_FAIL(net, "axis %lld stands twice in the order", (long long)axis);
        is_taken[axis] = true;
        perm[count++] = axis;
    }
    for (int32_t i = 0; i < x->type.rank; i++) {
        if (!is_taken[i])
            perm[count++] = i;
    }
    QN_TRY(qn_caffe_transpose(&x, net, x, perm));
    return qn_caffe_out(net, layer, 0, x);
}

/* From `axis` on the first bottom gets the sizes of the second, beginning at the offsets. */
qn_status qn_caffe_crop(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_CROP);
    const size_t given = qn_proto_count(param, QN_CAFFE_CROP_OFFSET);
    qn_proto_numbers offsets = qn_proto_numbers_of(param, QN_CAFFE_CROP_OFFSET);
    int64_t axis = qn_proto_int(param, QN_CAFFE_CROP_AXIS, 2), offset = 0, size;
    qn_value *x, *like;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(qn_caffe_in(&like, net, layer, 1));
    QN_TRY(qn_caffe_axis(&axis, net, QN_MIN(x->type.rank, like->type.rank)));
    if (given > 1 && given != (size_t)(x->type.rank - axis))
        return QN_CAFFE_FAIL(net, "%zu offsets for %lld axes", given,
                             (long long)(x->type.rank - axis));
    for (int64_t i = axis; i < QN_MIN(x->type.rank, like->type.rank); i++) {
        (void)qn_proto_next_int(&offset, &offsets);
        QN_TRY(qn_caffe_count(&size, net, like, i, i + 1));
        if (offset < 0 || offset > QN_CAFFE_MOST || offset + size > qn_caffe_dim(x, i))
            return QN_CAFFE_FAIL(net, "%lld numbers from %lld on in axis %lld, which has %lld",
                                 (long long)size, (long long)offset, (long long)i,
                                 (long long)qn_caffe_dim(x, i));
        if (size != qn_caffe_dim(x, i))
            QN_TRY(qn_caffe_slice(&x, net, x, i, offset, offset + size));
    }
    return qn_caffe_out(net, layer, 0, x);
}

qn_status qn_caffe_tile(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_TILE);
    int64_t axis = qn_proto_int(param, QN_CAFFE_SIMPLE_AXIS, 1), times[QN_MAX_RANK];
    const int64_t tiles = qn_proto_int(param, QN_CAFFE_SIMPLE_TILES, 0);
    qn_value *x, *list;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(qn_caffe_axis(&axis, net, x->type.rank));
    QN_TRY(qn_caffe_check(net, "tiles", tiles, 1, QN_CAFFE_MOST));
    for (int32_t i = 0; i < x->type.rank; i++)
        times[i] = i == axis ? tiles : 1;
    QN_TRY(qn_graph_build_ints(&list, &net->builder, times, (size_t)x->type.rank));
    QN_TRY(qn_caffe_op2(&x, net, &qn_op_Tile, x, list));
    return qn_caffe_out(net, layer, 0, x);
}

/* [N, groups, C / groups, ...] with the two axes in the middle exchanged. */
qn_status qn_caffe_shuffle(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const int64_t group =
        qn_proto_int(qn_caffe_param(layer, QN_CAFFE_LAYER_SHUFFLE), QN_CAFFE_SIMPLE_GROUP, 1);
    const int64_t perm[] = {0, 2, 1, 3};
    qn_value *x, *y;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    if (x->type.rank < 2)
        return QN_CAFFE_REFUSE(net, "a blob of rank %d has no channels", x->type.rank);
    const int64_t channels = qn_caffe_dim(x, 1);
    int64_t rest, back[QN_MAX_RANK];
    QN_TRY(qn_caffe_check(net, "group", group, 1, channels));
    QN_TRY(qn_caffe_count(&rest, net, x, 2, x->type.rank));
    if (channels % group)
        return QN_CAFFE_FAIL(net, "%lld groups of %lld channels", (long long)group,
                             (long long)channels);
    const int64_t apart[] = {0, group, channels / group, rest};
    QN_TRY(qn_caffe_reshape(&y, net, x, 4, apart));
    QN_TRY(qn_caffe_transpose(&y, net, y, perm));
    back[0] = 0;
    for (int32_t i = 1; i < x->type.rank; i++)
        back[i] = qn_caffe_dim(x, i);
    QN_TRY(qn_caffe_reshape(&y, net, y, x->type.rank, back));
    return qn_caffe_out(net, layer, 0, y);
}

/* The rows of the first bottom that the second names. */
qn_status qn_caffe_batch_reindex(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    qn_value *x, *rows;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(qn_caffe_in(&rows, net, layer, 1));
    QN_TRY(qn_caffe_cast(&rows, net, rows, QN_INT64));
    QN_TRY(qn_caffe_op2(&x, net, &qn_op_Gather, x, rows));
    return qn_caffe_out(net, layer, 0, x);
}
