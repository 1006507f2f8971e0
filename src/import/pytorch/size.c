/* Integers that the model computes, and the arithmetic of Python on them and on numbers. */
#include <math.h>
#include <string.h>

#include "import/pytorch/torch.h"

qn_status qn_torch_size(qn_torch_value *out, qn_value *value)
{
    const qn_type *type = &value->type;
    if (value->data && value->data->dtype == QN_INT64 && type->rank == 1)
        *out = qn_torch_int(*(const int64_t *)value->data->data);
    else if (type->rank == 1 && type->elements && qn_element_known(type->elements[0]))
        *out = qn_torch_int(type->elements[0].value);
    else
        *out = (qn_torch_value){.kind = QN_TORCH_SIZE, .size = value};
    return QN_OK;
}

qn_status qn_torch_dim(qn_torch_value *out, qn_torch *t, qn_value *value, int32_t axis)
{
    qn_value *shape;
    if (axis < value->type.rank && value->type.dims[axis].value >= 0) {
        *out = qn_torch_int(value->type.dims[axis].value);
        return QN_OK;
    }
    QN_TRY(qn_graph_build(&shape, &t->b, &qn_op_Shape, QN_INPUTS(value),
                          QN_WITH(QN_A_INT("start", axis), QN_A_INT("end", axis + 1))));
    return qn_torch_size(out, shape);
}

static qn_status size_value(qn_value **out, qn_torch *t, const qn_torch_value *item)
{
    if (item->kind == QN_TORCH_SIZE) {
        *out = item->size;
        return QN_OK;
    }
    if (item->kind == QN_TORCH_INT)
        return qn_graph_build_ints(out, &t->b, &item->number, 1);
    if (item->kind == QN_TORCH_TENSOR) {
        static const int64_t one[1] = {1};
        qn_value *value, *shape;
        QN_TRY(qn_torch_tensor_value(&value, t, item->tensor));
        QN_TRY(qn_graph_build_ints(&shape, &t->b, one, 1));
        QN_TRY(qn_graph_build(&value, &t->b, &qn_op_Reshape, QN_INPUTS(value, shape), QN_PLAIN));
        return qn_graph_build(out, &t->b, &qn_op_Cast, QN_INPUTS(value),
                              QN_WITH(QN_A_INT("to", QN_INT64)));
    }
    return qn_graph_builder_fail(&t->b, QN_E_UNSUPPORTED, "%s among sizes",
                                 qn_torch_kind_name(item->kind));
}

qn_status qn_torch_shape(qn_value **out, qn_torch *t, const qn_torch_value *items, size_t count)
{
    int64_t numbers[QN_MAX_RANK];
    qn_value *parts[QN_MAX_RANK];
    bool known = true;
    if (count > QN_MAX_RANK)
        return qn_graph_builder_fail(&t->b, QN_E_UNSUPPORTED, "a shape of %zu axes", count);
    for (size_t i = 0; i < count; i++) {
        known = known && items[i].kind == QN_TORCH_INT;
        numbers[i] = items[i].number;
    }
    if (known)
        return qn_graph_build_ints(out, &t->b, numbers, count);
    for (size_t i = 0; i < count; i++)
        QN_TRY(size_value(&parts[i], t, &items[i]));
    if (count == 1) {
        *out = parts[0];
        return QN_OK;
    }
    return qn_graph_build(out, &t->b, &qn_op_Concat, (qn_graph_build_inputs){parts, count},
                          QN_WITH(QN_A_INT("axis", 0)));
}

/* ---- Arithmetic ------------------------------------------------------------------------------ */

typedef struct number_word {
    const char *word;
    size_t operands;
    /* NULL: integers are computed as reals. */
    bool (*ints)(int64_t *out, int64_t a, int64_t b);
    double (*reals)(double a, double b);
    /* The operator for sizes; NULL: they cannot */
    const qn_op *size;
    /* The result is a truth. */
    bool truth;
} number_word;

