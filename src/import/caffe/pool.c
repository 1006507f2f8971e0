/* Pooling as Caffe rounds and counts: sizes are rounded up, and an average divides by the part of
 * its window that lies in the input and its padding. */
#include <float.h>

#include "import/caffe/window.h"
#include "import/layout.h"

typedef struct pooling {
    qn_caffe_window window;
    int method;
    bool is_global, rounds_down;
    /* Padding at the ends with which rounding down gives as many outputs; below `pad`: 0. */
    int64_t end[QN_MAX_RANK];
} pooling;

static qn_status read_pooling(pooling *p, qn_caffe_net *net, const qn_caffe_layer *layer,
                              const qn_value *x)
{
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_POOLING);
    if (x->type.rank < 3)
        return QN_CAFFE_REFUSE(net, "a blob of rank %d has nothing to pool", x->type.rank);
    QN_TRY(
        qn_caffe_read_window(&p->window, net, param, &qn_caffe_pooling_fields, x->type.rank - 2));
    p->method = (int)qn_proto_int(param, QN_CAFFE_POOLING_POOL, QN_CAFFE_POOL_MAX);
    p->is_global = qn_proto_int(param, QN_CAFFE_POOLING_GLOBAL, 0) != 0;
    p->rounds_down = !qn_proto_int(param, QN_CAFFE_POOLING_CEIL_MODE, 1) ||
                     qn_proto_int(param, QN_CAFFE_POOLING_ROUND_MODE, QN_CAFFE_ROUND_CEIL) ==
                         QN_CAFFE_ROUND_FLOOR;
    return qn_caffe_check(net, "pool", p->method, QN_CAFFE_POOL_MAX, QN_CAFFE_POOL_STOCHASTIC);
}

static qn_status read_ends(pooling *p, qn_caffe_net *net, const qn_value *x)
{
    const qn_caffe_window *w = &p->window;
    for (int32_t i = 0; i < w->count; i++) {
        const qn_slide slide = {qn_caffe_dim(x, 2 + i), w->kernel[i], w->stride[i], w->dilation[i]};
        QN_TRY(qn_caffe_check(net, "the size of the input", slide.size, 1, QN_CAFFE_MOST));
        QN_TRY(qn_caffe_check(net, "kernel_size", slide.kernel, 1, slide.size + 2 * w->pad[i]));
        QN_TRY(qn_caffe_check(net, "pad", w->pad[i], 0, slide.kernel - 1));
        if ((slide.kernel - 1) * slide.dilation >= slide.size + 2 * w->pad[i])
            return QN_CAFFE_FAIL(net, "its window is larger than its input");
        p->end[i] = p->rounds_down ? w->pad[i] : qn_ceil_padding(&slide, w->pad[i], w->pad[i]);
        p->end[i] = QN_MAX(p->end[i], INT64_C(0));
    }
    return QN_OK;
}

/* Padding that is input from here on: `begin` and `end` of each axis behind the channels. */
static qn_status pad(qn_value **x, qn_caffe_net *net, int32_t count, int64_t (*ends)[2], float fill)
{
    const int32_t rank = count + 2;
    int64_t pads[2 * QN_MAX_RANK] = {0};
    qn_value *sizes, *number;
    for (int32_t i = 0; i < count; i++) {
        pads[2 + i] = ends[i][0];
        pads[rank + 2 + i] = ends[i][1];
    }
    QN_TRY(qn_graph_build_ints(&sizes, &net->builder, pads, 2 * (size_t)rank));
    QN_TRY(qn_graph_build_real(&number, &net->builder, fill));
    return qn_graph_build(x, &net->builder, &qn_op_Pad, QN_INPUTS(*x, sizes, number), QN_PLAIN);
}

/* A window that lies behind the input altogether (Caffe has such where the stride is larger than
 * the kernel) needs padding that ONNX's pooling does not allow: it becomes input. So does the
 * padding of averages whose windows reach beyond it, since that part counts and the rest does
 * not. */
static qn_status pool(qn_value **out, qn_caffe_net *net, qn_value *x, const pooling *p,
                      const qn_op *op)
{
    const qn_caffe_window *w = &p->window;
    const size_t n = (size_t)w->count;
    const bool is_max = op == &qn_op_MaxPool;
    int64_t pads[2 * QN_MAX_RANK] = {0}, ends[QN_MAX_RANK][2];
    bool is_outside = false, is_beyond = false, is_padded = false;
    for (size_t i = 0; i < n; i++) {
        is_outside |= p->end[i] >= w->kernel[i];
        is_padded |= w->pad[i] > 0;
        is_beyond |= p->end[i] > w->pad[i];
    }
    const bool is_input = is_outside || (!is_max && is_padded && is_beyond);
    for (size_t i = 0; i < n; i++) {
        ends[i][0] = w->pad[i];
        ends[i][1] = is_outside ? p->end[i] : QN_MIN(p->end[i], w->pad[i]);
        pads[i] = is_input ? 0 : w->pad[i];
        pads[n + i] = is_input ? p->end[i] - ends[i][1] : p->end[i];
    }
    if (is_input)
        QN_TRY(pad(&x, net, w->count, ends, is_max ? -FLT_MAX : 0));
    const qn_graph_build_attr attrs[] = {
        QN_A_INT_LIST("kernel_shape", w->kernel, n), QN_A_INT_LIST("strides", w->stride, n),
        QN_A_INT_LIST("pads", pads, 2 * n), QN_A_INT_LIST("dilations", w->dilation, n),
        QN_A_INT("count_include_pad", !is_input && is_padded)};
    return qn_graph_build(out, &net->builder, op, QN_INPUTS(x),
                          (qn_graph_build_attrs){attrs, QN_COUNT_OF(attrs) - is_max});
}

