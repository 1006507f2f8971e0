/* Gradients of convolutions and matrix products. */
#include <string.h>

#include "ops/grad_attrs.h"
#include "ops/versions.h"
#include "ops/window.h"
#include "train/gradient.h"

#define X (job->node->in[0])
#define W (job->node->in[1])
#define DY (job->dy[0])

/* ---- Convolutions ---------------------------------------------------------------------------- */

/* A node of one of the gradients of a convolution whose attributes these are, with the dims of
 * `like`. */
static qn_node *window_node(qn_grad_job *job, const qn_op *op, qn_value *const in[2],
                            const qn_window_attrs *window, const qn_value *like)
{
    qn_node *node = qn_grad_node(job, op, in, 2, op->n_out);
    if (job->status != QN_OK)
        return NULL;
    ((qn_window_grad_attrs *)node->attrs)->window = *window;
    qn_grad_set_dims(job, &((qn_window_grad_attrs *)node->attrs)->shape, like);
    qn_grad_infer(job, node);
    return node;
}

static bool wants(const qn_grad_job *job, int32_t i)
{
    return i < job->node->n_in && job->wants[i];
}

void qn_grad_conv(qn_grad_job *job)
{
    const qn_window_attrs *a = job->node->attrs;
    qn_value *const by_input[] = {DY, W}, *const by_weights[] = {X, DY};
    if (wants(job, 0)) {
        qn_node *node = window_node(job, &qn_op_qn_ConvGradInput, by_input, a, X);
        job->dx[0] = node ? node->out[0] : NULL;
    }
    if (!wants(job, 1) && !wants(job, 2))
        return;
    qn_node *node = window_node(job, &qn_op_qn_ConvGradWeights, by_weights, a, W);
    if (!node)
        return;
    if (wants(job, 1))
        job->dx[1] = node->out[0];
    if (wants(job, 2))
        job->dx[2] = node->out[1];
}

/* The window of the convolution that runs the other way. */
static bool forward_window(qn_grad_job *job, qn_window_attrs *out)
{
    const qn_window_attrs *a = job->node->attrs;
    const int32_t rank = X->type.rank - 2;
    int64_t kernel[QN_MAX_RANK], dims[QN_MAX_RANK], pads[2 * QN_MAX_SPATIAL];
    qn_window w;
    if (!qn_grad_dims(job, dims, X) || !qn_grad_dims(job, dims, W))
        return false;
    memcpy(kernel, dims + 2, (size_t)rank * sizeof *kernel);
    if (!qn_window_resolve_transposed(&w, a, rank, X->type.dims + 2, kernel)) {
        qn_grad_fail(job, "%s", w.problem);
        return false;
    }
    *out = (qn_window_attrs){.strides = a->strides, .dilations = a->dilations, .group = a->group};
    memcpy(pads, w.pad_begin, (size_t)rank * sizeof *pads);
    memcpy(pads + rank, w.pad_end, (size_t)rank * sizeof *pads);
    job->status = qn_ints_copy(&out->pads, job->graph, pads, 2 * (size_t)rank);
    return job->status == QN_OK;
}

void qn_grad_conv_transpose(qn_grad_job *job)
{
    qn_value *const by_input[] = {DY, W}, *const by_weights[] = {DY, X};
    qn_window_attrs window;
    if (!forward_window(job, &window))
        return;
    if (wants(job, 0)) {
        qn_node *node = qn_grad_node(job, &qn_op_Conv, by_input, 2, 1);
        if (node)
            *(qn_window_attrs *)node->attrs = window;
        job->dx[0] = qn_grad_infer(job, node);
    }
    if (wants(job, 1)) {
        qn_node *node = window_node(job, &qn_op_qn_ConvGradWeights, by_weights, &window, W);
        job->dx[1] = node ? node->out[0] : NULL;
        if (node)
            qn_node_set_output(node, 1, NULL);
    }
    if (wants(job, 2)) {
        int64_t axes[QN_MAX_RANK] = {0};
        for (int32_t d = 2; d < X->type.rank; d++)
            axes[d - 1] = d;
        qn_value *sum = qn_grad_reduce(job, &qn_op_ReduceSum, DY, axes, (size_t)X->type.rank - 1);
        job->dx[2] = qn_grad_reshape_like(job, sum, job->node->in[2]);
    }
}

