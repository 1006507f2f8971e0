/* Max, Min, Mean and Sum of any number of tensors with numpy's broadcast. */
#include <math.h>

#include "ops/elementwise.h"
#include "ops/versions.h"

static const qn_type_rule order_types[] = {{12, QN_SET_INT}};
/* Opset 8 brought the broadcast. */
static const qn_version_rule versions[] = {{8, NULL, qn_downgrade_same_shapes}};

static const qn_port number_in[] = {{"data_0", 'T', QN_SET_NUMBER, QN_VARIADIC}};
static const qn_port number_out[] = {{"result", 'T', QN_SET_NUMBER, 0}};
static const qn_port float_in[] = {{"data_0", 'T', QN_SET_FLOAT, QN_VARIADIC}};
static const qn_port float_out[] = {{"result", 'T', QN_SET_FLOAT, 0}};

static qn_status check_inputs(const qn_infer *self)
{
    for (int32_t i = 0; i < self->n_in; i++) {
        if (!qn_infer_has(self, i))
            return qn_infer_fail(self, "input %d is missing", i);
    }
    return QN_OK;
}

static qn_status infer_all(qn_infer *self)
{
    QN_TRY(check_inputs(self));
    return qn_infer_broadcast(self, 0, self->in[0]->dtype, 0, self->n_in);
}

/* ---- Folding the inputs, element by element -------------------------------------------------- */

/* Strides of each input under the shape of the output, one row of QN_MAX_RANK each. */
static qn_status all_strides(int64_t **strides, qn_eval *self)
{
    const qn_tensor *out = self->out[0];
    void *block;
    QN_TRY(qn_eval_scratch(self, &block, self->n_in, QN_MAX_RANK * sizeof(int64_t)));
    *strides = block;
    for (int32_t i = 0; i < self->n_in; i++)
        qn_broadcast_strides(*strides + (ptrdiff_t)i * QN_MAX_RANK, self->in[i], out->rank,
                             out->dims);
    return QN_OK;
}

static qn_status fold_f64(qn_eval *self, qn_binary_f64 *f, bool mean)
{
    const qn_tensor *out = self->out[0];
    const int64_t total = qn_tensor_count(out);
    int64_t *strides;
    QN_TRY(all_strides(&strides, self));
    for (int64_t at = 0; at < total; at++) {
        double result = 0;
        for (int32_t i = 0; i < self->n_in; i++) {
            const int64_t from =
                qn_offset_of(at, out->rank, out->dims, strides + (ptrdiff_t)i * QN_MAX_RANK);
            const double x = qn_tensor_f64(self->in[i], from);
            result = i ? f(result, x, NULL) : x;
        }
        if (mean)
            result /= self->n_in;
        qn_store_f64(out->data, out->dtype, at, &result, 1);
    }
    return QN_OK;
}

static qn_status fold_i64(qn_eval *self, qn_binary_i64 *g)
{
    const qn_tensor *out = self->out[0];
    const int64_t total = qn_tensor_count(out);
    const bool is_unsigned = qn_dtype_get(out->dtype)->kind == QN_KIND_UINT;
    int64_t *strides;
    QN_TRY(all_strides(&strides, self));
    for (int64_t at = 0; at < total; at++) {
        int64_t result = 0;
        for (int32_t i = 0; i < self->n_in; i++) {
            const int64_t from =
                qn_offset_of(at, out->rank, out->dims, strides + (ptrdiff_t)i * QN_MAX_RANK);
            const int64_t x = qn_tensor_i64(self->in[i], from);
            result = i ? g(result, x, is_unsigned, NULL) : x;
        }
        qn_store_i64(out->data, out->dtype, at, &result, 1);
    }
    return QN_OK;
}

/* ---- Operators ------------------------------------------------------------------------------- */

static double add_f64(double a, double b, const void *attrs)
{
    (void)attrs;
    return a + b;
}

/* NaN wins. */
static double max_f64(double a, double b, const void *attrs)
{
    (void)attrs;
    return a > b || isnan(a) ? a : b;
}

static double min_f64(double a, double b, const void *attrs)
{
    (void)attrs;
    return a < b || isnan(a) ? a : b;
}

static int64_t max_i64(int64_t a, int64_t b, bool is_unsigned, const void *attrs)
{
    (void)attrs;
    return (is_unsigned ? (uint64_t)a > (uint64_t)b : a > b) ? a : b;
}

static int64_t min_i64(int64_t a, int64_t b, bool is_unsigned, const void *attrs)
{
    (void)attrs;
    return (is_unsigned ? (uint64_t)a < (uint64_t)b : a < b) ? a : b;
}

static qn_status max_infer(qn_infer *self)
{
    const qn_binary_rule rule = {.g = max_i64};
    QN_TRY(infer_all(self));
    return self->n_in == 2 ? qn_infer_binary_elements(self, &rule) : QN_OK;
}

static qn_status min_infer(qn_infer *self)
{
    const qn_binary_rule rule = {.g = min_i64};
    QN_TRY(infer_all(self));
    return self->n_in == 2 ? qn_infer_binary_elements(self, &rule) : QN_OK;
}

static qn_status max_eval(qn_eval *self)
{
    const bool is_float = qn_dtype_is_float(self->out[0]->dtype);
    return is_float ? fold_f64(self, max_f64, false) : fold_i64(self, max_i64);
}

static qn_status min_eval(qn_eval *self)
{
    const bool is_float = qn_dtype_is_float(self->out[0]->dtype);
    return is_float ? fold_f64(self, min_f64, false) : fold_i64(self, min_i64);
}

static qn_status sum_eval(qn_eval *self)
{
    return fold_f64(self, add_f64, false);
}

static qn_status mean_eval(qn_eval *self)
{
    return fold_f64(self, add_f64, true);
}

#define VARIADIC(Name, PORTS, RULES, INFER, EVAL, QUANT, BRIEF)                                    \
    const qn_op qn_op_##Name = {.name = #Name,                                                     \
                                .domain = "",                                                      \
                                .since = 1,                                                        \
                                QN_PORTS(in, PORTS##_in),                                          \
                                QN_PORTS(out, PORTS##_out),                                        \
                                QN_VERSIONS(versions),                                             \
                                RULES,                                                             \
                                .flags = QN_OP_ELEMENTWISE | QN_OP_COMMUTES,                       \
                                .quant = QUANT,                                                    \
                                .infer = INFER,                                                    \
                                .eval = EVAL,                                                      \
                                .brief = BRIEF};

VARIADIC(Max, number, QN_TYPE_RULES(order_types), max_infer, max_eval, QN_QUANT_FLOAT,
         "the largest of the inputs")
VARIADIC(Mean, float, .n_type_rules = 0, infer_all, mean_eval, QN_QUANT_FLOAT,
         "the mean of the inputs")
VARIADIC(Min, number, QN_TYPE_RULES(order_types), min_infer, min_eval, QN_QUANT_FLOAT,
         "the smallest of the inputs")
VARIADIC(Sum, float, .n_type_rules = 0, infer_all, sum_eval, QN_QUANT_ELEMENT,
         "the sum of the inputs")
