/* conv -> function -> Q: the product is rounded once, behind the function. */
#include "ops/nn_attrs.h"
#include "ops/qfunction.h"
#include "pass/qdq_to_integer.h"
#include "pass/rewrite.h"
#include "pass/unary_function.h"

static const struct {
    const qn_op *op;
    qn_qfunction_kind kind;
} kinds[] = {
    {&qn_op_HardSigmoid, QN_QFUNCTION_HARD_SIGMOID},
    {&qn_op_HardSwish, QN_QFUNCTION_HARD_SWISH},
    {&qn_op_LeakyRelu, QN_QFUNCTION_LEAKY_RELU},
    {&qn_op_Sigmoid, QN_QFUNCTION_SIGMOID},
    {&qn_op_Swish, QN_QFUNCTION_SWISH},
};

static bool function_of(qn_qfunction_attrs *out, const qn_node *node)
{
    *out = (qn_qfunction_attrs){.alpha = 1, .gain = 1};
    for (size_t i = 0; i < QN_COUNT_OF(kinds); i++) {
        if (kinds[i].op != node->op)
            continue;
        out->kind = (int64_t)kinds[i].kind;
        if (node->op == &qn_op_HardSwish) {
            out->alpha = 1.0F / 6;
            out->beta = 0.5F;
        } else if (node->op != &qn_op_Sigmoid) {
            const qn_activation_attrs *a = node->attrs;
            out->alpha = a->alpha;
            out->beta = node->op == &qn_op_HardSigmoid ? a->beta : 0;
        }
        return true;
    }
    return false;
}

/* The last of the factors and sums with one number behind the function, which go into gain and
 * offset. */
static qn_node *take_chain(qn_qfunction_attrs *f, qn_node *node)
{
    for (;;) {
        qn_node *next = qn_value_only_user(node->out[0]);
        qn_value *other;
        double number;
        if (!next || (next->op != &qn_op_Mul && next->op != &qn_op_Add) ||
            qn_unary_function_slot(next) < 0 || !qn_match_binary(next, &other, &number))
            return node;
        if (next->op == &qn_op_Mul) {
            f->gain *= (float)number;
            f->offset *= (float)number;
        } else {
            f->offset += (float)number;
        }
        node = next;
    }
}

bool qn_qdq_fuses_activation(qn_node *node)
{
    qn_qfunction_attrs f;
    if (!function_of(&f, node))
        return false;
    const qn_node *next = qn_value_only_user(take_chain(&f, node)->out[0]);
    return !next || qn_unary_function_slot(next) < 0;
}

/* Results of products of integers that are float. */
static bool is_product(const qn_value *value)
{
    const qn_op *op = value->producer ? value->producer->op : NULL;
    return value->type.dtype == QN_FLOAT32 &&
           (op == &qn_op_qn_ConvIntegerToFloat || op == &qn_op_ms_QGemm || op == &qn_op_qn_QMatMul);
}

qn_status qn_qdq_activation(bool *done, qn_node *node)
{
    qn_qfunction_attrs f;
    qn_quantized y;
    if (!function_of(&f, node) || !is_product(node->in[0]) || !qn_value_only_user(node->in[0]))
        return QN_OK;
    qn_node *last = take_chain(&f, node);
    QN_TRY(qn_qdq_output(done, &y, last->out[0]));
    *done = *done && y.params.axis < 0 && qn_quantized_is_byte(&y);
    if (!*done)
        return QN_OK;
    qn_node *before = NULL;
    if (last != node)
        before = last->in[qn_unary_function_slot(last)]->producer;
    qn_value *const in[3] = {node->in[0], y.scale, y.zero};
    QN_TRY(qn_qdq_replace(last, &y, &(qn_integer_node){&qn_op_qn_QFunction, in, 3, &f, sizeof f}));
    if (before)
        qn_unary_function_remove(before, node);
    return QN_OK;
}
