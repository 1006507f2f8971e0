/* Padding, and the rearranging of space into channels and batch. */
#include <string.h>

#include "import/tensorflow/tensorflow.h"
#include "import/tensorflow/window.h"

/* ---- Pad ------------------------------------------------------------------------------------- */

static qn_status pad_as(qn_tf_node *node, const char *mode, qn_value *filling)
{
    int64_t flat[2 * QN_MAX_RANK], pairs[QN_MAX_RANK][2], pads[2 * QN_MAX_RANK];
    size_t count;
    qn_value *x, *list, *y;
    qn_axis_order order;
    qn_graph_builder *b = &node->import->builder;
    QN_TRY(qn_tf_ints(flat, &count, node, 1, QN_COUNT_OF(flat)));
    QN_TRY(qn_tf_in_ranked(&x, &order, node, 0));
    const int32_t rank = x->type.rank;
    if (count != 2 * (size_t)rank)
        return qn_tf_fail(node, QN_E_FORMAT, "%zu paddings for %d axes", count, rank);
    for (int32_t i = 0; i < rank; i++) {
        pairs[i][0] = flat[2 * i];
        pairs[i][1] = flat[2 * i + 1];
    }
    qn_layout_pads(pads, rank, order, (const int64_t(*)[2])pairs);
    QN_TRY(qn_graph_build_ints(&list, b, pads, count));
    QN_TRY(qn_graph_build(&y, b, &qn_op_Pad, QN_INPUTS(x, list, filling),
                          QN_WITH(QN_A_TEXT("mode", mode))));
    return qn_tf_out(node, 0, y, order);
}

qn_status qn_tf_pad(qn_tf_node *node)
{
    double number = 0;
    qn_value *x, *filling;
    qn_axis_order order;
    if (node->n_in > 2)
        QN_TRY(qn_tf_real(&number, node, 2));
    QN_TRY(qn_tf_in_any(&x, &order, node, 0));
    QN_TRY(qn_tf_number(&filling, node->import, number, x->type.dtype));
    return pad_as(node, "constant", filling);
}

/* ONNX's reflect leaves the edge out, as REFLECT does; SYMMETRIC has it twice: what lies at the
 * edges is turned around and joined. */
static qn_status mirror_axis(qn_value **x, qn_tf_node *node, int64_t axis, const int64_t pads[2])
{
    qn_graph_builder *b = &node->import->builder;
    qn_value *parts[3], *lists[4];
    size_t n = 0;
    const int64_t size = (*x)->type.dims[axis].value;
    if (size < 0 || pads[0] < 0 || pads[1] < 0 || pads[0] > size || pads[1] > size)
        return qn_tf_fail(node, QN_E_UNSUPPORTED,
                          "paddings larger than the axis, or of one "
                          "whose size is not known");
    const int64_t from[2] = {pads[0] - 1, size - 1}, to[2] = {-size - 1, size - 1 - pads[1]};
    for (size_t side = 0; side < 2; side++) {
        if (side == 1)
            parts[n++] = *x;
        if (pads[side] == 0)
            continue;
        const int64_t end = to[side] < 0 ? INT64_MIN : to[side];
        QN_TRY(qn_graph_build_ints(&lists[0], b, &from[side], 1));
        QN_TRY(qn_graph_build_ints(&lists[1], b, &end, 1));
        QN_TRY(qn_graph_build_ints(&lists[2], b, &axis, 1));
        QN_TRY(qn_graph_build_ints(&lists[3], b, &(int64_t){-1}, 1));
        QN_TRY(qn_graph_build(&parts[n++], b, &qn_op_Slice,
                              QN_INPUTS(*x, lists[0], lists[1], lists[2], lists[3]), QN_PLAIN));
    }
    return qn_graph_build(x, b, &qn_op_Concat, (qn_graph_build_inputs){parts, n},
                          QN_WITH(QN_A_INT("axis", axis)));
}

qn_status qn_tf_mirror_pad(qn_tf_node *node)
{
    int64_t flat[2 * QN_MAX_RANK];
    size_t count;
    qn_value *x;
    if (!qn_tf_attr_is(node, "mode", "SYMMETRIC"))
        return pad_as(node, "reflect", NULL);
    QN_TRY(qn_tf_ints(flat, &count, node, 1, QN_COUNT_OF(flat)));
    QN_TRY(qn_tf_in(&x, node, 0));
    if (count != 2 * (size_t)QN_MAX(x->type.rank, 0))
        return qn_tf_fail(node, QN_E_FORMAT, "%zu paddings for %d axes", count, x->type.rank);
    for (int32_t i = 0; i < (int32_t)count / 2; i++) {
        if (flat[2 * i] || flat[2 * i + 1])
            QN_TRY(mirror_axis(&x, node, i, &flat[2 * i]));
    }
    return qn_tf_out(node, 0, x, QN_ORDER_OWN);
}

/* ---- Depth ----------------------------------------------------------------------------------- */

