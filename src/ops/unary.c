/* Functions of one tensor, element by element, without attributes. */
#include <math.h>

#include "base/real.h"
#include "ops/elementwise.h"
#include "ops/infer.h"
#include "ops/versions.h"

/* Element types that came later. */
static const qn_type_rule bfloat16_13[] = {{13, QN_SET(QN_BFLOAT16)}};
static const qn_type_rule integers_6[] = {{6, QN_SET_INT}, {13, QN_SET(QN_BFLOAT16)}};
static const qn_type_rule integers_14[] = {{13, QN_SET(QN_BFLOAT16)}, {14, QN_SET_INT}};
static const qn_type_rule small_floats_20[] = {{13, QN_SET(QN_BFLOAT16)}, {20, QN_SET_FLOAT8}};

/* ---- Functions of doubles -------------------------------------------------------------------- */

#define F64(name, expression)                                                                      \
    static double name##_f64(double x, const void *attrs)                                          \
    {                                                                                              \
        (void)attrs;                                                                               \
        return expression;                                                                         \
    }
#define I64(name, expression)                                                                      \
    static int64_t name##_i64(int64_t x, const void *attrs)                                        \
    {                                                                                              \
        (void)attrs;                                                                               \
        return expression;                                                                         \
    }

F64(abs, fabs(x))
F64(acos, acos(x))
F64(acosh, acosh(x))
F64(asin, asin(x))
F64(asinh, asinh(x))
F64(atan, atan(x))
F64(atanh, atanh(x))
F64(ceil, ceil(x))
F64(cos, cos(x))
F64(cosh, cosh(x))
F64(erf, qn_real_erf(x))
F64(exp, qn_real_exp(x))
F64(floor, floor(x))
F64(hardswish, x *fmax(0, fmin(1, x / 6 + 0.5)))
F64(isnan, isnan(x))
F64(log, qn_real_log(x))
F64(mish, x *qn_real_tanh(qn_real_softplus(x)))
F64(neg, -x)
F64(reciprocal, 1 / x)
F64(relu, x > 0 || isnan(x) ? x : 0)
F64(round, nearbyint(x))
F64(sigmoid, isnan(x) ? x : qn_real_sigmoid(x))
F64(sign, isnan(x) ? x : (x > 0) - (x < 0))
F64(sin, sin(x))
F64(sinh, sinh(x))
F64(softplus, isnan(x) ? x : qn_real_softplus(x))
F64(softsign, isinf(x) ? copysign(1, x) : x / (1 + fabs(x)))
F64(sqrt, sqrt(x))
F64(tan, tan(x))
F64(tanh, qn_real_tanh(x))

I64(abs, x < 0 ? (int64_t)(0 - (uint64_t)x) : x)
I64(bitwise_not, ~x)
I64(neg, (int64_t)(0 - (uint64_t)x))
I64(not, !x)
I64(relu, x > 0 ? x : 0)
I64(same, x)
I64(sign, (x > 0) - (x < 0))
I64(positive, x != 0)

/* ---- Operators ------------------------------------------------------------------------------- */

static qn_status infer_same(qn_infer *self)
{
    qn_infer_copy(self, 0, 0);
    return QN_OK;
}

static qn_status infer_bool(qn_infer *self)
{
    qn_infer_copy_dims(self, 0, 0, QN_BOOL);
    return QN_OK;
}

/* Small integer tensors whose contents are known keep them known. */
static qn_status infer_neg(qn_infer *self)
{
    infer_same(self);
    return qn_infer_unary_elements(self, neg_i64);
}

static qn_status infer_abs(qn_infer *self)
{
    infer_same(self);
    return qn_infer_unary_elements(self, abs_i64);
}

#define EVAL(Name, F, G)                                                                           \
    static qn_status Name##_eval(qn_eval *self)                                                    \
    {                                                                                              \
        return qn_eval_unary(self, F, G);                                                          \
    }

static bool is_unsigned(const qn_eval *self)
{
    return qn_dtype_get(self->in[0]->dtype)->kind == QN_KIND_UINT;
}

static qn_status Abs_eval(qn_eval *self)
{
    return qn_eval_unary(self, abs_f64, is_unsigned(self) ? same_i64 : abs_i64);
}

static qn_status Sign_eval(qn_eval *self)
{
    return qn_eval_unary(self, sign_f64, is_unsigned(self) ? positive_i64 : sign_i64);
}

