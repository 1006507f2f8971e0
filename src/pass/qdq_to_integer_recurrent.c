/* LSTM, GRU and RNN: the integers of the state are those of the Q behind Y or Y_h. */
#include <string.h>

#include "ops/nn_attrs.h"
#include "ops/qrecurrent.h"
#include "pass/qdq_nodes.h"
#include "pass/qdq_to_integer.h"
#include "pass/rewrite.h"

enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES };
enum { Y, Y_H, Y_C, OUTPUTS };

typedef struct parts {
    qn_quantized x, w, r, y;
} parts;

static const struct {
    const qn_op *from, *to;
} pairs[] = {
    {&qn_op_GRU, &qn_op_qn_QGRU},
    {&qn_op_LSTM, &qn_op_qn_QLSTM},
    {&qn_op_RNN, &qn_op_qn_QRNN},
};

static const qn_op *integer_form(const qn_op *op)
{
    for (size_t i = 0; i < QN_COUNT_OF(pairs); i++) {
        if (pairs[i].from == op)
            return pairs[i].to;
    }
    return NULL;
}

static qn_value *input(const qn_node *node, int32_t i)
{
    return i < node->n_in ? node->in[i] : NULL;
}

/* Integers without zero point, with one scale or one for each row of the gates. */
static qn_status find_weights(bool *found, qn_quantized *out, const qn_value *value)
{
    QN_TRY(qn_qdq_input(found, out, value));
    if (!*found)
        return QN_OK;
    const qn_tensor *w = out->value->data;
    *found = w && (w->dtype == QN_INT8 || w->dtype == QN_INT16) && w->rank == 3 &&
             out->params.zero == 0 && !out->params.zeros &&
             (out->params.count == 1 || (out->params.axis == 1 && out->params.count == w->dims[1]));
    return QN_OK;
}

/* The first Q that reads the value. */
static qn_status find_state(bool *found, qn_quantized *out, const qn_value *value)
{
    *found = false;
    for (size_t u = 0; value && u < value->n_users && !*found; u++) {
        if (!qn_is_quantize(value->users[u]) || value->users[u]->in[0] != value)
            continue;
        out->value = value->users[u]->out[0];
        QN_TRY(qn_qdq_parameters(found, out, value->users[u]));
        *found = *found && out->params.axis < 0 && qn_quantized_is_short(out);
    }
    return QN_OK;
}

static qn_status find_parts(bool *found, parts *p, const qn_node *node)
{
    static const int32_t constants[] = {B, PEEPHOLES};
    *found = false;
    for (size_t i = 0; i < QN_COUNT_OF(constants); i++) {
        const qn_value *value = input(node, constants[i]);
        if (value && (!value->data || value->data->dtype != QN_FLOAT32))
            return QN_OK;
    }
    QN_TRY(qn_qdq_input(found, &p->x, node->in[X]));
    if (!*found || p->x.params.axis >= 0 || !qn_quantized_is_short(&p->x)) {
        *found = false;
        return QN_OK;
    }
    QN_TRY(find_weights(found, &p->w, node->in[W]));
    if (*found)
        QN_TRY(find_weights(found, &p->r, node->in[R]));
    if (!*found)
        return QN_OK;
    QN_TRY(find_state(found, &p->y, node->out[Y]));
    if (!*found && node->n_out > Y_H)
        QN_TRY(find_state(found, &p->y, node->out[Y_H]));
    return QN_OK;
}

/* The state's integers of initial_h, in front of `fresh`. */
static qn_status initial_state(qn_value **out, qn_node *fresh, const qn_node *node, const parts *p)
{
    qn_value *given = input(node, INITIAL_H);
    qn_quantized h;
    bool found = false;
    *out = NULL;
    if (!given)
        return QN_OK;
    QN_TRY(qn_qdq_input(&found, &h, given));
    if (found && qn_quantized_alike(&h, &p->y)) {
        *out = h.value;
        return QN_OK;
    }
    return qn_qdq_node_add(out, &(qn_qdq_node_spec){.op = &qn_op_QuantizeLinear,
                                                    .base = given->name,
                                                    .in = {given, p->y.scale, p->y.zero},
                                                    .before = fresh,
                                                    .axis = -1});
}

