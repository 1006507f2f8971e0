/* The oneDNN backend: which operator is claimed by which function. */
#include "backend/dnnl/dnnl.h"

#include "backend/cpu/float/peak.h"
#include "backend/dnnl/prim.h"

static const struct {
    const qn_op *op;
    qn_dnnl_claim_fn *claim;
} table[] = {
    {&qn_op_AveragePool, qn_dnnl_claim_average_pool},
    {&qn_op_Conv, qn_dnnl_claim_conv},
    {&qn_op_ConvTranspose, qn_dnnl_claim_conv_transpose},
    {&qn_op_Gemm, qn_dnnl_claim_gemm},
    {&qn_op_GlobalAveragePool, qn_dnnl_claim_average_pool},
    {&qn_op_GlobalMaxPool, qn_dnnl_claim_max_pool},
    {&qn_op_LRN, qn_dnnl_claim_lrn},
    {&qn_op_MatMul, qn_dnnl_claim_matmul},
    {&qn_op_MaxPool, qn_dnnl_claim_max_pool},
    {&qn_op_qn_ConvGradInput, qn_dnnl_claim_conv_by_input},
    {&qn_op_qn_ConvGradWeights, qn_dnnl_claim_conv_by_weights},
};

static qn_status dnnl_claim(bool *taken, qn_claim *claim)
{
    for (size_t i = 0; i < QN_COUNT_OF(table); i++) {
        if (table[i].op == claim->node->op)
            return table[i].claim(taken, claim);
    }
    return QN_OK;
}

static void dnnl_release(void *shared)
{
    qn_prim_engine_free(shared);
}

const qn_backend qn_backend_dnnl = {
    .name = "dnnl", .claim = dnnl_claim, .release = dnnl_release, .peak = qn_peak_measure};