/* ---- Methods --------------------------------------------------------------------------------- */

/* The chosen number is replaced by its expectation: sum(x * x) / sum(x). */
static qn_status pool_stochastic(qn_value **out, qn_caffe_net *net, qn_value *x, const pooling *p)
{
    qn_value *square, *sum;
    for (int32_t i = 0; i < p->window.count; i++) {
        if (p->window.pad[i])
            return QN_CAFFE_REFUSE(net, "stochastic pooling has no padding");
    }
    QN_TRY(qn_caffe_op2(&square, net, &qn_op_Mul, x, x));
    QN_TRY(pool(&square, net, square, p, &qn_op_AveragePool));
    QN_TRY(pool(&sum, net, x, p, &qn_op_AveragePool));
    QN_TRY(qn_caffe_op_real(&sum, net, &qn_op_Add, sum, FLT_MIN));
    return qn_caffe_op2(out, net, &qn_op_Div, square, sum);
}

/* A second top has the places of the maxima, each within its channel. */
static qn_status pool_places(qn_caffe_net *net, const qn_caffe_layer *layer, qn_value *x,
                             const pooling *p)
{
    const size_t n = (size_t)p->window.count;
    int64_t pads[2 * QN_MAX_RANK], size;
    qn_value *found[2], *number;
    if (p->method != QN_CAFFE_POOL_MAX)
        return QN_CAFFE_REFUSE(net, "a second top of an average");
    QN_TRY(qn_caffe_count(&size, net, x, 2, x->type.rank));
    for (size_t i = 0; i < n; i++) {
        pads[i] = p->window.pad[i];
        pads[n + i] = p->end[i];
    }
    QN_TRY(qn_graph_build_several(found, 2, &net->builder, &qn_op_MaxPool, QN_INPUTS(x),
                                  QN_WITH(QN_A_INT_LIST("kernel_shape", p->window.kernel, n),
                                          QN_A_INT_LIST("strides", p->window.stride, n),
                                          QN_A_INT_LIST("pads", pads, 2 * n))));
    QN_TRY(qn_graph_build_ints(&number, &net->builder, &size, 1));
    QN_TRY(qn_caffe_op2(&found[1], net, &qn_op_Mod, found[1], number));
    QN_TRY(qn_caffe_cast(&found[1], net, found[1], QN_FLOAT32));
    QN_TRY(qn_caffe_out(net, layer, 0, found[0]));
    return qn_caffe_out(net, layer, 1, found[1]);
}

qn_status qn_caffe_pooling(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    pooling p;
    qn_value *x, *y;
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(read_pooling(&p, net, layer, x));
    if (p.is_global && layer->tops.count < 2 && p.method != QN_CAFFE_POOL_STOCHASTIC) {
        QN_TRY(qn_caffe_op1(
            &y, net,
            p.method == QN_CAFFE_POOL_MAX ? &qn_op_GlobalMaxPool : &qn_op_GlobalAveragePool, x));
        return qn_caffe_out(net, layer, 0, y);
    }
    for (int32_t i = 0; i < p.window.count && p.is_global; i++)
        p.window.kernel[i] = qn_caffe_dim(x, 2 + i);
    QN_TRY(read_ends(&p, net, x));
    if (layer->tops.count > 1)
        return pool_places(net, layer, x, &p);
    if (p.method == QN_CAFFE_POOL_STOCHASTIC)
        QN_TRY(pool_stochastic(&y, net, x, &p));
    else
        QN_TRY(pool(&y, net, x, &p,
                    p.method == QN_CAFFE_POOL_MAX ? &qn_op_MaxPool : &qn_op_AveragePool));
    return qn_caffe_out(net, layer, 0, y);
}

/* Poolings of 1, 4, 16 ... parts, one after the other in a row. */
qn_status qn_caffe_spp(qn_caffe_net *net, const qn_caffe_layer *layer)
{
    enum { MOST_LEVELS = 10 };
    const qn_proto_message *param = qn_caffe_param(layer, QN_CAFFE_LAYER_SPP);
    const int64_t levels = qn_proto_int(param, QN_CAFFE_SPP_PYRAMID_HEIGHT, 0);
    const bool is_max = qn_proto_int(param, QN_CAFFE_SPP_POOL, 0) == QN_CAFFE_POOL_MAX;
    qn_value *x, *parts[MOST_LEVELS];
    QN_TRY(qn_caffe_in(&x, net, layer, 0));
    QN_TRY(qn_caffe_check(net, "the rank of its bottom", x->type.rank, 4, 4));
    QN_TRY(qn_caffe_check(net, "pyramid_height", levels, 1, MOST_LEVELS));
    for (int64_t l = 0; l < levels; l++) {
        pooling p = {.window = {.count = 2, .dilation = {1, 1}}};
        for (int i = 0; i < 2; i++) {
            const int64_t size = qn_caffe_dim(x, 2 + i), bins = (int64_t)1 << l;
            QN_TRY(qn_caffe_check(net, "the size of its bottom", size, 1, QN_CAFFE_MOST));
            p.window.kernel[i] = p.window.stride[i] = (size + bins - 1) / bins;
            p.window.pad[i] = (p.window.kernel[i] * bins - size + 1) / 2;
        }
        QN_TRY(read_ends(&p, net, x));
        QN_TRY(pool(&parts[l], net, x, &p, is_max ? &qn_op_MaxPool : &qn_op_AveragePool));
        QN_TRY(qn_graph_build(&parts[l], &net->builder, &qn_op_Flatten, QN_INPUTS(parts[l]),
                              QN_WITH(QN_A_INT("axis", 1))));
    }
    QN_TRY(qn_caffe_concat(&x, net, parts, (size_t)levels, 1));
    return qn_caffe_out(net, layer, 0, x);
}