/* Output o of `fresh` is integers, of which a D makes what `node` wrote. */
static qn_status dequantize(qn_node *fresh, qn_node *node, int32_t o, const parts *p)
{
    qn_value *real = node->out[o], *integers;
    qn_node *behind;
    QN_TRY(qn_value_create(&integers, node->graph, real->name));
    qn_node_set_output(fresh, o, integers);
    QN_TRY(qn_node_add(&behind, node->graph, &qn_op_DequantizeLinear, node->name, 3, 1));
    qn_node_move(behind, node);
    QN_TRY(qn_node_set_input(behind, 0, integers));
    QN_TRY(qn_node_set_input(behind, 1, p->y.scale));
    QN_TRY(qn_node_set_input(behind, 2, p->y.zero));
    node->out[o] = NULL;
    qn_node_set_output(behind, 0, real);
    return QN_OK;
}

/* Output o of `fresh` is what the Q behind it writes; *done is false where others read the
 * floats. */
static qn_status take_integers(bool *done, qn_node *fresh, qn_node *node, int32_t o, const parts *p)
{
    qn_quantized q;
    QN_TRY(qn_qdq_output(done, &q, node->out[o]));
    *done = *done && !node->out[o]->is_output && qn_quantized_alike(&q, &p->y);
    if (!*done)
        return QN_OK;
    q.node->out[0] = NULL;
    qn_node_set_output(fresh, o, q.value);
    qn_node_remove(q.node);
    return QN_OK;
}

static qn_status connect(qn_node *fresh, qn_node *node, const parts *p)
{
    qn_value *in[QN_QREC_INPUTS] = {p->x.value,
                                    p->x.scale,
                                    p->x.zero,
                                    p->w.value,
                                    p->w.scale,
                                    p->r.value,
                                    p->r.scale,
                                    p->y.scale,
                                    p->y.zero,
                                    input(node, B),
                                    input(node, LENGTHS),
                                    NULL,
                                    input(node, INITIAL_C),
                                    input(node, PEEPHOLES)};
    QN_TRY(initial_state(&in[QN_QREC_H], fresh, node, p));
    for (int32_t i = 0; i < fresh->n_in; i++)
        QN_TRY(qn_node_set_input(fresh, i, in[i]));
    memcpy(fresh->attrs, node->attrs, sizeof(qn_recurrent_attrs));
    return QN_OK;
}

qn_status qn_qdq_recurrent(bool *done, qn_node *node)
{
    const qn_op *op = integer_form(node->op);
    qn_node *fresh;
    parts p;
    QN_TRY(find_parts(done, &p, node));
    if (!*done)
        return QN_OK;
    QN_TRY(qn_node_add(&fresh, node->graph, op, node->name, (int32_t)op->n_in, node->n_out));
    qn_node_move(fresh, node);
    QN_TRY(connect(fresh, node, &p));
    for (int32_t o = 0; o < node->n_out && o < Y_C; o++) {
        bool taken = false;
        if (node->out[o])
            QN_TRY(take_integers(&taken, fresh, node, o, &p));
        if (node->out[o] && !taken)
            QN_TRY(dequantize(fresh, node, o, &p));
    }
    if (node->n_out > Y_C && node->out[Y_C]) {
        qn_value *cell = node->out[Y_C];
        node->out[Y_C] = NULL;
        qn_node_set_output(fresh, Y_C, cell);
    }
    QN_TRY(qn_node_infer(fresh));
    for (qn_node *behind = fresh->next; behind != node; behind = behind->next)
        QN_TRY(qn_node_infer(behind));
    qn_node_remove(node);
    return QN_OK;
}
