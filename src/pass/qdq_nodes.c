/* Adds QuantizeLinear and DequantizeLinear nodes with the names that ONNX Runtime's tools give
 * them. */
#include "pass/qdq_nodes.h"

#include <string.h>

#include "ops/nn_attrs.h"
#include "ops/quantize.h"

#define Q_TAIL "_QuantizeLinear"
#define D_TAIL "_DequantizeLinear"
#define OUTPUT_TAIL "_Output"

qn_status qn_qdq_node_add(qn_value **out, const qn_qdq_node_spec *spec)
{
    qn_graph *graph = spec->in[0]->graph;
    char *name;
    qn_node *node;
    QN_TRY(qn_rewrite_name(&name, graph, spec->base,
                           spec->op == &qn_op_QuantizeLinear ? Q_TAIL : D_TAIL));
    const qn_node_spec fresh = {.op = spec->op,
                                .name = name,
                                .before = spec->before,
                                .in = {spec->in[0], spec->in[1], spec->in[2]},
                                .n_in = spec->in[2] ? 3 : 2};
    QN_TRY(qn_node_build(&node, graph, &fresh));
    if (spec->axis >= 0)
        ((qn_quantize_attrs *)node->attrs)->axis = spec->axis;
    QN_TRY(qn_node_infer(node));
    *out = node->out[0];
    QN_TRY(qn_rewrite_name(&name, graph, name, OUTPUT_TAIL));
    return qn_value_rename(*out, name);
}

size_t qn_qdq_base_length(const char *name)
{
    static const char tail[] = Q_TAIL OUTPUT_TAIL;
    const size_t length = strlen(name), own = sizeof tail - 1;
    const bool is_q_result = length > own && strcmp(name + length - own, tail) == 0;
    return is_q_result ? length - own : length;
}
