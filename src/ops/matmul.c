/* MatMul, Gemm and the geometry of products. */
#include "ops/matmul.h"

#include <string.h>

#include "ops/elementwise.h"
#include "ops/nn_attrs.h"
#include "ops/versions.h"

/* ---- Inference ------------------------------------------------------------------------------- */

static qn_status batch_dims(qn_infer *self, qn_dim *dims, int32_t rank, const qn_type *const x[2])
{
    for (int32_t d = 0; d < rank; d++) {
        dims[d] = qn_dim_of(1);
        for (int i = 0; i < 2; i++) {
            const int32_t at = d - rank + x[i]->rank - 2;
            if (at >= 0 && !qn_dim_broadcast(&dims[d], dims[d], x[i]->dims[at]))
                return qn_infer_fail(self, "the batch dimensions %lld and %lld do not broadcast",
                                     (long long)dims[d].value, (long long)x[i]->dims[at].value);
        }
    }
    return QN_OK;
}

qn_status qn_infer_matmul(qn_infer *self, int32_t a, int32_t b, qn_dtype dtype)
{
    const qn_type *x = self->in[a], *y = self->in[b];
    const qn_type *const both[2] = {x, y};
    qn_dim dims[QN_MAX_RANK], k;
    qn_infer_set_dtype(self, 0, dtype);
    if (x->rank == 0 || y->rank == 0)
        return qn_infer_fail(self, "a scalar cannot be multiplied as a matrix");
    if (x->rank < 0 || y->rank < 0)
        return QN_OK;
    const qn_dim inner = y->dims[y->rank == 1 ? 0 : y->rank - 2];
    if (!qn_dim_merge(&k, x->dims[x->rank - 1], inner))
        return qn_infer_fail(self, "the inner dimensions %lld and %lld differ",
                             (long long)x->dims[x->rank - 1].value, (long long)inner.value);
    int32_t rank = QN_MAX(QN_MAX(x->rank, y->rank) - 2, 0);
    QN_TRY(batch_dims(self, dims, rank, both));
    if (x->rank > 1)
        dims[rank++] = x->dims[x->rank - 2];
    if (y->rank > 1)
        dims[rank++] = y->dims[y->rank - 1];
    qn_infer_set(self, 0, dtype, rank, dims);
    return QN_OK;
}

int64_t qn_matmul_macs(const qn_infer *self, int32_t a)
{
    int64_t dims[QN_MAX_RANK], count, macs;

    const int32_t rank = self->in[a]->rank;
    if (!self->out[0] || !qn_type_is_static(self->out[0], dims) ||
        !qn_dims_count(&count, self->out[0]->rank, dims) || rank < 1 ||
        !qn_mul_int64(&macs, count, self->in[a]->dims[rank - 1].value))
        return 0;
    return macs;
}

/* ---- Geometry and products ------------------------------------------------------------------- */

/* A tensor's batch part seen as a tensor of its own, for the strides of the broadcast. */
static void batch_strides(int64_t *strides, const qn_tensor *x, const qn_matmul *g, int64_t matrix)
{
    qn_tensor part = {.rank = QN_MAX(x->rank - 2, 0)};
    memcpy(part.dims, x->dims, sizeof part.dims);
    qn_broadcast_strides(strides, &part, g->batch_rank, g->batch);
    for (int32_t d = 0; d < g->batch_rank; d++)
        strides[d] *= matrix;
}

void qn_matmul_geometry(qn_matmul *out, const qn_tensor *a, const qn_tensor *b)
{
    *out = (qn_matmul){.m = a->rank > 1 ? a->dims[a->rank - 2] : 1,
                       .k = a->dims[a->rank - 1],
                       .n = b->rank > 1 ? b->dims[b->rank - 1] : 1,
                       .batch_rank = QN_MAX(QN_MAX(a->rank, b->rank) - 2, 0)};
    for (int32_t d = 0; d < out->batch_rank; d++) {
        const int32_t at_a = d - out->batch_rank + a->rank - 2;
        const int32_t at_b = d - out->batch_rank + b->rank - 2;
        const int64_t x = at_a >= 0 ? a->dims[at_a] : 1, y = at_b >= 0 ? b->dims[at_b] : 1;
        out->batch[d] = x == 1 ? y : x;
    }
    batch_strides(out->a_strides, a, out, out->m * out->k);
    batch_strides(out->b_strides, b, out, out->k * out->n);
}

