/* MatMulInteger, QLinearMatMul, MatMulIntegerToFloat, DynamicQuantizeMatMul, QMatMul. Products are
 * summed in doubles, exactly: 2^53 holds 2^37 products of 8-bit and 2^19 of 16-bit numbers. */
#include <string.h>

#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/quantize.h"

#define BYTES (QN_SET(QN_INT8) | QN_SET(QN_UINT8))
#define NARROW (QN_SET_QUANTIZED | QN_SET_FLOAT8)
#define SCALES (QN_SET(QN_FLOAT32) | QN_SET(QN_FLOAT16) | QN_SET(QN_BFLOAT16))

static qn_status zeroed(qn_eval *self, double **out, int64_t count)
{
    void *block;
    QN_TRY(qn_eval_scratch(self, &block, count, sizeof(double)));
    memset(block, 0, (size_t)count * sizeof(double));
    *out = block;
    return QN_OK;
}

/* ---- Parameters of matrices: single, one per row or column, or with the dims of the matrix --- */

/* Input p holds parameters for the dims of a matrix; a list goes along its rows, or its columns. */
static qn_status check_along(const qn_infer *self, int32_t p, const qn_type *x, bool rows)
{
    const int32_t rank = qn_infer_rank(self, p);
    qn_dim merged;
    if (rank < 1 || x->rank < 0)
        return QN_OK;
    if (rank == 1 && self->in[p]->dims[0].value == 1)
        return QN_OK;
    if (rank > 1 || !rows)
        return qn_infer_broadcast_to(self, p, x->rank, x->dims);
    if (x->rank < 2 || !qn_dim_merge(&merged, self->in[p]->dims[0], x->dims[x->rank - 2]))
        return qn_infer_fail(self, "input %d must be a single number or one per row", p);
    return QN_OK;
}

/* The parameter's strides under the dims of a matrix. */
static void along_strides(int64_t *strides, const qn_tensor *p, const qn_tensor *x, bool rows)
{
    qn_tensor view = *p;
    if (qn_tensor_count(p) == 1) {
        view.rank = 0;
    } else if (p->rank == 1 && rows) {
        view.rank = 2;
        view.dims[1] = 1;
    }
    qn_broadcast_strides(strides, &view, x->rank, x->dims);
}

/* Input x minus its zero points. */
static qn_status centered(double **out, qn_eval *self, int32_t x, int32_t zero, bool rows)
{
    const qn_tensor *in = self->in[x], *z = qn_eval_in(self, zero);
    const int64_t count = qn_tensor_count(in);
    int64_t strides[QN_MAX_RANK];
    QN_TRY(qn_eval_doubles(self, out, in));
    if (!z)
        return QN_OK;
    along_strides(strides, z, in, rows);
    for (int64_t i = 0; i < count; i++)
        (*out)[i] -= qn_tensor_f64(z, qn_offset_of(i, in->rank, in->dims, strides));
    return QN_OK;
}

/* Sums of products of inputs a and b without their zero points. */
static qn_status matmul_sums(double **out, qn_eval *self, const int32_t a[2], const int32_t b[2])
{
    double *x, *w;
    qn_matmul g;
    qn_matmul_geometry(&g, self->in[a[0]], self->in[b[0]]);
    QN_TRY(centered(&x, self, a[0], a[1], true));
    QN_TRY(centered(&w, self, b[0], b[1], false));
    QN_TRY(zeroed(self, out, qn_tensor_count(self->out[0])));
    return qn_matmul_all_f64(*out, self->ctx, x, w, &g);
}

/* ---- MatMulInteger --------------------------------------------------------------------------- */

static const qn_port matmul_integer_in[] = {{"A", 'A', BYTES, 0},
                                            {"B", 'B', BYTES, 0},
                                            {"a_zero_point", 'A', BYTES, QN_OPTIONAL},
                                            {"b_zero_point", 'B', BYTES, QN_OPTIONAL}};
