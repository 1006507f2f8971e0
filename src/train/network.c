/* What a network needs before it can learn. */
#include "train/network.h"

#include <string.h>

#include "ops/infer.h"
#include "ops/nn_attrs.h"
#include "ops/versions.h"
#include "train/gradient.h"

/* ---- Parameters ------------------------------------------------------------------------------ */

/* The inputs that learn, as bits; `lists`: only a list of several numbers does. */
static const struct {
    const qn_op *op;
    unsigned inputs;
    bool lists;
} learning[] = {{&qn_op_Add, 3, true},
                {&qn_op_BatchNormalization, 6, false},
                {&qn_op_Conv, 6, false},
                {&qn_op_ConvTranspose, 6, false},
                {&qn_op_Gemm, 7, false},
                {&qn_op_InstanceNormalization, 6, false},
                {&qn_op_LayerNormalization, 6, false},
                {&qn_op_MatMul, 3, false},
                {&qn_op_Mul, 3, true},
                {&qn_op_PRelu, 2, false}};

static bool learns(const qn_node *node, int32_t i)
{
    const qn_value *x = node->in[i];
    if (!x || !x->data || x->data->dtype != QN_FLOAT32 || i >= 32)
        return false;
    for (size_t k = 0; k < QN_COUNT_OF(learning); k++) {
        if (learning[k].op == node->op)
            return (learning[k].inputs >> i & 1) &&
                   (!learning[k].lists || (x->data->rank == 1 && x->data->dims[0] > 1));
    }
    return false;
}

qn_status qn_train_parameters(qn_value ***out, size_t *count, qn_graph *graph, const qn_node *end)
{
    *count = 0;
    *out = qn_arena_array(graph->arena, graph->n_values + 1, sizeof **out);
    QN_TRY_ALLOC(graph->ctx, *out);
    for (const qn_node *node = graph->first; node && node != end; node = node->next) {
        for (int32_t i = 0; i < node->n_in; i++) {
            if (!learns(node, i))
                continue;
            (*out)[(*count)++] = node->in[i];
            qn_value_make_parameter(node->in[i]);
        }
    }
    if (*count == 0)
        return qn_fail(graph->ctx, QN_E_UNSUPPORTED, "the model has no weights that could learn");
    return QN_OK;
}

/* ---- A copy ---------------------------------------------------------------------------------- */

/* `twins` by number of the value: what stands for it in the copy. */
static qn_status twin_of(qn_value **out, qn_graph *graph, qn_value **twins, qn_value *value)
{
    *out = value;
    if (!value || value->is_input)
        return QN_OK;
    if (!twins[value->number] && value->data)
        QN_TRY(qn_value_constant(&twins[value->number], graph, value->name, value->data));
    *out = twins[value->number];
    return QN_OK;
}

static qn_status copy_node(qn_graph *graph, qn_value **twins, const qn_node *node)
{
    qn_node *copy;
    if (qn_node_subgraph(node, 0))
        return qn_node_fail(node, QN_E_UNSUPPORTED, "a network with subgraphs cannot teach");
    QN_TRY(qn_node_add(&copy, graph, node->op, node->name, node->n_in, node->n_out));
    if (node->op->attrs_size)
        memcpy(copy->attrs, node->attrs, node->op->attrs_size);
    for (int32_t i = 0; i < node->n_in; i++) {
        qn_value *in;
        QN_TRY(twin_of(&in, graph, twins, node->in[i]));
        QN_TRY(qn_node_set_input(copy, i, in));
    }
    for (int32_t o = 0; o < node->n_out; o++) {
        if (!node->out[o])
            continue;
        QN_TRY(qn_value_create(&twins[node->out[o]->number], graph, node->out[o]->name));
        qn_node_set_output(copy, o, twins[node->out[o]->number]);
    }
    return qn_node_infer(copy);
}

qn_status qn_train_copy(qn_value **out, qn_graph *graph, const qn_value *of)
{
    qn_node *const last = graph->last;
    qn_value **twins = qn_alloc_zero(graph->ctx, graph->n_values + 1, sizeof *twins);
    qn_status status = twins ? QN_OK : qn_fail_nomem(graph->ctx);
    for (const qn_node *node = graph->first; status == QN_OK && node; node = node->next) {
        status = copy_node(graph, twins, node);
        if (node == last)
            break;
    }
    if (status == QN_OK)
        *out = twins[of->number];
    qn_free(graph->ctx, twins);
    return status;
}

/* ---- Batch normalization --------------------------------------------------------------------- */

/* (1 - share) kept + share batch */
static qn_status average(qn_train_updates *updates, qn_graph *graph, qn_value *kept,
                         qn_value *batch, double share)
{
    qn_grad_job job = {.graph = graph, .node = batch->producer};
    qn_value_make_parameter(kept);
    qn_value *next =
        qn_grad_add(&job, qn_grad_scale(&job, kept, 1 - share), qn_grad_scale(&job, batch, share));
    QN_TRY(job.status);
    return qn_train_updates_add(updates, graph, kept, next);
}

static bool has_statistics(const qn_node *node)
{
    const qn_batchnorm_attrs *a = node->attrs;
    return node->op == &qn_op_BatchNormalization && !a->training_mode && node->in[3]->data &&
           node->in[4]->data && node->in[3]->data->dtype == QN_FLOAT32 &&
           node->in[4]->data->dtype == QN_FLOAT32;
}

static qn_status use_batch(qn_train_updates *updates, qn_node *node, double share)
{
    qn_graph *graph = node->graph;
    const qn_batchnorm_attrs *a = node->attrs;
    qn_grad_job job = {.graph = graph, .node = node};
    qn_value *kept[2] = {node->in[3], node->in[4]};
    bool done;
    qn_node *fresh = qn_grad_node(&job, node->op, node->in, 5, 3);
    QN_TRY(job.status);
    *(qn_batchnorm_attrs *)fresh->attrs = *a;
    /* Then its further outputs are the statistics of the batch alone. */
    ((qn_batchnorm_attrs *)fresh->attrs)->momentum = 0;
    ((qn_batchnorm_attrs *)fresh->attrs)->training_mode = 1;
    qn_node_move(fresh, node);
    qn_grad_infer(&job, fresh);
    QN_TRY(job.status);
    QN_TRY(qn_value_replace(&done, node->out[0], fresh->out[0]));
    qn_node_remove(node);
    QN_TRY(average(updates, graph, kept[0], fresh->out[1], share));
    return average(updates, graph, kept[1], fresh->out[2], share);
}

qn_status qn_train_norms(qn_train_updates *updates, qn_graph *graph, const qn_node *end,
                         double share)
{
    qn_node *next;
    for (qn_node *node = graph->first; node && node != end; node = next) {
        next = node->next;
        if (has_statistics(node))
            QN_TRY(use_batch(updates, node, share));
    }
    return QN_OK;
}