/* ---- Gemm: Y = alpha A' B' + beta C ---------------------------------------------------------- */

/* alpha a' b', transposed as said */
static qn_value *product(qn_grad_job *job, qn_value *a, qn_value *b, bool trans_a, bool trans_b)
{
    const qn_gemm_attrs *of = job->node->attrs;
    qn_node *node = qn_grad_node(job, &qn_op_Gemm, (qn_value *const[]){a, b}, 2, 1);
    if (job->status != QN_OK)
        return NULL;
    qn_gemm_attrs *attrs = node->attrs;
    attrs->alpha = of->alpha;
    attrs->transA = trans_a;
    attrs->transB = trans_b;
    return qn_grad_infer(job, node);
}

void qn_grad_gemm(qn_grad_job *job)
{
    const qn_gemm_attrs *a = job->node->attrs;
    const bool trans_a = a->transA != 0, trans_b = a->transB != 0;
    if (wants(job, 0))
        job->dx[0] =
            trans_a ? product(job, W, DY, trans_b, true) : product(job, DY, W, false, !trans_b);
    if (wants(job, 1))
        job->dx[1] =
            trans_b ? product(job, DY, X, true, trans_a) : product(job, X, DY, !trans_a, false);
    if (wants(job, 2))
        job->dx[2] =
            qn_grad_scale(job, qn_grad_sum_like(job, DY, job->node->in[2]), (double)a->beta);
}

/* ---- MatMul ---------------------------------------------------------------------------------- */

static qn_value *times(qn_grad_job *job, qn_value *a, qn_value *b)
{
    return qn_grad_binary(job, &qn_op_MatMul, a, b);
}

/* A list of numbers is a row on the left and a column on the right. */
static qn_value *as_matrix(qn_grad_job *job, qn_value *x, bool left)
{
    const int64_t count = x->type.dims[0].value;
    const int64_t dims[2] = {left ? 1 : count, left ? count : 1};
    return x->type.rank == 1 ? qn_grad_reshape(job, x, dims, 2) : x;
}

/* [rows, last dim] */
static qn_value *flat(qn_grad_job *job, qn_value *x)
{
    int64_t dims[QN_MAX_RANK], flat[2] = {1, 1};
    if (!qn_grad_dims(job, dims, x))
        return NULL;
    for (int32_t d = 0; d + 1 < x->type.rank; d++)
        flat[0] *= dims[d];
    flat[1] = dims[x->type.rank - 1];
    return qn_grad_reshape(job, x, flat, 2);
}

/* The gradient of the product in the form [.., rows, columns] that its matrices make. */
static qn_value *matrix_gradient(qn_grad_job *job, const qn_value *a, const qn_value *b)
{
    int64_t dims[QN_MAX_RANK], given[QN_MAX_RANK];
    int32_t rank = DY->type.rank, n = 0;
    if (!qn_grad_dims(job, given, DY))
        return NULL;
    const int32_t batch = rank - (X->type.rank > 1) - (W->type.rank > 1);
    for (int32_t d = 0; d < batch; d++)
        dims[n++] = given[d];
    dims[n++] = a->type.dims[a->type.rank - 2].value;
    dims[n++] = b->type.dims[b->type.rank - 1].value;
    return qn_grad_reshape(job, DY, dims, n);
}

void qn_grad_matmul(qn_grad_job *job)
{
    int64_t dims[QN_MAX_RANK];
    if (!qn_grad_dims(job, dims, X) || !qn_grad_dims(job, dims, W))
        return;
    qn_value *a = as_matrix(job, X, true), *b = as_matrix(job, W, false);
    qn_value *dy = job->status == QN_OK ? matrix_gradient(job, a, b) : NULL;
    if (job->status != QN_OK)
        return;
    if (job->wants[0]) {
        qn_value *sums = qn_grad_sum_like(job, times(job, dy, qn_grad_transpose(job, b)), a);
        job->dx[0] = qn_grad_reshape_like(job, sums, X);
    }
    if (!job->wants[1])
        return;
    /* One matrix for all rows: one product instead of a sum of many. */
    if (b->type.rank == 2) {
        a = flat(job, a);
        dy = flat(job, dy);
    }
    qn_value *sums = times(job, qn_grad_transpose(job, a), dy);
    job->dx[1] = qn_grad_reshape_like(job, qn_grad_sum_like(job, sums, b), W);
}