static const qn_port int32_out[] = {{"Y", '\0', QN_SET(QN_INT32), 0}};

static qn_status matmul_integer_infer(qn_infer *self)
{
    QN_TRY(check_along(self, 2, self->in[0], true));
    QN_TRY(check_along(self, 3, self->in[1], false));
    return qn_infer_matmul(self, 0, 1, QN_INT32);
}

static int64_t matmul_integer_macs(const qn_infer *self)
{
    return qn_matmul_macs(self, 0);
}

static qn_status matmul_integer_eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0];
    double *sums;
    QN_TRY(matmul_sums(&sums, self, (const int32_t[2]){0, 2}, (const int32_t[2]){1, 3}));
    qn_store_f64(out->data, out->dtype, 0, sums, qn_tensor_count(out));
    return QN_OK;
}

const qn_op qn_op_MatMulInteger = {.name = "MatMulInteger",
                                   .domain = "",
                                   .since = 10,
                                   QN_PORTS(in, matmul_integer_in),
                                   QN_PORTS(out, int32_out),
                                   .quant = QN_QUANT_ALREADY,
                                   .infer = matmul_integer_infer,
                                   .eval = matmul_integer_eval,
                                   .macs = matmul_integer_macs,
                                   .brief = "matrix product of 8-bit integers into int32"};

/* ---- QLinearMatMul --------------------------------------------------------------------------- */

static const qn_type_rule qlinear_matmul_types[] = {
    {21, QN_SET_FLOAT8 | QN_SET(QN_FLOAT16) | QN_SET(QN_BFLOAT16)},
    {QN_NO_OPSET, QN_SET_QUANTIZED_WIDE}};
static const qn_port qlinear_matmul_in[] = {
    {"a", 'A', NARROW, 0},       {"a_scale", 'S', SCALES, 0},     {"a_zero_point", 'A', NARROW, 0},
    {"b", 'B', NARROW, 0},       {"b_scale", 'S', SCALES, 0},     {"b_zero_point", 'B', NARROW, 0},
    {"y_scale", 'S', SCALES, 0}, {"y_zero_point", 'Y', NARROW, 0}};
static const qn_port qlinear_matmul_out[] = {{"y", 'Y', NARROW, 0}};

static qn_status qlinear_matmul_infer(qn_infer *self)
{
    const qn_type *a = self->in[0], *b = self->in[3];
    QN_TRY(qn_infer_matmul(self, 0, 3, self->in[7]->dtype));
    for (int32_t i = 1; i <= 2; i++) {
        QN_TRY(check_along(self, i, a, true));
        QN_TRY(check_along(self, i + 3, b, false));
        if (qn_infer_wants(self, 0))
            QN_TRY(check_along(self, i + 5, self->out[0], true));
    }
    return QN_OK;
}

static int64_t qlinear_matmul_macs(const qn_infer *self)
{
    return qn_matmul_macs(self, 0);
}

static qn_status qlinear_matmul_eval(qn_eval *self)
{
    static const int32_t inputs[4] = {1, 4, 6, 7}; /* scales of a, b, y; zero point of y */
    const qn_tensor *out = self->out[0];
    const int64_t count = qn_tensor_count(out);
    const bool integers = qn_dtype_is_integer(self->in[0]->dtype);
    const bool fixed_point = qn_node_is_fixed_point(self->node);
    const qn_limits range = qn_limits_of(out->dtype);
    int64_t strides[4][QN_MAX_RANK];
    double *sums;
    QN_TRY(matmul_sums(&sums, self, (const int32_t[2]){0, 2}, (const int32_t[2]){3, 5}));
    for (int i = 0; i < 4; i++)
        along_strides(strides[i], self->in[inputs[i]], out, i != 1);
    for (int64_t i = 0; i < count; i++) {
        double p[4];
        for (int j = 0; j < 4; j++)
            p[j] = qn_tensor_f64(self->in[inputs[j]],
                                 qn_offset_of(i, out->rank, out->dims, strides[j]));
        const double multiplier = p[0] * p[1] / p[2];
        if (fixed_point && integers) {
            const qn_mac_end end = {.y = {.scale = (float)p[2],
                                          .zero = (int64_t)p[3],
                                          .requantization = QN_REQUANTIZE_FIXED_POINT},
                                    .range = range};
            const int64_t q = qn_mac_requantize(&end, sums[i], 0, (float)p[0] * (float)p[1]);
            qn_store_i64(out->data, out->dtype, i, &q, 1);
            continue;
        }
        const double y =
            integers
                ? (double)((float)sums[i] * qn_multiplier((float)p[0], (float)p[1], (float)p[2]))
                : sums[i] * multiplier;
        qn_store_quantized(out, i, y, p[3], true);
    }
    return QN_OK;
}