static bool add_ints(int64_t *out, int64_t a, int64_t b)
{
    return qn_add_int64(out, a, b);
}
static bool sub_ints(int64_t *out, int64_t a, int64_t b)
{
    return b != INT64_MIN && qn_add_int64(out, a, -b);
}
static bool mul_ints(int64_t *out, int64_t a, int64_t b)
{
    return qn_mul_int64(out, a, b);
}
static bool mod_ints(int64_t *out, int64_t a, int64_t b)
{
    if (b == 0 || (b == -1 && a == INT64_MIN))
        return false;
    *out = a % b;
    if (*out && (*out < 0) != (b < 0))
        *out += b;
    return true;
}
static bool floordiv_ints(int64_t *out, int64_t a, int64_t b)
{
    int64_t rest;
    if (!mod_ints(&rest, a, b) || !sub_ints(out, a, rest))
        return false;
    *out /= b;
    return true;
}
static bool pow_ints(int64_t *out, int64_t a, int64_t b)
{
    *out = 1;
    for (int64_t i = 0; i < b && b < 64; i++) {
        if (!qn_mul_int64(out, *out, a))
            return false;
    }
    return b >= 0 && b < 64;
}
static bool neg_ints(int64_t *out, int64_t a, int64_t b)
{
    (void)b;
    return sub_ints(out, 0, a);
}
static bool and_ints(int64_t *out, int64_t a, int64_t b)
{
    *out = a & b;
    return true;
}
static bool or_ints(int64_t *out, int64_t a, int64_t b)
{
    *out = a | b;
    return true;
}
static bool same_int(int64_t *out, int64_t a, int64_t b)
{
    (void)b;
    *out = a;
    return true;
}
static double add_reals(double a, double b)
{
    return a + b;
}
static double sub_reals(double a, double b)
{
    return a - b;
}
static double mul_reals(double a, double b)
{
    return a * b;
}
static double div_reals(double a, double b)
{
    return a / b;
}
static double floordiv_reals(double a, double b)
{
    return floor(a / b);
}
static double mod_reals(double a, double b)
{
    return a - floor(a / b) * b;
}
static double neg_real(double a, double b)
{
    (void)b;
    return -a;
}
static double sqrt_real(double a, double b)
{
    (void)b;
    return sqrt(a);
}
#define COMPARE(name, sign)                                                                        \
    static bool name##_ints(int64_t *out, int64_t a, int64_t b)                                    \
    {                                                                                              \
        *out = a sign b;                                                                           \
        return true;                                                                               \
    }                                                                                              \
    static double name##_reals(double a, double b)                                                 \
    {                                                                                              \
        return a sign b;                                                                           \
    }
COMPARE(lt, <)
COMPARE(le, <=)
COMPARE(gt, >)
COMPARE(ge, >=)
COMPARE(eq, ==)
COMPARE(ne, !=)
#undef COMPARE
static bool truncdiv_ints(int64_t *out, int64_t a, int64_t b)
{
    if (b == 0 || b == -1)
        return false;
    *out = a / b;
    return true;
}
static bool min_ints(int64_t *out, int64_t a, int64_t b)
{
    *out = QN_MIN(a, b);
    return true;
}
static bool max_ints(int64_t *out, int64_t a, int64_t b)
{
    *out = QN_MAX(a, b);
    return true;
}

static const number_word number_words[] = {
    {"add", 2, add_ints, add_reals, &qn_op_Add, false},
    {"sub", 2, sub_ints, sub_reals, &qn_op_Sub, false},
    {"mul", 2, mul_ints, mul_reals, &qn_op_Mul, false},
    {"div", 2, NULL, div_reals, NULL, false},
    {"truediv", 2, NULL, div_reals, NULL, false},
    {"floordiv", 2, floordiv_ints, floordiv_reals, &qn_op_Div, false},
    {"floor_divide", 2, floordiv_ints, floordiv_reals, &qn_op_Div, false},
    {"truncdiv", 2, truncdiv_ints, NULL, &qn_op_Div, false},
    {"mod", 2, mod_ints, mod_reals, &qn_op_Mod, false},
    {"remainder", 2, mod_ints, mod_reals, &qn_op_Mod, false},
    {"pow", 2, pow_ints, pow, NULL, false},
    {"neg", 1, neg_ints, neg_real, &qn_op_Neg, false},
    {"sqrt", 1, NULL, sqrt_real, NULL, false},
    {"sym_sqrt", 1, NULL, sqrt_real, NULL, false},
    {"min", 2, min_ints, fmin, &qn_op_Min, false},
    {"max", 2, max_ints, fmax, &qn_op_Max, false},
    {"sym_min", 2, min_ints, fmin, &qn_op_Min, false},
    {"sym_max", 2, max_ints, fmax, &qn_op_Max, false},
    {"and_", 2, and_ints, NULL, NULL, false},
    {"or_", 2, or_ints, NULL, NULL, false},
    {"__and__", 2, and_ints, NULL, NULL, false},
    {"__or__", 2, or_ints, NULL, NULL, false},
    {"NumToTensor", 1, same_int, NULL, NULL, false},
    {"lt", 2, lt_ints, lt_reals, &qn_op_Less, true},
    {"le", 2, le_ints, le_reals, &qn_op_LessOrEqual, true},
    {"gt", 2, gt_ints, gt_reals, &qn_op_Greater, true},
    {"ge", 2, ge_ints, ge_reals, &qn_op_GreaterOrEqual, true},
    {"eq", 2, eq_ints, eq_reals, &qn_op_Equal, true},
    {"ne", 2, ne_ints, ne_reals, NULL, true},
};

bool qn_torch_is_arithmetic(const char *word)
{
    for (size_t i = 0; i < QN_COUNT_OF(number_words); i++) {
        if (strcmp(number_words[i].word, word) == 0)
            return true;
    }
    return false;
}

