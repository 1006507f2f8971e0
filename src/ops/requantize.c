/* quench's own movements from integers to integers, element by element: Requantize, QTable,
 * QPRelu. */
#include "ops/elementwise.h"
#include "ops/quantize.h"

#define SCALE QN_SET(QN_FLOAT32)

/* ---- Requantize ------------------------------------------------------------------------------ */

static const qn_port requantize_in[] = {{"x", 'X', QN_SET_QUANTIZED, 0},
                                        {"x_scale", '\0', SCALE, 0},
                                        {"x_zero_point", 'X', QN_SET_QUANTIZED, 0},
                                        {"y_scale", '\0', SCALE, 0},
                                        {"y_zero_point", 'Y', QN_SET_QUANTIZED, 0}};
static const qn_port requantize_out[] = {{"y", 'Y', QN_SET_QUANTIZED, 0}};

static qn_status requantize_infer(qn_infer *self)
{
    for (int32_t i = 1; i < 5; i++)
        QN_TRY(qn_infer_single(self, i));
    qn_infer_copy_dims(self, 0, 0, self->in[4]->dtype);
    return QN_OK;
}

static qn_status requantize_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0], *out = self->out[0];
    const int64_t count = qn_tensor_count(in);
    const qn_limits range = qn_limits_of(out->dtype);
    qn_qparams x, y;
    QN_TRY(qn_eval_qparams(&x, self, 1, 2));
    QN_TRY(qn_eval_qparams(&y, self, 3, 4));
    for (int64_t i = 0; i < count; i++) {
        const int64_t q = qn_requantize_copy(qn_tensor_i64(in, i), &x, &y, range);
        qn_store_i64(out->data, out->dtype, i, &q, 1);
    }
    return QN_OK;
}

const qn_op qn_op_qn_Requantize = {.name = "Requantize",
                                   .domain = "quench",
                                   .since = 1,
                                   QN_PORTS(in, requantize_in),
                                   QN_PORTS(out, requantize_out),
                                   .flags = QN_OP_ELEMENTWISE,
                                   .quant = QN_QUANT_ALREADY,
                                   .infer = requantize_infer,
                                   .eval = requantize_eval,
                                   .brief = "from one scale and integer type to another"};

/* ---- QTable: y = table[x - least value of x's type] ------------------------------------------ */

static const qn_port table_in[] = {{"x", 'X', QN_SET_QUANTIZED, 0},
                                   {"table", 'Y', QN_SET_QUANTIZED, 0}};
static const qn_port table_out[] = {{"y", 'Y', QN_SET_QUANTIZED, 0}};

static int64_t table_entries(qn_dtype dtype)
{
    const qn_limits range = qn_limits_of(dtype);
    return range.max - range.min + 1;
}

static qn_status table_infer(qn_infer *self)
{
    const qn_type *table = self->in[1];
    const int64_t entries = table_entries(self->in[0]->dtype);
    if (table->rank >= 0 &&
        (table->rank != 1 || (table->dims[0].value >= 0 && table->dims[0].value != entries)))
        return qn_infer_fail(self, "the table must be a list of %lld numbers", (long long)entries);
    qn_infer_copy_dims(self, 0, 0, table->dtype);
    return QN_OK;
}

static qn_status table_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0], *table = self->in[1], *out = self->out[0];
    const int64_t count = qn_tensor_count(in), least = qn_limits_of(in->dtype).min;
    const int64_t entries = table_entries(in->dtype);
    if (qn_tensor_count(table) != entries)
        return qn_eval_fail(self, "the table must be a list of %lld numbers", (long long)entries);
    for (int64_t i = 0; i < count; i++) {
        const int64_t y = qn_tensor_i64(table, qn_tensor_i64(in, i) - least);
        qn_store_i64(out->data, out->dtype, i, &y, 1);
    }
    return QN_OK;
}

const qn_op qn_op_qn_QTable = {.name = "QTable",
                               .domain = "quench",
                               .since = 1,
                               QN_PORTS(in, table_in),
                               QN_PORTS(out, table_out),
                               .flags = QN_OP_ELEMENTWISE,
                               .quant = QN_QUANT_ALREADY,
                               .infer = table_infer,
                               .eval = table_eval,
                               .brief = "a function of integers as a table"};

/* ---- QPRelu: y = quantize(v < 0 ? v * slope : v), v = dequantize(x) -------------------------- */

static const qn_port prelu_in[] = {{"x", 'X', QN_SET_QUANTIZED, 0},
                                   {"x_scale", '\0', SCALE, 0},
                                   {"x_zero_point", 'X', QN_SET_QUANTIZED, 0},
                                   {"slope", '\0', SCALE, 0},
                                   {"y_scale", '\0', SCALE, 0},
                                   {"y_zero_point", 'Y', QN_SET_QUANTIZED, 0}};

static qn_status prelu_infer(qn_infer *self)
{
    static const int32_t singles[] = {1, 2, 4, 5, -1};
    QN_TRY(qn_infer_singles(self, singles));
    QN_TRY(qn_infer_broadcast_to(self, 3, self->in[0]->rank, self->in[0]->dims));
    qn_infer_copy_dims(self, 0, 0, self->in[5]->dtype);
    return QN_OK;
}

static qn_status prelu_eval(qn_eval *self)
{
    const qn_tensor *in = self->in[0], *slope = self->in[3], *out = self->out[0];
    const int64_t count = qn_tensor_count(in);
    const qn_limits range = qn_limits_of(out->dtype);
    int64_t strides[QN_MAX_RANK];
    qn_qparams x, y;
    QN_TRY(qn_eval_qparams(&x, self, 1, 2));
    QN_TRY(qn_eval_qparams(&y, self, 4, 5));
    qn_broadcast_strides(strides, slope, in->rank, in->dims);
    for (int64_t i = 0; i < count; i++) {
        const float v = qn_dequantize(qn_tensor_i64(in, i), &x);
        const int64_t at = qn_offset_of(i, in->rank, in->dims, strides);
        const float below = v * (float)qn_tensor_f64(slope, at);
        const int64_t q = qn_quantize(v < 0 ? below : v, &y, range);
        qn_store_i64(out->data, out->dtype, i, &q, 1);
    }
    return QN_OK;
}

const qn_op qn_op_qn_QPRelu = {.name = "QPRelu",
                               .domain = "quench",
                               .since = 1,
                               QN_PORTS(in, prelu_in),
                               QN_PORTS(out, requantize_out),
                               .flags = QN_OP_ELEMENTWISE,
                               .quant = QN_QUANT_ALREADY,
                               .infer = prelu_infer,
                               .eval = prelu_eval,
                               .brief = "PRelu of a quantized tensor"};