int64_t qn_matmul_batches(const qn_matmul *g)
{
    int64_t count = 1;
    for (int32_t d = 0; d < g->batch_rank; d++)
        count *= g->batch[d];
    return count;
}

qn_status qn_matmul_f64(double *y, qn_context *ctx, const double *a, const double *b,
                        const qn_matmul *g)
{
    for (int64_t i = 0; i < g->m; i++) {
        QN_TRY(qn_check_cancel(ctx));
        for (int64_t l = 0; l < g->k; l++) {
            const double x = a[i * g->k + l];
            for (int64_t j = 0; j < g->n; j++)
                y[i * g->n + j] += x * b[l * g->n + j];
        }
    }
    return QN_OK;
}

/* Sums wrap around, as the integers of any type do. */
qn_status qn_matmul_i64(int64_t *y, qn_context *ctx, const int64_t *a, const int64_t *b,
                        const qn_matmul *g)
{
    uint64_t *sums = (uint64_t *)y;
    for (int64_t i = 0; i < g->m; i++) {
        QN_TRY(qn_check_cancel(ctx));
        for (int64_t l = 0; l < g->k; l++) {
            const uint64_t x = (uint64_t)a[i * g->k + l];
            for (int64_t j = 0; j < g->n; j++)
                sums[i * g->n + j] += x * (uint64_t)b[l * g->n + j];
        }
    }
    return QN_OK;
}