static bool is_number(const qn_torch_value *value)
{
    return value->kind == QN_TORCH_INT || value->kind == QN_TORCH_BOOL ||
           value->kind == QN_TORCH_REAL;
}

static int64_t as_int(const qn_torch_value *value)
{
    return value->kind == QN_TORCH_BOOL ? value->truth : value->number;
}

static double as_real(const qn_torch_value *value)
{
    return value->kind == QN_TORCH_REAL ? value->real : (double)as_int(value);
}

/* floor(a / b) = (a - mod(a, b)) / b, whatever their signs. */
static qn_status floordiv_sizes(qn_value **out, qn_torch *t, qn_value *a, qn_value *b)
{
    qn_value *rest;
    QN_TRY(qn_graph_build(&rest, &t->b, &qn_op_Mod, QN_INPUTS(a, b), QN_PLAIN));
    QN_TRY(qn_graph_build(&rest, &t->b, &qn_op_Sub, QN_INPUTS(a, rest), QN_PLAIN));
    return qn_graph_build(out, &t->b, &qn_op_Div, QN_INPUTS(rest, b), QN_PLAIN);
}

static qn_status compute_sizes(qn_torch_value *out, qn_torch *t, const number_word *w,
                               const qn_torch_value *operands)
{
    qn_value *values[2] = {NULL, NULL}, *result;
    for (size_t i = 0; i < w->operands; i++)
        QN_TRY(size_value(&values[i], t, &operands[i]));
    if (w->size == &qn_op_Div)
        QN_TRY(floordiv_sizes(&result, t, values[0], values[1]));
    else
        QN_TRY(qn_graph_build(&result, &t->b, w->size, (qn_graph_build_inputs){values, w->operands},
                              QN_PLAIN));
    return w->truth ? qn_torch_make(out, t, result) : qn_torch_size(out, result);
}

static bool compute_numbers(qn_torch_value *out, const number_word *w, const qn_torch_value *a,
                            const qn_torch_value *b)
{
    const bool real = a->kind == QN_TORCH_REAL || b->kind == QN_TORCH_REAL || !w->ints;
    int64_t number = 0;
    if (real && !w->reals)
        return false;
    if (!real && !w->ints(&number, as_int(a), as_int(b)))
        return false;
    const double value = real ? w->reals(as_real(a), as_real(b)) : 0;
    if (w->truth)
        *out = qn_torch_bool(real ? value != 0 : number != 0);
    else
        *out = real ? qn_torch_real(value) : qn_torch_int(number);
    return true;
}

/* In what was traced, numbers that sizes are computed with are tensors of the file. */
static qn_status take_number(qn_torch_value *value, qn_torch *t)
{
    qn_value *held;
    if (value->kind != QN_TORCH_TENSOR || value->tensor->rank != 0 ||
        !(value->tensor->value || value->tensor->storage))
        return QN_OK;
    QN_TRY(qn_torch_tensor_value(&held, t, value->tensor));
    if (held->data && held->type.rank == 0 && held->type.dtype == QN_INT64)
        *value = qn_torch_int(*(const int64_t *)held->data->data);
    return QN_OK;
}

static bool is_size(const qn_torch_value *value)
{
    return value->kind == QN_TORCH_INT || value->kind == QN_TORCH_SIZE;
}

qn_status qn_torch_arithmetic(qn_torch_value *out, bool *done, qn_torch *t, const char *word,
                              const qn_torch_value *given, size_t count)
{
    qn_torch_value operands[2] = {QN_TORCH_NOTHING, QN_TORCH_NOTHING};
    bool sizes = false;
    *done = false;
    const bool swaps = count == 2 && strcmp(word, "rsub") == 0;
    for (size_t i = 0; i < count && i < 2; i++)
        operands[i] = given[swaps ? 1 - i : i];
    word = swaps ? "sub" : word;
    if (is_size(&operands[0]) || is_size(&operands[1])) {
        QN_TRY(take_number(&operands[0], t));
        QN_TRY(take_number(&operands[1], t));
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_number(&operands[i]) && operands[i].kind != QN_TORCH_SIZE)
            return QN_OK;
        sizes = sizes || operands[i].kind == QN_TORCH_SIZE;
    }
    for (size_t i = 0; i < QN_COUNT_OF(number_words); i++) {
        const number_word *w = &number_words[i];
        if (w->operands != count || strcmp(w->word, word) != 0)
            continue;
        if (!sizes) {
            *done = compute_numbers(out, w, &operands[0], &operands[count - 1]);
            return QN_OK;
        }
        if (strcmp(word, "NumToTensor") == 0) {
            *done = true;
            *out = operands[0];
            return QN_OK;
        }
        if (!w->size)
            return QN_OK;
        *done = true;
        return compute_sizes(out, t, w, operands);
    }
    return QN_OK;
}
