/* Activation functions with parameters: Celu, Elu, Gelu, HardSigmoid, LeakyRelu, Selu, Shrink,
 * Swish, ThresholdedRelu; and the predicate IsInf. */
#include <math.h>

#include "base/real.h"
#include "ops/elementwise.h"
#include "ops/nn_attrs.h"
#include "ops/versions.h"

static const qn_type_rule celu_types[] = {{28, QN_SET_FLOAT & ~QN_SET(QN_FLOAT32)}};
static const qn_type_rule bfloat16_16[] = {{16, QN_SET(QN_BFLOAT16)}};

static const qn_port float_in[] = {{"X", 'T', QN_SET_FLOAT, 0}};
static const qn_port float_out[] = {{"Y", 'T', QN_SET_FLOAT, 0}};

static qn_status infer_same(qn_infer *self)
{
    qn_infer_copy(self, 0, 0);
    return QN_OK;
}

/* ---- Functions: a is the attribute struct ---------------------------------------------------- */

#define F64(name, type, expression)                                                                \
    static double name(double x, const void *attrs)                                                \
    {                                                                                              \
        const type *a = attrs;                                                                     \
        return expression;                                                                         \
    }
#define ACT(name, expression) F64(name, qn_activation_attrs, expression)

static double normal_cdf(double x)
{
    return 0.5 * (1 + qn_real_erf(x * 0.70710678118654752440)); /* 1 / sqrt(2) */
}

static double gelu_tanh(double x)
{
    const double root = 0.79788456080286535588; /* sqrt(2 / pi) */
    return 0.5 * x * (1 + qn_real_tanh(root * (x + 0.044715 * x * x * x)));
}

ACT(celu, x > 0 ? x : (double)a->alpha * qn_real_expm1(x / (double)a->alpha))
ACT(elu, x >= 0 ? x : (double)a->alpha * qn_real_expm1(x))
ACT(hard_sigmoid, isnan(x) ? x : fmax(0, fmin(1, (double)a->alpha *x + (double)a->beta)))
ACT(leaky_relu, x >= 0 ? x : (double)a->alpha * x)
ACT(selu, (double)a->gamma *(x > 0 ? x : (double)a->alpha * qn_real_expm1(x)))
ACT(swish, x / (1 + qn_real_exp(-(double)a->alpha * x)))
ACT(thresholded_relu, x > (double)a->alpha || isnan(x) ? x : 0)
F64(gelu, qn_gelu_attrs, a->approximate == QN_GELU_TANH ? gelu_tanh(x) : x * normal_cdf(x))

/* ---- Operators ------------------------------------------------------------------------------- */

#define ACTIVATION(Name, f, SINCE, RULES, BRIEF)                                                   \
    static qn_status Name##_eval(qn_eval *self)                                                    \
    {                                                                                              \
        return qn_eval_unary(self, f, NULL);                                                       \
    }                                                                                              \
    const qn_op qn_op_##Name = {.name = #Name,                                                     \
                                .domain = "",                                                      \
                                .since = SINCE,                                                    \
                                QN_PORTS(in, float_in),                                            \
                                QN_PORTS(out, float_out),                                          \
                                QN_ATTRS(Name##_specs, qn_activation_attrs),                       \
                                RULES,                                                             \
                                .flags = QN_OP_ELEMENTWISE,                                        \
                                .quant = QN_QUANT_TABLE,                                           \
                                .infer = infer_same,                                               \
                                .eval = Name##_eval,                                               \
                                .brief = BRIEF};
#define ALPHA(...) QN_FLOAT_ATTR(qn_activation_attrs, alpha, __VA_ARGS__)
#define BETA(...) QN_FLOAT_ATTR(qn_activation_attrs, beta, __VA_ARGS__)
#define GAMMA(...) QN_FLOAT_ATTR(qn_activation_attrs, gamma, __VA_ARGS__)

static const qn_attr_spec Celu_specs[] = {ALPHA(1)};
static const qn_attr_spec Elu_specs[] = {ALPHA(1)};
static const qn_attr_spec HardSigmoid_specs[] = {ALPHA(0.2f), BETA(0.5f)};
static const qn_attr_spec LeakyRelu_specs[] = {ALPHA(0.01f)};
static const qn_attr_spec Swish_specs[] = {ALPHA(1)};
static const qn_attr_spec ThresholdedRelu_specs[] = {ALPHA(1)};

#define SELU_ALPHA 1.67326319217681884765625f
#define SELU_GAMMA 1.05070102214813232421875f
static const qn_attr_spec Selu_specs[] = {ALPHA(SELU_ALPHA), GAMMA(SELU_GAMMA)};

/* Before opset 6 the defaults were shorter numbers. */
static qn_status selu_upgrade(qn_node **node)
{
    qn_activation_attrs *a = (*node)->attrs;
    if (a->alpha == SELU_ALPHA)
        a->alpha = 1.6732f;
    if (a->gamma == SELU_GAMMA)
        a->gamma = 1.0507f;
    return QN_OK;
}

/* The writer leaves out a default, which opset 5 would read as the shorter number. */
static qn_status selu_downgrade(qn_node **node)
{
    const qn_activation_attrs *a = (*node)->attrs;
    if (a->alpha == SELU_ALPHA || a->gamma == SELU_GAMMA)
        return qn_node_fail(*node, QN_E_UNSUPPORTED, "before opset 6 its defaults were others");
    return QN_OK;
}

