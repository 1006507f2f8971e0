/* Nodes of older opsets brought to their latest form, with inference on the way. */
#include "import/onnx/onnx.h"
#include "ops/infer.h"

qn_status qn_onnx_begin_opsets(qn_onnx_scope *scope)
{
    qn_onnx_import *import = scope->import;
    qn_onnx_node_opsets *opsets = qn_arena_alloc(&import->tree.arena, sizeof *opsets);
    QN_TRY_ALLOC(import->ctx, opsets);
    *opsets = (qn_onnx_node_opsets){.graph = scope->graph, .next = opsets};
    if (import->node_opsets) {
        opsets->next = import->node_opsets->next;
        import->node_opsets->next = opsets;
    }
    import->node_opsets = scope->node_opsets = opsets;
    return QN_OK;
}

qn_status qn_onnx_set_opset(qn_onnx_scope *scope, const qn_node *node, int64_t version)
{
    enum { FIRST_ROOM = 64 };
    qn_onnx_node_opsets *opsets = scope->node_opsets;
    if (node->number >= opsets->room) {
        const size_t room = QN_MAX(2 * (size_t)node->number, FIRST_ROOM);
        opsets->at = qn_arena_widen(&scope->import->tree.arena, opsets->at, opsets->room, room,
                                    sizeof *opsets->at);
        QN_TRY_ALLOC(scope->import->ctx, opsets->at);
        opsets->room = room;
    }
    opsets->at[node->number] = (uint32_t)version;
    return QN_OK;
}

/* Graphs are upgraded in the order in which they were begun, so that the next one is it. */
static qn_onnx_node_opsets *opsets_of(qn_onnx_import *import, const qn_graph *graph)
{
    qn_onnx_node_opsets *opsets = import->node_opsets;
    do {
        opsets = opsets->next;
    } while (opsets->graph != graph && opsets != import->node_opsets);
    import->node_opsets = opsets;
    return opsets;
}

/* The node is of the latest opset afterwards. */
static uint32_t take_opset(qn_onnx_node_opsets *opsets, const qn_node *node)
{
    if (node->number >= opsets->room)
        return 0;
    const uint32_t version = opsets->at[node->number];
    opsets->at[node->number] = 0;
    return version;
}

/* Subgraphs come before their owner, whose rules and inference look at them. */
static qn_status upgrade_subgraphs(qn_onnx_import *import, qn_node *node)
{
    qn_graph *body;
    for (size_t i = 0; (body = qn_node_subgraph(node, i)) != NULL; i++) {
        for (size_t c = 0; c < body->n_captures; c++) {
            const qn_value *outer = node->in[body->captures[c].slot];
            body->captures[c].inner->type = outer->type;
        }
        QN_TRY(qn_onnx_upgrade(import, body));
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

qn_status qn_onnx_upgrade(qn_onnx_import *import, qn_graph *graph)
{
    qn_onnx_node_opsets *opsets = opsets_of(import, graph);
    qn_node *node = graph->first;
    while (node) {
        const uint32_t version = take_opset(opsets, node);
        qn_node *before = node->prev;
        if (version)
            QN_TRY(upgrade_subgraphs(import, node));
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
