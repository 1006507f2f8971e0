/* Comparisons of two tensors with numpy's broadcast, and Where. */
#include <string.h>

#include "ops/elementwise.h"
#include "ops/versions.h"

#define COMPARE(name, op)                                                                          \
    static double name##_f64(double a, double b, const void *attrs)                                \
    {                                                                                              \
        (void)attrs;                                                                               \
        return a op b;                                                                             \
    }                                                                                              \
    static int64_t name##_i64(int64_t a, int64_t b, bool is_unsigned, const void *attrs)           \
    {                                                                                              \
        (void)attrs;                                                                               \
        return is_unsigned ? (uint64_t)a op(uint64_t) b : a op b;                                  \
    }                                                                                              \
    static void name##_floats(const qn_eval *self, const qn_row *row, const void *user)            \
    {                                                                                              \
        const float *a = (const float *)self->in[0]->data + row->at[0];                            \
        const float *b = (const float *)self->in[1]->data + row->at[1];                            \
        uint8_t *y = (uint8_t *)self->out[0]->data + row->first;                                   \
        (void)user;                                                                                \
        if (row->repeats[0]) {                                                                     \
            for (int64_t i = 0; i < row->count; i++)                                               \
                y[i] = *a op b[row->repeats[1] ? 0 : i];                                           \
        } else if (row->repeats[1]) {                                                              \
            for (int64_t i = 0; i < row->count; i++)                                               \
                y[i] = a[i] op * b;                                                                \
        } else {                                                                                   \
            for (int64_t i = 0; i < row->count; i++)                                               \
                y[i] = a[i] op b[i];                                                               \
        }                                                                                          \
    }

COMPARE(equal, ==)
COMPARE(greater, >)
COMPARE(greater_or_equal, >=)
COMPARE(less, <)
COMPARE(less_or_equal, <=)

static const qn_type_rule order_types[] = {{9, QN_SET_INT}};
static const qn_type_rule order_types_16[] = {{16, QN_SET(QN_BFLOAT16)}};
static const qn_type_rule equal_types[] = {
    {11, (QN_SET_NUMBER & ~QN_SET_INDEX & ~QN_SET(QN_BFLOAT16))}, {19, QN_SET_STRING}};
#define EQUAL_SET (QN_SET_NUMBER | QN_SET_BOOL | QN_SET_STRING)
static const qn_port equal_in[] = {{"A", 'T', EQUAL_SET, 0}, {"B", 'T', EQUAL_SET, 0}};
static const qn_port order_in[] = {{"A", 'T', QN_SET_NUMBER, 0}, {"B", 'T', QN_SET_NUMBER, 0}};
static const qn_port bool_out[] = {{"C", '\0', QN_SET_BOOL, 0}};

/* ---- Strings --------------------------------------------------------------------------------- */

static bool strings_equal(const qn_string *a, const qn_string *b)
{
    return a->length == b->length && (a->length == 0 || memcmp(a->text, b->text, a->length) == 0);
}

static void equal_strings(const qn_eval *self, const qn_row *row, const void *user)
{
    const qn_string *a = (const qn_string *)self->in[0]->data + row->at[0];
    const qn_string *b = (const qn_string *)self->in[1]->data + row->at[1];
    uint8_t *y = (uint8_t *)self->out[0]->data + row->first;
    (void)user;
    for (int64_t i = 0; i < row->count; i++)
        y[i] = strings_equal(a + (row->repeats[0] ? 0 : i), b + (row->repeats[1] ? 0 : i));
}

/* ---- Operators ------------------------------------------------------------------------------- */

static qn_status eval_compare(qn_eval *self, qn_binary_f64 *f, qn_binary_i64 *g, qn_row_fn *floats)
{
    const qn_dtype dtype = self->in[0]->dtype;
    if (dtype != QN_STRING && dtype != QN_FLOAT32)
        return qn_eval_binary(self, f, g);
    qn_eval_rows(self, dtype == QN_STRING ? equal_strings : floats, NULL);
    return QN_OK;
}

