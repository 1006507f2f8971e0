/* ConvInteger, MatMulInteger, QLinearConv, QLinearMatMul. Products of 8-bit numbers are summed in
 * doubles, exactly: 2^53 holds 2^37 of them. */
#include <string.h>

#include "ops/conv.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/quantize.h"

#define BYTES (QN_SET(QN_INT8) | QN_SET(QN_UINT8))
#define BYTES_FLOAT8 (BYTES | QN_SET_FLOAT8)
#define SCALES (QN_SET(QN_FLOAT32) | QN_SET(QN_FLOAT16) | QN_SET(QN_BFLOAT16))

static qn_status zeroed(qn_eval *self, double **out, int64_t count)
{
    void *block;
    QN_TRY(qn_eval_scratch(self, &block, count, sizeof(double)));
    memset(block, 0, (size_t)count * sizeof(double));
    *out = block;
    return QN_OK;
}

/* ---- Parameters of matrices: single, one per row or column, or with the dims of the matrix ---------------- */

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
    qn_matmul_all_f64(*out, x, w, &g);
    return QN_OK;
}

/* ---- MatMulInteger -------------------------------------------------------------------------------------------- */

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

/* ---- QLinearMatMul ----------------------------------------------------------------------------------------------- */

static const qn_type_rule qlinear_matmul_types[] = {
    {21, QN_SET_FLOAT8 | QN_SET(QN_FLOAT16) | QN_SET(QN_BFLOAT16)}};
static const qn_port qlinear_matmul_in[] = {{"a", 'A', BYTES_FLOAT8, 0},
                                            {"a_scale", 'S', SCALES, 0},
                                            {"a_zero_point", 'A', BYTES_FLOAT8, 0},
                                            {"b", 'B', BYTES_FLOAT8, 0},
                                            {"b_scale", 'S', SCALES, 0},
                                            {"b_zero_point", 'B', BYTES_FLOAT8, 0},
                                            {"y_scale", 'S', SCALES, 0},
                                            {"y_zero_point", 'Y', BYTES_FLOAT8, 0}};
static const qn_port qlinear_matmul_out[] = {{"y", 'Y', BYTES_FLOAT8, 0}};

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
        const double y =
            integers ? (double)((float)sums[i] * (float)multiplier) : sums[i] * multiplier;
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

/* ---- ConvInteger --------------------------------------------------------------------------------------------------- */

static const qn_attr_spec conv_specs[] = {
    QN_ATTR(qn_window_attrs, kernel_shape, INTS), QN_WINDOW_ATTRS,
    QN_ATTR(qn_window_attrs, dilations, INTS), QN_INT_ATTR(qn_window_attrs, group, 1)};
static const qn_port conv_integer_in[] = {{"x", 'X', BYTES, 0},
                                          {"w", 'W', BYTES, 0},
                                          {"x_zero_point", 'X', BYTES, QN_OPTIONAL},
                                          {"w_zero_point", 'W', BYTES, QN_OPTIONAL}};

/* Input p is a single number or one for each filter of the weights w. */
static qn_status check_filters(const qn_infer *self, int32_t p, int32_t w)
{
    const qn_type *weights = self->in[w];
    qn_dim merged;
    if (qn_infer_rank(self, p) < 1 || (self->in[p]->rank == 1 && self->in[p]->dims[0].value == 1))
        return QN_OK;
    if (self->in[p]->rank != 1 ||
        (weights->rank > 0 && !qn_dim_merge(&merged, self->in[p]->dims[0], weights->dims[0])))
        return qn_infer_fail(self, "input %d must be a single number or one per filter", p);
    return QN_OK;
}

static double per_filter(const qn_tensor *p, int64_t filter)
{
    return qn_tensor_f64(p, qn_tensor_count(p) == 1 ? 0 : filter);
}

/* Sums of products of inputs x and w without their zero points (x[1], w[1]). */
static qn_status conv_sums(double **out, qn_conv *conv, qn_eval *self, const int32_t x[2],
                           const int32_t w[2])
{
    const qn_tensor *in = self->in[x[0]], *weights = self->in[w[0]];
    const qn_tensor *x_zero = qn_eval_in(self, x[1]), *w_zero = qn_eval_in(self, w[1]);
    const int64_t in_count = qn_tensor_count(in), w_count = qn_tensor_count(weights);
    double *a, *b;
    QN_TRY(qn_conv_make(conv, self, in, weights));
    QN_TRY(qn_eval_doubles(self, &a, in));
    QN_TRY(qn_eval_doubles(self, &b, weights));
    for (int64_t i = 0; x_zero && i < in_count; i++)
        a[i] -= qn_tensor_f64(x_zero, 0);
    for (int64_t i = 0; w_zero && i < w_count; i++)
        b[i] -= per_filter(w_zero, i / (w_count / conv->filters));
    QN_TRY(zeroed(self, out, qn_tensor_count(self->out[0])));
    return qn_conv_f64(*out, self, conv, a, b);
}

