/* LSTMs of a whole sequence. */
#include "import/tensorflow/lstm.h"

/* Gates in the columns of TensorFlow's weights: input, new cell, forget, output. */
enum { GATES = 4 };

/* [rows, 4 H] as ONNX has it, [1, 4 H, rows] with the gates input, output, forget, new cell. */
static qn_status gates(qn_value **w, qn_tf_import *import, int64_t axis, int64_t hidden)
{
    static const int64_t order[GATES] = {0, 3, 2, 1};
    qn_value *parts[GATES];
    for (int i = 0; i < GATES; i++) {
        parts[i] = *w;
        QN_TRY(qn_tf_part(&parts[i], import, axis, order[i] * hidden, (order[i] + 1) * hidden));
    }
    return qn_graph_build(w, &import->builder, &qn_op_Concat, (qn_graph_build_inputs){parts, GATES},
                          QN_WITH(QN_A_INT("axis", axis)));
}

static qn_status lead(qn_value **value, qn_tf_import *import)
{
    return qn_tf_unsqueeze(value, import, (const int64_t[]){0}, 1);
}

static qn_status weights(qn_value **out, qn_value *w, qn_tf_import *import, int64_t from,
                         int64_t to, int64_t hidden)
{
    *out = w;
    QN_TRY(qn_tf_part(out, import, 0, from, to));
    QN_TRY(gates(out, import, 1, hidden));
    QN_TRY(qn_tf_permute(out, import, (const int64_t[]){1, 0}, 2));
    return lead(out, import);
}

/* [1, 8 H]: the bias with what the forget gate gets added, and a second one of zeros. */
static qn_status bias(qn_value **out, qn_tf_node *node, size_t i, int64_t hidden)
{
    qn_value *b, *zero, *extra, *shape;
    qn_tf_import *import = node->import;
    qn_graph_builder *g = &import->builder;
    QN_TRY(qn_tf_in(&b, node, i));
    QN_TRY(qn_tf_number(&zero, import, 0, b->type.dtype));
    QN_TRY(qn_tf_number(&extra, import, qn_tf_attr_real(node, "forget_bias", 1), b->type.dtype));
    QN_TRY(qn_graph_build_ints(&shape, g, &hidden, 1));
    QN_TRY(qn_graph_build(&extra, g, &qn_op_Expand, QN_INPUTS(extra, shape), QN_PLAIN));
    QN_TRY(qn_graph_build(&zero, g, &qn_op_Expand, QN_INPUTS(zero, shape), QN_PLAIN));
    QN_TRY(gates(&b, import, 0, hidden));
    QN_TRY(qn_graph_build(out, g, &qn_op_Concat, QN_INPUTS(b, zero, zero, extra, zero),
                          QN_WITH(QN_A_INT("axis", 0))));
    return lead(out, import);
}

/* The cell's own weights of the three gates, [1, 3 H] in the order input, output, forget. */
static qn_status peepholes(qn_value **out, qn_tf_node *node)
{
    qn_value *i, *f, *o;
    *out = NULL;
    if (!qn_tf_attr_bool(node, "use_peephole", false))
        return QN_OK;
    QN_TRY(qn_tf_in(&i, node, 5));
    QN_TRY(qn_tf_in(&f, node, 6));
    QN_TRY(qn_tf_in(&o, node, 7));
    QN_TRY(qn_graph_build(out, &node->import->builder, &qn_op_Concat, QN_INPUTS(i, o, f),
                          QN_WITH(QN_A_INT("axis", 0))));
    return lead(out, node->import);
}

static qn_status states(qn_value **h, qn_value **c, qn_tf_node *node)
{
    QN_TRY(qn_tf_in(c, node, 2));
    QN_TRY(qn_tf_in(h, node, 3));
    QN_TRY(lead(h, node->import));
    return lead(c, node->import);
}

/* Models read only the last of the seven outputs, the states of all steps. */
qn_status qn_tf_block_lstm(qn_tf_node *node)
{
    qn_value *x, *all, *w, *r, *b, *p, *h, *c, *y;
    qn_tf_import *import = node->import;
    QN_TRY(qn_tf_in(&x, node, 1));
    QN_TRY(qn_tf_in(&all, node, 4));
    if (all->type.rank != 2 || all->type.dims[0].value < 0 || all->type.dims[1].value < GATES)
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "weights whose shape is not known");
    const int64_t hidden = all->type.dims[1].value / GATES;
    const int64_t rows = all->type.dims[0].value;
    if (hidden > rows)
        return qn_tf_fail(node, QN_E_FORMAT, "its weights have %lld rows", (long long)rows);
    if (qn_tf_attr_real(node, "cell_clip", 3) > 0)
        return qn_tf_lstm_steps(node, x, all);
    QN_TRY(weights(&w, all, import, 0, rows - hidden, hidden));
    QN_TRY(weights(&r, all, import, rows - hidden, rows, hidden));
    QN_TRY(bias(&b, node, 8, hidden));
    QN_TRY(peepholes(&p, node));
    QN_TRY(states(&h, &c, node));
    QN_TRY(qn_graph_build(&y, &import->builder, &qn_op_LSTM, QN_INPUTS(x, w, r, b, NULL, h, c, p),
                          QN_WITH(QN_A_INT("hidden_size", hidden))));
    QN_TRY(qn_tf_squeeze(&y, import, (const int64_t[]){1}, 1));
    return qn_tf_out(node, QN_TF_LSTM_STATES, y, QN_ORDER_OWN);
}
