/* Nodes that name, hand on, or choose what others compute. */
#include <string.h>

#include "import/tensorflow/tensorflow.h"

qn_status qn_tf_const(qn_tf_node *node)
{
    qn_value *value;
    const qn_proto_message *tensor =
        qn_proto_get_message(qn_tf_attr(node, "value"), QN_TF_VALUE_TENSOR);
    if (!tensor)
        return qn_tf_fail(node, QN_E_FORMAT, "it has no value");
    QN_TRY(qn_tf_tensor(&value, node->import, node->name, tensor));
    return qn_tf_out(node, 0, value, QN_ORDER_OWN);
}

qn_status qn_tf_identity(qn_tf_node *node)
{
    return qn_tf_pass(node);
}

qn_status qn_tf_identity_n(qn_tf_node *node)
{
    for (size_t i = 0; i < node->n_in; i++) {
        const char *name = qn_tf_output_name(node, i);
        QN_TRY_ALLOC(node->import->ctx, name);
        QN_TRY(qn_tf_alias(node->import, name, node->in[i]));
    }
    return QN_OK;
}

/* ---- Branches -------------------------------------------------------------------------------- */

/* The condition as far as it is known: a model that is not being trained. */
static qn_status condition(bool *known, bool *value, const qn_tf_node *node, size_t i)
{
    const qn_tensor *tensor;
    *known = false;
    QN_TRY(qn_tf_known(&tensor, node, i));
    if (!tensor || tensor->dtype != QN_BOOL || qn_tensor_count(tensor) != 1)
        return QN_OK;
    *known = true;
    *value = *(const uint8_t *)tensor->data != 0;
    return QN_OK;
}

/* Output 0 where the condition is false, output 1 where it is true; both where it is not known. */
qn_status qn_tf_switch(qn_tf_node *node)
{
    bool known, value = false;
    const qn_tf_thing dead = {.kind = QN_TF_DEAD};
    QN_TRY(condition(&known, &value, node, 1));
    for (size_t port = 0; port < 2; port++) {
        const char *name = qn_tf_output_name(node, port);
        QN_TRY_ALLOC(node->import->ctx, name);
        if (known && value != (port == 1))
            QN_TRY(qn_tf_set_thing(node->import, name, &dead));
        else
            QN_TRY(qn_tf_alias(node->import, name, node->in[0]));
    }
    return QN_OK;
}

/* The branch that a value lies in: the Switch above it, and its output. */
static const qn_tf_node *branch_of(bool *taken, const qn_tf_node *node, size_t i)
{
    enum { FAR = 256 };
    for (int steps = 0; node && steps < FAR && i < node->n_in; steps++) {
        const qn_tf_node *from = node->from[i];
        if (from && strcmp(from->type, "Switch") == 0) {
            const char *own = node->in[i];
            const size_t length = strlen(own);
            *taken = length > 2 && strcmp(own + length - 2, ":1") == 0;
            return from;
        }
        node = from;
        i = 0;
    }
    return NULL;
}

/* Both branches were computed: the condition chooses. */
static qn_status merge_both(qn_tf_node *node)
{
    bool first, second;
    qn_value *in[2], *which, *y;
    const qn_tf_node *a = branch_of(&first, node, 0), *b = branch_of(&second, node, 1);
    if (node->n_in != 2 || !a || !b || a->n_in < 2 || b->n_in < 2 || first == second ||
        strcmp(a->in[1], b->in[1]) != 0)
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "branches of no condition that was found");
    QN_TRY(qn_tf_in(&which, a, 1));
    QN_TRY(qn_tf_in(&in[0], node, first ? 0 : 1));
    QN_TRY(qn_tf_in(&in[1], node, first ? 1 : 0));
    QN_TRY(qn_graph_build(&y, &node->import->builder, &qn_op_Where, QN_INPUTS(which, in[0], in[1]),
                          QN_PLAIN));
    return qn_tf_out(node, 0, y, QN_ORDER_OWN);
}

qn_status qn_tf_merge(qn_tf_node *node)
{
    size_t alive = 0, at = 0;
    for (size_t i = 0; i < node->n_in; i++) {
        if (!qn_tf_is(node->import, node->in[i], QN_TF_DEAD)) {
            alive++;
            at = i;
        }
    }
    if (alive == 0 && node->n_in)
        return qn_tf_pass(node);
    return alive == 1 ? qn_tf_alias(node->import, node->name, node->in[at]) : merge_both(node);
}

/* ---- What a model is given ------------------------------------------------------------------- */

/* A switch for training is off. Others have to be inputs, which were there before. */
qn_status qn_tf_placeholder(qn_tf_node *node)
{
    qn_value *value;
    if (qn_tf_attr_dtype(node, "dtype", QN_UNDEFINED) != QN_BOOL)
        return qn_tf_fail(node, QN_E_UNSUPPORTED,
                          "an input that is needed and not among the start nodes");
    QN_TRY(qn_tf_number(&value, node->import, 0, QN_BOOL));
    qn_log(node->import->ctx, QN_LOG_NOTE, "'%s' is false: the model is not being trained",
           node->name);
    return qn_tf_out(node, 0, value, QN_ORDER_OWN);
}
