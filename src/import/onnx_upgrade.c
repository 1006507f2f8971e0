#include "import/onnx.h"
#include "ops/infer.h"

/* Subgraphs come before their owner, whose rules and inference look at them. */
static qn_status upgrade_subgraphs(qn_node *node)
{
    qn_graph *body;
    for (size_t i = 0; (body = qn_node_subgraph(node, i)) != NULL; i++) {
        for (size_t c = 0; c < body->n_captures; c++) {
            const qn_value *outer = node->in[body->captures[c].slot];
            body->captures[c].inner->type = outer->type;
        }
        QN_TRY(qn_onnx_upgrade(body));
    }
    return QN_OK;
}

qn_status qn_onnx_upgrade(qn_graph *graph)
{
    qn_node *node = graph->first;
    while (node) {
        const uint32_t version = node->mark;
        if (version == 0) {
            QN_TRY(qn_node_infer(node));
            node = node->next;
            continue;
        }
        qn_node *before = node->prev;
        QN_TRY(upgrade_subgraphs(node));
        node->mark = 0;
        QN_TRY(qn_node_upgrade(&node, (int)version));
        /* What the rule put before and after the node is inferred in turn. */
        node = before ? before->next : graph->first;
    }
    return QN_OK;
}
