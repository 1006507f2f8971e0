/* QGemm, QLinearMatMul and QMatMul with constant weights: rows of A are pixels, its columns
 * channels. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/int/conv/q_layer.h"
#include "ops/nn_attrs.h"

static const qn_kernel gemm_kernels[] = {QN_Q_LAYER_KERNEL("int8 gemm"),
                                         QN_Q_LAYER_KERNEL("int16 gemm")};

/* A [rows, k] B [k, columns] */
static void describe(qn_q_layer *l, int64_t rows, int64_t k, int64_t columns)
{
    l->conv = qn_q_conv_of_rows(rows, k, columns);
    l->layout = QN_ROWS;
}

/* A constant with one number or one for each column. */
static bool is_by_column(const qn_node *node, int32_t i, int64_t columns)
{
    const qn_tensor *t = i < node->n_in && node->in[i] ? node->in[i]->data : NULL;
    return !t || qn_tensor_count(t) == 1 ||
           (qn_tensor_count(t) == columns && t->dims[t->rank - 1] == columns);
}

qn_status qn_claim_q_gemm(bool *taken, qn_claim *claim)
{
    static const qn_q_ports ports = {0, 1, 2, 3, 4, 5, 7, 8, 6};
    const qn_node *node = claim->node;
    const qn_gemm_attrs *a = node->attrs;
    qn_q_layer *l = NULL;
    qn_tensor x, y;
    if (a->transA || !qn_build_shape(&x, claim->builder, node->in[0]) || x.rank != 2 ||
        !qn_build_shape(&y, claim->builder, node->out[0]) || qn_tensor_count(&x) == 0 ||
        qn_tensor_count(&y) == 0 || !is_by_column(node, 6, y.dims[1]))
        return QN_OK;
    QN_TRY(qn_q_layer_create(&l, claim, &ports));
    if (!l)
        return QN_OK;
    describe(l, x.dims[0], x.dims[1], y.dims[1]);
    l->by_column = !a->transB;
    l->factor = a->alpha;
    return qn_q_layer_claim(taken, claim, l, gemm_kernels);
}

static qn_status claim_product(bool *taken, qn_claim *claim, const qn_q_ports *ports)
{
    const qn_node *node = claim->node;
    const qn_tensor *w = node->in[3]->data;
    qn_q_layer *l = NULL;
    qn_tensor x;
    if (!w || w->rank != 2 || qn_tensor_count(w) == 0 || !is_by_column(node, 4, w->dims[1]) ||
        !is_by_column(node, 5, w->dims[1]) || !qn_build_shape(&x, claim->builder, node->in[0]) ||
        x.rank < 2 || qn_tensor_count(&x) == 0)
        return QN_OK;
    QN_TRY(qn_q_layer_create(&l, claim, ports));
    if (!l)
        return QN_OK;
    describe(l, qn_tensor_count(&x) / w->dims[0], w->dims[0], w->dims[1]);
    l->by_column = true;
    return qn_q_layer_claim(taken, claim, l, gemm_kernels);
}

qn_status qn_claim_q_matmul(bool *taken, qn_claim *claim)
{
    static const qn_q_ports ports = {0, 1, 2, 3, 4, 5, 6, 7, -1};
    return claim_product(taken, claim, &ports);
}

qn_status qn_claim_q_matmul_bias(bool *taken, qn_claim *claim)
{
    static const qn_q_ports ports = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    return claim_product(taken, claim, &ports);
}
