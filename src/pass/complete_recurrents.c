/* LSTM, GRU and RNN whose last state alone is read get the output Y: what calibration has to see is
 * all states, which have one scale. */
#include "ops/infer.h"
#include "ops/kinds.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

static qn_status complete(qn_node *node)
{
    qn_value *states;
    char *name;
    QN_TRY(qn_rewrite_name(&name, node->graph, node->name, "_Y"));
    QN_TRY(qn_value_create(&states, node->graph, name));
    qn_node_set_output(node, 0, states);
    return qn_node_infer(node);
}

static qn_status complete_recurrents(qn_pass_context *self)
{
    for (qn_node *node = self->graph->first; node; node = node->next) {
        if (!qn_op_is_recurrent(node->op) || node->out[0] || qn_node_is_dead(node))
            continue;
        QN_TRY(complete(node));
        self->changes++;
    }
    return QN_OK;
}

const qn_pass qn_pass_complete_recurrents = {
    "complete-recurrents", "gives LSTM, GRU and RNN the output of all states", complete_recurrents};