static const qn_version_rule selu_versions[] = {{6, selu_upgrade, selu_downgrade}};

ACTIVATION(Celu, celu, 12, QN_TYPE_RULES(celu_types), "x, below 0: alpha * (e^(x / alpha) - 1)")
ACTIVATION(Elu, elu, 1, QN_TYPE_RULES(qn_bfloat16_22), "x, below 0: alpha * (e^x - 1)")
ACTIVATION(HardSigmoid, hard_sigmoid, 1, QN_TYPE_RULES(qn_bfloat16_22),
           "clip(alpha * x + beta, 0, 1)")
ACTIVATION(LeakyRelu, leaky_relu, 1, QN_TYPE_RULES(bfloat16_16), "x, below 0: alpha * x")
#define SELU_RULES QN_TYPE_RULES(qn_bfloat16_22), QN_VERSIONS(selu_versions)
ACTIVATION(Selu, selu, 1, SELU_RULES, "gamma * (x, below 0: alpha * (e^x - 1))")
ACTIVATION(Swish, swish, 24, .n_type_rules = 0, "x * sigmoid(alpha * x)")
ACTIVATION(ThresholdedRelu, thresholded_relu, 10, QN_TYPE_RULES(qn_bfloat16_22),
           "x, or 0 up to alpha")

static const char *const gelu_words[] = {"none", "tanh", NULL};
static const qn_attr_spec gelu_specs[] = {
    QN_ENUM_ATTR(qn_gelu_attrs, approximate, QN_GELU_ERF, gelu_words)};

static qn_status gelu_eval(qn_eval *self)
{
    return qn_eval_unary(self, gelu, NULL);
}

const qn_op qn_op_Gelu = {.name = "Gelu",
                          .domain = "",
                          .since = 20,
                          QN_PORTS(in, float_in),
                          QN_PORTS(out, float_out),
                          QN_ATTRS(gelu_specs, qn_gelu_attrs),
                          .flags = QN_OP_ELEMENTWISE,
                          .quant = QN_QUANT_TABLE,
                          .infer = infer_same,
                          .eval = gelu_eval,
                          .brief = "x times the normal distribution's probability up to x"};

/* ---- Shrink ---------------------------------------------------------------------------------- */

static const qn_attr_spec shrink_specs[] = {QN_FLOAT_ATTR(qn_shrink_attrs, bias, 0),
                                            QN_FLOAT_ATTR(qn_shrink_attrs, lambd, 0.5f)};
static const qn_port number_in[] = {{"input", 'T', QN_SET_NUMBER, 0}};
static const qn_port number_out[] = {{"output", 'T', QN_SET_NUMBER, 0}};

static double shrink(double x, const void *attrs)
{
    const qn_shrink_attrs *a = attrs;
    if (x < -(double)a->lambd)
        return x + (double)a->bias;
    return x > (double)a->lambd ? x - (double)a->bias : 0;
}

static qn_status shrink_eval(qn_eval *self)
{
    return qn_eval_unary(self, shrink, NULL);
}

const qn_op qn_op_Shrink = {.name = "Shrink",
                            .domain = "",
                            .since = 9,
                            QN_PORTS(in, number_in),
                            QN_PORTS(out, number_out),
                            QN_ATTRS(shrink_specs, qn_shrink_attrs),
                            .flags = QN_OP_ELEMENTWISE,
                            .quant = QN_QUANT_TABLE,
                            .infer = infer_same,
                            .eval = shrink_eval,
                            .brief = "moves x towards 0 by bias; 0 within lambd"};

/* ---- IsInf ----------------------------------------------------------------------------------- */

static const qn_attr_spec isinf_specs[] = {QN_INT_ATTR(qn_isinf_attrs, detect_negative, 1),
                                           QN_INT_ATTR(qn_isinf_attrs, detect_positive, 1)};
static const qn_type_rule isinf_types[] = {
    {20, QN_SET(QN_FLOAT16) | QN_SET(QN_BFLOAT16) | QN_SET_FLOAT8}};
static const qn_port isinf_in[] = {{"X", 'T', QN_SET_FLOAT | QN_SET_FLOAT8, 0}};
static const qn_port bool_out[] = {{"Y", '\0', QN_SET_BOOL, 0}};

static qn_status isinf_infer(qn_infer *self)
{
    qn_infer_copy_dims(self, 0, 0, QN_BOOL);
    return QN_OK;
}

F64(is_inf, qn_isinf_attrs, isinf(x) && (x < 0 ? a->detect_negative : a->detect_positive))

static qn_status isinf_eval(qn_eval *self)
{
    return qn_eval_unary(self, is_inf, NULL);
}

const qn_op qn_op_IsInf = {.name = "IsInf",
                           .domain = "",
                           .since = 10,
                           QN_PORTS(in, isinf_in),
                           QN_PORTS(out, bool_out),
                           QN_ATTRS(isinf_specs, qn_isinf_attrs),
                           QN_TYPE_RULES(isinf_types),
                           .flags = QN_OP_ELEMENTWISE,
                           .quant = QN_QUANT_FLOAT,
                           .infer = isinf_infer,
                           .eval = isinf_eval,
                           .brief = "x is infinite"};
