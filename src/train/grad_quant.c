/* The gradient of fake quantization. */
#include "ops/grad_attrs.h"
#include "train/gradient.h"

void qn_grad_fake_quant(qn_grad_job *job)
{
    const qn_node *node = job->node;
    qn_value *offset = node->n_in > 2 ? node->in[2] : NULL;
    qn_value *const in[] = {job->dy[0], node->in[0], node->in[1], offset};
    qn_node *gradient = qn_grad_node(job, &qn_op_qn_FakeQuantGrad, in, 4, offset ? 3 : 2);
    qn_grad_copy_attrs(job, gradient, node, sizeof(qn_fake_quant_attrs));
    qn_grad_infer(job, gradient);
    for (int32_t i = 0; job->status == QN_OK && i < node->n_in; i++)
        job->dx[i] = job->wants[i] ? gradient->out[i] : NULL;
}