/* One row makes the ports and the operator. */
#define UNARY(Name, SINCE, TYPES, OUT, RULES, INFER, QUANT, BRIEF)                                 \
    static const qn_port Name##_in[] = {{"X", 'T', TYPES, 0}};                                     \
    static const qn_port Name##_out[] = {{"Y", OUT, 0}};                                           \
    const qn_op qn_op_##Name = {.name = #Name,                                                     \
                                .domain = "",                                                      \
                                .since = SINCE,                                                    \
                                QN_PORTS(in, Name##_in),                                           \
                                QN_PORTS(out, Name##_out),                                         \
                                QN_TYPE_RULES(RULES),                                              \
                                .flags = QN_OP_ELEMENTWISE,                                        \
                                .quant = QUANT,                                                    \
                                .infer = INFER,                                                    \
                                .eval = Name##_eval,                                               \
                                .brief = BRIEF};
#define SAME(TYPES) 'T', TYPES
#define BOOL '\0', QN_SET_BOOL

/* Floats only, F64 function of the same name. */
#define ONLY_FLOATS(Name, f, SINCE, RULES, QUANT, BRIEF)                                           \
    EVAL(Name, f##_f64, NULL)                                                                      \
    UNARY(Name, SINCE, QN_SET_FLOAT, SAME(QN_SET_FLOAT), RULES, infer_same, QUANT, BRIEF)
#define FLOATS(Name, f, SINCE, RULES, BRIEF)                                                       \
    ONLY_FLOATS(Name, f, SINCE, RULES, QN_QUANT_TABLE, BRIEF)
/* Where they jump, the rounding of x would become a whole step: these stay float. */
#define STEPS(Name, f, SINCE, RULES, BRIEF)                                                        \
    ONLY_FLOATS(Name, f, SINCE, RULES, QN_QUANT_FLOAT, BRIEF)

FLOATS(Acos, acos, 7, qn_bfloat16_22, "arc cosine")
FLOATS(Acosh, acosh, 9, qn_bfloat16_22, "inverse hyperbolic cosine")
FLOATS(Asin, asin, 7, qn_bfloat16_22, "arc sine")
FLOATS(Asinh, asinh, 9, qn_bfloat16_22, "inverse hyperbolic sine")
FLOATS(Atan, atan, 7, qn_bfloat16_22, "arc tangent")
FLOATS(Atanh, atanh, 9, qn_bfloat16_22, "inverse hyperbolic tangent")
STEPS(Ceil, ceil, 1, bfloat16_13, "rounds up")
FLOATS(Cos, cos, 7, qn_bfloat16_22, "cosine")
FLOATS(Cosh, cosh, 9, qn_bfloat16_22, "hyperbolic cosine")
FLOATS(Exp, exp, 1, bfloat16_13, "e^x")
STEPS(Floor, floor, 1, bfloat16_13, "rounds down")
FLOATS(HardSwish, hardswish, 14, qn_bfloat16_22, "x * clip(x / 6 + 0.5, 0, 1)")
FLOATS(Log, log, 1, bfloat16_13, "natural logarithm")
FLOATS(Mish, mish, 18, qn_bfloat16_22, "x * tanh(softplus(x))")
FLOATS(Reciprocal, reciprocal, 1, bfloat16_13, "1 / x")
STEPS(Round, round, 11, qn_bfloat16_22, "to the nearest integer, halves to even")
FLOATS(Sigmoid, sigmoid, 1, bfloat16_13, "1 / (1 + e^-x)")
FLOATS(Sin, sin, 7, qn_bfloat16_22, "sine")
FLOATS(Sinh, sinh, 9, qn_bfloat16_22, "hyperbolic sine")
FLOATS(Softplus, softplus, 1, qn_bfloat16_22, "log(1 + e^x)")
FLOATS(Softsign, softsign, 1, qn_bfloat16_22, "x / (1 + |x|)")
FLOATS(Sqrt, sqrt, 1, bfloat16_13, "square root")
FLOATS(Tan, tan, 7, qn_bfloat16_22, "tangent")
FLOATS(Tanh, tanh, 1, bfloat16_13, "hyperbolic tangent")

/* Opsets 9 to 12 also took integers. */
EVAL(Erf, erf_f64, NULL)
EVAL(Neg, neg_f64, neg_i64)
EVAL(Relu, relu_f64, relu_i64)
EVAL(IsNaN, isnan_f64, NULL)
EVAL(Not, NULL, not_i64)
EVAL(BitwiseNot, NULL, bitwise_not_i64)

UNARY(Abs, 1, QN_SET_NUMBER, SAME(QN_SET_NUMBER), integers_6, infer_abs, QN_QUANT_TABLE, "|x|")
UNARY(BitwiseNot, 18, QN_SET_INT, SAME(QN_SET_INT), bfloat16_13, infer_same, QN_QUANT_SHAPE,
      "flips every bit")
UNARY(Erf, 9, QN_SET_NUMBER, SAME(QN_SET_NUMBER), bfloat16_13, infer_same, QN_QUANT_TABLE,
      "error function")
UNARY(IsNaN, 9, QN_SET_FLOAT | QN_SET_FLOAT8, BOOL, small_floats_20, infer_bool, QN_QUANT_FLOAT,
      "x is not a number")
UNARY(Neg, 1, QN_SET_FLOAT | QN_SET_SIGNED, SAME(QN_SET_NUMBER), integers_6, infer_neg,
      QN_QUANT_TABLE, "-x")
UNARY(Not, 1, QN_SET_BOOL, BOOL, bfloat16_13, infer_bool, QN_QUANT_SHAPE, "logical negation")
UNARY(Relu, 1, QN_SET_FLOAT | QN_SET_SIGNED, SAME(QN_SET_NUMBER), integers_14, infer_same,
      QN_QUANT_TABLE, "max(x, 0)")
UNARY(Sign, 9, QN_SET_NUMBER, SAME(QN_SET_NUMBER), bfloat16_13, infer_same, QN_QUANT_FLOAT,
      "-1, 0 or 1")
