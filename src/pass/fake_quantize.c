/* Float arithmetic with rounding inside, of operators that every engine has:
 *
 *   D(Q(x)) = Mul(Clip(Round(Div(x, s)), qmin - z, qmax - z), s)
 *
 * Each of the four gives the float that Q and D give, so that only sums differ from the integer
 * network's. What D makes of constants is stored as float. */
#include <string.h>

#include "ops/infer.h"
#include "ops/quantize.h"
#include "ops/versions.h"
#include "pass/qdq_to_integer.h"
#include "pass/quant_formats.h"
#include "pass/rewrite.h"

/* ---- Numbers --------------------------------------------------------------------------------- */

/* One scale for all, or one per index of an axis, in a shape that multiplies x. */
static qn_status scale_of(qn_value **out, const qn_quantized *q, const qn_type *x)
{
    const qn_tensor *data = q->scale->data;
    qn_tensor *shaped;
    int64_t dims[QN_MAX_RANK];
    *out = q->scale;
    if (q->params.axis < 0 || q->params.axis == x->rank - 1)
        return QN_OK;
    const int32_t rank = x->rank - (int32_t)q->params.axis;
    for (int32_t d = 0; d < rank; d++)
        dims[d] = d == 0 ? qn_tensor_count(data) : 1;
    const qn_type type = qn_type_tensor(QN_FLOAT32, rank, dims);
    qn_graph *graph = q->node->graph;
    QN_TRY(qn_tensor_create(&shaped, graph->ctx, graph->arena, &type));
    memcpy(shaped->data, data->data, (size_t)qn_tensor_count(data) * sizeof(float));
    return qn_value_constant(out, graph, q->scale->name, shaped);
}

static bool has_one_zero(const qn_quantized *q)
{
    for (int64_t i = 1; i < qn_tensor_count(q->zero->data); i++) {
        if (qn_tensor_i64(q->zero->data, i) != q->params.zero)
            return false;
    }
    return true;
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static qn_status add(qn_value **out, qn_node *before, const qn_op *op, const qn_node_spec *inputs)
{
    qn_graph *graph = before->graph;
    qn_node_spec spec = *inputs;
    qn_node *node;
    char *name = qn_arena_format(graph->arena, "%s_%s", before->name, op->name);
    QN_TRY_ALLOC(graph->ctx, name);
    spec.op = op;
    spec.name = name;
    spec.before = before;
    QN_TRY(qn_node_build(&node, graph, &spec));
    QN_TRY(qn_node_infer(node));
    *out = node->out[0];
    return QN_OK;
}

static qn_status refuse(const qn_node *node, const char *why)
{
    return qn_node_fail(node, QN_E_UNSUPPORTED, "the form 'fake' %s", why);
}

/* What stands for Q: integers less their zero point, as floats. */
static qn_status round_in_float(qn_value **out, const qn_quantized *q)
{
    qn_node *node = q->node;
    const qn_limits range = qn_limits_of(q->value->type.dtype);
    const int64_t zero = q->params.zero;
    qn_value *scale = NULL, *low, *high;
    QN_TRY(scale_of(&scale, q, &node->in[0]->type));
    QN_TRY(qn_value_float(&low, node->graph, (float)(range.min - zero)));
    QN_TRY(qn_value_float(&high, node->graph, (float)(range.max - zero)));
    QN_TRY(add(out, node, &qn_op_Div, &(qn_node_spec){.in = {node->in[0], scale}, .n_in = 2}));
    QN_TRY(add(out, node, &qn_op_Round, &(qn_node_spec){.in = {*out}, .n_in = 1}));
    return add(out, node, &qn_op_Clip, &(qn_node_spec){.in = {*out, low, high}, .n_in = 3});
}

/* `rounded` times the scale is what D gives. */
static qn_status multiply(qn_node *node, const qn_quantized *q, qn_value *rounded)
{
    qn_quantized x;
    qn_value *scale = NULL, *value = node->out[0];
    bool found = false;
    QN_TRY(qn_qdq_input(&found, &x, value));
    if (!found || !has_one_zero(&x) || x.params.zero != q->params.zero)
        return refuse(node, "needs one constant zero point, that of the QuantizeLinear before");
    QN_TRY(scale_of(&scale, &x, &value->type));
    qn_value *result;
    QN_TRY(add(&result, node, &qn_op_Mul, &(qn_node_spec){.in = {rounded, scale}, .n_in = 2}));
    qn_node *product = result->producer;
    product->out[0] = NULL;
    result->producer = NULL;
    node->out[0] = NULL;
    qn_node_set_output(product, 0, value);
    qn_node_remove(node);
    return qn_node_infer(product);
}

/* A Q and all D behind it. */
static qn_status replace(qn_node *node)
{
    qn_quantized q;
    qn_value *rounded = NULL, *integers = node->out[0];
    bool found = false;
    if (integers->is_output || !integers->n_users)
        return refuse(node, "has no integers: they are an output of the model here");
    for (size_t u = 0; u < integers->n_users; u++) {
        if (!qn_is_dequantize(integers->users[u]))
            return refuse(integers->users[u], "cannot have operators of integers");
    }
    QN_TRY(qn_qdq_input(&found, &q, integers->users[0]->out[0]));
    q.node = node;
    if (!found || !has_one_zero(&q))
        return refuse(node, "needs constant scales and one constant zero point");
    QN_TRY(round_in_float(&rounded, &q));
    while (integers->n_users)
        QN_TRY(multiply(integers->users[0], &q, rounded));
    qn_node_remove(node);
    return QN_OK;
}

static qn_status replace_all(qn_graph *graph)
{
    for (qn_node *node = graph->first, *before; node;) {
        qn_graph *body;
        before = node->prev;
        for (size_t i = 0; (body = qn_node_subgraph(node, i)) != NULL; i++)
            QN_TRY(replace_all(body));
        const bool is_quantize = qn_is_quantize(node);
        if (!is_quantize && !qn_is_dequantize(node)) {
            node = node->next;
            continue;
        }
        if (qn_node_reads_constants(node))
            QN_TRY(qn_rewrite_fold(node));
        else if (is_quantize)
            QN_TRY(replace(node));
        else
            return refuse(node, "needs a QuantizeLinear before every DequantizeLinear");
        node = before ? before->next : graph->first;
    }
    return QN_OK;
}

qn_status qn_fake_quantize(qn_model *model)
{
    QN_TRY(qn_graph_infer(model->graph));
    return replace_all(model->graph);
}
