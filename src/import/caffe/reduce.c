/* Layers that make few numbers of many: Softmax, Reduction, ArgMax. */
#include "import/caffe/caffe.h"

qn_status qn_caffe_softmax(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    int64_t axis =
        qn_proto_int(qn_caffe_param(layer, QN_CAFFE_LAYER_SOFTMAX), QN_CAFFE_SIMPLE_AXIS, 1);
    qn_value *x;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(qn_caffe_axis(&axis, net, x->type.rank));
    QN_TRY(qn_graph_build(&x, &net->builder, &qn_op_Softmax, QN_INPUTS(x),
                          QN_WITH(QN_A_INT("axis", axis))));
    return qn_caffe_out(net, layer, 0, x);
}

/* All axes from `axis` on become one number. */
qn_status qn_caffe_reduction(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    static const qn_op *const ops[] = {[QN_CAFFE_SUM] = &qn_op_ReduceSum,
                                       [QN_CAFFE_ASUM] = &qn_op_ReduceL1,
                                       [QN_CAFFE_SUMSQ] = &qn_op_ReduceSumSquare,
                                       [QN_CAFFE_MEAN] = &qn_op_ReduceMean};
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_REDUCTION);
    const int64_t operation = qn_proto_int(param, QN_CAFFE_REDUCTION_OPERATION, QN_CAFFE_SUM);
    const double coeff = qn_proto_real(param, QN_CAFFE_REDUCTION_COEFF, 1);
    int64_t range[2] = {qn_proto_int(param, QN_CAFFE_REDUCTION_AXIS, 0), 0};
    qn_value *x;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(qn_caffe_check(net, "operation", operation, QN_CAFFE_SUM, QN_CAFFE_MEAN));
    QN_TRY(qn_caffe_axis(&range[0], net, x->type.rank));
    range[1] = x->type.rank;
    QN_TRY(qn_caffe_reduce(&x, net, ops[operation], x, range, false));
    if (coeff != 1)
        QN_TRY(qn_caffe_op_real(&x, net, &qn_op_Mul, x, coeff));
    return qn_caffe_out(net, layer, 0, x);
}

/* ---- ArgMax ---------------------------------------------------------------------------------- */

static qn_status top(qn_value *out[2], qn_caffe_net *net, qn_value *x, int64_t axis, int64_t count)
{
    qn_value *k;
    QN_TRY(qn_graph_build_ints(&k, &net->builder, &count, 1));
    QN_TRY(qn_graph_build_several(out, 2, &net->builder, &qn_op_TopK, QN_INPUTS(x, k),
                                  QN_WITH(QN_A_INT("axis", axis))));
    return qn_caffe_cast(&out[1], net, out[1], QN_FLOAT32);
}

/* Without an axis: of all numbers of a picture, [N, 1 or 2, K] of places and, where asked for,
 * values. With one: values or places in the place of the axis. */
qn_status qn_caffe_argmax(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_ARGMAX);
    const bool wants_values = qn_proto_int(param, QN_CAFFE_ARGMAX_OUT_MAX_VAL, 0) != 0;
    const bool has_axis = qn_proto_has(param, QN_CAFFE_ARGMAX_AXIS);
    const int64_t count = qn_proto_int(param, QN_CAFFE_ARGMAX_TOP_K, 1);
    int64_t axis = qn_proto_int(param, QN_CAFFE_ARGMAX_AXIS, 1), all;
    qn_value *x, *found[2];
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(qn_caffe_axis(&axis, net, x->type.rank));
    QN_TRY(qn_caffe_count(&all, net, x, axis, has_axis ? axis + 1 : x->type.rank));
    QN_TRY(qn_caffe_check(net, "top_k", count, 1, all));
    if (has_axis) {
        QN_TRY(top(found, net, x, axis, count));
        return qn_caffe_out(net, layer, 0, found[wants_values ? 0 : 1]);
    }
    const int64_t flat[] = {0, 1, all};
    QN_TRY(qn_caffe_reshape(&x, net, x, 3, flat));
    QN_TRY(top(found, net, x, 2, count));
    qn_value *both[] = {found[1], found[0]};
    if (wants_values)
        QN_TRY(qn_caffe_concat(&found[1], net, both, 2, 1));
    return qn_caffe_out(net, layer, 0, found[1]);
}
