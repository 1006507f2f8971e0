/* Gradients of activations and softmax. */
#include "ops/nn_attrs.h"
#include "train/gradient.h"

#define X (job->node->in[0])
#define Y (job->node->out[0])
#define DY (job->dy[0])

void qn_grad_relu(qn_grad_job *job)
{
    job->dx[0] = qn_grad_binary(job, &qn_op_qn_ReluGrad, DY, Y);
}

/* Limits do not learn. */
void qn_grad_clip(qn_grad_job *job)
{
    const qn_node *node = job->node;
    qn_value *const in[] = {DY, X, node->n_in > 1 ? node->in[1] : NULL,
                            node->n_in > 2 ? node->in[2] : NULL};
    if (job->wants[0])
        job->dx[0] = qn_grad_apply(job, &qn_op_qn_ClipGrad, in, 4);
}

/* y (1 - y) */
void qn_grad_sigmoid(qn_grad_job *job)
{
    qn_value *rest = qn_grad_sub(job, qn_grad_number(job, Y, 1), Y);
    job->dx[0] = qn_grad_mul(job, DY, qn_grad_mul(job, Y, rest));
}

/* 1 - y^2 */
void qn_grad_tanh(qn_grad_job *job)
{
    qn_value *rest = qn_grad_sub(job, qn_grad_number(job, Y, 1), qn_grad_mul(job, Y, Y));
    job->dx[0] = qn_grad_mul(job, DY, rest);
}

void qn_grad_softplus(qn_grad_job *job)
{
    job->dx[0] = qn_grad_mul(job, DY, qn_grad_unary(job, &qn_op_Sigmoid, X));
}

static qn_value *is_positive(qn_grad_job *job)
{
    return qn_grad_binary(job, &qn_op_Greater, X, qn_grad_number(job, X, 0));
}

/* DY where the condition holds, else `other`. */
static void choose(qn_grad_job *job, qn_value *condition, qn_value *other)
{
    qn_value *const in[] = {condition, DY, other};
    job->dx[0] = qn_grad_apply(job, &qn_op_Where, in, 3);
}

void qn_grad_leaky_relu(qn_grad_job *job)
{
    const qn_activation_attrs *a = job->node->attrs;
    choose(job, is_positive(job), qn_grad_scale(job, DY, (double)a->alpha));
}

/* y + alpha where x < 0 */
void qn_grad_elu(qn_grad_job *job)
{
    const qn_activation_attrs *a = job->node->attrs;
    qn_value *slope = qn_grad_shift(job, Y, (double)a->alpha);
    choose(job, is_positive(job), qn_grad_mul(job, DY, slope));
}

void qn_grad_prelu(qn_grad_job *job)
{
    qn_value *slope = job->node->in[1];
    qn_value *positive = is_positive(job);
    if (job->wants[0])
        choose(job, positive, qn_grad_mul(job, DY, slope));
    if (!job->wants[1])
        return;
    qn_value *below = qn_grad_unary(job, &qn_op_Not, positive);
    qn_value *part = qn_grad_where(job, below, qn_grad_mul(job, DY, X));
    job->dx[1] = qn_grad_sum_like(job, part, slope);
}

/* DY times a factor where low < x < high. */
static qn_value *between(qn_grad_job *job, double low, double high, double factor)
{
    qn_value *above = qn_grad_binary(job, &qn_op_Greater, X, qn_grad_number(job, X, low));
    qn_value *below = qn_grad_binary(job, &qn_op_Less, X, qn_grad_number(job, X, high));
    qn_value *inside = qn_grad_binary(job, &qn_op_And, above, below);
    return qn_grad_where(job, inside, qn_grad_scale(job, DY, factor));
}

/* max(0, min(1, alpha x + beta)) */
void qn_grad_hard_sigmoid(qn_grad_job *job)
{
    const qn_activation_attrs *a = job->node->attrs;
    const double alpha = (double)a->alpha, beta = (double)a->beta;
    if (!(alpha > 0)) {
        qn_grad_fail(job, "alpha must be positive");
        return;
    }
    job->dx[0] = between(job, -beta / alpha, (1 - beta) / alpha, alpha);
}

/* x h(x), h = max(0, min(1, x / 6 + 1 / 2)): h + x h' */
void qn_grad_hard_swish(qn_grad_job *job)
{
    qn_node *gate = qn_grad_node(job, &qn_op_HardSigmoid, &(qn_value *){X}, 1, 1);
    if (job->status == QN_OK)
        *(qn_activation_attrs *)gate->attrs = (qn_activation_attrs){.alpha = 1.0f / 6, .beta = .5f};
    qn_value *h = qn_grad_infer(job, gate);
    qn_value *slope = qn_grad_mul(job, X, between(job, -3, 3, 1.0 / 6));
    job->dx[0] = qn_grad_add(job, qn_grad_mul(job, DY, h), slope);
}

