/* Element-wise operators that have no integers of their own, as those that have: a Sum is Adds from
 * left to right, a Div by a constant a Mul, and PRelu with one slope LeakyRelu. 1 / c is rounded,
 * so this is for quantizing only. */
#include <math.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/nn_attrs.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* ---- Sum ------------------------------------------------------------------------------------- */

static bool is_sum(const qn_node *node)
{
    return node->n_in > 1;
}

static qn_status sum_to_adds(qn_node *node)
{
    qn_value *pair[2] = {node->in[0], NULL};
    qn_node *add;
    for (int32_t i = 1; i + 1 < node->n_in; i++) {
        const qn_node_spec spec = {.op = &qn_op_Add,
                                   .name = node->name,
                                   .before = node,
                                   .in = {pair[0], node->in[i]},
                                   .n_in = 2};
        QN_TRY(qn_node_build(&add, node->graph, &spec));
        QN_TRY(qn_node_infer(add));
        pair[0] = add->out[0];
    }
    pair[1] = node->in[node->n_in - 1];
    QN_TRY(qn_rewrite_begin(&add, node, &qn_op_Add, pair, 2));
    return qn_rewrite_finish(add, node);
}

/* ---- Div by a constant ----------------------------------------------------------------------- */

/* All numbers are, and what they are divided into 1 is too. */
static bool has_reciprocals(const qn_tensor *c)
{
    for (int64_t i = 0; i < qn_tensor_count(c); i++) {
        const float x = (float)qn_tensor_f64(c, i);
        if (!isnormal(x) || !isnormal(1 / x))
            return false;
    }
    return true;
}

static bool divides_by_constant(const qn_node *node)
{
    const qn_tensor *c = node->in[1]->data;
    return c && c->dtype == QN_FLOAT32 && !node->in[0]->data && has_reciprocals(c);
}

static qn_status multiply_instead(qn_node *node)
{
    qn_node *made, *fresh;
    const qn_node_spec spec = {.op = &qn_op_Reciprocal,
                               .name = node->name,
                               .before = node,
                               .in = {node->in[1]},
                               .n_in = 1};
    QN_TRY(qn_node_build(&made, node->graph, &spec));
    qn_value *const pair[2] = {node->in[0], made->out[0]};
    QN_TRY(qn_rewrite_fold(made));
    QN_TRY(qn_rewrite_begin(&fresh, node, &qn_op_Mul, pair, 2));
    return qn_rewrite_finish(fresh, node);
}

/* ---- PRelu with one slope -------------------------------------------------------------------- */

static bool has_one_slope(const qn_node *node)
{
    double slope;
    return qn_match_number(node->in[1], &slope) && qn_dtype_is_float(node->in[1]->data->dtype);
}

static qn_status to_leaky_relu(qn_node *node)
{
    double slope = 0;
    qn_node *fresh;
    (void)qn_match_number(node->in[1], &slope);
    QN_TRY(qn_rewrite_begin(&fresh, node, &qn_op_LeakyRelu, node->in, 1));
    ((qn_activation_attrs *)fresh->attrs)->alpha = (float)slope;
    return qn_rewrite_finish(fresh, node);
}

/* ---- The pass -------------------------------------------------------------------------------- */

static const struct {
    const qn_op *op;
    bool (*fits)(const qn_node *node);
    qn_status (*replace)(qn_node *node);
} rules[] = {
    {&qn_op_Div, divides_by_constant, multiply_instead},
    {&qn_op_PRelu, has_one_slope, to_leaky_relu},
    {&qn_op_Sum, is_sum, sum_to_adds},
};

static qn_status canonicalize_elements(qn_pass_context *self)
{
    for (qn_node *node = self->graph->first, *next; node; node = next) {
        next = node->next;
        for (size_t i = 0; i < QN_COUNT_OF(rules); i++) {
            if (rules[i].op != node->op || !rules[i].fits(node))
                continue;
            QN_TRY(rules[i].replace(node));
            self->changes++;
            break;
        }
    }
    return QN_OK;
}

const qn_pass qn_pass_canonicalize_elements = {
    "canonicalize-elements",
    "makes Sum Adds, Div by a constant Mul, and PRelu with one slope LeakyRelu",
    canonicalize_elements};
