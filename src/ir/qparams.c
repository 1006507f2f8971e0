#include "ir/qparams.h"

qn_status qn_qparams_create(qn_qparams **out, qn_context *ctx, qn_arena *arena, qn_dtype dtype,
                            int64_t count)
{
    qn_qparams *p = qn_arena_alloc(arena, sizeof *p);
    QN_TRY_ALLOC(ctx, p);
    const qn_dtype_info *info = qn_dtype_get(dtype);
    const bool is_unsigned = info->kind == QN_KIND_UINT;
    const int64_t most = (INT64_C(1) << (info->bits - !is_unsigned)) - 1;
    *p = (qn_qparams){.dtype = dtype,
                      .axis = -1,
                      .count = count,
                      .scale = qn_arena_array(arena, (size_t)count, sizeof *p->scale),
                      .zero = qn_arena_array(arena, (size_t)count, sizeof *p->zero),
                      .qmin = is_unsigned ? 0 : -most - 1,
                      .qmax = most};
    if (!p->scale || !p->zero)
        return qn_fail_nomem(ctx);
    for (int64_t i = 0; i < count; i++)
        p->scale[i] = 1;
    *out = p;
    return QN_OK;
}

bool qn_qparams_equal(const qn_qparams *a, const qn_qparams *b)
{
    bool same = a->dtype == b->dtype && a->axis == b->axis && a->count == b->count;
    for (int64_t i = 0; same && i < a->count; i++)
        same = a->scale[i] == b->scale[i] && a->zero[i] == b->zero[i];
    return same;
}
