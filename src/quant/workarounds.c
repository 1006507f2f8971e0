/* Rewrites of what engines compute wrong. */
#include "quant/workarounds.h"

#include "ops/infer.h"
#include "ops/nn_attrs.h"
#include "ops/versions.h"
#include "pass/qdq_nodes.h"

/* ---- Reductions in float --------------------------------------------------------------------- */

/* One of these that loses dimensions, and is rounded then, is computed wrong by OpenVINO (2026.4):
 * it loses them in a Squeeze behind it. The others (products, norms) are right there. */
static const qn_op *const squeezed[] = {&qn_op_ReduceMax, &qn_op_ReduceMean, &qn_op_ReduceMin,
                                        &qn_op_ReduceSum};

static bool is_squeezed(const qn_op *op)
{
    for (size_t i = 0; i < QN_COUNT_OF(squeezed); i++) {
        if (squeezed[i] == op)
            return true;
    }
    return false;
}

static bool loses_dimensions(const qn_quant_node *n)
{
    const qn_node *node = n->node;
    if (n->integer || !node->n_out || !node->out[0] || !is_squeezed(node->op))
        return false;
    const qn_reduce_attrs *a = node->attrs;
    const qn_value *axes = node->n_in > 1 ? node->in[1] : NULL, *out = node->out[0];
    bool is_rounded = false;
    for (size_t u = 0; u < out->n_users; u++)
        is_rounded = is_rounded || out->users[u]->op == &qn_op_QuantizeLinear;
    return is_rounded && !a->keepdims && axes && axes->data && qn_tensor_count(axes->data);
}

static qn_status keep_dimensions(qn_node *node)
{
    qn_graph *graph = node->graph;
    qn_value *out = node->out[0], *kept;
    qn_node *squeeze;
    char *name;
    QN_TRY(qn_rewrite_name(&name, graph, out->name, "_kept"));
    QN_TRY(qn_value_create(&kept, graph, name));
    QN_TRY(qn_rewrite_name(&name, graph, node->name, "_Squeeze"));
    QN_TRY(qn_node_add(&squeeze, graph, &qn_op_Squeeze, name, 2, 1));
    qn_node_move(squeeze, node->next);
    QN_TRY(qn_node_set_input(squeeze, 0, kept));
    QN_TRY(qn_node_set_input(squeeze, 1, node->in[1]));
    node->out[0] = NULL;
    qn_node_set_output(node, 0, kept);
    qn_node_set_output(squeeze, 0, out);
    ((qn_reduce_attrs *)node->attrs)->keepdims = 1;
    return QN_OK;
}

static qn_status keep_all_dimensions(const qn_quantizer *q)
{
    for (size_t i = 0; i < q->n_nodes; i++) {
        if (loses_dimensions(&q->nodes[i]))
            QN_TRY(keep_dimensions(q->nodes[i].node));
    }
    return QN_OK;
}

/* ---- Averages that count their border -------------------------------------------------------- */

static bool has_border(const qn_window_attrs *a)
{
    for (size_t i = 0; i < a->pads.count; i++) {
        if (a->pads.at[i] != 0)
            return true;
    }
    return false;
}

/* Whether the pool has as many windows when its border becomes part of the input. Rounding up drops
 * windows that begin in the border behind the input, and would not drop them behind a Pad. */
static bool keeps_windows(const qn_node *pool)
{
    const qn_window_attrs *a = pool->attrs;
    const size_t spatial = a->pads.count / 2;
    const qn_type *x = &pool->in[0]->type, *y = &pool->out[0]->type;
    bool same = a->kernel_shape.count == spatial && x->rank == (int32_t)spatial + 2;
    for (size_t i = 0; a->ceil_mode && same && i < spatial; i++) {
        const int64_t stride = i < a->strides.count ? a->strides.at[i] : 1;
        const int64_t gap = i < a->dilations.count ? a->dilations.at[i] : 1;
        const int64_t whole = x->dims[i + 2].value + a->pads.at[i] + a->pads.at[i + spatial];
        const int64_t behind = whole - (gap * (a->kernel_shape.at[i] - 1) + 1);
        same =
            x->dims[i + 2].value >= 0 && y->dims[i + 2].value == (behind + stride - 1) / stride + 1;
    }
    return same;
}

