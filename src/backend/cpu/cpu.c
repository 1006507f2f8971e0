/* The backend of own kernels: the table of operators and the functions that claim them. */
#include "backend/cpu/cpu.h"

#include "backend/cpu/float/peak.h"
#include "backend/cpu/train/train.h"

/* Operators with claim functions of their own, the first that takes the node has it. The others are
 * offered to qn_claim_elementwise, which knows by functions.def and stage.c what it can take, and
 * to qn_claim_rows, which does by rows.def. */
static const struct {
    const qn_op *op;
    qn_claim_fn *claim;
} table[] = {
    {&qn_op_ArgMax, qn_claim_arg},
    {&qn_op_ArgMin, qn_claim_arg},
    {&qn_op_Attention, qn_claim_attention},
    {&qn_op_BatchNormalization, qn_claim_batchnorm_training},
    {&qn_op_Cast, qn_claim_cast},
    {&qn_op_CastLike, qn_claim_cast},
    {&qn_op_Clip, qn_claim_q_clip},
    {&qn_op_Concat, qn_claim_concat},
    {&qn_op_Conv, qn_claim_depthwise},
    {&qn_op_Conv, qn_claim_pointwise},
    {&qn_op_Conv, qn_claim_winograd},
    {&qn_op_DepthToSpace, qn_claim_depth_to_space},
    {&qn_op_DequantizeLinear, qn_claim_q_dequantize},
    {&qn_op_Dropout, qn_claim_dropout},
    {&qn_op_DynamicQuantizeLinear, qn_claim_q_dynamic},
    {&qn_op_Flatten, qn_claim_reshape},
    {&qn_op_GRU, qn_claim_recurrent},
    {&qn_op_Gather, qn_claim_gather},
    {&qn_op_GlobalAveragePool, qn_claim_mean_last},
    {&qn_op_GridSample, qn_claim_grid_sample},
    {&qn_op_GroupNormalization, qn_claim_channel_norm},
    {&qn_op_Identity, qn_claim_reshape},
    {&qn_op_InstanceNormalization, qn_claim_channel_norm},
    {&qn_op_IsInf, qn_claim_is_inf},
    {&qn_op_IsNaN, qn_claim_is_nan},
    {&qn_op_LSTM, qn_claim_recurrent},
    {&qn_op_LayerNormalization, qn_claim_layer_norm},
    {&qn_op_LogSoftmax, qn_claim_log_softmax},
    {&qn_op_LpNormalization, qn_claim_lp_norm},
    {&qn_op_MatMulInteger, qn_claim_q_product},
    {&qn_op_MaxPool, qn_claim_q_max_pool},
    {&qn_op_MeanVarianceNormalization, qn_claim_mean_variance_norm},
    {&qn_op_Not, qn_claim_not},
    {&qn_op_Pad, qn_claim_pad_blocks},
    {&qn_op_Pad, qn_claim_pad},
    {&qn_op_Pad, qn_claim_pad_modes},
    {&qn_op_QLinearConv, qn_claim_q_conv_concat},
    {&qn_op_QLinearConv, qn_claim_q_conv},
    {&qn_op_QLinearConv, qn_claim_q_conv_3d},
    {&qn_op_QLinearMatMul, qn_claim_q_matmul},
    {&qn_op_QLinearMatMul, qn_claim_q_matmul_two},
    {&qn_op_QuantizeLinear, qn_claim_fake_quant},
    {&qn_op_QuantizeLinear, qn_claim_q_quantize},
    {&qn_op_RMSNormalization, qn_claim_layer_norm},
    {&qn_op_RNN, qn_claim_recurrent},
    {&qn_op_ReduceL1, qn_claim_reduce},
    {&qn_op_ReduceL2, qn_claim_reduce},
    {&qn_op_ReduceLogSum, qn_claim_reduce},
    {&qn_op_ReduceLogSumExp, qn_claim_reduce},
    {&qn_op_ReduceMax, qn_claim_reduce},
    {&qn_op_ReduceMax, qn_claim_q_extreme},
    {&qn_op_ReduceMean, qn_claim_reduce},
    {&qn_op_ReduceMin, qn_claim_reduce},
    {&qn_op_ReduceMin, qn_claim_q_extreme},
    {&qn_op_ReduceProd, qn_claim_reduce},
    {&qn_op_ReduceSum, qn_claim_reduce},
    {&qn_op_ReduceSumSquare, qn_claim_reduce},
    {&qn_op_Reshape, qn_claim_reshape},
    {&qn_op_Resize, qn_claim_resize},
    {&qn_op_Resize, qn_claim_q_nearest},
    {&qn_op_RoiAlign, qn_claim_roi_align},
    {&qn_op_Slice, qn_claim_space_to_depth},
    {&qn_op_Slice, qn_claim_slice},
    {&qn_op_Softmax, qn_claim_softmax},
    {&qn_op_SpaceToDepth, qn_claim_depth_to_space},
    {&qn_op_Split, qn_claim_split_attention},
    {&qn_op_Split, qn_claim_split},
    {&qn_op_Squeeze, qn_claim_reshape},
    {&qn_op_Transpose, qn_claim_transpose},
    {&qn_op_Unsqueeze, qn_claim_reshape},
    {&qn_op_ms_DynamicQuantizeLSTM, qn_claim_q_recurrent},
    {&qn_op_ms_MatMulIntegerToFloat, qn_claim_q_product_float},
    {&qn_op_ms_QGemm, qn_claim_q_gemm},
    {&qn_op_ms_QLinearAdd, qn_claim_q_add},
    {&qn_op_ms_QLinearAveragePool, qn_claim_q_average_pool},
    {&qn_op_ms_QLinearConcat, qn_claim_q_concat},
    {&qn_op_ms_QLinearGlobalAveragePool, qn_claim_q_global_pool},
    {&qn_op_ms_QLinearMul, qn_claim_q_multiply},
    {&qn_op_ms_QLinearReduceMean, qn_claim_q_reduce_mean},
    {&qn_op_ms_QLinearSoftmax, qn_claim_q_softmax},
    {&qn_op_ms_QLinearSoftmax, qn_claim_q_softmax_int16},
    {&qn_op_qn_AdamStep, qn_claim_adam_step},
    {&qn_op_qn_AveragePoolGrad, qn_claim_average_pool_grad},
    {&qn_op_qn_BatchNormGrad, qn_claim_batchnorm_grad},
    {&qn_op_qn_ConvIntegerToFloat, qn_claim_q_conv_float},
    {&qn_op_qn_ConvIntegerToFloat, qn_claim_q_conv_3d_float},
    {&qn_op_qn_MaxPoolGrad, qn_claim_max_pool_grad},
    {&qn_op_qn_QGRU, qn_claim_q_recurrent},
    {&qn_op_qn_QLSTM, qn_claim_q_recurrent},
    {&qn_op_qn_QLayerNormalization, qn_claim_q_layer_norm},
    {&qn_op_qn_QLayerNormalization, qn_claim_q_layer_norm_int16},
    {&qn_op_qn_QLinearConvTranspose, qn_claim_q_conv_transpose},
    {&qn_op_qn_ConvTransposeIntegerToFloat, qn_claim_q_conv_transpose_float},
    {&qn_op_qn_QLinearResize, qn_claim_q_linear},
    {&qn_op_qn_QMatMul, qn_claim_q_matmul_bias},
    {&qn_op_qn_QMatMul, qn_claim_q_matmul_two},
    {&qn_op_qn_QPRelu, qn_claim_q_prelu},
    {&qn_op_qn_QRNN, qn_claim_q_recurrent},
    {&qn_op_qn_QTable, qn_claim_q_table},
    {&qn_op_qn_Requantize, qn_claim_q_requantize},
    {&qn_op_qn_SgdStep, qn_claim_sgd_step},
};

