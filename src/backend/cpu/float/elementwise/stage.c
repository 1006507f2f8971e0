/* Element-wise operators as stages of a chain: which function each one is. */
#include "backend/cpu/float/elementwise/stage.h"

#include <math.h>
#include <string.h>

#include "ops/nn_attrs.h"

/* A constant of one float. */
static bool number_of(float *out, const qn_value *value)
{
    const qn_tensor *data = value ? value->data : NULL;
    if (!data || data->dtype != QN_FLOAT32 || qn_tensor_count(data) != 1)
        return false;
    memcpy(out, data->data, sizeof *out);
    return true;
}

/* ---- One input ------------------------------------------------------------------------------- */

typedef bool set_fn(qn_stage *s, const qn_node *node);

static bool set_nothing(qn_stage *s, const qn_node *node)
{
    (void)s;
    (void)node;
    return true;
}

static bool set_alpha_beta(qn_stage *s, const qn_node *node)
{
    const qn_activation_attrs *a = node->attrs;
    s->a = a->alpha;
    s->b = a->beta;
    return true;
}

static bool set_alpha_gamma(qn_stage *s, const qn_node *node)
{
    const qn_activation_attrs *a = node->attrs;
    s->a = a->alpha;
    s->b = a->gamma;
    return true;
}

static bool set_hard_swish(qn_stage *s, const qn_node *node)
{
    (void)node;
    s->a = 1.0f / 6;
    s->b = 0.5f;
    return true;
}

static bool set_gelu(qn_stage *s, const qn_node *node)
{
    const qn_gelu_attrs *a = node->attrs;
    s->fn = a->approximate == QN_GELU_TANH ? QN_FN_GELU_TANH : QN_FN_GELU_ERF;
    return true;
}

static bool set_clip(qn_stage *s, const qn_node *node)
{
    const qn_value *low = node->n_in > 1 ? node->in[1] : NULL;
    const qn_value *high = node->n_in > 2 ? node->in[2] : NULL;
    s->a = -INFINITY;
    s->b = INFINITY;
    return (!low || number_of(&s->a, low)) && (!high || number_of(&s->b, high));
}

static bool set_one(qn_stage *s, const qn_node *node)
{
    (void)node;
    s->a = 1;
    return true;
}

static bool set_shrink(qn_stage *s, const qn_node *node)
{
    const qn_shrink_attrs *a = node->attrs;
    s->a = a->lambd;
    s->b = a->bias;
    return true;
}

/* Powers that are a product or a quotient. */
static bool set_power(qn_stage *s, const qn_node *node)
{
    static const struct {
        float exponent;
        qn_fn fn;
    } powers[] = {{-1, QN_FN_DIVIDE}, {1, QN_FN_SCALE}, {2, QN_FN_SQUARE}, {3, QN_FN_CUBE}};
    float exponent;
    if (!number_of(&exponent, node->in[1]))
        return false;
    s->a = 1;
    for (size_t i = 0; i < QN_COUNT_OF(powers); i++) {
        s->fn = powers[i].fn;
        if (powers[i].exponent == exponent)
            return true;
    }
    return false;
}

static const struct unary_row {
    const qn_op *op;
    qn_fn fn;
    set_fn *set;
} unary_rows[] = {
    {&qn_op_Abs, QN_FN_ABS, set_nothing},
    {&qn_op_Acos, QN_FN_ACOS, set_nothing},
    {&qn_op_Acosh, QN_FN_ACOSH, set_nothing},
    {&qn_op_Asin, QN_FN_ASIN, set_nothing},
    {&qn_op_Asinh, QN_FN_ASINH, set_nothing},
    {&qn_op_Atan, QN_FN_ATAN, set_nothing},
    {&qn_op_Atanh, QN_FN_ATANH, set_nothing},
    {&qn_op_Ceil, QN_FN_CEIL, set_nothing},
    {&qn_op_Celu, QN_FN_CELU, set_alpha_beta},
    {&qn_op_Clip, QN_FN_CLIP, set_clip},
    {&qn_op_Cos, QN_FN_COS, set_nothing},
    {&qn_op_Cosh, QN_FN_COSH, set_nothing},
    {&qn_op_Elu, QN_FN_ELU, set_alpha_beta},
    {&qn_op_Erf, QN_FN_ERF, set_nothing},
    {&qn_op_Exp, QN_FN_EXP, set_nothing},
    {&qn_op_Floor, QN_FN_FLOOR, set_nothing},
    {&qn_op_Gelu, QN_FN_GELU_ERF, set_gelu},
    {&qn_op_HardSigmoid, QN_FN_HARD_SIGMOID, set_alpha_beta},
    {&qn_op_HardSwish, QN_FN_HARD_SWISH, set_hard_swish},
    {&qn_op_LeakyRelu, QN_FN_LEAKY_RELU, set_alpha_beta},
    {&qn_op_Log, QN_FN_LOG, set_nothing},
    {&qn_op_Mish, QN_FN_MISH, set_nothing},
    {&qn_op_Neg, QN_FN_NEGATE, set_nothing},
    {&qn_op_Pow, QN_FN_SQUARE, set_power},
    {&qn_op_Reciprocal, QN_FN_DIVIDE, set_one},
    {&qn_op_Relu, QN_FN_RELU, set_nothing},
    {&qn_op_Round, QN_FN_ROUND, set_nothing},
    {&qn_op_Selu, QN_FN_SELU, set_alpha_gamma},
    {&qn_op_Shrink, QN_FN_SHRINK, set_shrink},
    {&qn_op_Sigmoid, QN_FN_SIGMOID, set_nothing},
    {&qn_op_Sign, QN_FN_SIGN, set_nothing},
    {&qn_op_Sin, QN_FN_SIN, set_nothing},
    {&qn_op_Sinh, QN_FN_SINH, set_nothing},
    {&qn_op_Softplus, QN_FN_SOFTPLUS, set_nothing},
    {&qn_op_Softsign, QN_FN_SOFTSIGN, set_nothing},
    {&qn_op_Sqrt, QN_FN_SQRT, set_nothing},
    {&qn_op_Swish, QN_FN_SILU, set_alpha_beta},
    {&qn_op_Tan, QN_FN_TAN, set_nothing},
    {&qn_op_Tanh, QN_FN_TANH, set_nothing},
    {&qn_op_ThresholdedRelu, QN_FN_THRESHOLD, set_alpha_beta},
};

