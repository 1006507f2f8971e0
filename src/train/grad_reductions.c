/* Gradients of reductions and pools. */
#include <string.h>

#include "ops/grad_attrs.h"
#include "ops/reduce.h"
#include "train/gradient.h"

#define X (job->node->in[0])
#define Y (job->node->out[0])
#define DY (job->dy[0])

/* ---- Reductions ------------------------------------------------------------------------------ */

/* The dims of X with 1 along the axes that the node reduces, and the number of elements that go
 * into one. */
static bool reduced_dims(qn_grad_job *job, int64_t *dims, int64_t *count)
{
    const qn_node *node = job->node;
    int64_t axes[QN_MAX_RANK];
    bool marked[QN_MAX_RANK];
    size_t n = 0;
    if (!qn_grad_dims(job, dims, X))
        return false;
    const bool given = node->n_in > 1 && node->in[1];
    if (given && !qn_grad_list(job, axes, &n, node->in[1]))
        return false;
    if (!qn_reduce_mark(marked, node->attrs, X->type.rank, (qn_ints){axes, n})) {
        qn_grad_fail(job, "the axes do not fit the input");
        return false;
    }
    *count = 1;
    for (int32_t d = 0; d < X->type.rank; d++) {
        *count *= marked[d] ? dims[d] : 1;
        dims[d] = marked[d] ? 1 : dims[d];
    }
    return true;
}

/* A value of the output's shape, repeated to X's. */
static qn_value *spread(qn_grad_job *job, qn_value *value, int64_t *count)
{
    int64_t dims[QN_MAX_RANK];
    if (!reduced_dims(job, dims, count))
        return NULL;
    return qn_grad_expand_like(job, qn_grad_reshape(job, value, dims, X->type.rank), X);
}

void qn_grad_reduce_sum(qn_grad_job *job)
{
    int64_t count;
    if (job->wants[0])
        job->dx[0] = spread(job, DY, &count);
}

void qn_grad_reduce_mean(qn_grad_job *job)
{
    int64_t dims[QN_MAX_RANK], count;
    if (!job->wants[0] || !reduced_dims(job, dims, &count))
        return;
    qn_value *share = qn_grad_scale(job, DY, 1 / (double)count);
    job->dx[0] = job->status == QN_OK ? spread(job, share, &count) : NULL;
}

/* 2 x dy */
void qn_grad_reduce_sum_square(qn_grad_job *job)
{
    int64_t count;
    if (job->wants[0])
        job->dx[0] = qn_grad_mul(job, spread(job, qn_grad_scale(job, DY, 2), &count), X);
}

/* The elements that are the largest (least) share it. */
static void extreme(qn_grad_job *job, qn_value *y, qn_value *dy)
{
    qn_value *is_it = qn_grad_binary(job, &qn_op_Equal, X, y);
    qn_value *ones =
        job->status == QN_OK ? qn_grad_where(job, is_it, qn_grad_number(job, X, 1)) : NULL;
    if (job->status != QN_OK)
        return;
    qn_value *ties = qn_grad_expand_like(job, qn_grad_sum_like(job, ones, y), X);
    job->dx[0] = qn_grad_div(job, qn_grad_mul(job, dy, ones), ties);
}

void qn_grad_reduce_extreme(qn_grad_job *job)
{
    int64_t dims[QN_MAX_RANK], count;
    if (!job->wants[0] || !reduced_dims(job, dims, &count))
        return;
    qn_value *y = qn_grad_reshape(job, Y, dims, X->type.rank);
    qn_value *dy = qn_grad_reshape(job, DY, dims, X->type.rank);
    if (job->status == QN_OK)
        extreme(job, y, dy);
}

/* ---- Pools ----------------------------------------------------------------------------------- */

void qn_grad_global_average_pool(qn_grad_job *job)
{
    int64_t dims[QN_MAX_RANK], area = 1;
    if (!qn_grad_dims(job, dims, X))
        return;
    for (int32_t d = 2; d < X->type.rank; d++)
        area *= dims[d];
    job->dx[0] = qn_grad_expand_like(job, qn_grad_scale(job, DY, 1 / (double)area), X);
}

void qn_grad_global_max_pool(qn_grad_job *job)
{
    extreme(job, Y, DY);
}

static qn_value *pool(qn_grad_job *job, const qn_op *op, qn_value *const *in, int32_t n_in)
{
    qn_node *node = qn_grad_node(job, op, in, n_in, 1);
    if (job->status != QN_OK)
        return NULL;
    ((qn_window_grad_attrs *)node->attrs)->window = *(const qn_window_attrs *)job->node->attrs;
    qn_grad_set_dims(job, &((qn_window_grad_attrs *)node->attrs)->shape, X);
    return qn_grad_infer(job, node);
}

void qn_grad_average_pool(qn_grad_job *job)
{
    job->dx[0] = pool(job, &qn_op_qn_AveragePoolGrad, (qn_value *const[]){DY}, 1);
}

void qn_grad_max_pool(qn_grad_job *job)
{
    if (DY)
        job->dx[0] = pool(job, &qn_op_qn_MaxPoolGrad, (qn_value *const[]){DY, X}, 2);
}
