/* Gradients of normalizations. */
#include "ops/nn_attrs.h"
#include "train/gradient.h"

#define X (job->node->in[0])
#define SCALE (job->node->in[1])
#define DY (job->dy[0])

/* ---- Batch normalization --------------------------------------------------------------------- */

/* Mean and variance of every channel of X. */
static void batch_statistics(qn_grad_job *job, qn_value **mean, qn_value **variance)
{
    int64_t axes[QN_MAX_RANK] = {0};
    size_t n = 1;
    for (int32_t d = 2; d < X->type.rank; d++)
        axes[n++] = d;
    qn_value *average = qn_grad_reduce(job, &qn_op_ReduceMean, X, axes, n);
    qn_value *off = qn_grad_sub(job, X, average);
    qn_value *squares = qn_grad_mul(job, off, off);
    qn_value *spread = qn_grad_reduce(job, &qn_op_ReduceMean, squares, axes, n);
    *mean = qn_grad_reshape_like(job, average, SCALE);
    *variance = qn_grad_reshape_like(job, spread, SCALE);
}

/* A momentum of 0 makes the second and third output the statistics of the batch. */
static bool gives_statistics(const qn_node *node)
{
    const qn_batchnorm_attrs *a = node->attrs;
    return a->momentum == 0 && node->n_out > 2 && node->out[1] && node->out[2];
}

void qn_grad_batchnorm(qn_grad_job *job)
{
    const qn_node *node = job->node;
    const qn_batchnorm_attrs *a = node->attrs;
    qn_value *mean = node->in[3], *variance = node->in[4];
    for (int32_t o = 1; o < node->n_out; o++) {
        if (job->dy[o])
            qn_grad_fail(job, "the running statistics have no gradient");
    }
    if (!DY || job->wants[3] || job->wants[4]) {
        qn_grad_fail(job, "mean and variance have no gradient");
        return;
    }
    if (a->training_mode && gives_statistics(node)) {
        mean = node->out[1];
        variance = node->out[2];
    } else if (a->training_mode) {
        batch_statistics(job, &mean, &variance);
    }
    qn_value *const in[] = {DY, X, SCALE, mean, variance};
    qn_node *gradient = qn_grad_node(job, &qn_op_qn_BatchNormGrad, in, 5, 3);
    if (job->status != QN_OK)
        return;
    ((qn_batchnorm_attrs *)gradient->attrs)->epsilon = a->epsilon;
    ((qn_batchnorm_attrs *)gradient->attrs)->training_mode = a->training_mode;
    qn_grad_infer(job, gradient);
    for (int32_t i = 0; i < 3; i++)
        job->dx[i] = job->wants[i] ? gradient->out[i] : NULL;
}

/* ---- Normalization over some axes of each sample ------------------------------------------------
 * xh = (x - mean) r, r = 1 / sqrt(var + epsilon), y = xh scale + shift:
 *   dxh = dy scale, dx = r (dxh - mean(dxh) - xh mean(dxh xh)) */

typedef struct axes {
    int64_t at[QN_MAX_RANK];
    size_t count;
} axes;

static qn_value *mean_of(qn_grad_job *job, qn_value *x, const axes *over)
{
    return qn_grad_reduce(job, &qn_op_ReduceMean, x, over->at, over->count);
}

/* xh and r */
static qn_value *normalized(qn_grad_job *job, qn_value **r, const axes *over, double epsilon)
{
    qn_value *off = qn_grad_sub(job, X, mean_of(job, X, over));
    qn_value *variance = mean_of(job, qn_grad_mul(job, off, off), over);
    qn_value *root = qn_grad_unary(job, &qn_op_Sqrt, qn_grad_shift(job, variance, epsilon));
    *r = qn_grad_unary(job, &qn_op_Reciprocal, root);
    return qn_grad_mul(job, off, *r);
}

/* scale and shift broadcast over X as they are given here. */
static void normalize(qn_grad_job *job, const axes *over, double epsilon, qn_value *scale)
{
    qn_value *r, *xh = normalized(job, &r, over, epsilon);
    if (job->wants[0]) {
        qn_value *dxh = qn_grad_mul(job, DY, scale);
        qn_value *part = qn_grad_mul(job, xh, mean_of(job, qn_grad_mul(job, dxh, xh), over));
        qn_value *rest = qn_grad_sub(job, dxh, mean_of(job, dxh, over));
        job->dx[0] = qn_grad_mul(job, r, qn_grad_sub(job, rest, part));
    }
    if (job->wants[1]) {
        qn_value *sums = qn_grad_mul(job, DY, xh);
        sums = job->status == QN_OK ? qn_grad_sum_like(job, sums, scale) : NULL;
        job->dx[1] = qn_grad_reshape_like(job, sums, SCALE);
    }
    if (job->node->n_in > 2 && job->wants[2])
        job->dx[2] = qn_grad_reshape_like(job, qn_grad_sum_like(job, DY, scale), job->node->in[2]);
}

void qn_grad_layer_norm(qn_grad_job *job)
{
    const qn_norm_attrs *a = job->node->attrs;
    const qn_node *node = job->node;
    axes over = {.count = 0};
    if (node->n_in > 2 && node->in[2] && node->in[2]->type.rank != SCALE->type.rank) {
        qn_grad_fail(job, "scale and bias must have one shape");
        return;
    }
    for (int32_t d = (int32_t)(a->axis < 0 ? a->axis + X->type.rank : a->axis); d < X->type.rank;
         d++)
        over.at[over.count++] = d;
    normalize(job, &over, (double)a->epsilon, SCALE);
}

void qn_grad_instance_norm(qn_grad_job *job)
{
    const qn_norm_attrs *a = job->node->attrs;
    int64_t dims[QN_MAX_RANK], columns[QN_MAX_RANK];
    axes over = {.count = 0};
    if (!qn_grad_dims(job, dims, X))
        return;
    columns[0] = dims[1];
    for (int32_t d = 2; d < X->type.rank; d++) {
        over.at[over.count++] = d;
        columns[d - 1] = 1;
    }
    qn_value *scale = qn_grad_reshape(job, SCALE, columns, X->type.rank - 1);
    if (job->status == QN_OK)
        normalize(job, &over, (double)a->epsilon, scale);
}
