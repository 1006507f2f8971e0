/* Nodes that only give the same elements in the same order another shape: views. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/float/elementwise/tail.h"

static bool keeps(const qn_tensor *x, const qn_tensor *y, int32_t dims)
{
    return x->rank >= dims && y->rank >= dims &&
           memcmp(x->dims, y->dims, (size_t)dims * sizeof *x->dims) == 0;
}

/* Blocked layouts survive where samples and channels stay as they are. */
static qn_layout layout_for(const qn_claim *claim, const qn_tensor *x, const qn_tensor *y)
{
    const qn_layout given = qn_build_layout(claim->builder, claim->node->in[0]);
    return given.kind == QN_LAYOUT_BLOCKED && keeps(x, y, 2) ? given : QN_ROWS;
}

qn_status qn_claim_reshape(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    qn_tensor x, y;
    if (!node->in[0] || !node->out[0] || node->in[0]->data || (node->n_out > 1 && node->out[1]) ||
        !qn_build_shape(&x, claim->builder, node->in[0]) ||
        !qn_build_shape(&y, claim->builder, node->out[0]) ||
        qn_tensor_count(&x) != qn_tensor_count(&y) || x.dtype != y.dtype)
        return QN_OK;
    const qn_layout layout = layout_for(claim, &x, &y);
    qn_claim_in(claim, node->in[0], layout)->strided = keeps(&x, &y, 1);
    qn_claim_value *out = qn_claim_out(claim, node->out[0], layout);
    out->view_of = 0;
    out->strided = keeps(&x, &y, 1);
    *taken = true;
    return QN_OK;
}

/* Dropout that is training changes its input. */
qn_status qn_claim_dropout(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    const qn_value *training = node->n_in > 2 ? node->in[2] : NULL;
    const bool idle = !training || (training->data && qn_tensor_count(training->data) == 1 &&
                                    *(const char *)training->data->data == 0);
    return idle ? qn_claim_reshape(taken, claim) : QN_OK;
}
