/* Arithmetic, logic and bits of two tensors with numpy's broadcast. */
#include <math.h>

#include "ops/elementwise.h"
#include "ops/versions.h"

/* ---- Functions ----------------------------------------------------------------------------------
 * Integers wrap around in their type: the store keeps the low bits. */

#define F64(name, expression)                                                                      \
    static double name##_f64(double a, double b, const void *attrs)                                \
    {                                                                                              \
        (void)attrs;                                                                               \
        return expression;                                                                         \
    }
#define I64(name, expression)                                                                      \
    static int64_t name##_i64(int64_t a, int64_t b, bool is_unsigned, const void *attrs)           \
    {                                                                                              \
        (void)attrs;                                                                               \
        (void)is_unsigned;                                                                         \
        return expression;                                                                         \
    }

/* Quotient towards zero; what C leaves undefined is 0 (by zero) or wraps (the least by -1). */
static int64_t divide(int64_t a, int64_t b, bool is_unsigned)
{
    if (b == 0)
        return 0;
    if (is_unsigned)
        return (int64_t)((uint64_t)a / (uint64_t)b);
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

F64(add, a + b)
F64(sub, a - b)
F64(mul, a *b)
F64(div, a / b)
F64(pow, pow(a, b))
F64(prelu, a < 0 ? a * b : a)
I64(add, (int64_t)((uint64_t)a + (uint64_t)b))
I64(sub, (int64_t)((uint64_t)a - (uint64_t)b))
I64(mul, (int64_t)((uint64_t)a *(uint64_t)b))
I64(div, divide(a, b, is_unsigned))
I64(prelu, !is_unsigned && a < 0 ? (int64_t)((uint64_t)a * (uint64_t)b) : a)
I64(and, a &b)
I64(or, a | b)
I64(xor, a ^ b)

/* a^b in the ring of the type; negative powers are 1 / a^-b towards zero. */
static int64_t pow_i64(int64_t a, int64_t b, bool is_unsigned, const void *attrs)
{
    uint64_t result = 1, base = (uint64_t)a;
    (void)attrs;
    if (b < 0 && !is_unsigned)
        return a == 1 || a == -1 ? (b % 2 ? a : 1) : 0;
    for (uint64_t e = (uint64_t)b; e; e >>= 1) {
        result *= e & 1 ? base : 1;
        base *= base;
    }
    return (int64_t)result;
}

/* ---- Arithmetic ------------------------------------------------------------------------------ */

static const qn_type_rule arithmetic_types[] = {
    {6, QN_SET(QN_INT32) | QN_SET(QN_INT64) | QN_SET(QN_UINT32) | QN_SET(QN_UINT64)},
    {14, QN_SET(QN_INT8) | QN_SET(QN_INT16) | QN_SET(QN_UINT8) | QN_SET(QN_UINT16)}};
static const qn_port arithmetic_in[] = {{"A", 'T', QN_SET_NUMBER, 0}, {"B", 'T', QN_SET_NUMBER, 0}};
static const qn_port arithmetic_out[] = {{"C", 'T', QN_SET_NUMBER, 0}};

static qn_status infer_broadcast(qn_infer *self)
{
    return qn_infer_broadcast(self, 0, self->in[0]->dtype, 0, 2);
}

#define ARITHMETIC(Name, f, FLAGS, NEUTRAL, BRIEF)                                                 \
    static qn_status Name##_infer(qn_infer *self)                                                  \
    {                                                                                              \
        const qn_binary_rule rule = {f##_i64, true, ((FLAGS)&QN_OP_COMMUTES) != 0, NEUTRAL};       \
        QN_TRY(infer_broadcast(self));                                                             \
        return qn_infer_binary_elements(self, &rule);                                              \
    }                                                                                              \
    static qn_status Name##_eval(qn_eval *self)                                                    \
    {                                                                                              \
        return qn_eval_binary(self, f##_f64, f##_i64);                                             \
    }                                                                                              \
    const qn_op qn_op_##Name = {.name = #Name,                                                     \
                                .domain = "",                                                      \
                                .since = 1,                                                        \
                                QN_PORTS(in, arithmetic_in),                                       \
                                QN_PORTS(out, arithmetic_out),                                     \
                                QN_BROADCAST_BEFORE_7,                                             \
                                QN_TYPE_RULES(arithmetic_types),                                   \
                                .flags = QN_OP_ELEMENTWISE | (FLAGS),                              \
                                .quant = QN_QUANT_ELEMENT,                                         \
                                .infer = Name##_infer,                                             \
                                .eval = Name##_eval,                                               \
                                .brief = BRIEF};

ARITHMETIC(Add, add, QN_OP_COMMUTES, 0, "a + b")
ARITHMETIC(Sub, sub, 0, 0, "a - b")
ARITHMETIC(Mul, mul, QN_OP_COMMUTES, 1, "a * b")
ARITHMETIC(Div, div, 0, 1, "a / b; integers towards zero, 0 where b is 0")

/* ---- Pow: base and exponent may have different types ----------------------------------------- */

static const qn_type_rule pow_types[] = {{12, QN_SET_INT}, {15, QN_SET(QN_BFLOAT16)}};
static const qn_port pow_in[] = {{"X", 'T', QN_SET_NUMBER, 0}, {"Y", 'U', QN_SET_NUMBER, 0}};

static qn_status pow_eval(qn_eval *self)
{
    const bool integers = qn_dtype_is_integer(self->in[1]->dtype);
    return qn_eval_binary(self, pow_f64, integers ? pow_i64 : NULL);
}

static qn_status pow_downgrade(qn_node **node)
{
    return qn_downgrade_one_type(*node, 1, 12);
}

static const qn_version_rule pow_versions[] = {{7, qn_upgrade_broadcast, qn_downgrade_broadcast},
                                               {12, NULL, pow_downgrade}};

const qn_op qn_op_Pow = {.name = "Pow",
                         .domain = "",
                         .since = 1,
                         QN_PORTS(in, pow_in),
                         QN_PORTS(out, arithmetic_out),
                         QN_ATTRS(qn_broadcast_specs, qn_broadcast_attrs),
                         QN_VERSIONS(pow_versions),
                         QN_TYPE_RULES(pow_types),
                         .flags = QN_OP_ELEMENTWISE,
                         .quant = QN_QUANT_TABLE,
                         .infer = infer_broadcast,
                         .eval = pow_eval,
                         .brief = "a to the power of b"};

/* ---- Mod ------------------------------------------------------------------------------------- */

typedef struct mod_attrs {
    int64_t fmod;
} mod_attrs;
static const qn_attr_spec mod_specs[] = {QN_INT_ATTR(mod_attrs, fmod, 0)};

/* The sign of the result is that of b, with fmod that of a. */
static double mod_f64(double a, double b, const void *attrs)
{
    const double rest = fmod(a, b);
    const bool moved = !((const mod_attrs *)attrs)->fmod && rest != 0 && (rest < 0) != (b < 0);
    return moved ? rest + b : rest;
}

static int64_t mod_i64(int64_t a, int64_t b, bool is_unsigned, const void *attrs)
{
    const uint64_t whole = (uint64_t)divide(a, b, is_unsigned) * (uint64_t)b;
    const int64_t rest = b ? (int64_t)((uint64_t)a - whole) : 0;
    if (is_unsigned || ((const mod_attrs *)attrs)->fmod || rest == 0)
        return rest;
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

static qn_status mod_infer(qn_infer *self)
{
    const qn_binary_rule rule = {.g = mod_i64};
    QN_TRY(infer_broadcast(self));
    return qn_infer_binary_elements(self, &rule);
}

static qn_status mod_eval(qn_eval *self)
{
    return qn_eval_binary(self, mod_f64, mod_i64);
}

const qn_op qn_op_Mod = {.name = "Mod",
                         .domain = "",
                         .since = 10,
                         QN_PORTS(in, arithmetic_in),
                         QN_PORTS(out, arithmetic_out),
                         QN_ATTRS(mod_specs, mod_attrs),
                         .flags = QN_OP_ELEMENTWISE,
                         .quant = QN_QUANT_FLOAT,
                         .infer = mod_infer,
                         .eval = mod_eval,
                         .brief = "rest of a / b with the sign of b, or of a (fmod)"};

/* ---- PRelu: the slope broadcasts to the input ------------------------------------------------ */

static const qn_type_rule prelu_types[] = {{9, QN_SET_INT}, {16, QN_SET(QN_BFLOAT16)}};
static const qn_port prelu_in[] = {{"X", 'T', QN_SET_NUMBER, 0}, {"slope", 'T', QN_SET_NUMBER, 0}};

/* Before opset 7 a slope of one dim belonged to the channels. */
static qn_status prelu_upgrade(qn_node **node)
{
    const qn_value *slope = (*node)->n_in > 1 ? (*node)->in[1] : NULL;
    const bool channels = slope && slope->type.rank == 1 && slope->type.dims[0].value != 1;
    return channels ? qn_upgrade_aligned(*node, 1, 1) : QN_OK;
}

static const qn_version_rule prelu_versions[] = {{7, prelu_upgrade, NULL}};

static qn_status prelu_infer(qn_infer *self)
{
    QN_TRY(qn_infer_broadcast_to(self, 1, self->in[0]->rank, self->in[0]->dims));
    qn_infer_copy(self, 0, 0);
    return QN_OK;
}

static qn_status prelu_eval(qn_eval *self)
{
    return qn_eval_binary(self, prelu_f64, prelu_i64);
}

const qn_op qn_op_PRelu = {.name = "PRelu",
                           .domain = "",
                           .since = 1,
                           QN_PORTS(in, prelu_in),
                           QN_PORTS(out, arithmetic_out),
                           QN_VERSIONS(prelu_versions),
                           QN_TYPE_RULES(prelu_types),
                           .flags = QN_OP_ELEMENTWISE,
                           .quant = QN_QUANT_ELEMENT,
                           .infer = prelu_infer,
                           .eval = prelu_eval,
                           .brief = "x, below 0: slope * x"};

/* ---- Logic and bits -------------------------------------------------------------------------- */

static const qn_port bool_in[] = {{"A", 'T', QN_SET_BOOL, 0}, {"B", 'T', QN_SET_BOOL, 0}};
static const qn_port bool_out[] = {{"C", 'T', QN_SET_BOOL, 0}};
static const qn_port int_in[] = {{"A", 'T', QN_SET_INT, 0}, {"B", 'T', QN_SET_INT, 0}};
static const qn_port int_out[] = {{"C", 'T', QN_SET_INT, 0}};

#define BITS(Name, f, SINCE, PORTS, OLDER, BRIEF)                                                  \
    static qn_status Name##_eval(qn_eval *self)                                                    \
    {                                                                                              \
        return qn_eval_binary(self, NULL, f##_i64);                                                \
    }                                                                                              \
    const qn_op qn_op_##Name = {.name = #Name,                                                     \
                                .domain = "",                                                      \
                                .since = SINCE,                                                    \
                                QN_PORTS(in, PORTS##_in),                                          \
                                QN_PORTS(out, PORTS##_out),                                        \
                                OLDER,                                                             \
                                .flags = QN_OP_ELEMENTWISE | QN_OP_COMMUTES,                       \
                                .quant = QN_QUANT_SHAPE,                                           \
                                .infer = infer_broadcast,                                          \
                                .eval = Name##_eval,                                               \
                                .brief = BRIEF};

BITS(And, and, 1, bool, QN_BROADCAST_BEFORE_7, "both")
BITS(Or, or, 1, bool, QN_BROADCAST_BEFORE_7, "one or both")
BITS(Xor, xor, 1, bool, QN_BROADCAST_BEFORE_7, "one, not both")
BITS(BitwiseAnd, and, 18, int, .until = 0, "and of every bit")
BITS(BitwiseOr, or, 18, int, .until = 0, "or of every bit")
BITS(BitwiseXor, xor, 18, int, .until = 0, "exclusive or of every bit")

typedef struct shift_attrs {
    int64_t direction;
} shift_attrs;
enum { SHIFT_NONE, SHIFT_LEFT, SHIFT_RIGHT };
static const char *const shift_words[] = {"", "LEFT", "RIGHT", NULL};
static const qn_attr_spec shift_specs[] = {
    QN_ENUM_ATTR(shift_attrs, direction, SHIFT_NONE, shift_words, .required = true)};
static const qn_type_rule shift_types[] = {{28, QN_SET_SIGNED}};

/* Bits that leave the type are gone; to the right the sign comes in. Amounts outside the type,
 * negative ones too, leave nothing but that. */
static int64_t shift_i64(int64_t a, int64_t b, bool is_unsigned, const void *attrs)
{
    const bool left = ((const shift_attrs *)attrs)->direction == SHIFT_LEFT;
    const bool negative = !left && !is_unsigned && a < 0;
    if ((uint64_t)b >= 64)
        return negative ? -1 : 0;
    if (negative)
        return (int64_t) ~(~(uint64_t)a >> b);
    return (int64_t)(left ? (uint64_t)a << b : (uint64_t)a >> b);
}

static qn_status shift_eval(qn_eval *self)
{
    return qn_eval_binary(self, NULL, shift_i64);
}

const qn_op qn_op_BitShift = {.name = "BitShift",
                              .domain = "",
                              .since = 11,
                              QN_PORTS(in, int_in),
                              QN_PORTS(out, int_out),
                              QN_ATTRS(shift_specs, shift_attrs),
                              QN_TYPE_RULES(shift_types),
                              .flags = QN_OP_ELEMENTWISE,
                              .quant = QN_QUANT_SHAPE,
                              .infer = infer_broadcast,
                              .eval = shift_eval,
                              .brief = "bits moved left or right"};
