/* Normalizations. */
#include <string.h>

#include "import/tensorflow/tensorflow.h"

/* [C] to [C, 1, 1...], for values with channels first. */
static qn_status widen(qn_value **value, qn_tf_import *import, int32_t rank)
{
    int64_t axes[QN_MAX_RANK];
    for (int32_t i = 0; i < rank - 2; i++)
        axes[i] = i + 1;
    return rank > 2 ? qn_tf_unsqueeze(value, import, axes, (size_t)rank - 2) : QN_OK;
}

/* in: x, scale, offset. (x - mean) / sqrt(variance + epsilon) * scale + offset with the statistics
 * of the batch itself. */
static qn_status by_batch(qn_value **out, qn_tf_node *node, qn_value *const *in, double epsilon)
{
    int64_t axes[QN_MAX_RANK];
    size_t n = 0;
    qn_tf_import *import = node->import;
    qn_graph_builder *b = &import->builder;
    qn_value *x = in[0], *scale = in[1], *offset = in[2], *over, *mean, *apart, *square, *small;
    const int32_t rank = x->type.rank;
    for (int32_t i = 0; i < rank; i++) {
        if (i != 1)
            axes[n++] = i;
    }
    QN_TRY(qn_graph_build_ints(&over, b, axes, n));
    QN_TRY(qn_tf_number(&small, import, epsilon, x->type.dtype));
    QN_TRY(qn_graph_build(&mean, b, &qn_op_ReduceMean, QN_INPUTS(x, over), QN_PLAIN));
    QN_TRY(qn_graph_build(&apart, b, &qn_op_Sub, QN_INPUTS(x, mean), QN_PLAIN));
    QN_TRY(qn_graph_build(&square, b, &qn_op_Mul, QN_INPUTS(apart, apart), QN_PLAIN));
    QN_TRY(qn_graph_build(&square, b, &qn_op_ReduceMean, QN_INPUTS(square, over), QN_PLAIN));
    QN_TRY(qn_graph_build(&square, b, &qn_op_Add, QN_INPUTS(square, small), QN_PLAIN));
    QN_TRY(qn_graph_build(&square, b, &qn_op_Sqrt, QN_INPUTS(square), QN_PLAIN));
    QN_TRY(qn_graph_build(&apart, b, &qn_op_Div, QN_INPUTS(apart, square), QN_PLAIN));
    QN_TRY(qn_tf_cast(&scale, import, x->type.dtype));
    QN_TRY(qn_tf_cast(&offset, import, x->type.dtype));
    QN_TRY(widen(&scale, import, rank));
    QN_TRY(widen(&offset, import, rank));
    QN_TRY(qn_graph_build(&apart, b, &qn_op_Mul, QN_INPUTS(apart, scale), QN_PLAIN));
    return qn_graph_build(out, b, &qn_op_Add, QN_INPUTS(apart, offset), QN_PLAIN);
}

static bool is_one(const qn_type *type)
{
    return type->kind == QN_TYPE_TENSOR && type->rank >= 3 && type->dims[0].value == 1;
}

static qn_status normalize(qn_value **out, qn_tf_node *node, qn_value *const *in)
{
    qn_graph_builder *b = &node->import->builder;
    const double epsilon = qn_tf_attr_real(node, "epsilon", 1e-4);
    const qn_graph_build_attrs attrs = QN_WITH(QN_A_REAL("epsilon", (float)epsilon));
    if (!qn_tf_attr_bool(node, "is_training", true))
        return qn_graph_build(out, b, &qn_op_BatchNormalization,
                              QN_INPUTS(in[0], in[1], in[2], in[3], in[4]), attrs);
    if (is_one(&in[0]->type) && in[1]->type.dtype == in[0]->type.dtype)
        return qn_graph_build(out, b, &qn_op_InstanceNormalization, QN_INPUTS(in[0], in[1], in[2]),
                              attrs);
    return by_batch(out, node, in, epsilon);
}

qn_status qn_tf_fused_batch_norm(qn_tf_node *node)
{
    qn_value *in[5], *y;
    const bool first =
        qn_tf_attr_is(node, "data_format", "NCHW") || qn_tf_attr_is(node, "data_format", "NCDHW");
    const qn_axis_order order = first ? QN_ORDER_OWN : QN_ORDER_CHANNELS_FIRST;
    QN_TRY(qn_tf_in_order(&in[0], node, 0, order));
    for (size_t i = 1; i < 5; i++)
        QN_TRY(qn_tf_in(&in[i], node, i));
    QN_TRY(normalize(&y, node, in));
    /* Statistics that nobody but training asks for. */
    QN_TRY(qn_tf_out(node, 1, in[3], QN_ORDER_OWN));
    QN_TRY(qn_tf_out(node, 2, in[4], QN_ORDER_OWN));
    return qn_tf_out(node, 0, y, order);
}

/* ONNX divides alpha by the number of channels that it looks at. */
qn_status qn_tf_lrn(qn_tf_node *node)
{
    qn_value *x, *y;
    const int64_t radius = qn_tf_attr_int(node, "depth_radius", 5);
    if (radius < 0 || radius > 1 << 16)
        return qn_tf_fail(node, QN_E_FORMAT, "depth_radius is %lld", (long long)radius);
    const int64_t size = 2 * radius + 1;
    const double alpha = qn_tf_attr_real(node, "alpha", 1) * (double)size;
    QN_TRY(qn_tf_in_order(&x, node, 0, QN_ORDER_CHANNELS_FIRST));
    QN_TRY(qn_graph_build(&y, &node->import->builder, &qn_op_LRN, QN_INPUTS(x),
                          QN_WITH(QN_A_INT("size", size), QN_A_REAL("alpha", (float)alpha),
                                  QN_A_REAL("beta", (float)qn_tf_attr_real(node, "beta", 0.5)),
                                  QN_A_REAL("bias", (float)qn_tf_attr_real(node, "bias", 1)))));
    return qn_tf_out(node, 0, y, QN_ORDER_CHANNELS_FIRST);
}

/* The norm of the last axis: log of it, or not. */
qn_status qn_tf_softmax(qn_tf_node *node)
{
    qn_value *x, *y;
    qn_axis_order order;
    QN_TRY(qn_tf_in_ranked(&x, &order, node, 0));
    const int64_t axis = qn_layout_axis(order, x->type.rank, -1);
    QN_TRY(qn_graph_build(&y, &node->import->builder, node->op->as, QN_INPUTS(x),
                          QN_WITH(QN_A_INT("axis", axis))));
    return qn_tf_out(node, 0, y, order);
}
