/* What claims of integer operators share, and the choice of their kernels. */
#include "backend/cpu/int/elementwise/q_elementwise.h"

#include <math.h>

#include "backend/cpu/float/elementwise/stage.h"
#include "base/cpu.h"
#include "ops/quantize.h"

const qn_q_kernels *qn_q_kernels_get(void)
{
#if QN_X86
    const qn_isa isa = qn_cpu_isa();
    if (isa >= QN_ISA_AVX512)
        return &qn_q_kernels_avx512;
    if (isa >= QN_ISA_AVX2)
        return &qn_q_kernels_avx2;
#endif
    return &qn_q_kernels_base;
}

qn_q_look_up_fn *qn_q_look_up_get(void)
{
#if QN_X86
    if (qn_cpu_has_vbmi())
        return qn_q_table_vbmi;
#endif
    return qn_q_kernels_get()->table;
}

bool qn_q_is_integer(qn_dtype dtype)
{
    return dtype == QN_UINT8 || dtype == QN_INT8 || dtype == QN_UINT16 || dtype == QN_INT16;
}

bool qn_q_param_of(qn_qparams *out, const qn_node *node, int32_t scale, int32_t zero)
{
    const bool has_zero = zero < node->n_in && node->in[zero];
    double s = 0, z = 0;
    if (!qn_q_number(&s, node, scale) || (has_zero && !qn_q_number(&z, node, zero)))
        return false;
    *out = qn_qparams_of_type(has_zero ? node->in[zero]->type.dtype : QN_UINT8);
    out->requantization = qn_node_requantization(node);
    out->scale = (float)s;
    out->zero = (int64_t)z;
    return isfinite(s) && s != 0;
}

void qn_q_cast_fixed_point(qn_q_cast *cast)
{
    cast->scale = (float)qn_normal_value(qn_normal_of((double)cast->scale));
    cast->fixed_point = true;
}

qn_q_side qn_q_side_of(qn_dtype dtype, int64_t zero)
{
    const qn_dtype_info *info = qn_dtype_get(dtype);
    const int32_t half = info->kind == QN_KIND_INT ? 1 << (info->bits - 1) : 0;
    return (qn_q_side){.flip = half, .zero = (int32_t)zero + half, .is_int16 = info->bits > 8};
}

qn_q_round qn_q_round_of(qn_dtype dtype, int64_t zero)
{
    const qn_limits range = qn_limits_of(dtype);
    return (qn_q_round){(float)(range.min - zero), (float)(range.max - zero), (int32_t)zero};
}

/* One limit of a Clip; left out: `otherwise`. */
static bool limit_of(double *out, const qn_node *node, int32_t i, double otherwise)
{
    *out = otherwise;
    return i >= node->n_in || !node->in[i] || qn_q_number(out, node, i);
}

void qn_q_take_clips(qn_claim *claim, qn_value **value, qn_q_round *round)
{
    for (;;) {
        qn_node *node = qn_build_fusible(claim->builder, *value);
        const qn_limits all = qn_limits_of((*value)->type.dtype);
        double low, high;
        if (!node || node->op != &qn_op_Clip || node->in[0] != *value ||
            claim->n_nodes >= QN_CLAIM_SPARE || !limit_of(&low, node, 1, (double)all.min) ||
            !limit_of(&high, node, 2, (double)all.max))
            return;
        const float least = (float)(low - round->zero), most = (float)(high - round->zero);
        round->low = QN_MIN(QN_MAX(round->low, least), most);
        round->high = QN_MIN(QN_MAX(round->high, least), most);
        qn_claim_add(claim, node);
        *value = node->out[0];
    }
}

qn_layout qn_q_layout(const qn_claim *claim, const qn_value *value)
{
    const qn_layout layout = qn_build_layout(claim->builder, value);
    return layout.kind == QN_LAYOUT_CHANNELS_LAST ? layout : QN_ROWS;
}

bool qn_q_wants_blocks(const qn_value *value)
{
    static const qn_op *const ops[] = {&qn_op_Conv,        &qn_op_ConvTranspose, &qn_op_MaxPool,
                                       &qn_op_AveragePool, &qn_op_Resize,        &qn_op_Concat};
    qn_node_stage stage;
    for (size_t u = 0; u < value->n_users; u++) {
        if (qn_stage_of(&stage, value->users[u], value))
            return true;
        for (size_t i = 0; i < QN_COUNT_OF(ops); i++) {
            if (value->users[u]->op == ops[i])
                return true;
        }
    }
    return false;
}
