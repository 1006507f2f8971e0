/* Unary functions of one tensor. */
#include <math.h>

#include "ops/elementwise.h"
#include "ops/infer.h"

static qn_status infer_same(qn_infer *self)
{
    qn_infer_copy(self, 0, 0);
    return QN_OK;
}

/* One row makes the kernel and the operator. */
#define UNARY(Name, SINCE, TYPES, F, G, BRIEF)                                                     \
    static const qn_port Name##_in[] = {{"X", 'T', TYPES, 0}};                                     \
    static const qn_port Name##_out[] = {{"Y", 'T', TYPES, 0}};                                    \
    static qn_status Name##_eval(qn_eval *self)                                                    \
    {                                                                                              \
        return qn_eval_unary(self, F, G);                                                          \
    }                                                                                              \
    const qn_op qn_op_##Name = {.name = #Name,                                                     \
                                .domain = "",                                                      \
                                .since = SINCE,                                                    \
                                QN_PORTS(in, Name##_in),                                           \
                                QN_PORTS(out, Name##_out),                                         \
                                .flags = QN_OP_ELEMENTWISE,                                        \
                                .quant = QN_QUANT_TABLE,                                           \
                                .infer = infer_same,                                               \
                                .eval = Name##_eval,                                               \
                                .brief = BRIEF};

static double relu_f64(double x, const void *attrs)
{
    (void)attrs;
    return x > 0 || isnan(x) ? x : 0;
}

static int64_t relu_i64(int64_t x, const void *attrs)
{
    (void)attrs;
    return x > 0 ? x : 0;
}

UNARY(Relu, 1, QN_SET_FLOAT | QN_SET_SIGNED, relu_f64, relu_i64, "max(x, 0)")
