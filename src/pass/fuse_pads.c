/* A Pad in front of a convolution or pool becomes the window's own padding: zeros for convolutions
 * and averages, what is never the largest for MaxPool. */
#include <float.h>

#include "ops/eval.h"
#include "ops/nn_attrs.h"
#include "ops/pad.h"
#include "ops/versions.h"
#include "ops/window.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* Only spatial axes, nothing cropped. */
static bool is_border(const qn_pad_amounts *amounts, int32_t rank)
{
    for (int32_t d = 0; d < rank; d++) {
        const int64_t before = amounts->before[d], after = amounts->after[d];
        if (before < 0 || after < 0 || (d < 2 && (before || after)))
            return false;
    }
    return true;
}

/* What the Pad writes; false where that is no constant number. */
static bool match_border(double *number, const qn_node *pad)
{
    const qn_value *value = pad->n_in > 2 ? pad->in[2] : NULL;
    *number = 0;
    return ((const qn_pad_attrs *)pad->attrs)->mode == QN_PAD_CONSTANT &&
           (!value || qn_match_number(value, number));
}

/* No result is below 0. */
static bool is_positive(const qn_value *value)
{
    static const qn_op *const positive[] = {&qn_op_Abs,     &qn_op_Exp,     &qn_op_HardSigmoid,
                                            &qn_op_Sigmoid, &qn_op_Softmax, &qn_op_Softplus};
    double limits[2];
    const qn_node *node = value->producer;
    for (size_t i = 0; node && i < QN_COUNT_OF(positive); i++) {
        if (node->op == positive[i])
            return true;
    }
    return node && qn_match_limits(limits, node) && limits[0] >= 0;
}

/* Nothing in x is less. */
static bool is_least(double number, const qn_value *x)
{
    static const struct {
        qn_dtype dtype;
        double least;
    } types[] = {{QN_FLOAT32, -(double)FLT_MAX},
                 {QN_FLOAT64, -DBL_MAX},
                 {QN_FLOAT16, -65504},
                 {QN_INT8, -128},
                 {QN_UINT8, 0}};
    for (size_t i = 0; i < QN_COUNT_OF(types); i++) {
        if (types[i].dtype == x->type.dtype && number <= types[i].least)
            return true;
    }
    return number <= 0 && is_positive(x);
}

static bool has_own_border(const qn_window_attrs *a)
{
    bool own = false;
    for (size_t i = 0; a->pads.at && i < a->pads.count; i++)
        own = own || a->pads.at[i] != 0;
    return own;
}

/* Rounding up drops windows that begin behind the input, which moves when the Pad goes. An average
 * that counts its border takes a further one of zeros in the same way; one that does not count it
 * cannot. A MaxPool's indexes would be others. */
static bool takes_border(const qn_node *node, const qn_node *pad)
{
    const qn_window_attrs *a = node->attrs;
    double number;
    if ((a->auto_pad != QN_AUTO_PAD_NOTSET && a->auto_pad != QN_AUTO_PAD_VALID) ||
        !match_border(&number, pad))
        return false;
    if (node->op == &qn_op_Conv)
        return number == 0;
    if (node->op == &qn_op_AveragePool)
        return number == 0 && !a->ceil_mode && (a->count_include_pad || !has_own_border(a));
    return is_least(number, pad->in[0]) && !a->ceil_mode && (node->n_out < 2 || !node->out[1]);
}

/* Every window of a MaxPool has an element of the input, so that the border is never the largest
 * alone. */
static bool is_narrow(const qn_node *node, const int64_t *pads, int32_t spatial)
{
    const qn_window_attrs *a = node->attrs;
    if (node->op != &qn_op_MaxPool)
        return true;
    bool narrow = a->kernel_shape.at && a->kernel_shape.count == (size_t)spatial;
    for (int32_t i = 0; narrow && i < 2 * spatial; i++)
        narrow = pads[i] < a->kernel_shape.at[i % spatial];
    for (size_t i = 0; a->dilations.at && i < a->dilations.count; i++)
        narrow = narrow && a->dilations.at[i] == 1;
    return narrow;
}

static qn_status fuse(qn_pass_context *self, qn_node *node, const qn_node *pad)
{
    qn_window_attrs *a = node->attrs;
    const int32_t rank = pad->in[0]->type.rank, spatial = rank - 2;
    int64_t pads[2 * QN_MAX_RANK];
    qn_pad_amounts amounts;
    if (rank < 3 || !qn_pad_read_node(&amounts, pad) || !is_border(&amounts, rank) ||
        (a->pads.at && a->pads.count != (size_t)(2 * spatial)))
        return QN_OK;
    for (int32_t side = 0; side < 2; side++) {
        const int64_t *added = side ? amounts.after : amounts.before;
        for (int32_t d = 0; d < spatial; d++) {
            const int32_t i = side * spatial + d;
            const int64_t own = a->pads.at && a->auto_pad == QN_AUTO_PAD_NOTSET ? a->pads.at[i] : 0;
            if (!qn_add_int64(&pads[i], own, added[2 + d]))
                return QN_OK;
        }
    }
    if (!is_narrow(node, pads, spatial))
        return QN_OK;
    QN_TRY(qn_ints_copy(&a->pads, self->graph, pads, (size_t)(2 * spatial)));
    a->auto_pad = QN_AUTO_PAD_NOTSET;
    a->count_include_pad = node->op == &qn_op_AveragePool;
    QN_TRY(qn_node_set_input(node, 0, pad->in[0]));
    self->changes++;
    return QN_OK;
}

static qn_status fuse_pads(qn_pass_context *self)
{
    for (qn_node *node = self->graph->first; node; node = node->next) {
        if (node->op != &qn_op_Conv && node->op != &qn_op_AveragePool && node->op != &qn_op_MaxPool)
            continue;
        const qn_node *pad = qn_match_op(node->in[0], &qn_op_Pad);
        if (pad && takes_border(node, pad))
            QN_TRY(fuse(self, node, pad));
    }
    return QN_OK;
}

const qn_pass qn_pass_fuse_pads = {
    "fuse-pads", "makes a Pad part of the convolution or pool behind it", fuse_pads};