const qn_op qn_op_QLinearMatMul = {.name = "QLinearMatMul",
                                   .domain = "",
                                   .since = 10,
                                   QN_PORTS(in, qlinear_matmul_in),
                                   QN_PORTS(out, qlinear_matmul_out),
                                   QN_TYPE_RULES(qlinear_matmul_types),
                                   .quant = QN_QUANT_ALREADY,
                                   .infer = qlinear_matmul_infer,
                                   .eval = qlinear_matmul_eval,
                                   .macs = qlinear_matmul_macs,
                                   .brief = "matrix product of quantized tensors"};

/* ---- MatMulIntegerToFloat -------------------------------------------------------------------- */

static const qn_type_rule to_float_types[] = {{QN_NO_OPSET, QN_SET_QUANTIZED_WIDE}};
static const qn_port to_float_in[] = {{"A", 'A', QN_SET_QUANTIZED, 0},
                                      {"B", 'B', QN_SET_QUANTIZED, 0},
                                      {"a_scale", '\0', QN_SET(QN_FLOAT32), 0},
                                      {"b_scale", '\0', QN_SET(QN_FLOAT32), 0},
                                      {"a_zero_point", 'A', QN_SET_QUANTIZED, QN_OPTIONAL},
                                      {"b_zero_point", 'B', QN_SET_QUANTIZED, QN_OPTIONAL},
                                      {"bias", '\0', QN_SET(QN_FLOAT32), QN_OPTIONAL}};
static const qn_port to_float_out[] = {{"Y", '\0', QN_SET(QN_FLOAT32), 0}};

static qn_status to_float_infer(qn_infer *self)
{
    QN_TRY(qn_infer_matmul(self, 0, 1, QN_FLOAT32));
    for (int32_t i = 2; i <= 4; i += 2) {
        QN_TRY(check_along(self, i, self->in[0], true));
        QN_TRY(check_along(self, i + 1, self->in[1], false));
    }
    if (qn_infer_wants(self, 0) && self->out[0]->rank >= 0)
        QN_TRY(qn_infer_broadcast_to(self, 6, self->out[0]->rank, self->out[0]->dims));
    return QN_OK;
}

static qn_status to_float_eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0], *bias = qn_eval_in(self, 6);
    const int64_t count = qn_tensor_count(out);
    int64_t a[QN_MAX_RANK], b[QN_MAX_RANK], c[QN_MAX_RANK];
    double *sums;
    QN_TRY(matmul_sums(&sums, self, (const int32_t[2]){0, 4}, (const int32_t[2]){1, 5}));
    along_strides(a, self->in[2], out, true);
    along_strides(b, self->in[3], out, false);
    if (bias)
        qn_broadcast_strides(c, bias, out->rank, out->dims);
    for (int64_t i = 0; i < count; i++) {
        const double scale = qn_tensor_f64(self->in[2], qn_offset_of(i, out->rank, out->dims, a)) *
                             qn_tensor_f64(self->in[3], qn_offset_of(i, out->rank, out->dims, b));
        float y = (float)sums[i] * (float)scale;
        if (bias)
            y += ((const float *)bias->data)[qn_offset_of(i, out->rank, out->dims, c)];
        ((float *)out->data)[i] = y;
    }
    return QN_OK;
}