static qn_status conv_integer_infer(qn_infer *self)
{
    QN_TRY(qn_infer_single(self, 2));
    QN_TRY(check_filters(self, 3, 1));
    return qn_infer_conv(self, 0, 1, -1, QN_INT32);
}

static int64_t conv_integer_macs(const qn_infer *self)
{
    return qn_conv_macs(self, 1);
}

static qn_status conv_integer_eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0];
    qn_conv conv;
    double *sums;
    QN_TRY(conv_sums(&sums, &conv, self, (const int32_t[2]){0, 2}, (const int32_t[2]){1, 3}));
    qn_store_f64(out->data, out->dtype, 0, sums, qn_tensor_count(out));
    return QN_OK;
}

const qn_op qn_op_ConvInteger = {.name = "ConvInteger",
                                 .domain = "",
                                 .since = 10,
                                 QN_PORTS(in, conv_integer_in),
                                 QN_PORTS(out, int32_out),
                                 QN_ATTRS(conv_specs, qn_window_attrs),
                                 .quant = QN_QUANT_ALREADY,
                                 .infer = conv_integer_infer,
                                 .eval = conv_integer_eval,
                                 .macs = conv_integer_macs,
                                 .brief = "convolution of 8-bit integers into int32"};

/* ---- QLinearConv ------------------------------------------------------------------------------------------------------ */

static const qn_port qlinear_conv_in[] = {{"x", 'X', BYTES, 0},
                                          {"x_scale", '\0', QN_SET(QN_FLOAT32), 0},
                                          {"x_zero_point", 'X', BYTES, 0},
                                          {"w", 'W', BYTES, 0},
                                          {"w_scale", '\0', QN_SET(QN_FLOAT32), 0},
                                          {"w_zero_point", 'W', BYTES, 0},
                                          {"y_scale", '\0', QN_SET(QN_FLOAT32), 0},
                                          {"y_zero_point", 'Y', BYTES, 0},
                                          {"B", '\0', QN_SET(QN_INT32), QN_OPTIONAL}};
static const qn_port qlinear_conv_out[] = {{"y", 'Y', BYTES, 0}};

static qn_status qlinear_conv_infer(qn_infer *self)
{
    static const int32_t singles[] = {1, 2, 6, 7};
    for (size_t i = 0; i < QN_COUNT_OF(singles); i++)
        QN_TRY(qn_infer_single(self, singles[i]));
    QN_TRY(check_filters(self, 4, 3));
    QN_TRY(check_filters(self, 5, 3));
    return qn_infer_conv(self, 0, 3, 8, self->in[7]->dtype);
}

static int64_t qlinear_conv_macs(const qn_infer *self)
{
    return qn_conv_macs(self, 3);
}

static qn_status qlinear_conv_eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0], *w_scale = self->in[4], *bias = qn_eval_in(self, 8);
    const int64_t count = qn_tensor_count(out);
    const qn_range range = qn_range_of(out->dtype);
    qn_quant x, y;
    qn_conv conv;
    double *sums;
    QN_TRY(qn_eval_quant(&x, self, 1, 2));
    QN_TRY(qn_eval_quant(&y, self, 6, 7));
    QN_TRY(conv_sums(&sums, &conv, self, (const int32_t[2]){0, 2}, (const int32_t[2]){3, 5}));
    const int64_t area = qn_window_out_size(&conv.window);
    for (int64_t i = 0; i < count; i++) {
        const int64_t filter = i / area % conv.filters;
        const double scale = (double)x.scale * per_filter(w_scale, filter) / (double)y.scale;
        const float sum = (float)sums[i] + (bias ? (float)qn_tensor_f64(bias, filter) : 0.0f);
        const int64_t q = qn_requantize(sum, (float)scale, y.zero, range);
        qn_store_i64(out->data, out->dtype, i, &q, 1);
    }
    return QN_OK;
}

const qn_op qn_op_QLinearConv = {.name = "QLinearConv",
                                 .domain = "",
                                 .since = 10,
                                 QN_PORTS(in, qlinear_conv_in),
                                 QN_PORTS(out, qlinear_conv_out),
                                 QN_ATTRS(conv_specs, qn_window_attrs),
                                 .quant = QN_QUANT_ALREADY,
                                 .infer = qlinear_conv_infer,
                                 .eval = qlinear_conv_eval,
                                 .macs = qlinear_conv_macs,
                                 .brief = "convolution of quantized tensors"};
