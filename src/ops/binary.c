/* Arithmetic of two tensors with numpy's broadcast. */
#include "ops/elementwise.h"
#include "ops/infer.h"

static qn_status infer_arithmetic(qn_infer *self)
{
    return qn_infer_broadcast(self, 0, self->in[0]->dtype, 0, 2);
}

static const qn_port arithmetic_in[] = {{"A", 'T', QN_SET_NUMBER, 0}, {"B", 'T', QN_SET_NUMBER, 0}};
static const qn_port arithmetic_out[] = {{"C", 'T', QN_SET_NUMBER, 0}};

static double add_f64(double a, double b, const void *attrs)
{
    (void)attrs;
    return a + b;
}

static int64_t add_i64(int64_t a, int64_t b, bool is_unsigned, const void *attrs)
{
    (void)attrs;
    (void)is_unsigned;
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static qn_status add_eval(qn_eval *self)
{
    return qn_eval_binary(self, add_f64, add_i64);
}

const qn_op qn_op_Add = {.name = "Add",
                         .domain = "",
                         .since = 1,
                         QN_PORTS(in, arithmetic_in),
                         QN_PORTS(out, arithmetic_out),
                         .flags = QN_OP_ELEMENTWISE | QN_OP_COMMUTES,
                         .quant = QN_QUANT_ELEMENT,
                         .infer = infer_arithmetic,
                         .eval = add_eval,
                         .brief = "a + b"};
