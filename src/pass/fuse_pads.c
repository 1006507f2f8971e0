/* A Pad of zeros in front of a convolution or average pool becomes the window's own padding. */
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

static bool pads_zeros(const qn_node *pad)
{
    const qn_value *value = pad->n_in > 2 ? pad->in[2] : NULL;
    return ((const qn_pad_attrs *)pad->attrs)->mode == QN_PAD_CONSTANT &&
           (!value || qn_match_is(value, 0));
}

/* An average that counts its border takes a further one of zeros in the same way; one that does not
 * count it cannot take it. */
static bool takes_border(const qn_node *node)
{
    const qn_window_attrs *a = node->attrs;
    bool own = false;
    for (size_t i = 0; a->pads.at && i < a->pads.count; i++)
        own = own || a->pads.at[i] != 0;
    if (a->auto_pad != QN_AUTO_PAD_NOTSET && a->auto_pad != QN_AUTO_PAD_VALID)
        return false;
    if (node->op == &qn_op_Conv)
        return true;
    return node->op == &qn_op_AveragePool && !a->ceil_mode && (a->count_include_pad || !own);
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
        if (node->op != &qn_op_Conv && node->op != &qn_op_AveragePool)
            continue;
        const qn_node *pad = qn_match_op(node->in[0], &qn_op_Pad);
        if (pad && takes_border(node) && pads_zeros(pad))
            QN_TRY(fuse(self, node, pad));
    }
    return QN_OK;
}

const qn_pass qn_pass_fuse_pads = {
    "fuse-pads", "makes a Pad of zeros part of the convolution or pool behind it", fuse_pads};
