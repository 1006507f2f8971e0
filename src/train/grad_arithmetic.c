/* Gradients of arithmetic and of functions of one number. */
#include <math.h>

#include "ops/nn_attrs.h"
#include "train/gradient.h"

/* Input i of the node, and its output. */
#define X(i) (job->node->in[i])
#define Y (job->node->out[0])
#define DY (job->dy[0])

/* ---- Two tensors, broadcast ------------------------------------------------------------------ */

/* The gradient of input i is this, summed over what was repeated. */
static void give(qn_grad_job *job, int32_t i, qn_value *gradient)
{
    if (job->status == QN_OK)
        job->dx[i] = qn_grad_sum_like(job, gradient, X(i));
}

void qn_grad_add_of(qn_grad_job *job)
{
    for (int32_t i = 0; i < 2; i++) {
        if (job->wants[i])
            give(job, i, DY);
    }
}

void qn_grad_sum(qn_grad_job *job)
{
    for (int32_t i = 0; i < job->node->n_in; i++) {
        if (job->wants[i])
            give(job, i, DY);
    }
}

void qn_grad_sub_of(qn_grad_job *job)
{
    if (job->wants[0])
        give(job, 0, DY);
    if (job->wants[1])
        give(job, 1, qn_grad_unary(job, &qn_op_Neg, DY));
}

void qn_grad_mul_of(qn_grad_job *job)
{
    for (int32_t i = 0; i < 2; i++) {
        if (job->wants[i])
            give(job, i, qn_grad_mul(job, DY, X(1 - i)));
    }
}

/* da = dy / b, db = -dy y / b */
void qn_grad_div_of(qn_grad_job *job)
{
    qn_value *share = qn_grad_div(job, DY, X(1));
    if (job->wants[0])
        give(job, 0, share);
    if (job->wants[1])
        give(job, 1, qn_grad_unary(job, &qn_op_Neg, qn_grad_mul(job, share, Y)));
}

/* da = dy b a^(b - 1), db = dy y log a, where a > 0 */
void qn_grad_pow(qn_grad_job *job)
{
    if (X(0)->type.dtype != X(1)->type.dtype) {
        qn_grad_fail(job, "a power of another type than its base has no gradient here");
        return;
    }
    if (job->wants[0]) {
        qn_value *less = qn_grad_binary(job, &qn_op_Pow, X(0), qn_grad_shift(job, X(1), -1));
        give(job, 0, qn_grad_mul(job, DY, qn_grad_mul(job, X(1), less)));
    }
    if (job->wants[1]) {
        qn_value *logarithm = qn_grad_unary(job, &qn_op_Log, X(0));
        give(job, 1, qn_grad_mul(job, DY, qn_grad_mul(job, Y, logarithm)));
    }
}

/* The one that the output was taken from has it; where several are equal there is no derivative,
 * and each of them has it. */
static void extreme(qn_grad_job *job)
{
    for (int32_t i = 0; i < job->node->n_in; i++) {
        if (job->wants[i])
            give(job, i, qn_grad_where(job, qn_grad_binary(job, &qn_op_Equal, X(i), Y), DY));
    }
}

void qn_grad_max(qn_grad_job *job)
{
    extreme(job);
}

void qn_grad_min(qn_grad_job *job)
{
    extreme(job);
}

void qn_grad_where_of(qn_grad_job *job)
{
    if (job->wants[1])
        give(job, 1, qn_grad_where(job, X(0), DY));
    if (job->wants[2])
        give(job, 2, qn_grad_where(job, qn_grad_unary(job, &qn_op_Not, X(0)), DY));
}

/* ---- One tensor ------------------------------------------------------------------------------ */

void qn_grad_identity(qn_grad_job *job)
{
    job->dx[0] = DY;
}

void qn_grad_neg(qn_grad_job *job)
{
    job->dx[0] = qn_grad_unary(job, &qn_op_Neg, DY);
}

void qn_grad_abs(qn_grad_job *job)
{
    job->dx[0] = qn_grad_mul(job, DY, qn_grad_unary(job, &qn_op_Sign, X(0)));
}

void qn_grad_exp(qn_grad_job *job)
{
    job->dx[0] = qn_grad_mul(job, DY, Y);
}

void qn_grad_log(qn_grad_job *job)
{
    job->dx[0] = qn_grad_div(job, DY, X(0));
}

void qn_grad_sqrt(qn_grad_job *job)
{
    job->dx[0] = qn_grad_div(job, qn_grad_scale(job, DY, .5), Y);
}

void qn_grad_reciprocal(qn_grad_job *job)
{
    qn_value *square = qn_grad_mul(job, Y, Y);
    job->dx[0] = qn_grad_unary(job, &qn_op_Neg, qn_grad_mul(job, DY, square));
}

void qn_grad_sin(qn_grad_job *job)
{
    job->dx[0] = qn_grad_mul(job, DY, qn_grad_unary(job, &qn_op_Cos, X(0)));
}

void qn_grad_cos(qn_grad_job *job)
{
    qn_value *sine = qn_grad_unary(job, &qn_op_Sin, X(0));
    job->dx[0] = qn_grad_unary(job, &qn_op_Neg, qn_grad_mul(job, DY, sine));
}

/* 2 / sqrt(pi) e^(-x^2) */
void qn_grad_erf(qn_grad_job *job)
{
    const double factor = 1.12837916709551257390;
    qn_value *square = qn_grad_unary(job, &qn_op_Neg, qn_grad_mul(job, X(0), X(0)));
    qn_value *bell = qn_grad_unary(job, &qn_op_Exp, square);
    job->dx[0] = qn_grad_mul(job, qn_grad_scale(job, DY, factor), bell);
}

/* Back to the type that it came from, where both are real numbers. */
void qn_grad_cast(qn_grad_job *job)
{
    if (!qn_dtype_is_float(Y->type.dtype) || !qn_dtype_is_float(X(0)->type.dtype))
        return;
    qn_value *dy = DY;
    qn_node *node = qn_grad_node(job, &qn_op_Cast, &dy, 1, 1);
    qn_grad_set_int(job, node, "to", X(0)->type.dtype);
    job->dx[0] = qn_grad_infer(job, node);
}
