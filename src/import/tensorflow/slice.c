/* Parts of tensors by begin, end and stride. */
#include <string.h>

#include "import/tensorflow/tensorflow.h"

/* What a slice does along one axis of the input. */
typedef struct cut {
    int64_t begin, end, step;
} cut;

typedef struct cuts {
    cut axis[QN_MAX_RANK];
    int32_t rank;
    /* Axes of the input that go, and axes of the output (behind those that went) that come. */
    bool gone[QN_MAX_RANK];
    int64_t fresh[QN_MAX_RANK];
    size_t n_fresh;
} cuts;

static bool is_whole(const cut *c)
{
    return c->begin == 0 && c->end == INT64_MAX && c->step == 1;
}

/* Slices along the axes that are not whole. */
static qn_status apply(qn_value **x, const qn_tf_node *node, qn_axis_order order, const cuts *c)
{
    int64_t lists[4][QN_MAX_RANK];
    qn_value *in[4];
    size_t n = 0;
    qn_graph_builder *b = &node->import->builder;
    for (int32_t i = 0; i < c->rank; i++) {
        if (is_whole(&c->axis[i]))
            continue;
        lists[0][n] = c->axis[i].begin;
        lists[1][n] = c->axis[i].end;
        lists[2][n] = qn_layout_axis(order, c->rank, i);
        lists[3][n++] = c->axis[i].step;
    }
    if (n == 0)
        return QN_OK;
    for (size_t k = 0; k < 4; k++)
        QN_TRY(qn_graph_build_ints(&in[k], b, lists[k], n));
    return qn_graph_build(x, b, &qn_op_Slice, QN_INPUTS(*x, in[0], in[1], in[2], in[3]), QN_PLAIN);
}

/* ---- Slice ----------------------------------------------------------------------------------- */

/* Begins and sizes that the graph computes. */
static qn_status slice_computed(qn_tf_node *node)
{
    qn_value *x, *begin, *size, *end, *none, *most, *y;
    qn_tf_import *import = node->import;
    qn_graph_builder *b = &import->builder;
    QN_TRY(qn_tf_in(&x, node, 0));
    QN_TRY(qn_tf_in(&begin, node, 1));
    QN_TRY(qn_tf_in(&size, node, 2));
    QN_TRY(qn_tf_cast(&begin, import, QN_INT64));
    QN_TRY(qn_tf_cast(&size, import, QN_INT64));
    QN_TRY(qn_graph_build(&end, b, &qn_op_Add, QN_INPUTS(begin, size), QN_PLAIN));
    QN_TRY(qn_tf_number(&most, import, (double)INT32_MAX, QN_INT64));
    QN_TRY(qn_tf_number(&none, import, 0, QN_INT64));
    QN_TRY(qn_graph_build(&none, b, &qn_op_Less, QN_INPUTS(size, none), QN_PLAIN));
    QN_TRY(qn_graph_build(&end, b, &qn_op_Where, QN_INPUTS(none, most, end), QN_PLAIN));
    QN_TRY(qn_graph_build(&y, b, &qn_op_Slice, QN_INPUTS(x, begin, end), QN_PLAIN));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}

qn_status qn_tf_slice(qn_tf_node *node)
{
    int64_t begin[QN_MAX_RANK], size[QN_MAX_RANK];
    size_t n_begin, n_size;
    cuts c = {.rank = 0};
    qn_value *x;
    qn_axis_order order;
    if (!qn_tf_has_ints(node, 1) || !qn_tf_has_ints(node, 2))
        return slice_computed(node);
    QN_TRY(qn_tf_ints(begin, &n_begin, node, 1, QN_MAX_RANK));
    QN_TRY(qn_tf_ints(size, &n_size, node, 2, QN_MAX_RANK));
    QN_TRY(qn_tf_in_ranked(&x, &order, node, 0));
    c.rank = x->type.rank;
    if (n_begin != (size_t)c.rank || n_size != n_begin)
        return qn_tf_fail(node, QN_E_FORMAT, "%zu begins for %d axes", n_begin, c.rank);
    for (int32_t i = 0; i < c.rank; i++) {
        int64_t end = INT64_MAX;
        if (begin[i] < 0 || (size[i] >= 0 && !qn_add_int64(&end, begin[i], size[i])))
            return qn_tf_fail(node, QN_E_FORMAT, "it begins at %lld", (long long)begin[i]);
        c.axis[i] = (cut){begin[i], end, 1};
    }
    QN_TRY(apply(&x, node, order, &c));
    return qn_tf_out(node, 0, x, order);
}