#define ALL(suffix, type)                                                                          \
    qn_status qn_matmul_all_##suffix(type *y, qn_context *ctx, const type *a, const type *b,       \
                                     const qn_matmul *g)                                           \
    {                                                                                              \
        const int64_t batches = qn_matmul_batches(g);                                              \
        for (int64_t i = 0; i < batches; i++) {                                                    \
            const int64_t at_a = qn_offset_of(i, g->batch_rank, g->batch, g->a_strides);           \
            const int64_t at_b = qn_offset_of(i, g->batch_rank, g->batch, g->b_strides);           \
            QN_TRY(qn_matmul_##suffix(y + i * g->m * g->n, ctx, a + at_a, b + at_b, g));           \
        }                                                                                          \
        return QN_OK;                                                                              \
    }
ALL(f64, double)
ALL(i64, int64_t)

/* ---- MatMul ---------------------------------------------------------------------------------- */

#define MATMUL_SET                                                                                 \
    (QN_SET_FLOAT | QN_SET(QN_INT32) | QN_SET(QN_INT64) | QN_SET(QN_UINT32) | QN_SET(QN_UINT64))
static const qn_type_rule matmul_types[] = {{9, QN_SET_INT}};
static const qn_port matmul_in[] = {{"A", 'T', MATMUL_SET, 0}, {"B", 'T', MATMUL_SET, 0}};
static const qn_port matmul_out[] = {{"Y", 'T', MATMUL_SET, 0}};

static qn_status matmul_infer(qn_infer *self)
{
    return qn_infer_matmul(self, 0, 1, self->in[0]->dtype);
}

static int64_t matmul_macs(const qn_infer *self)
{
    return qn_matmul_macs(self, 0);
}

static qn_status zeroed(qn_eval *self, void **out, int64_t count, size_t size)
{
    QN_TRY(qn_eval_scratch(self, out, count, size));
    memset(*out, 0, (size_t)count * size);
    return QN_OK;
}

static qn_status matmul_eval(qn_eval *self)
{
    const qn_tensor *out = self->out[0];
    const int64_t count = qn_tensor_count(out);
    qn_matmul g;
    void *y;
    qn_matmul_geometry(&g, self->in[0], self->in[1]);
    QN_TRY(zeroed(self, &y, count, sizeof(double)));
    if (qn_dtype_is_float(out->dtype)) {
        double *a, *b;
        QN_TRY(qn_eval_doubles(self, &a, self->in[0]));
        QN_TRY(qn_eval_doubles(self, &b, self->in[1]));
        QN_TRY(qn_matmul_all_f64(y, self->ctx, a, b, &g));
        qn_store_f64(out->data, out->dtype, 0, y, count);
    } else {
        int64_t *a, *b;
        QN_TRY(qn_eval_ints(self, &a, self->in[0]));
        QN_TRY(qn_eval_ints(self, &b, self->in[1]));
        QN_TRY(qn_matmul_all_i64(y, self->ctx, a, b, &g));
        qn_store_i64(out->data, out->dtype, 0, y, count);
    }
    return QN_OK;
}

const qn_op qn_op_MatMul = {.name = "MatMul",
                            .domain = "",
                            .since = 1,
                            QN_PORTS(in, matmul_in),
                            QN_PORTS(out, matmul_out),
                            QN_TYPE_RULES(matmul_types),
                            .quant = QN_QUANT_MAC,
                            .infer = matmul_infer,
                            .eval = matmul_eval,
                            .macs = matmul_macs,
                            .brief = "matrix product, stacks of matrices included"};

/* ---- Gemm ------------------------------------------------------------------------------------ */

static const qn_attr_spec gemm_specs[] = {
    QN_FLOAT_ATTR(qn_gemm_attrs, alpha, 1), QN_FLOAT_ATTR(qn_gemm_attrs, beta, 1),
    QN_INT_ATTR(qn_gemm_attrs, transA, 0), QN_INT_ATTR(qn_gemm_attrs, transB, 0),
    QN_INT_ATTR(qn_gemm_attrs, broadcast, 0, .until = 7)};
static const qn_port gemm_in[] = {
    {"A", 'T', MATMUL_SET, 0}, {"B", 'T', MATMUL_SET, 0}, {"C", 'T', MATMUL_SET, QN_OPTIONAL}};

static qn_status gemm_upgrade_7(qn_node **node)
{
    ((qn_gemm_attrs *)(*node)->attrs)->broadcast = 0;
    return QN_OK;
}

static qn_status gemm_downgrade_7(qn_node **node)
{
    ((qn_gemm_attrs *)(*node)->attrs)->broadcast = 1;
    return QN_OK;
}

/* Before opset 11 there had to be a C. */
static qn_status gemm_downgrade_11(qn_node **node)
{
    if ((*node)->n_in > 2 && (*node)->in[2])
        return QN_OK;
    return qn_upgrade_number(*node, 0, 2);
}

static const qn_version_rule gemm_versions[] = {{7, gemm_upgrade_7, gemm_downgrade_7},
                                                {11, NULL, gemm_downgrade_11}};

static qn_status gemm_infer(qn_infer *self)
{
    const qn_gemm_attrs *attrs = self->attrs;
    const qn_type *a = self->in[0], *b = self->in[1];
    qn_infer_set_dtype(self, 0, a->dtype);
    for (int32_t i = 0; i < 2; i++) {
        if (self->in[i]->rank >= 0 && self->in[i]->rank != 2)
            return qn_infer_fail(self, "input %d has %d dimensions instead of 2", i,
                                 self->in[i]->rank);
    }
    if (a->rank < 0 || b->rank < 0)
        return QN_OK;
    const qn_dim dims[2] = {a->dims[attrs->transA ? 1 : 0], b->dims[attrs->transB ? 0 : 1]};
    const qn_dim inner[2] = {a->dims[attrs->transA ? 0 : 1], b->dims[attrs->transB ? 1 : 0]};
    qn_dim k;
    if (!qn_dim_merge(&k, inner[0], inner[1]))
        return qn_infer_fail(self, "the inner dimensions %lld and %lld differ",
                             (long long)inner[0].value, (long long)inner[1].value);
    QN_TRY(qn_infer_broadcast_to(self, 2, 2, dims));
    qn_infer_set(self, 0, a->dtype, 2, dims);
    return QN_OK;
}

static int64_t gemm_macs(const qn_infer *self)
{
    const qn_gemm_attrs *attrs = self->attrs;
    int64_t a[QN_MAX_RANK], b[QN_MAX_RANK], macs;
    if (!qn_type_is_static(self->in[0], a) || !qn_type_is_static(self->in[1], b) ||
        !qn_mul_int64(&macs, a[0], a[1]) || !qn_mul_int64(&macs, macs, b[attrs->transB ? 0 : 1]))
        return 0;
    return macs;
}

/* Rows and columns change places; elements of 8 bytes of either wide type. */
static void transpose(void *out, const void *in, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++)
            memcpy((char *)out + (j * rows + i) * 8, (const char *)in + (i * columns + j) * 8, 8);
    }
}

