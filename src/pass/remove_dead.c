/* Nodes that nobody reads. */
#include "pass/pass.h"
#include "pass/rewrite.h"

/* The nodes are visited backwards, so that the inputs of a removed node are found unused in the
 * same run. */
static qn_status remove_dead(qn_pass_context *self)
{
    for (qn_node *node = self->graph->last, *before; node; node = before) {
        before = node->prev;
        if (!qn_node_is_dead(node))
            continue;
        qn_node_remove(node);
        self->changes++;
    }
    return QN_OK;
}

const qn_pass qn_pass_remove_dead = {"remove-dead", "drops nodes whose results nobody reads",
                                     remove_dead};
