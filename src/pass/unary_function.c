/* Functions of one number: recognized, evaluated and removed. */
#include "pass/unary_function.h"

#include "ops/eval.h"
#include "pass/rewrite.h"

/* Operators of two that are a function of one where the other is a number; `sides`: which may be
 * the function's. */
static const struct {
    const qn_op *op;
    int32_t sides;
} pairs[] = {{&qn_op_Add, 2}, {&qn_op_Sub, 2}, {&qn_op_Mul, 2},
             {&qn_op_Div, 1}, {&qn_op_Pow, 1}, {&qn_op_PRelu, 1}};

static int32_t sides_of(const qn_op *op)
{
    for (size_t i = 0; i < QN_COUNT_OF(pairs); i++) {
        if (pairs[i].op == op)
            return pairs[i].sides;
    }
    return 0;
}

/* The constant side has one number, and the result the shape of the other side. Exponents may be
 * integers. */
static bool is_number_for(const qn_op *op, const qn_value *constant, const qn_value *x)
{
    const qn_tensor *data = constant ? constant->data : NULL;
    return data && x && !x->data && (op == &qn_op_Pow || qn_dtype_is_float(data->dtype)) &&
           qn_dtype_is_float(x->type.dtype) && qn_tensor_count(data) == 1 && qn_match_fits(data, x);
}

int32_t qn_unary_function_slot(const qn_node *node)
{
    if (node->n_in == 1 && node->n_out == 1 && node->in[0] && !node->in[0]->data &&
        node->op->quant == QN_QUANT_TABLE)
        return node->op->in[0].types & QN_SET(QN_FLOAT64) ? 0 : -1;
    for (int32_t slot = 0; slot < sides_of(node->op); slot++) {
        if (is_number_for(node->op, node->in[1 - slot], node->in[slot]))
            return slot;
    }
    return -1;
}

qn_status qn_unary_function_eval(qn_tensor **out, qn_arena *arena, const qn_node *node,
                                 const qn_tensor *x)
{
    const int32_t slot = qn_unary_function_slot(node);
    const qn_type type = qn_type_tensor(x->dtype, 0, NULL);
    const qn_tensor *in[2] = {NULL, NULL};
    qn_context *ctx = node->graph->ctx;
    in[slot] = x;
    if (node->n_in == 2) {
        qn_tensor *number;
        QN_TRY(qn_tensor_create(&number, ctx, arena, &type));
        const double c = qn_tensor_f64(node->in[1 - slot]->data, 0);
        if (x->dtype == QN_FLOAT64)
            *(double *)number->data = c;
        else
            *(float *)number->data = (float)c;
        in[1 - slot] = number;
    }
    return qn_node_eval(out, ctx, arena, node, in);
}

void qn_unary_function_remove(qn_node *node, const qn_node *first)
{
    for (bool more = true; more && node;) {
        qn_node *before = node->in[qn_unary_function_slot(node)]->producer;
        more = node != first;
        qn_node_remove(node);
        node = before;
    }
}
