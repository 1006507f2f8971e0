/* Weights from where the file has them to where and how a primitive wants them. */
#include <string.h>

#include "backend/cpu/float/kernels.h"
#include "backend/dnnl/step.h"

/* ---- Packed by oneDNN ------------------------------------------------------------------------ */

/* All of `from`, which lies as `plain` says, at the beginning of each dim of a larger dense
 * tensor. */
static void spread_weights(float *to, const qn_prim_tensor *whole, const qn_prim_tensor *plain,
                           const char *from)
{
    int64_t at[QN_PRIM_RANK] = {0};
    for (int32_t d = 0; d >= 0;) {
        int64_t source = 0, target = 0;
        for (int32_t k = 0; k < plain->rank; k++) {
            source += at[k] * plain->steps[k];
            target = target * whole->dims[k] + at[k];
        }
        memcpy(to + target, from + (size_t)source * sizeof *to, sizeof *to);
        for (d = plain->rank - 1; d >= 0 && ++at[d] == plain->dims[d]; d--)
            at[d] = 0;
    }
}

/* The weights where oneDNN can read them: files have them at any address, and channels rounded up
 * to whole blocks are zeros that no file has. *copy is freed by the caller. */
static qn_status reachable_weights(float **copy, qn_prim_tensor *plain, const qn_dnnl_step *s,
                                   qn_context *ctx)
{
    const qn_prim_tensor *whole = &s->spec.weights;
    const bool same = memcmp(whole->dims, s->plain.dims, sizeof whole->dims) == 0;
    size_t bytes = (size_t)qn_tensor_count(s->weights) * sizeof(float);
    *copy = NULL;
    *plain = s->plain;
    if (same && qn_tensor_is_aligned(s->weights))
        return QN_OK;
    if (!same)
        (void)qn_tensor_bytes(&bytes, QN_FLOAT32, whole->rank, whole->dims);
    *copy = qn_alloc_aligned(&ctx->allocator, bytes);
    QN_TRY_ALLOC(ctx, *copy);
    if (same) {
        memcpy(*copy, s->weights->data, bytes);
        return QN_OK;
    }
    memset(*copy, 0, bytes);
    spread_weights(*copy, whole, &s->plain, s->weights->data);
    memcpy(plain->dims, whole->dims, sizeof plain->dims);
    qn_dims_strides(plain->steps, whole->rank, whole->dims);
    return QN_OK;
}

static qn_status pack(qn_dnnl_step *s, qn_context *ctx)
{
    qn_prim_tensor plain;
    float *copy;
    QN_TRY(reachable_weights(&copy, &plain, s, ctx));
    const qn_status status =
        qn_prim_pack(s->prim, s->packed, &plain, copy ? copy : s->weights->data);
    qn_free_aligned(&ctx->allocator, copy);
    return status;
}

/* ---- Matrices -------------------------------------------------------------------------------- */

/* Bytes after which pages of the file are given back: a large matrix and its copy should not stand
 * in memory side by side. */
enum { SLICE = 1 << 20 };

static void copy_rows(char *to, const qn_dnnl_step *s, const qn_claim *claim)
{
    const size_t bytes = (size_t)qn_tensor_count(s->weights) * sizeof(float);
    for (size_t at = 0; at < bytes; at += SLICE) {
        const size_t size = QN_MIN((size_t)SLICE, bytes - at);
        memcpy(to + at, (const char *)s->weights->data + at, size);
        qn_build_release_part(claim->builder, claim->node->in[1], at, size);
    }
}

/* [n, k] to [k, n], a band of rows at a time; the file may have them at any address. */
static void transpose_matrix(float *to, const char *from, int64_t k, int64_t n, float *band)
{
    const qn_kernels *kernels = qn_kernels_get();
    const int64_t width = kernels->width;
    for (int64_t row = 0; row < n; row += width) {
        const int64_t rows = QN_MIN(width, n - row);
        memcpy(band, from + (size_t)(row * k) * sizeof *band, (size_t)(rows * k) * sizeof *band);
        for (int64_t column = 0; column < k; column += width) {
            const qn_transpose_tile t = {.y = to + column * n + row,
                                         .x = band + column,
                                         .y_step = n,
                                         .x_step = k,
                                         .rows = rows,
                                         .columns = QN_MIN(width, k - column)};
            kernels->transpose(&t);
        }
    }
}

static qn_status transpose_matrices(float *to, const qn_dnnl_step *s, qn_context *ctx)
{
    const qn_prim_tensor *t = &s->spec.weights;
    const int64_t k = t->dims[t->rank - 2], n = t->dims[t->rank - 1];
    const int64_t count = qn_tensor_count(s->weights) / (k * n);
    float *band =
        qn_alloc_aligned(&ctx->allocator, (size_t)(k * qn_kernels_get()->width) * sizeof *band);
    QN_TRY_ALLOC(ctx, band);
    for (int64_t i = 0; i < count; i++)
        transpose_matrix(to + i * k * n,
                         (const char *)s->weights->data + (size_t)(i * k * n) * sizeof *to, k, n,
                         band);
    qn_free_aligned(&ctx->allocator, band);
    return QN_OK;
}

qn_status qn_dnnl_pack(qn_dnnl_step *s, const qn_claim *claim)
{
    qn_context *ctx = qn_build_context(claim->builder);
    s->packed = qn_build_alloc_weights(claim->builder, qn_prim_weight_bytes(s->prim));
    QN_TRY_ALLOC(ctx, s->packed);
    if (s->spec.weights.format == QN_PRIM_ANY)
        return pack(s, ctx);
    if (memcmp(s->plain.steps, s->spec.weights.steps, sizeof s->plain.steps) != 0)
        return transpose_matrices(s->packed, s, ctx);
    copy_rows(s->packed, s, claim);
    return QN_OK;
}
