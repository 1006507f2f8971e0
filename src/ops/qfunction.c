/* Unary functions of integers as tables. */
#include "ops/qfunction.h"

#include "ops/quantize.h"

static const qn_attr_spec qfunction_specs[] = {
    QN_INT_ATTR(qn_qfunction_attrs, kind, 0), QN_FLOAT_ATTR(qn_qfunction_attrs, alpha, 1),
    QN_FLOAT_ATTR(qn_qfunction_attrs, beta, 0), QN_FLOAT_ATTR(qn_qfunction_attrs, gain, 1),
    QN_FLOAT_ATTR(qn_qfunction_attrs, offset, 0)};
static const qn_port qfunction_in[] = {{"x", '\0', QN_SET(QN_FLOAT32), 0},
                                       {"y_scale", '\0', QN_SET(QN_FLOAT32), 0},
                                       {"y_zero_point", 'Y', QN_SET_QUANTIZED, 0}};
static const qn_port qfunction_out[] = {{"y", 'Y', QN_SET_QUANTIZED, 0}};

static qn_status qfunction_infer(qn_infer *self)
{
    QN_TRY(qn_infer_single(self, 1));
    QN_TRY(qn_infer_single(self, 2));
    qn_infer_copy_dims(self, 0, 0, self->in[2]->dtype);
    return QN_OK;
}

static qn_status qfunction_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const qn_qfunction_attrs *f = self->attrs;
    const int64_t count = qn_tensor_count(in);
    const qn_limits range = qn_limits_of(out->dtype);
    qn_qparams y;
    QN_TRY(qn_eval_qparams(&y, self, 1, 2));
    const float gain = f->gain / y.scale, offset = f->offset / y.scale;
    for (int64_t i = 0; i < count; i++) {
        const float v = qn_qfunction_of(f, ((const float *)in->data)[i]) * gain + offset;
        const int64_t q = qn_round_clamp((double)v, y.zero, range);
        qn_store_i64(out->data, out->dtype, i, &q, 1);
    }
    return QN_OK;
}

const qn_op qn_op_qn_QFunction = {.name = "QFunction",
                                  .domain = "quench",
                                  .since = 1,
                                  QN_PORTS(in, qfunction_in),
                                  QN_PORTS(out, qfunction_out),
                                  QN_ATTRS(qfunction_specs, qn_qfunction_attrs),
                                  .flags = QN_OP_ELEMENTWISE,
                                  .quant = QN_QUANT_ALREADY,
                                  .infer = qfunction_infer,
                                  .eval = qfunction_eval,
                                  .brief = "a function of a float number, rounded to integers"};
