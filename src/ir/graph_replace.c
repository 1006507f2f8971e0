/* A value that takes the place of another one. */
#include "ir/graph.h"

/* Gives `fresh` the name of `old`, which gets a made-up one. */
static qn_status take_name(qn_value *fresh, qn_value *old)
{
    const char *name = old->name;
    QN_TRY(qn_value_rename(old, name));
    return qn_value_rename(fresh, name);
}

static qn_status move_users(qn_value *old, qn_value *fresh)
{
    while (old->n_users) {
        qn_node *user = old->users[old->n_users - 1];
        for (int32_t i = 0; i < user->n_in; i++) {
            if (user->in[i] == old)
                QN_TRY(qn_node_set_input(user, i, fresh));
        }
    }
    return QN_OK;
}

qn_status qn_value_replace(bool *done, qn_value *old, qn_value *fresh)
{
    *done = false;
    if (old->is_output) {
        if (!fresh->producer || fresh->is_output)
            return QN_OK;
        QN_TRY(take_name(fresh, old));
        qn_graph *graph = old->graph;
        for (size_t i = 0; i < graph->n_outputs; i++) {
            if (graph->outputs[i] == old)
                graph->outputs[i] = fresh;
        }
        old->is_output = false;
        fresh->is_output = true;
    }
    QN_TRY(move_users(old, fresh));
    *done = true;
    return QN_OK;
}