qn_status qn_tf_depth(qn_tf_node *node)
{
    qn_value *x, *y;
    const bool first = qn_tf_attr_is(node, "data_format", "NCHW");
    const qn_axis_order order = first ? QN_ORDER_OWN : QN_ORDER_CHANNELS_FIRST;
    QN_TRY(qn_tf_in_order(&x, node, 0, order));
    QN_TRY(qn_graph_build(&y, &node->import->builder, node->op->as, QN_INPUTS(x),
                          QN_WITH(QN_A_INT("blocksize", qn_tf_attr_int(node, "block_size", 0)))));
    return qn_tf_out(node, 0, y, order);
}

/* ---- Space and batch ------------------------------------------------------------------------- */

typedef struct blocks {
    int64_t size[QN_MAX_RANK], edges[2 * QN_MAX_RANK];
    size_t count;
} blocks;

static qn_status read_blocks(blocks *s, const qn_tf_node *node)
{
    size_t n;
    if (node->n_in == 2) { /* SpaceToBatch and BatchToSpace of two axes */
        s->count = 2;
        s->size[0] = s->size[1] = qn_tf_attr_int(node, "block_size", 0);
        QN_TRY(qn_tf_ints(s->edges, &n, node, 1, QN_COUNT_OF(s->edges)));
    } else {
        QN_TRY(qn_tf_ints(s->size, &s->count, node, 1, QN_MAX_RANK / 2));
        QN_TRY(qn_tf_ints(s->edges, &n, node, 2, QN_COUNT_OF(s->edges)));
    }
    for (size_t i = 0; i < s->count; i++) {
        if (s->size[i] < 1 || s->size[i] > 1 << 16)
            return qn_tf_fail(node, QN_E_FORMAT, "a block of %lld", (long long)s->size[i]);
    }
    return n == 2 * s->count
               ? QN_OK
               : qn_tf_fail(node, QN_E_FORMAT, "%zu edges of %zu blocks", n, s->count);
}

static qn_status read_dims(int64_t *dims, const qn_tf_node *node, const qn_value *x,
                           const blocks *s)
{
    const int32_t rank = x->type.rank;
    if (rank < (int32_t)s->count + 1 || rank + (int32_t)s->count > QN_MAX_RANK)
        return qn_tf_fail(node, QN_E_FORMAT, "blocks over %zu of %d axes", s->count, rank);
    for (int32_t i = 0; i < rank; i++) {
        dims[i] = x->type.dims[i].value;
        if (dims[i] < 0 && i > 0)
            return qn_tf_fail(node, QN_E_UNSUPPORTED, "the sizes of its input are not known");
    }
    return QN_OK;
}

/* [N, s b, rest] to [b N, s, rest]: the blocks lead. */
qn_status qn_tf_space_to_batch(qn_tf_node *node)
{
    blocks s;
    int64_t dims[QN_MAX_RANK], pads[2 * QN_MAX_RANK] = {0};
    int64_t split[QN_MAX_RANK], perm[QN_MAX_RANK], joined[QN_MAX_RANK];
    qn_value *x, *list;
    qn_tf_import *import = node->import;
    QN_TRY(read_blocks(&s, node));
    QN_TRY(qn_tf_in(&x, node, 0));
    QN_TRY(read_dims(dims, node, x, &s));
    const size_t rank = (size_t)x->type.rank, m = s.count;
    split[0] = joined[0] = dims[0];
    for (size_t i = 0; i < m; i++) {
        pads[1 + i] = s.edges[2 * i];
        pads[rank + 1 + i] = s.edges[2 * i + 1];
        const int64_t size = dims[1 + i] + s.edges[2 * i] + s.edges[2 * i + 1];
        if (size % s.size[i] || size < 0)
            return qn_tf_fail(node, QN_E_FORMAT, "%lld is no multiple of its block",
                              (long long)size);
        split[1 + 2 * i] = joined[1 + i] = size / s.size[i];
        split[2 + 2 * i] = perm[i] = s.size[i];
        joined[0] *= dims[0] < 0 ? 1 : s.size[i];
    }
    for (size_t i = 0; i < m; i++) {
        perm[i] = (int64_t)(2 + 2 * i);
        perm[m + 1 + i] = (int64_t)(1 + 2 * i);
    }
    perm[m] = 0;
    for (size_t i = m + 1; i < rank; i++) {
        split[m + i] = joined[i] = dims[i];
        perm[m + i] = (int64_t)(m + i);
    }
    QN_TRY(qn_graph_build_ints(&list, &import->builder, pads, 2 * rank));
    QN_TRY(qn_graph_build(&x, &import->builder, &qn_op_Pad, QN_INPUTS(x, list), QN_PLAIN));
    QN_TRY(qn_tf_reshape(&x, import, split, rank + m));
    QN_TRY(qn_tf_permute(&x, import, perm, rank + m));
    QN_TRY(qn_tf_reshape(&x, import, joined, rank));
    return qn_tf_out(node, 0, x, QN_ORDER_OWN);
}

