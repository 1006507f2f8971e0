/* com.microsoft's QGemm: a fully connected layer of quantized tensors. */
#include "ops/elementwise.h"
#include "ops/nn_attrs.h"
#include "ops/quantize.h"

#define SCALE QN_SET(QN_FLOAT32)

static const qn_attr_spec specs[] = {QN_FLOAT_ATTR(qn_gemm_attrs, alpha, 1),
                                     QN_INT_ATTR(qn_gemm_attrs, transA, 0),
                                     QN_INT_ATTR(qn_gemm_attrs, transB, 0)};
static const qn_type_rule type_rules[] = {{QN_NO_OPSET, QN_SET_QUANTIZED_WIDE | QN_SET(QN_INT64)}};
static const qn_port ports_in[] = {{"A", 'A', QN_SET_QUANTIZED, 0},
                                   {"a_scale", '\0', SCALE, 0},
                                   {"a_zero_point", 'A', QN_SET_QUANTIZED, 0},
                                   {"B", 'B', QN_SET_QUANTIZED, 0},
                                   {"b_scale", '\0', SCALE, 0},
                                   {"b_zero_point", 'B', QN_SET_QUANTIZED, 0},
                                   {"C", '\0', QN_SET(QN_INT32) | QN_SET(QN_INT64), QN_OPTIONAL},
                                   {"y_scale", '\0', SCALE, QN_OPTIONAL},
                                   {"y_zero_point", '\0', QN_SET_QUANTIZED, QN_OPTIONAL}};
static const qn_port ports_out[] = {{"Y", '\0', QN_SET_QUANTIZED | SCALE, 0}};

/* Input p is a single number or one per column of the result. */
static qn_status check_columns(const qn_infer *self, int32_t p, qn_dim columns)
{
    const int32_t rank = qn_infer_rank(self, p);
    qn_dim merged;
    if (rank < 1 || (rank == 1 && (self->in[p]->dims[0].value == 1 ||
                                   qn_dim_merge(&merged, self->in[p]->dims[0], columns))))
        return QN_OK;
    return qn_infer_fail(self, "input %d must be a single number or one per column", p);
}

/* Without a scale for the result it stays float. */
static qn_dtype result_type(const qn_infer *self)
{
    if (!qn_infer_has(self, 7))
        return QN_FLOAT32;
    return qn_infer_has(self, 8) ? self->in[8]->dtype : self->in[0]->dtype;
}

static qn_status infer(qn_infer *self)
{
    const qn_gemm_attrs *attrs = self->attrs;
    const qn_type *a = self->in[0], *b = self->in[3];
    static const int32_t singles[] = {1, 2, 7, 8};
    qn_dim k;
    qn_infer_set_dtype(self, 0, result_type(self));
    for (size_t i = 0; i < QN_COUNT_OF(singles); i++)
        QN_TRY(qn_infer_single(self, singles[i]));
    if (a->rank < 0 || b->rank < 0)
        return QN_OK;
    if (a->rank != 2 || b->rank != 2)
        return qn_infer_fail(self, "the matrices have %d and %d dimensions", a->rank, b->rank);
    const qn_dim dims[2] = {a->dims[attrs->transA ? 1 : 0], b->dims[attrs->transB ? 0 : 1]};
    if (!qn_dim_merge(&k, a->dims[attrs->transA ? 0 : 1], b->dims[attrs->transB ? 1 : 0]))
        return qn_infer_fail(self, "the inner dimensions differ");
    QN_TRY(check_columns(self, 4, dims[1]));
    QN_TRY(check_columns(self, 5, dims[1]));
    QN_TRY(qn_infer_broadcast_to(self, 6, 2, dims));
    qn_infer_set(self, 0, result_type(self), 2, dims);
    return QN_OK;
}

static int64_t macs(const qn_infer *self)
{
    const qn_gemm_attrs *attrs = self->attrs;
    int64_t a[QN_MAX_RANK], b[QN_MAX_RANK], count;
    if (!qn_type_is_static(self->in[0], a) || !qn_type_is_static(self->in[3], b) ||
        !qn_mul_int64(&count, a[0], a[1]) || !qn_mul_int64(&count, count, b[attrs->transB ? 0 : 1]))
        return 0;
    return count;
}

static double per_column(const qn_tensor *p, int64_t column)
{
    return qn_tensor_f64(p, qn_tensor_count(p) == 1 ? 0 : column);
}

/* The sum of products for row i and column j, exact. */
static double element_sum(const qn_eval *self, int64_t i, int64_t j)
{
    const qn_gemm_attrs *attrs = self->attrs;
    const qn_tensor *a = self->in[0], *b = self->in[3];
    const int64_t k = a->dims[attrs->transA ? 0 : 1];
    const double a_zero = qn_tensor_f64(self->in[2], 0), b_zero = per_column(self->in[5], j);
    double sum = 0;
    for (int64_t l = 0; l < k; l++) {
        const int64_t at_a = attrs->transA ? l * a->dims[1] + i : i * k + l;
        const int64_t at_b = attrs->transB ? j * k + l : l * b->dims[1] + j;
        sum += (qn_tensor_f64(a, at_a) - a_zero) * (qn_tensor_f64(b, at_b) - b_zero);
    }
    return sum;
}

static qn_status eval(qn_eval *self)
{
    const qn_gemm_attrs *attrs = self->attrs;
    const qn_tensor *out = self->out[0], *c = qn_eval_in(self, 6);
    const int64_t count = qn_tensor_count(out);
    const bool is_int64 = qn_mac_is_int64(self, 0, 3);
    int64_t strides[QN_MAX_RANK] = {0};
    qn_qparams x, y;
    QN_TRY(qn_eval_qparams(&x, self, 1, 2));
    QN_TRY(qn_eval_qparams(&y, self, 7, 8));
    if (c)
        qn_broadcast_strides(strides, c, out->rank, out->dims);
    const qn_mac_end end = {c, is_int64, y, qn_limits_of(out->dtype)};
    for (int64_t at = 0; at < count; at++) {
        const int64_t i = at / out->dims[1], j = at % out->dims[1];
        const float scale = attrs->alpha * x.scale * (float)per_column(self->in[4], j);
        const int64_t place = qn_offset_of(at, out->rank, out->dims, strides);
        const double products = element_sum(self, i, j);
        if (out->dtype == QN_FLOAT32) {
            ((float *)out->data)[at] = qn_mac_sum(products, c, place, is_int64) * scale;
            continue;
        }
        const int64_t q = qn_mac_requantize(&end, products, place, scale);
        qn_store_i64(out->data, out->dtype, at, &q, 1);
    }
    return QN_OK;
}

const qn_op qn_op_ms_QGemm = {.name = "QGemm",
                              .domain = "com.microsoft",
                              .since = 1,
                              QN_PORTS(in, ports_in),
                              QN_PORTS(out, ports_out),
                              QN_ATTRS(specs, qn_gemm_attrs),
                              QN_TYPE_RULES(type_rules),
                              .quant = QN_QUANT_ALREADY,
                              .infer = infer,
                              .eval = eval,
                              .macs = macs,
                              .brief = "Gemm of quantized tensors"};