/* ---- StridedSlice ---------------------------------------------------------------------------- */

typedef struct strided {
    int64_t begin[QN_MAX_RANK], end[QN_MAX_RANK], step[QN_MAX_RANK];
    size_t count;
    int64_t begin_mask, end_mask, ellipsis_mask, new_mask, shrink_mask;
} strided;

static qn_status read_strided(strided *s, const qn_tf_node *node)
{
    size_t n;
    QN_TRY(qn_tf_ints(s->begin, &s->count, node, 1, QN_MAX_RANK));
    QN_TRY(qn_tf_ints(s->end, &n, node, 2, QN_MAX_RANK));
    if (n != s->count)
        return qn_tf_fail(node, QN_E_FORMAT, "%zu begins and %zu ends", s->count, n);
    QN_TRY(qn_tf_ints(s->step, &n, node, 3, QN_MAX_RANK));
    if (n != s->count)
        return qn_tf_fail(node, QN_E_FORMAT, "%zu begins and %zu strides", s->count, n);
    s->begin_mask = qn_tf_attr_int(node, "begin_mask", 0);
    s->end_mask = qn_tf_attr_int(node, "end_mask", 0);
    s->ellipsis_mask = qn_tf_attr_int(node, "ellipsis_mask", 0);
    s->new_mask = qn_tf_attr_int(node, "new_axis_mask", 0);
    s->shrink_mask = qn_tf_attr_int(node, "shrink_axis_mask", 0);
    return QN_OK;
}

/* One entry that stands for an axis of the input. */
static qn_status strided_axis(cut *c, const strided *s, size_t i, const qn_tf_node *node)
{
    const int64_t bit = INT64_C(1) << i;
    if (s->step[i] == 0)
        return qn_tf_fail(node, QN_E_FORMAT, "a stride is 0");
    const bool back = s->step[i] < 0;
    c->step = s->step[i];
    c->begin = s->begin_mask & bit ? (back ? INT64_MAX : 0) : s->begin[i];
    c->end = s->end_mask & bit ? (back ? INT64_MIN : INT64_MAX) : s->end[i];
    if (s->shrink_mask & bit)
        *c = (cut){s->begin[i], s->begin[i] == -1 ? INT64_MAX : s->begin[i] + 1, 1};
    return QN_OK;
}

/* The entries of a strided slice as cuts of each axis, with new axes among those that stay. */
static qn_status strided_cuts(cuts *c, const strided *s, const qn_tf_node *node)
{
    size_t named = 0;
    int32_t axis = 0;
    int64_t place = 0;
    for (size_t i = 0; i < s->count; i++)
        named += !((s->new_mask | s->ellipsis_mask) & INT64_C(1) << i);
    for (int32_t i = 0; i < c->rank; i++)
        c->axis[i] = (cut){0, INT64_MAX, 1};
    for (size_t i = 0; i < s->count; i++) {
        const int64_t bit = INT64_C(1) << i;
        if (s->ellipsis_mask & bit) {
            const int32_t skipped = c->rank - (int32_t)named;
            axis += QN_MAX(skipped, 0);
            place += QN_MAX(skipped, 0);
        } else if (s->new_mask & bit) {
            c->fresh[c->n_fresh++] = place++;
        } else {
            if (axis >= c->rank)
                return qn_tf_fail(node, QN_E_FORMAT, "more entries than %d axes", c->rank);
            QN_TRY(strided_axis(&c->axis[axis], s, i, node));
            c->gone[axis++] = (s->shrink_mask & bit) != 0;
            place += !(s->shrink_mask & bit);
        }
    }
    return QN_OK;
}

