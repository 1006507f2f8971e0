/* BlockLSTM step by step: its cells are clipped, where ONNX's LSTM clips what goes into gates. */
#include "import/tensorflow/lstm.h"

enum { GATES = 4, MOST_STEPS = 1024 };

typedef struct steps {
    qn_tf_import *import;
    qn_graph_builder *b;
    qn_tf_node *node;
    bool peephole;
    qn_value *weights, *bias, *extra, *low, *high;
    /* Weights of the cell for the gates input, forget, output. */
    qn_value *own[3];
    /* The state of the cell and of the layer */
    qn_value *cell, *state;
} steps;

static qn_status make(qn_value **out, const steps *s, const qn_op *op, qn_value *x, qn_value *y)
{
    return y ? qn_graph_build(out, s->b, op, QN_INPUTS(x, y), QN_PLAIN)
             : qn_graph_build(out, s->b, op, QN_INPUTS(x), QN_PLAIN);
}

/* sigmoid(x + cell * weight), the latter where the layer has it. */
static qn_status gate(qn_value **out, const steps *s, qn_value *x, int which)
{
    qn_value *seen;
    if (s->peephole) {
        QN_TRY(make(&seen, s, &qn_op_Mul, s->cell, s->own[which]));
        QN_TRY(make(&x, s, &qn_op_Add, x, seen));
    }
    return make(out, s, &qn_op_Sigmoid, x, NULL);
}

/* Columns of the weights: input, new cell, forget, output. */
static qn_status step(steps *s, qn_value *x)
{
    qn_value *parts[GATES], *in, *forget, *output, *fresh, *all;
    QN_TRY(qn_graph_build(&all, s->b, &qn_op_Concat, QN_INPUTS(x, s->state),
                          QN_WITH(QN_A_INT("axis", 1))));
    QN_TRY(make(&all, s, &qn_op_MatMul, all, s->weights));
    QN_TRY(make(&all, s, &qn_op_Add, all, s->bias));
    QN_TRY(qn_graph_build_several(parts, GATES, s->b, &qn_op_Split, QN_INPUTS(all),
                                  QN_WITH(QN_A_INT("axis", 1), QN_A_INT("num_outputs", GATES))));
    QN_TRY(make(&parts[2], s, &qn_op_Add, parts[2], s->extra));
    QN_TRY(gate(&in, s, parts[0], 0));
    QN_TRY(gate(&forget, s, parts[2], 1));
    QN_TRY(make(&fresh, s, &qn_op_Tanh, parts[1], NULL));
    QN_TRY(make(&fresh, s, &qn_op_Mul, fresh, in));
    QN_TRY(make(&s->cell, s, &qn_op_Mul, s->cell, forget));
    QN_TRY(make(&s->cell, s, &qn_op_Add, s->cell, fresh));
    QN_TRY(
        qn_graph_build(&s->cell, s->b, &qn_op_Clip, QN_INPUTS(s->cell, s->low, s->high), QN_PLAIN));
    QN_TRY(gate(&output, s, parts[3], 2));
    QN_TRY(make(&fresh, s, &qn_op_Tanh, s->cell, NULL));
    return make(&s->state, s, &qn_op_Mul, fresh, output);
}

static qn_status prepare(steps *s)
{
    const qn_tf_node *node = s->node;
    const double clip = qn_tf_attr_real(node, "cell_clip", 3);
    s->peephole = qn_tf_attr_bool(node, "use_peephole", false);
    QN_TRY(qn_tf_in(&s->cell, node, 2));
    QN_TRY(qn_tf_in(&s->state, node, 3));
    for (size_t i = 0; i < 3; i++)
        QN_TRY(qn_tf_in(&s->own[i], node, 5 + i));
    QN_TRY(qn_tf_in(&s->bias, node, 8));
    const qn_dtype dtype = s->bias->type.dtype;
    QN_TRY(qn_tf_number(&s->extra, s->import, qn_tf_attr_real(node, "forget_bias", 1), dtype));
    QN_TRY(qn_tf_number(&s->low, s->import, -clip, dtype));
    return qn_tf_number(&s->high, s->import, clip, dtype);
}

qn_status qn_tf_lstm_steps(qn_tf_node *node, qn_value *x, qn_value *weights)
{
    steps s = {.import = node->import, .b = &node->import->builder, .node = node};
    qn_value *states[MOST_STEPS], *at, *row, *y;
    const int64_t count = x->type.rank == 3 ? x->type.dims[0].value : -1;
    if (count < 1 || count > MOST_STEPS)
        return qn_tf_fail(node, QN_E_UNSUPPORTED, "clipped cells over %lld steps",
                          (long long)count);
    s.weights = weights;
    QN_TRY(prepare(&s));
    for (int64_t i = 0; i < count; i++) {
        QN_TRY(qn_tf_number(&at, s.import, (double)i, QN_INT64));
        QN_TRY(make(&row, &s, &qn_op_Gather, x, at));
        QN_TRY(step(&s, row));
        states[i] = s.state;
        QN_TRY(qn_tf_unsqueeze(&states[i], s.import, (const int64_t[]){0}, 1));
    }
    QN_TRY(qn_graph_build(&y, s.b, &qn_op_Concat, (qn_graph_build_inputs){states, (size_t)count},
                          QN_WITH(QN_A_INT("axis", 0))));
    return qn_tf_out(node, QN_TF_LSTM_STATES, y, QN_ORDER_OWN);
}