static qn_status batch_to_space(qn_value **x, qn_tf_node *node, const blocks *s)
{
    int64_t dims[QN_MAX_RANK], split[QN_MAX_RANK], perm[QN_MAX_RANK], joined[QN_MAX_RANK];
    int64_t product = 1;
    qn_tf_import *import = node->import;
    QN_TRY(read_dims(dims, node, *x, s));
    const size_t rank = (size_t)(*x)->type.rank, m = s->count;
    for (size_t i = 0; i < m; i++) {
        split[i] = s->size[i];
        product *= s->size[i];
        perm[1 + 2 * i] = (int64_t)(m + 1 + i);
        perm[2 + 2 * i] = (int64_t)i;
    }
    if (dims[0] >= 0 && dims[0] % product)
        return qn_tf_fail(node, QN_E_FORMAT, "a batch of %lld in blocks of %lld",
                          (long long)dims[0], (long long)product);
    split[m] = joined[0] = dims[0] < 0 ? -1 : dims[0] / product;
    perm[0] = (int64_t)m;
    for (size_t i = 1; i < rank; i++) {
        split[m + i] = dims[i];
        joined[i] = i <= m ? dims[i] * s->size[i - 1] : dims[i];
        if (i > m)
            perm[m + i] = (int64_t)(m + i);
    }
    QN_TRY(qn_tf_reshape(x, import, split, rank + m));
    QN_TRY(qn_tf_permute(x, import, perm, rank + m));
    QN_TRY(qn_tf_reshape(x, import, joined, rank));
    for (size_t i = 0; i < m; i++) {
        const int64_t size = joined[1 + i];
        if (s->edges[2 * i] || s->edges[2 * i + 1])
            QN_TRY(
                qn_tf_part(x, import, (int64_t)i + 1, s->edges[2 * i], size - s->edges[2 * i + 1]));
    }
    return QN_OK;
}

/* ---- Dilations ------------------------------------------------------------------------------- */

static bool is_type(const qn_tf_node *node, const char *type)
{
    return node && strcmp(node->type, type) == 0;
}

/* A convolution over blocks between SpaceToBatchND and BatchToSpaceND is one with dilations. */
static qn_status dilated(bool *done, qn_tf_node *node, const blocks *s)
{
    const qn_tf_node *conv = node->n_in ? node->from[0] : NULL;
    const bool depthwise = is_type(conv, "DepthwiseConv2dNative");
    const qn_tf_node *spread = conv && conv->n_in ? conv->from[0] : NULL;
    blocks in;
    int64_t strides[4];
    size_t n;
    qn_value *x, *weights, *y;
    qn_tf_window w = qn_tf_window_of(2);
    qn_graph_builder *b = &node->import->builder;
    *done = false;
    if ((!depthwise && !is_type(conv, "Conv2D")) || !is_type(spread, "SpaceToBatchND") ||
        !qn_tf_attr_is(conv, "padding", "VALID") || s->count != 2 ||
        qn_tf_attr_is(conv, "data_format", "NCHW") || !qn_tf_has_ints(spread, 1) ||
        !qn_tf_has_ints(spread, 2))
        return QN_OK;
    if (qn_tf_attr_ints(strides, &n, conv, "strides", 4) && (strides[1] != 1 || strides[2] != 1))
        return QN_OK;
    QN_TRY(read_blocks(&in, spread));
    for (size_t i = 0; i < 2; i++) {
        w.dilation[i] = s->size[i];
        w.pads[i] = in.edges[2 * i] - s->edges[2 * i];
        w.pads[2 + i] = in.edges[2 * i + 1] - s->edges[2 * i + 1];
        if (in.count != 2 || in.size[i] != s->size[i] || w.pads[i] < 0 || w.pads[2 + i] < 0)
            return QN_OK;
    }
    QN_TRY(qn_tf_in_order(&x, spread, 0, QN_ORDER_CHANNELS_FIRST));
    QN_TRY(qn_tf_in(&weights, conv, 1));
    QN_TRY(qn_tf_window_kernel(&w, b, weights));
    QN_TRY(depthwise ? qn_tf_depthwise(&y, b, &w, x, weights, NULL)
                     : qn_tf_conv(&y, b, &w, x, weights, NULL));
    *done = true;
    return qn_tf_out(node, 0, y, QN_ORDER_CHANNELS_FIRST);
}

qn_status qn_tf_batch_to_space(qn_tf_node *node)
{
    blocks s;
    bool done;
    qn_value *x;
    QN_TRY(read_blocks(&s, node));
    QN_TRY(dilated(&done, node, &s));
    if (done)
        return QN_OK;
    QN_TRY(qn_tf_in(&x, node, 0));
    QN_TRY(batch_to_space(&x, node, &s));
    return qn_tf_out(node, 0, x, QN_ORDER_OWN);
}