const qn_op qn_op_ms_MatMulIntegerToFloat = {
    .name = "MatMulIntegerToFloat",
    .domain = "com.microsoft",
    .since = 1,
    QN_PORTS(in, to_float_in),
    QN_PORTS(out, to_float_out),
    QN_TYPE_RULES(to_float_types),
    .quant = QN_QUANT_ALREADY,
    .infer = to_float_infer,
    .eval = to_float_eval,
    .macs = matmul_integer_macs,
    .brief = "matrix product of quantized tensors into float32"};

/* ---- DynamicQuantizeMatMul: DynamicQuantizeLinear, then MatMulIntegerToFloat ----------------- */

static const qn_port dynamic_in[] = {{"A", '\0', QN_SET(QN_FLOAT32), 0},
                                     {"B", 'B', BYTES, 0},
                                     {"b_scale", '\0', QN_SET(QN_FLOAT32), 0},
                                     {"b_zero_point", 'B', BYTES, QN_OPTIONAL},
                                     {"bias", '\0', QN_SET(QN_FLOAT32), QN_OPTIONAL}};

static qn_status dynamic_infer(qn_infer *self)
{
    QN_TRY(qn_infer_matmul(self, 0, 1, QN_FLOAT32));
    QN_TRY(check_along(self, 2, self->in[1], false));
    QN_TRY(check_along(self, 3, self->in[1], false));
    if (qn_infer_wants(self, 0) && self->out[0]->rank >= 0)
        QN_TRY(qn_infer_broadcast_to(self, 4, self->out[0]->rank, self->out[0]->dims));
    return QN_OK;
}

static qn_status dynamic_eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0], *bias = qn_eval_in(self, 4);
    const int64_t count = qn_tensor_count(out), inputs = qn_tensor_count(self->in[0]);
    const qn_qparams a = qn_dynamic_quant(self->in[0]->data, inputs);
    int64_t scales[QN_MAX_RANK], biases[QN_MAX_RANK];
    double *x, *w, *sums;
    qn_matmul g;
    qn_matmul_geometry(&g, self->in[0], self->in[1]);
    QN_TRY(qn_eval_doubles(self, &x, self->in[0]));
    for (int64_t i = 0; i < inputs; i++)
        x[i] = (double)(qn_quantize((float)x[i], &a, qn_limits_of(QN_UINT8)) - a.zero);
    QN_TRY(centered(&w, self, 1, 3, false));
    QN_TRY(zeroed(self, &sums, count));
    QN_TRY(qn_matmul_all_f64(sums, self->ctx, x, w, &g));
    along_strides(scales, self->in[2], out, false);
    if (bias)
        qn_broadcast_strides(biases, bias, out->rank, out->dims);
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = qn_offset_of(i, out->rank, out->dims, scales);
        float y = (float)sums[i] * (a.scale * (float)qn_tensor_f64(self->in[2], at));
        if (bias)
            y += ((const float *)bias->data)[qn_offset_of(i, out->rank, out->dims, biases)];
        ((float *)out->data)[i] = y;
    }
    return QN_OK;
}

const qn_op qn_op_ms_DynamicQuantizeMatMul = {
    .name = "DynamicQuantizeMatMul",
    .domain = "com.microsoft",
    .since = 1,
    QN_PORTS(in, dynamic_in),
    QN_PORTS(out, to_float_out),
    .quant = QN_QUANT_ALREADY,
    .infer = dynamic_infer,
    .eval = dynamic_eval,
    .macs = matmul_integer_macs,
    .brief = "matrix product of floats, quantized while running, with quantized weights"};