/* What the claims of one plan share. */
typedef struct budget {
    /* Bytes: of all constants; beyond them, on weights in Winograd's form. */
    int64_t model, spent;
} budget;

static qn_status budget_of(budget **out, qn_builder *builder)
{
    void **shared = qn_build_shared(builder);
    if (!*shared) {
        budget *b = qn_build_alloc(builder, sizeof *b);
        QN_TRY_ALLOC(qn_build_context(builder), b);
        b->model = (int64_t)qn_build_model_bytes(builder);
        *shared = b;
    }
    *out = *shared;
    return QN_OK;
}

qn_status qn_cpu_allows_winograd(bool *out, qn_builder *builder, int64_t added, double share)
{
    enum { ALWAYS_BELOW = 2 << 20 };
    budget *b = NULL;
    QN_TRY(budget_of(&b, builder));
    *out = !qn_build_direct(builder) &&
           (added <= ALWAYS_BELOW || (double)(b->spent + added) <= share * (double)b->model);
    b->spent += *out ? added : 0;
    return QN_OK;
}

bool qn_claim_is_float(qn_tensor *shape, const qn_claim *claim)
{
    const qn_node *node = claim->node;
    return node->n_in > 0 && node->in[0] && !node->in[0]->data && node->out[0] &&
           qn_build_shape(shape, claim->builder, node->in[0]) && shape->dtype == QN_FLOAT32 &&
           qn_tensor_count(shape) > 0;
}

static qn_status cpu_claim(bool *taken, qn_claim *claim)
{
    for (size_t i = 0; i < QN_COUNT_OF(table) && !*taken; i++) {
        if (table[i].op == claim->node->op)
            QN_TRY(table[i].claim(taken, claim));
    }
    if (!*taken)
        QN_TRY(qn_claim_elementwise(taken, claim));
    return *taken ? QN_OK : qn_claim_rows(taken, claim);
}

const qn_backend qn_backend_cpu = {
    .name = "cpu", .claim = cpu_claim, .convert = qn_convert_layout, .peak = qn_peak_measure};
