/* Quantization parameters: making and comparing them. */
#include "ir/qparams.h"

qn_qparams qn_qparams_of_type(qn_dtype dtype)
{
    const qn_dtype_info *info = qn_dtype_get(dtype);
    const bool is_signed = info->kind == QN_KIND_INT;
    const int bits = QN_MIN(QN_MAX(info->bits, 1), 62);
    const int64_t greatest = (INT64_C(1) << (bits - is_signed)) - 1;
    return (qn_qparams){.dtype = dtype,
                        .width = qn_width_of(dtype),
                        .axis = -1,
                        .count = 1,
                        .scale = 1,
                        .qmin = is_signed ? -greatest - 1 : 0,
                        .qmax = greatest};
}

qn_status qn_qparams_create(qn_qparams **out, qn_context *ctx, qn_arena *arena, qn_dtype dtype,
                            int64_t count)
{
    qn_qparams *p = qn_arena_alloc(arena, sizeof *p);
    QN_TRY_ALLOC(ctx, p);
    *p = qn_qparams_of_type(dtype);
    p->count = count;
    *out = p;
    if (count == 1)
        return QN_OK;
    p->scales = qn_arena_array(arena, (size_t)count, sizeof *p->scales);
    p->zeros = qn_arena_array(arena, (size_t)count, sizeof *p->zeros);
    if (!p->scales || !p->zeros)
        return qn_fail_nomem(ctx);
    for (int64_t i = 0; i < count; i++)
        p->scales[i] = 1;
    return QN_OK;
}

bool qn_qparams_equal(const qn_qparams *a, const qn_qparams *b)
{
    bool same = a->dtype == b->dtype && a->width == b->width && a->axis == b->axis &&
                a->block_size == b->block_size && a->count == b->count;
    for (int64_t i = 0; same && i < a->count; i++)
        same = qn_qparams_scale_at(a, i) == qn_qparams_scale_at(b, i) &&
               qn_qparams_zero_at(a, i) == qn_qparams_zero_at(b, i);
    return same;
}

void qn_qparams_store_scales(const qn_tensor *out, const qn_qparams *p)
{
    for (int64_t i = 0; i < p->count; i++)
        ((float *)out->data)[i] = qn_qparams_scale_at(p, i);
}

void qn_qparams_store_zeros(const qn_tensor *out, const qn_qparams *p)
{
    for (int64_t i = 0; i < p->count; i++) {
        const int64_t zero = qn_qparams_zero_at(p, i);
        qn_store_i64(out->data, out->dtype, i, &zero, 1);
    }
}