/* ---- QMatMul: QLinearMatMul with an integer bias; without a scale for y it stays float ------- */

static const qn_port product_in[] = {
    {"a", 'A', QN_SET_QUANTIZED, 0},
    {"a_scale", '\0', QN_SET(QN_FLOAT32), 0},
    {"a_zero_point", 'A', QN_SET_QUANTIZED, 0},
    {"b", 'B', QN_SET_QUANTIZED, 0},
    {"b_scale", '\0', QN_SET(QN_FLOAT32), 0},
    {"b_zero_point", 'B', QN_SET_QUANTIZED, 0},
    {"y_scale", '\0', QN_SET(QN_FLOAT32), QN_OPTIONAL},
    {"y_zero_point", '\0', QN_SET_QUANTIZED, QN_OPTIONAL},
    {"bias", '\0', QN_SET(QN_INT32) | QN_SET(QN_INT64), QN_OPTIONAL}};
static const qn_port product_out[] = {{"y", '\0', QN_SET_QUANTIZED | QN_SET(QN_FLOAT32), 0}};

static qn_status product_infer(qn_infer *self)
{
    static const int32_t singles[] = {1, 2, 6, 7};
    const bool to_float = !qn_infer_has(self, 6);
    for (size_t i = 0; i < QN_COUNT_OF(singles); i++)
        QN_TRY(qn_infer_single(self, singles[i]));
    if (to_float != !qn_infer_has(self, 7))
        return qn_infer_fail(self, "y has a scale or a zero point, not both");
    QN_TRY(qn_infer_matmul(self, 0, 3, to_float ? QN_FLOAT32 : self->in[7]->dtype));
    QN_TRY(check_along(self, 4, self->in[3], false));
    QN_TRY(check_along(self, 5, self->in[3], false));
    if (qn_infer_has(self, 8) && qn_infer_rank(self, 8) > 1)
        return qn_infer_fail(self, "the bias must have one number per column");
    return qn_infer_has(self, 8) ? check_along(self, 8, self->in[3], false) : QN_OK;
}

static qn_status product_eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0], *bias = qn_eval_in(self, 8), *b_scale = self->in[4];
    const bool to_float = out->dtype == QN_FLOAT32, is_int64 = qn_mac_is_int64(self, 0, 3);
    const int64_t count = qn_tensor_count(out), columns = out->rank ? out->dims[out->rank - 1] : 1;
    const bool each = qn_tensor_count(b_scale) > 1;
    qn_qparams a, y = qn_qparams_of_type(QN_UINT8);
    double *sums;
    QN_TRY(qn_eval_qparams(&a, self, 1, 2));
    if (!to_float)
        QN_TRY(qn_eval_qparams(&y, self, 6, 7));
    QN_TRY(matmul_sums(&sums, self, (const int32_t[2]){0, 2}, (const int32_t[2]){3, 5}));
    const qn_mac_end end = {bias, is_int64, y, qn_limits_of(out->dtype)};
    for (int64_t i = 0; i < count; i++) {
        const int64_t column = i % columns;
        const float scale = a.scale * (float)qn_tensor_f64(b_scale, each ? column : 0);
        if (to_float) {
            ((float *)out->data)[i] = qn_mac_sum(sums[i], bias, column, is_int64) * scale;
            continue;
        }
        const int64_t q = qn_mac_requantize(&end, sums[i], column, scale);
        qn_store_i64(out->data, out->dtype, i, &q, 1);
    }
    return QN_OK;
}

const qn_op qn_op_qn_QMatMul = {.name = "QMatMul",
                                .domain = "quench",
                                .since = 1,
                                QN_PORTS(in, product_in),
                                QN_PORTS(out, product_out),
                                .quant = QN_QUANT_ALREADY,
                                .infer = product_infer,
                                .eval = product_eval,
                                .macs = qlinear_matmul_macs,
                                .brief = "matrix product of quantized tensors with a bias"};