/* ---- Two inputs ------------------------------------------------------------------------------ */

/* The function where x is the first input and where it is the second, with a tensor and with one
 * number (parameter a) on the other side. QN_FN_COUNT: none. */
static const struct binary_row {
    const qn_op *op;
    qn_fn first, second, first_number, second_number;
} binary_rows[] = {
    {&qn_op_Add, QN_FN_ADD, QN_FN_ADD, QN_FN_SHIFT, QN_FN_SHIFT},
    {&qn_op_Sub, QN_FN_SUB, QN_FN_SUB_REVERSED, QN_FN_SHIFT, QN_FN_SUBTRACT_FROM},
    {&qn_op_Mul, QN_FN_MUL, QN_FN_MUL, QN_FN_SCALE, QN_FN_SCALE},
    {&qn_op_Div, QN_FN_DIV, QN_FN_DIV_REVERSED, QN_FN_DIVIDE_BY, QN_FN_DIVIDE},
    {&qn_op_Max, QN_FN_MAX, QN_FN_MAX, QN_FN_COUNT, QN_FN_COUNT},
    {&qn_op_Min, QN_FN_MIN, QN_FN_MIN, QN_FN_COUNT, QN_FN_COUNT},
    {&qn_op_PRelu, QN_FN_PRELU, QN_FN_COUNT, QN_FN_LEAKY_RELU, QN_FN_COUNT},
    {&qn_op_qn_ReluGrad, QN_FN_RELU_GRAD, QN_FN_RELU_GRAD_REVERSED, QN_FN_COUNT, QN_FN_COUNT},
    {&qn_op_Sum, QN_FN_ADD, QN_FN_ADD, QN_FN_COUNT, QN_FN_COUNT},
};

static bool binary_stage(qn_node_stage *out, const struct binary_row *row, const qn_node *node,
                         const qn_value *x)
{
    if (node->n_in != 2)
        return false;
    const bool is_first = node->in[0] == x;
    qn_value *other = node->in[is_first ? 1 : 0];
    const qn_fn with_number = is_first ? row->first_number : row->second_number;
    float number;
    if (with_number != QN_FN_COUNT && number_of(&number, other)) {
        out->stage.fn = with_number;
        out->stage.a = node->op == &qn_op_Sub && is_first ? -number : number;
        return true;
    }
    out->stage.fn = is_first ? row->first : row->second;
    out->stage.operand = 0;
    out->other = other;
    return out->stage.fn != QN_FN_COUNT;
}

bool qn_stage_of(qn_node_stage *out, const qn_node *node, const qn_value *x)
{
    *out = (qn_node_stage){.stage = {.operand = -1}};
    if (node->n_out != 1 || !node->out[0] || node->out[0]->type.dtype != QN_FLOAT32)
        return false;
    for (size_t i = 0; i < QN_COUNT_OF(unary_rows); i++) {
        if (unary_rows[i].op == node->op) {
            out->stage.fn = unary_rows[i].fn;
            return node->in[0] == x && unary_rows[i].set(&out->stage, node);
        }
    }
    for (size_t i = 0; i < QN_COUNT_OF(binary_rows); i++) {
        if (binary_rows[i].op == node->op)
            return binary_stage(out, &binary_rows[i], node, x);
    }
    return false;
}