static qn_status squeeze_gone(qn_value **x, const qn_tf_node *node, qn_axis_order order,
                              const cuts *c)
{
    int64_t axes[QN_MAX_RANK];
    size_t n = 0;
    for (int32_t i = 0; i < c->rank; i++) {
        if (c->gone[i])
            axes[n++] = qn_layout_axis(order, c->rank, i);
    }
    return n ? qn_tf_squeeze(x, node->import, axes, n) : QN_OK;
}

/* Begins and ends that the graph computes, without masks beyond taking axes away. */
static qn_status strided_computed(qn_tf_node *node)
{
    qn_value *in[4], *y;
    int64_t axes[QN_MAX_RANK];
    size_t gone = 0;
    qn_tf_import *import = node->import;
    const int64_t shrink = qn_tf_attr_int(node, "shrink_axis_mask", 0);
    for (size_t i = 0; i < 4; i++)
        QN_TRY(qn_tf_in(&in[i], node, i));
    if (qn_tf_attr_int(node, "begin_mask", 0) || qn_tf_attr_int(node, "end_mask", 0) ||
        qn_tf_attr_int(node, "ellipsis_mask", 0) || qn_tf_attr_int(node, "new_axis_mask", 0) ||
        in[1]->type.rank != 1 || in[1]->type.dims[0].value < 0 ||
        in[1]->type.dims[0].value > QN_MAX_RANK)
        return qn_tf_fail(node, QN_E_UNSUPPORTED,
                          "begins and ends that the graph computes, with masks");
    const int64_t count = in[1]->type.dims[0].value;
    for (int64_t i = 0; i < count; i++) {
        if (shrink >> i & 1)
            axes[gone++] = i;
    }
    for (size_t i = 1; i < 4; i++)
        QN_TRY(qn_tf_cast(&in[i], import, QN_INT64));
    int64_t all[QN_MAX_RANK];
    qn_value *along;
    for (int64_t i = 0; i < count; i++)
        all[i] = i;
    QN_TRY(qn_graph_build_ints(&along, &import->builder, all, (size_t)count));
    QN_TRY(qn_graph_build(&y, &import->builder, &qn_op_Slice,
                          QN_INPUTS(in[0], in[1], in[2], along, in[3]), QN_PLAIN));
    if (gone)
        QN_TRY(qn_tf_squeeze(&y, import, axes, gone));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}

qn_status qn_tf_strided_slice(qn_tf_node *node)
{
    strided s;
    cuts c = {.rank = 0};
    qn_value *x;
    qn_axis_order order, result;
    if (!qn_tf_has_ints(node, 1) || !qn_tf_has_ints(node, 2) || !qn_tf_has_ints(node, 3))
        return strided_computed(node);
    QN_TRY(read_strided(&s, node));
    QN_TRY(qn_tf_in_ranked(&x, &order, node, 0));
    c.rank = x->type.rank;
    QN_TRY(strided_cuts(&c, &s, node));
    result = order;
    if (order == QN_ORDER_CHANNELS_FIRST &&
        (c.n_fresh || !qn_tf_order_without(&result, c.rank, c.gone))) {
        QN_TRY(qn_tf_in(&x, node, 0));
        order = result = QN_ORDER_OWN;
    }
    QN_TRY(apply(&x, node, order, &c));
    QN_TRY(squeeze_gone(&x, node, order, &c));
    if (c.n_fresh)
        QN_TRY(qn_tf_unsqueeze(&x, node->import, c.fresh, c.n_fresh));
    return qn_tf_out(node, 0, x, result);
}
