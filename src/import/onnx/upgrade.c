/* Nodes of older opsets brought to their latest form, with inference on the way. */
#include "import/onnx/onnx.h"
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

/* A node of an opset that is newer than the rules: it is taken as it is, if its inputs can be. */
static qn_status infer_newer(qn_node *node, uint32_t version)
{
    const qn_status status = qn_node_infer(node);
    if (status != QN_E_INVALID)
        return status;
    return qn_fail_within(node->graph->ctx, QN_E_UNSUPPORTED, "opset %u, newer than %d",
                          (unsigned)version, QN_LATEST_OPSET);
}

qn_status qn_onnx_upgrade(qn_graph *graph)
{
    qn_node *node = graph->first;
    while (node) {
        const uint32_t version = node->mark;
        qn_node *before = node->prev;
        node->mark = 0;
        if (version)
            QN_TRY(upgrade_subgraphs(node));
        if (version == 0 || version > QN_LATEST_OPSET) {
            QN_TRY(version ? infer_newer(node, version) : qn_node_infer(node));
            node = node->next;
            continue;
        }
        QN_TRY(qn_node_upgrade(&node, (int)version));
        /* What the rule put before and after the node is inferred in turn. */
        node = before ? before->next : graph->first;
    }
    return QN_OK;
}
