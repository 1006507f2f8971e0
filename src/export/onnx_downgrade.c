/* A model taken back to an older opset. */
#include <string.h>

#include "export/onnx.h"

int64_t qn_onnx_domain_version(const qn_model *model, const char *domain, int opset)
{
    if (*domain == 0)
        return opset;
    for (size_t i = 0; i < model->n_opsets; i++) {
        if (strcmp(model->opsets[i].domain, domain) == 0)
            return model->opsets[i].version;
    }
    return 1;
}

/* Operators of quench's own are written through their rules as nodes that others know. */
static qn_status downgrade_own(qn_node **node)
{
    const qn_op *op = (*node)->op;
    for (size_t i = op->n_versions; *node && i-- > 0;) {
        if (op->versions[i].downgrade)
            QN_TRY(op->versions[i].downgrade(node));
    }
    if (*node && strcmp((*node)->op->domain, "quench") == 0)
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "ONNX has no form for this operator");
    return QN_OK;
}

static qn_status downgrade_graph(qn_graph *graph, int opset);

static qn_status downgrade_node(qn_node *node, int opset)
{
    qn_graph *body;
    for (size_t i = 0; (body = qn_node_subgraph(node, i)) != NULL; i++)
        QN_TRY(downgrade_graph(body, opset));
    if (strcmp(node->op->domain, "quench") == 0)
        return downgrade_own(&node);
    const qn_model *model = node->graph->model;
    return qn_node_downgrade(&node, (int)qn_onnx_domain_version(model, node->op->domain, opset));
}

/* Rules put nodes of the latest form beside a node, which have their own turn: a mark says which
 * had it. */
static qn_status downgrade_graph(qn_graph *graph, int opset)
{
    for (qn_node *node = graph->first; node; node = node->next)
        node->mark = 0;
    qn_node *node = graph->first;
    while (node) {
        if (node->mark) {
            node = node->next;
            continue;
        }
        qn_node *before = node->prev;
        node->mark = 1;
        QN_TRY(downgrade_node(node, opset));
        node = before ? before->next : graph->first;
    }
    return QN_OK;
}

qn_status qn_onnx_downgrade(qn_model *model, int opset)
{
    return downgrade_graph(model->graph, opset);
}
