/* Nodes that nobody reads. */
#include "pass/pass.h"

static bool is_dead(const qn_node *node)
{
    for (int32_t o = 0; o < node->n_out; o++) {
        if (node->out[o] && (node->out[o]->n_users || node->out[o]->is_output))
            return false;
    }
    return true;
}

/* Backwards, so that what a dead node read can die in the same walk. */
static qn_status remove_dead(qn_pass_context *self)
{
    for (qn_node *node = self->graph->last, *before; node; node = before) {
        before = node->prev;
        if (!is_dead(node))
            continue;
        qn_node_remove(node);
        self->changes++;
    }
    return QN_OK;
}

const qn_pass qn_pass_remove_dead = {"remove-dead", "drops nodes whose results nobody reads",
                                     remove_dead};
