/* Softmax, LogSoftmax and Hardmax along one axis. */
#include <math.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/nn_attrs.h"
#include "ops/tensor_attrs.h"
#include "ops/versions.h"

static const qn_attr_spec softmax_specs[] = {QN_INT_ATTR(qn_softmax_attrs, axis, QN_ABSENT)};
static const qn_port softmax_in[] = {{"input", 'T', QN_SET_FLOAT, 0}};
static const qn_port softmax_out[] = {{"output", 'T', QN_SET_FLOAT, 0}};

/* ---- Before opset 13: over all dims from `axis` (1 where absent) on -------------------------- */

static qn_status softmax_upgrade(qn_node **node)
{
    qn_softmax_attrs *a = (*node)->attrs;
    const int64_t axis = a->axis == QN_ABSENT ? 1 : a->axis;
    const int32_t rank = (*node)->in[0] ? (*node)->in[0]->type.rank : -1;
    a->axis = QN_ABSENT;
    if (axis == -1 || (rank > 0 && axis == rank - 1))
        return QN_OK;
    return qn_node_flatten(*node, axis);
}

/* The axis becomes the last one on the way in, and goes back to its place on the way out. */
static qn_status swap_axes(qn_node *node, int32_t axis, int32_t rank)
{
    int64_t perm[QN_MAX_RANK];
    qn_node *in, *out;
    for (int32_t d = 0; d < rank; d++)
        perm[d] = d == axis ? rank - 1 : d == rank - 1 ? axis : d;
    QN_TRY(qn_node_prepend(&in, node, 0, &qn_op_Transpose));
    QN_TRY(qn_node_append(&out, node, 0, &qn_op_Transpose));
    QN_TRY(qn_ints_copy(&((qn_transpose_attrs *)in->attrs)->perm, node->graph, perm, (size_t)rank));
    ((qn_transpose_attrs *)out->attrs)->perm = ((qn_transpose_attrs *)in->attrs)->perm;
    return QN_OK;
}

static qn_status softmax_downgrade(qn_node **node)
{
    qn_softmax_attrs *a = (*node)->attrs;
    const int32_t rank = (*node)->in[0]->type.rank;
    if (rank < 1)
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "before opset 13 it needs a known rank");
    const int32_t axis = qn_softmax_axis(a, rank);
    a->axis = rank - 1;
    return axis == rank - 1 ? QN_OK : swap_axes(*node, axis, rank);
}

static const qn_version_rule softmax_versions[] = {{13, softmax_upgrade, softmax_downgrade}};

/* ---- Inference and kernels ------------------------------------------------------------------- */

static qn_status softmax_infer(qn_infer *self)
{
    const qn_softmax_attrs *a = self->attrs;
    int64_t axis = a->axis == QN_ABSENT ? -1 : a->axis;
    /* A scalar has no axis; ONNX lets it pass as one of length 1. */
    const int32_t rank = self->in[0]->rank == 0 ? 1 : self->in[0]->rank;
    if (rank > 0)
        QN_TRY(qn_infer_axis(self, &axis, rank, "axis"));
    qn_infer_copy(self, 0, 0);
    return QN_OK;
}

/* Works in place on `count` numbers that lie `stride` apart. */
typedef void line_fn(double *x, int64_t count, int64_t stride);

static double line_max(const double *x, int64_t count, int64_t stride)
{
    double max = -(double)INFINITY;
    for (int64_t i = 0; i < count; i++)
        max = fmax(max, x[i * stride]);
    return max;
}

static void softmax_line(double *x, int64_t count, int64_t stride)
{
    const double max = line_max(x, count, stride);
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        x[i * stride] = exp(x[i * stride] - max);
        sum += x[i * stride];
    }
    for (int64_t i = 0; i < count; i++)
        x[i * stride] /= sum;
}

static void log_softmax_line(double *x, int64_t count, int64_t stride)
{
    const double max = line_max(x, count, stride);
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += exp(x[i * stride] - max);
    for (int64_t i = 0; i < count; i++)
        x[i * stride] -= max + log(sum);
}

/* 1 at the first largest element, else 0. */
static void hardmax_line(double *x, int64_t count, int64_t stride)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++) {
        if (x[i * stride] > x[best * stride])
            best = i;
    }
    for (int64_t i = 0; i < count; i++)
        x[i * stride] = i == best;
}

static qn_status eval_lines(qn_eval *self, line_fn *line)
{
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const int32_t axis = qn_softmax_axis(self->attrs, in->rank);
    int64_t outer = 1, inner = 1;
    double *x;
    if (qn_tensor_count(in) == 0)
        return QN_OK;
    for (int32_t d = 0; d < axis; d++)
        outer *= in->dims[d];
    for (int32_t d = axis + 1; d < in->rank; d++)
        inner *= in->dims[d];
    const int64_t count = in->rank ? in->dims[axis] : 1;
    QN_TRY(qn_eval_doubles(self, &x, in));
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < inner; i++)
            line(x + o * count * inner + i, count, inner);
    }
    qn_store_f64(out->data, out->dtype, 0, x, qn_tensor_count(out));
    return QN_OK;
}

#define ALONG_AXIS(Name, LINE, QUANT, BRIEF)                                                       \
    static qn_status Name##_eval(qn_eval *self)                                                    \
    {                                                                                              \
        return eval_lines(self, LINE);                                                             \
    }                                                                                              \
    const qn_op qn_op_##Name = {.name = #Name,                                                     \
                                .domain = "",                                                      \
                                .since = 1,                                                        \
                                QN_PORTS(in, softmax_in),                                          \
                                QN_PORTS(out, softmax_out),                                        \
                                QN_ATTRS(softmax_specs, qn_softmax_attrs),                         \
                                QN_VERSIONS(softmax_versions),                                     \
                                .quant = QUANT,                                                    \
                                .infer = softmax_infer,                                            \
                                .eval = Name##_eval,                                               \
                                .brief = BRIEF};

ALONG_AXIS(Hardmax, hardmax_line, QN_QUANT_FLOAT, "1 at the first largest element, else 0")
ALONG_AXIS(LogSoftmax, log_softmax_line, QN_QUANT_FLOAT, "logarithm of Softmax")
ALONG_AXIS(Softmax, softmax_line, QN_QUANT_ELEMENT, "e^x divided by its sum along an axis")
