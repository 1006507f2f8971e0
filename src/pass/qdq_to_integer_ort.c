/* Which nodes between D and Q have an integer operator among ONNX Runtime's CPU kernels. These
 * kernels have 8 bits and one integer type for all activations of a node. */
#include "pass/qdq_to_integer.h"

typedef enum behind {
    /* A Q must read the result */
    INTEGERS,
    /* There is also a kernel with a float result. */
    ANYTHING
} behind;

static const struct {
    const qn_op *op;
    behind behind;
} forms[] = {
    {&qn_op_Add, INTEGERS},
    {&qn_op_AveragePool, INTEGERS},
    {&qn_op_Concat, ANYTHING},
    {&qn_op_Conv, INTEGERS},
    {&qn_op_GlobalAveragePool, INTEGERS},
    {&qn_op_Gemm, ANYTHING},
    {&qn_op_MatMul, INTEGERS},
    {&qn_op_Mul, INTEGERS},
    {&qn_op_LeakyRelu, INTEGERS},
    {&qn_op_Sigmoid, INTEGERS},
    {&qn_op_Softmax, INTEGERS},
};

/* Operators that move numbers, but not those of 8 bits there. */
static const qn_op *const unmoved[] = {&qn_op_GlobalMaxPool, &qn_op_ReduceMax, &qn_op_ReduceMin,
                                       &qn_op_ReverseSequence};

static bool is_unmoved(const qn_op *op)
{
    for (size_t i = 0; i < QN_COUNT_OF(unmoved); i++) {
        if (unmoved[i] == op)
            return true;
    }
    return false;
}

/* Input i goes with the first one: it has its type, or is a product's constant and signed. */
static bool is_fit(const qn_node *node, int32_t i, const qn_quantized *x, qn_dtype first)
{
    const qn_dtype dtype = x->value->type.dtype;
    return dtype == first ||
           (i == 1 && node->op->quant == QN_QUANT_MAC && x->value->data && dtype == QN_INT8);
}

/* *found: what is an integer has 8 bits, of types that there are kernels for. */
static qn_status check_inputs(bool *found, qn_dtype *dtype, const qn_node *node)
{
    qn_quantized x;
    bool is_integer = false;
    *dtype = QN_UNDEFINED;
    *found = true;
    for (int32_t i = 0; i < node->n_in && *found; i++) {
        QN_TRY(qn_qdq_input(&is_integer, &x, node->in[i]));
        if (!is_integer || x.value->type.dtype == QN_INT32)
            continue;
        if (*dtype == QN_UNDEFINED)
            *dtype = x.value->type.dtype;
        *found = qn_quantized_is_byte(&x) && is_fit(node, i, &x, *dtype);
    }
    *found = *found && *dtype != QN_UNDEFINED;
    return QN_OK;
}

static qn_status check_output(bool *found, const qn_node *node, qn_dtype dtype, behind wanted)
{
    qn_quantized y;
    QN_TRY(qn_qdq_output(found, &y, node->out[0]));
    if (*found)
        *found = y.value->type.dtype == dtype;
    else
        *found = wanted == ANYTHING;
    return QN_OK;
}

qn_status qn_qdq_is_in_ort(bool *found, const qn_node *node)
{
    qn_dtype dtype = QN_UNDEFINED;
    *found = false;
    for (size_t i = 0; i < QN_COUNT_OF(forms); i++) {
        if (forms[i].op != node->op)
            continue;
        QN_TRY(check_inputs(found, &dtype, node));
        return *found ? check_output(found, node, dtype, forms[i].behind) : QN_OK;
    }
    if (qn_moves_numbers(node) && !is_unmoved(node->op))
        return check_inputs(found, &dtype, node);
    return QN_OK;
}

/* ---- Functions with an operator of their own ------------------------------------------------- */

static qn_status replace_function(bool *done, qn_node *node, const qn_op *op, size_t attrs_size)
{
    qn_qdq_unary p;
    QN_TRY(qn_qdq_find_unary(done, &p, node));
    return *done ? qn_qdq_replace_unary(node, &p, op, node->attrs, attrs_size) : QN_OK;
}

qn_status qn_qdq_ort_sigmoid(bool *done, qn_node *node)
{
    return replace_function(done, node, &qn_op_ms_QLinearSigmoid, 0);
}

qn_status qn_qdq_ort_leaky_relu(bool *done, qn_node *node)
{
    return replace_function(done, node, &qn_op_ms_QLinearLeakyRelu, node->op->attrs_size);
}