/* s = sigmoid(alpha x): s + alpha y (1 - s) */
void qn_grad_swish(qn_grad_job *job)
{
    const qn_activation_attrs *a = job->node->attrs;
    qn_value *scaled = qn_grad_scale(job, X, (double)a->alpha);
    qn_value *s = qn_grad_unary(job, &qn_op_Sigmoid, scaled);
    qn_value *rest = qn_grad_sub(job, qn_grad_number(job, Y, 1), s);
    qn_value *slope = qn_grad_scale(job, qn_grad_mul(job, Y, rest), (double)a->alpha);
    job->dx[0] = qn_grad_mul(job, DY, qn_grad_add(job, s, slope));
}

/* t = tanh(softplus(x)): t + x (1 - t^2) sigmoid(x) */
void qn_grad_mish(qn_grad_job *job)
{
    qn_value *t = qn_grad_unary(job, &qn_op_Tanh, qn_grad_unary(job, &qn_op_Softplus, X));
    qn_value *rest = qn_grad_sub(job, qn_grad_number(job, X, 1), qn_grad_mul(job, t, t));
    qn_value *inner = qn_grad_mul(job, X, qn_grad_unary(job, &qn_op_Sigmoid, X));
    qn_value *slope = qn_grad_add(job, t, qn_grad_mul(job, rest, inner));
    job->dx[0] = qn_grad_mul(job, DY, slope);
}

/* Phi(x) + x phi(x) */
static qn_value *gelu_erf(qn_grad_job *job)
{
    qn_value *part = qn_grad_unary(job, &qn_op_Erf, qn_grad_scale(job, X, .70710678118654752440));
    qn_value *phi = qn_grad_shift(job, qn_grad_scale(job, part, .5), .5);
    qn_value *square = qn_grad_scale(job, qn_grad_mul(job, X, X), -.5);
    qn_value *bell =
        qn_grad_scale(job, qn_grad_unary(job, &qn_op_Exp, square), .39894228040143267794);
    return qn_grad_add(job, phi, qn_grad_mul(job, X, bell));
}

/* u = sqrt(2 / pi) (x + .044715 x^3), t = tanh(u): (1 + t) / 2 + x (1 - t^2) u' / 2 */
static qn_value *gelu_tanh(qn_grad_job *job)
{
    const double root = .79788456080286535588;
    qn_value *square = qn_grad_mul(job, X, X);
    qn_value *inner = qn_grad_shift(job, qn_grad_scale(job, square, .044715), 1);
    qn_value *u = qn_grad_scale(job, qn_grad_mul(job, X, inner), root);
    qn_value *t = qn_grad_unary(job, &qn_op_Tanh, u);
    qn_value *rest = qn_grad_sub(job, qn_grad_number(job, X, 1), qn_grad_mul(job, t, t));
    qn_value *slope =
        qn_grad_scale(job, qn_grad_shift(job, qn_grad_scale(job, square, 3 * .044715), 1), root);
    qn_value *right = qn_grad_mul(job, X, qn_grad_mul(job, rest, slope));
    return qn_grad_scale(job, qn_grad_add(job, qn_grad_shift(job, t, 1), right), .5);
}

void qn_grad_gelu(qn_grad_job *job)
{
    const qn_gelu_attrs *a = job->node->attrs;
    qn_value *slope = a->approximate == QN_GELU_TANH ? gelu_tanh(job) : gelu_erf(job);
    job->dx[0] = qn_grad_mul(job, DY, slope);
}

/* ---- Softmax --------------------------------------------------------------------------------- */

static qn_value *sum_along(qn_grad_job *job, qn_value *x)
{
    const int64_t axis = qn_softmax_axis(job->node->attrs, X->type.rank);
    return qn_grad_reduce(job, &qn_op_ReduceSum, x, &axis, 1);
}

/* y (dy - sum(dy y)) */
void qn_grad_softmax(qn_grad_job *job)
{
    qn_value *sum = sum_along(job, qn_grad_mul(job, DY, Y));
    job->dx[0] = qn_grad_mul(job, Y, qn_grad_sub(job, DY, sum));
}

/* dy - e^y sum(dy) */
void qn_grad_log_softmax(qn_grad_job *job)
{
    qn_value *share = qn_grad_mul(job, qn_grad_unary(job, &qn_op_Exp, Y), sum_along(job, DY));
    job->dx[0] = qn_grad_sub(job, DY, share);
}