#define COMPARISON(Name, f, SINCE, IN, TYPES, FLAGS, OLDER, BRIEF)                                 \
    static qn_status Name##_infer(qn_infer *self)                                                  \
    {                                                                                              \
        const qn_binary_rule rule = {.g = f##_i64};                                                \
        QN_TRY(qn_infer_broadcast(self, 0, QN_BOOL, 0, 2));                                        \
        return qn_infer_binary_elements(self, &rule);                                              \
    }                                                                                              \
    static qn_status Name##_eval(qn_eval *self)                                                    \
    {                                                                                              \
        return eval_compare(self, f##_f64, f##_i64, f##_floats);                                   \
    }                                                                                              \
    const qn_op qn_op_##Name = {.name = #Name,                                                     \
                                .domain = "",                                                      \
                                .since = SINCE,                                                    \
                                QN_PORTS(in, IN),                                                  \
                                QN_PORTS(out, bool_out),                                           \
                                OLDER,                                                             \
                                QN_TYPE_RULES(TYPES),                                              \
                                .flags = QN_OP_ELEMENTWISE | (FLAGS),                              \
                                .quant = QN_QUANT_FLOAT,                                           \
                                .infer = Name##_infer,                                             \
                                .eval = Name##_eval,                                               \
                                .brief = BRIEF};

COMPARISON(Equal, equal, 1, equal_in, equal_types, QN_OP_COMMUTES, QN_BROADCAST_BEFORE_7, "a == b")
COMPARISON(Greater, greater, 1, order_in, order_types, 0, QN_BROADCAST_BEFORE_7, "a > b")
COMPARISON(GreaterOrEqual, greater_or_equal, 12, order_in, order_types_16, 0, .until = 0, "a >= b")
COMPARISON(Less, less, 1, order_in, order_types, 0, QN_BROADCAST_BEFORE_7, "a < b")
COMPARISON(LessOrEqual, less_or_equal, 12, order_in, order_types_16, 0, .until = 0, "a <= b")

/* ---- Where ----------------------------------------------------------------------------------- */

static const qn_type_rule where_types[] = {{16, QN_SET(QN_BFLOAT16)}};
static const qn_port where_in[] = {{"condition", '\0', QN_SET_BOOL, 0},
                                   {"X", 'T', QN_SET_TENSOR, 0},
                                   {"Y", 'T', QN_SET_TENSOR, 0}};
static const qn_port where_out[] = {{"output", 'T', QN_SET_TENSOR, 0}};

static qn_status where_elements(qn_infer *self)
{
    qn_dim in[3][QN_MAX_RANK], out[QN_MAX_RANK];
    size_t n[3], count = 0;
    if (!qn_infer_wants(self, 0) || self->out[0]->rank < 0 || self->out[0]->rank > 1)
        return QN_OK;
    for (int32_t i = 0; i < 3; i++) {
        if (!qn_infer_elements(self, i, in[i], QN_MAX_RANK, &n[i]))
            return QN_OK;
        count = QN_MAX(count, n[i]);
    }
    for (size_t i = 0; i < count; i++) {
        const qn_dim condition = in[0][n[0] == 1 ? 0 : i];
        const int side = condition.value ? 1 : 2;
        out[i] = qn_element_known(condition) ? in[side][n[side] == 1 ? 0 : i]
                                             : (qn_dim){QN_UNKNOWN_ELEMENT, NULL};
    }
    return qn_infer_set_elements(self, 0, out, count);
}

static qn_status where_infer(qn_infer *self)
{
    QN_TRY(qn_infer_broadcast(self, 0, self->in[1]->dtype, 0, 3));
    const bool whole = self->in[1]->dtype == QN_INT64 || self->in[1]->dtype == QN_INT32;
    return whole ? where_elements(self) : QN_OK;
}

/* Elements of SIZE bytes, which the compiler knows: those of a side that repeats are all its
 * first. */
#define WHERE(SIZE)                                                                                \
    case SIZE:                                                                                     \
        for (int64_t i = 0; i < row->count; i++) {                                                 \
            const bool first = c[row->repeats[0] ? 0 : i];                                         \
            memcpy(y + i * SIZE, first ? x[0] + i * steps[0] : x[1] + i * steps[1], SIZE);         \
        }                                                                                          \
        break;
static void where_row(const qn_eval *self, const qn_row *row, const void *user)
{
    const int64_t size = (int64_t)qn_dtype_size(self->out[0]->dtype);
    const uint8_t *c = (const uint8_t *)self->in[0]->data + row->at[0];
    const char *x[2];
    char *y = (char *)self->out[0]->data + row->first * size;
    int64_t steps[2];
    (void)user;
    for (int i = 0; i < 2; i++) {
        x[i] = (const char *)self->in[1 + i]->data + row->at[1 + i] * size;
        steps[i] = row->repeats[1 + i] ? 0 : size;
    }
    switch (size) {
        WHERE(1)
        WHERE(2)
        WHERE(4)
        WHERE(8)
        WHERE(16)
    default: break; /* no element has another size */
    }
}
#undef WHERE

static qn_status where_eval(qn_eval *self)
{
    qn_eval_rows(self, where_row, NULL);
    return QN_OK;
}

const qn_op qn_op_Where = {.name = "Where",
                           .domain = "",
                           .since = 9,
                           QN_PORTS(in, where_in),
                           QN_PORTS(out, where_out),
                           QN_TYPE_RULES(where_types),
                           .flags = QN_OP_ELEMENTWISE,
                           .quant = QN_QUANT_FLOAT,
                           .infer = where_infer,
                           .eval = where_eval,
                           .brief = "x where the condition holds, else y"};