/* Input i as wide numbers (doubles or int64), transposed where asked. */
static qn_status gemm_operand(void **out, qn_eval *self, int32_t i, bool transposed)
{
    const qn_tensor *x = self->in[i];
    double *f = NULL;
    int64_t *g = NULL;
    const bool is_float = qn_dtype_is_float(x->dtype);
    if (is_float)
        QN_TRY(qn_eval_doubles(self, &f, x));
    else
        QN_TRY(qn_eval_ints(self, &g, x));
    *out = is_float ? (void *)f : (void *)g;
    if (!transposed)
        return QN_OK;
    void *turned;
    QN_TRY(qn_eval_scratch(self, &turned, qn_tensor_count(x), sizeof(double)));
    transpose(turned, *out, x->dims[0], x->dims[1]);
    *out = turned;
    return QN_OK;
}

/* Element i of the product becomes alpha * it + beta * C. */
static void gemm_finish(const qn_eval *self, void *product, const int64_t *c_strides, int64_t i)
{
    const qn_gemm_attrs *attrs = self->attrs;
    const qn_tensor *out = self->out[0], *c = qn_eval_in(self, 2);
    const int64_t at = c ? qn_offset_of(i, 2, out->dims, c_strides) : 0;
    const double alpha = (double)attrs->alpha, beta = (double)attrs->beta;
    if (qn_dtype_is_float(out->dtype)) {
        const double y = alpha * ((double *)product)[i] + (c ? beta * qn_tensor_f64(c, at) : 0);
        qn_store_f64(out->data, out->dtype, i, &y, 1);
    } else if (alpha == 1 && (beta == 1 || !c)) {
        uint64_t y = ((uint64_t *)product)[i] + (c ? (uint64_t)qn_tensor_i64(c, at) : 0);
        qn_store_i64(out->data, out->dtype, i, (int64_t *)&y, 1);
    } else {
        const double y =
            alpha * (double)((int64_t *)product)[i] + (c ? beta * (double)qn_tensor_i64(c, at) : 0);
        qn_store_f64(out->data, out->dtype, i, &y, 1);
    }
}

static qn_status gemm_eval(qn_eval *self)
{
    const qn_gemm_attrs *attrs = self->attrs;
    const qn_tensor *a = self->in[0], *out = self->out[0];
    const int64_t count = qn_tensor_count(out);
    const qn_matmul g = {.m = out->dims[0], .k = a->dims[attrs->transA ? 0 : 1], .n = out->dims[1]};
    void *x, *w, *product;
    int64_t c_strides[QN_MAX_RANK];
    QN_TRY(gemm_operand(&x, self, 0, attrs->transA));
    QN_TRY(gemm_operand(&w, self, 1, attrs->transB));
    QN_TRY(zeroed(self, &product, count, sizeof(double)));
    if (qn_dtype_is_float(out->dtype))
        QN_TRY(qn_matmul_f64(product, self->ctx, x, w, &g));
    else
        QN_TRY(qn_matmul_i64(product, self->ctx, x, w, &g));
    if (qn_eval_in(self, 2))
        qn_broadcast_strides(c_strides, self->in[2], 2, out->dims);
    for (int64_t i = 0; i < count; i++)
        gemm_finish(self, product, c_strides, i);
    return QN_OK;
}

const qn_op qn_op_Gemm = {.name = "Gemm",
                          .domain = "",
                          .since = 1,
                          QN_PORTS(in, gemm_in),
                          QN_PORTS(out, matmul_out),
                          QN_ATTRS(gemm_specs, qn_gemm_attrs),
                          QN_VERSIONS(gemm_versions),
                          QN_TYPE_RULES(matmul_types),
                          .quant = QN_QUANT_MAC,
                          .infer = gemm_infer,
                          .eval = gemm_eval,
                          .macs = gemm_macs,
                          .brief = "alpha * A B + beta * C, A and B transposed where asked"};
