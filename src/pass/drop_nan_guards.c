/* Where(IsNaN(x), c, x), which PyTorch's exporter puts behind a Softmax, is x where x comes of
 * integers: these, and the softmax of them, are always numbers. */
#include <math.h>

#include "ops/kinds.h"
#include "pass/pass.h"
#include "pass/qdq_nodes.h"
#include "pass/rewrite.h"

static bool comes_of_integers(const qn_value *x)
{
    const qn_node *node = x->producer;
    double scale;
    if (node && node->op == &qn_op_Softmax)
        return x->type.rank > 0 && comes_of_integers(node->in[0]);
    return node && qn_op_is_dequantize(node->op) && qn_match_number(node->in[1], &scale) &&
           isfinite(scale);
}

static bool is_guard(const qn_node *node)
{
    const qn_value *x = node->in[2];
    const qn_node *is_nan = qn_match_op(node->in[0], &qn_op_IsNaN);
    return is_nan && is_nan->in[0] == x && node->in[1]->data &&
           qn_match_fits(node->in[1]->data, x) && comes_of_integers(x);
}

static qn_status drop_nan_guards(qn_pass_context *self)
{
    for (qn_node *node = self->graph->first, *next; node; node = next) {
        bool done = false;
        next = node->next;
        if (node->op == &qn_op_Where && is_guard(node))
            QN_TRY(qn_rewrite_bypass(&done, node, node->in[2]));
        self->changes += done;
    }
    return QN_OK;
}

const qn_pass qn_pass_drop_nan_guards = {
    "drop-nan-guards", "leaves out what replaces NaN among numbers that come of integers",
    drop_nan_guards};