static bool counts_border(const qn_node *node)
{
    const qn_window_attrs *a = node->attrs;
    return node->op == &qn_op_AveragePool && a->count_include_pad &&
           a->auto_pad == QN_AUTO_PAD_NOTSET && a->pads.count <= 2 * (QN_MAX_RANK - 2);
}

/* The D that the average reads, of integers of 8 bits with one scale (OpenVINO leaves others out);
 * NULL: it reads floats. */
static const qn_node *read_by(const qn_node *pool)
{
    const qn_node *d = qn_match_op(pool->in[0], &qn_op_DequantizeLinear);
    if (!d || d->n_in < 3 || !d->in[1]->data || qn_tensor_count(d->in[1]->data) != 1)
        return NULL;
    const qn_tensor *zero = d->in[2] ? d->in[2]->data : NULL;
    return zero && qn_dtype_size(zero->dtype) == 1 ? d : NULL;
}

/* A Pad before `pool`, named after it; *value is what it reads, and then what it writes. */
static qn_status put_pad(qn_value **value, qn_node *pool, qn_node_spec spec)
{
    qn_node *node;
    char *name;
    QN_TRY(qn_rewrite_name(&name, pool->graph, pool->name, "_Pad"));
    spec.name = name;
    spec.before = pool;
    spec.in[0] = *value;
    QN_TRY(qn_node_build(&node, pool->graph, &spec));
    QN_TRY(qn_node_infer(node));
    *value = node->out[0];
    QN_TRY(qn_rewrite_name(&name, pool->graph, name, "_Output"));
    return qn_value_rename(*value, name);
}

/* The border becomes a Pad of the integers themselves: behind a D, OpenVINO gets a Pad along one
 * axis wrong too. */
static qn_status pad_apart(qn_node *pool)
{
    const qn_node *d = read_by(pool);
    qn_window_attrs *a = pool->attrs;
    const size_t spatial = a->pads.count / 2;
    int64_t all[2 * QN_MAX_RANK] = {0};
    const int64_t none[2 * QN_MAX_RANK] = {0};
    qn_value *value = d ? d->in[0] : pool->in[0], *pads;
    for (size_t i = 0; i < 2 * spatial; i++)
        all[i + (i < spatial ? 2 : 4)] = a->pads.at[i];
    QN_TRY(qn_value_ints(&pads, pool->graph, all, 2 * (spatial + 2)));
    const qn_node_spec pad = {
        .op = &qn_op_Pad, .in = {NULL, pads, d ? d->in[2] : NULL}, .n_in = d ? 3 : 2};
    QN_TRY(put_pad(&value, pool, pad));
    if (d) {
        const qn_qdq_node_spec real = {.op = &qn_op_DequantizeLinear,
                                       .base = pool->name,
                                       .in = {value, d->in[1], d->in[2]},
                                       .before = pool,
                                       .axis = -1};
        QN_TRY(qn_qdq_node_add(&value, &real));
    }
    QN_TRY(qn_ints_copy(&a->pads, pool->graph, none, 2 * spatial));
    return qn_node_set_input(pool, 0, value);
}

/* Its border would not be 0: integers 0 are something else. */
static bool has_wrong_border(const qn_quantizer *q, const qn_node *pool)
{
    const qn_node *d = read_by(pool);
    return q->settings.profile->pads_with_zero && d && !qn_match_is(d->in[2], 0);
}

/* Windows that reach beyond the border (ceil_mode) are divided by all of their size in ONNX Runtime
 * (1.31) and OpenVINO (2026.4); without a border of their own they count what is there. */
static qn_status fix_average_border(const qn_quantizer *q, qn_node *pool)
{
    qn_window_attrs *a = pool->attrs;
    if (has_border(a) && keeps_windows(pool) && (a->ceil_mode || has_wrong_border(q, pool)))
        QN_TRY(pad_apart(pool));
    if (a->ceil_mode && !has_border(a))
        a->count_include_pad = 0;
    return QN_OK;
}

static qn_status fix_average_borders(const qn_quantizer *q)
{
    for (qn_node *node = q->graph->first; node; node = node->next) {
        if (counts_border(node))
            QN_TRY(fix_average_border(q, node));
    }
    return QN_OK;
}

qn_status qn_workarounds_apply(qn_quantizer *q)
{
    QN_TRY(keep_all_dimensions(q));
    return fix_average_borders(q);
}
