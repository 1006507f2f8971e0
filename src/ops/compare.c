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
    }

COMPARE(equal, ==)
COMPARE(greater, >)
COMPARE(greater_or_equal, >=)
COMPARE(less, <)
COMPARE(less_or_equal, <=)

static const qn_type_rule order_types[] = {{9, QN_SET_INT}, {13, QN_SET(QN_BFLOAT16)}};
static const qn_type_rule order_types_16[] = {{16, QN_SET(QN_BFLOAT16)}};
static const qn_type_rule equal_types[] = {
    {11, (QN_SET_NUMBER & ~QN_SET_INDEX & ~QN_SET(QN_BFLOAT16))},
    {13, QN_SET(QN_BFLOAT16)},
    {19, QN_SET_STRING}};
#define EQUAL_SET (QN_SET_NUMBER | QN_SET_BOOL | QN_SET_STRING)
static const qn_port equal_in[] = {{"A", 'T', EQUAL_SET, 0}, {"B", 'T', EQUAL_SET, 0}};
static const qn_port order_in[] = {{"A", 'T', QN_SET_NUMBER, 0}, {"B", 'T', QN_SET_NUMBER, 0}};
static const qn_port bool_out[] = {{"C", '\0', QN_SET_BOOL, 0}};

/* ---- Strings ------------------------------------------------------------------------------------------ */

static bool strings_equal(const qn_string *a, const qn_string *b)
{
    return a->length == b->length && (a->length == 0 || memcmp(a->text, b->text, a->length) == 0);
}

static void equal_strings(const qn_eval *self)
{
    const qn_tensor *a = self->in[0], *b = self->in[1], *out = self->out[0];
    const int64_t total = qn_tensor_count(out);
    int64_t a_strides[QN_MAX_RANK], b_strides[QN_MAX_RANK];
    qn_broadcast_strides(a_strides, a, out->rank, out->dims);
    qn_broadcast_strides(b_strides, b, out->rank, out->dims);
    for (int64_t i = 0; i < total; i++) {
        const int64_t x = qn_offset_of(i, out->rank, out->dims, a_strides);
        const int64_t y = qn_offset_of(i, out->rank, out->dims, b_strides);
        ((uint8_t *)out->data)[i] =
            strings_equal((const qn_string *)a->data + x, (const qn_string *)b->data + y);
    }
}

/* ---- Operators ------------------------------------------------------------------------------------------ */

static qn_status eval_compare(qn_eval *self, qn_binary_f64 *f, qn_binary_i64 *g)
{
    if (self->in[0]->dtype != QN_STRING)
        return qn_eval_binary(self, f, g);
    equal_strings(self);
    return QN_OK;
}

#define COMPARISON(Name, f, SINCE, IN, TYPES, FLAGS, OLDER, BRIEF)                                 \
    static qn_status Name##_infer(qn_infer *self)                                                  \
    {                                                                                              \
        const qn_zip zip = {.g = f##_i64};                                                         \
        QN_TRY(qn_infer_broadcast(self, 0, QN_BOOL, 0, 2));                                        \
        return qn_infer_zip_elements(self, &zip);                                                  \
    }                                                                                              \
    static qn_status Name##_eval(qn_eval *self)                                                    \
    {                                                                                              \
        return eval_compare(self, f##_f64, f##_i64);                                               \
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

/* ---- Where -------------------------------------------------------------------------------------------------- */

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

static qn_status where_eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0];
    const size_t size = qn_dtype_size(out->dtype);
    const int64_t total = qn_tensor_count(out);
    int64_t strides[3][QN_MAX_RANK];
    for (int i = 0; i < 3; i++)
        qn_broadcast_strides(strides[i], self->in[i], out->rank, out->dims);
    for (int64_t i = 0; i < total; i++) {
        const int64_t c = qn_offset_of(i, out->rank, out->dims, strides[0]);
        const int side = ((const uint8_t *)self->in[0]->data)[c] ? 1 : 2;
        const int64_t from = qn_offset_of(i, out->rank, out->dims, strides[side]);
        memcpy((char *)out->data + (size_t)i * size,
               (const char *)self->in[side]->data + (size_t)from * size, size);
    }
    return QN_OK;
}

const qn_op qn_op_Where = {.name = "Where",
                           .domain = "",
                           .since = 9,
                           QN_PORTS(in, where_in),
                           QN_PORTS(out, where_out),
                           QN_TYPE_RULES(where_types),
                           .flags = QN_OP_ELEMENTWISE,
                           .quant = QN_QUANT_ELEMENT,
                           .infer = where_infer,
                           .eval = where_eval,
                           .brief = "x where the condition holds, else y"};
