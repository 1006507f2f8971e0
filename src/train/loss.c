/* Losses: cross-entropy with label smoothing, KL divergence from another network, their sum. */
#include "train/loss.h"

#include "ops/infer.h"
#include "ops/nn_attrs.h"
#include "train/gradient.h"

/* Whether the value is a Softmax over the classes of its input. */
static bool is_softmax(const qn_value *value)
{
    const qn_node *node = value->producer;
    return node && node->op == &qn_op_Softmax &&
           qn_softmax_axis(node->attrs, value->type.rank) == 1;
}

/* One score for each class: [batch, classes], perhaps with dims of 1 behind. */
static bool is_classification(qn_grad_job *job, const qn_value *x)
{
    int64_t dims[QN_MAX_RANK];
    if (!qn_grad_dims(job, dims, x))
        return false;
    bool fits = x->type.rank >= 2 && qn_dtype_is_float(x->type.dtype) && dims[1] > 1;
    for (int32_t d = 2; d < x->type.rank; d++)
        fits = fits && dims[d] == 1;
    return fits;
}

/* [batch, classes] before a Softmax */
static qn_value *logits_of(qn_grad_job *job, qn_value *scores)
{
    int64_t dims[QN_MAX_RANK];
    qn_value *x = is_softmax(scores) ? scores->producer->in[0] : scores;
    if (!qn_grad_dims(job, dims, x))
        return NULL;
    if (!is_classification(job, x)) {
        qn_grad_fail(job, "the output '%s' does not hold one score for each class", scores->name);
        return NULL;
    }
    return qn_grad_reshape(job, x, dims, 2);
}

static qn_value *along_classes(qn_grad_job *job, const qn_op *op, qn_value *x)
{
    qn_node *node = qn_grad_node(job, op, &x, 1, 1);
    qn_grad_set_int(job, node, "axis", 1);
    return qn_grad_infer(job, node);
}

/* -sum(target log_probability) / batch */
static qn_value *cross_entropy(qn_grad_job *job, qn_value *target, qn_value *log_probability)
{
    const int64_t axes[2] = {0, 1};
    qn_value *sum =
        qn_grad_reduce(job, &qn_op_ReduceSum, qn_grad_mul(job, target, log_probability), axes, 2);
    if (job->status != QN_OK)
        return NULL;
    const double batch = (double)log_probability->type.dims[0].value;
    return qn_grad_reshape(job, qn_grad_scale(job, sum, -1 / batch), NULL, 0);
}

/* ---- Labels ---------------------------------------------------------------------------------- */

static qn_value *add_labels(qn_grad_job *job, const qn_value *logits)
{
    qn_value *labels = NULL;
    if (job->status == QN_OK)
        job->status = qn_value_create(&labels, job->graph, "labels");
    if (job->status != QN_OK)
        return NULL;
    labels->type = qn_type_tensor(QN_INT64, 1, &(const int64_t){logits->type.dims[0].value});
    job->status = qn_graph_add_input(job->graph, labels);
    return labels;
}

/* 1 - smoothing at the label, and smoothing / classes everywhere. */
static qn_value *target_of(qn_grad_job *job, qn_value *labels, const qn_value *logits,
                           double smoothing)
{
    if (job->status != QN_OK)
        return NULL;
    const int64_t classes = logits->type.dims[1].value;
    qn_value *values[2] = {qn_grad_number(job, logits, 0),
                           qn_grad_number(job, logits, 1 - smoothing)};
    for (int i = 0; i < 2; i++)
        values[i] = qn_grad_reshape(job, values[i], &(const int64_t){1}, 1);
    qn_node *pair = qn_grad_node(job, &qn_op_Concat, values, 2, 1);
    qn_grad_set_int(job, pair, "axis", 0);
    qn_value *const in[] = {labels, qn_grad_ints(job, &classes, 1), qn_grad_infer(job, pair)};
    qn_node *node = qn_grad_node(job, &qn_op_OneHot, in, 3, 1);
    qn_grad_set_int(job, node, "axis", 1);
    qn_value *target = qn_grad_infer(job, node);
    return smoothing > 0 ? qn_grad_shift(job, target, smoothing / (double)classes) : target;
}

/* How often the largest score stands at the label. */
static qn_value *count_correct(qn_grad_job *job, qn_value *logits, qn_value *labels)
{
    const int64_t axis = 0;
    qn_node *best = qn_grad_node(job, &qn_op_ArgMax, &logits, 1, 1);
    qn_grad_set_int(job, best, "axis", 1);
    qn_grad_set_int(job, best, "keepdims", 0);
    qn_value *hits = qn_grad_binary(job, &qn_op_Equal, qn_grad_infer(job, best), labels);
    qn_node *cast = qn_grad_node(job, &qn_op_Cast, &hits, 1, 1);
    qn_grad_set_int(job, cast, "to", logits->type.dtype);
    qn_value *sum = qn_grad_reduce(job, &qn_op_ReduceSum, qn_grad_infer(job, cast), &axis, 1);
    return qn_grad_reshape(job, sum, NULL, 0);
}

/* ---- The float network ----------------------------------------------------------------------- */

/* t^2 sum(p (log p - log q)) / batch of the probabilities p of the teacher and q of the student,
 * both at temperature t. */
static qn_value *divergence(qn_grad_job *job, qn_value *logits, qn_value *teacher, double t)
{
    qn_value *given = qn_grad_scale(job, logits_of(job, teacher), 1 / t);
    qn_value *log_p = along_classes(job, &qn_op_LogSoftmax, given);
    qn_value *p = qn_grad_unary(job, &qn_op_Exp, log_p);
    qn_value *log_q = along_classes(job, &qn_op_LogSoftmax, qn_grad_scale(job, logits, 1 / t));
    qn_value *difference = qn_grad_sub(job, log_q, log_p);
    return qn_grad_scale(job, cross_entropy(job, p, difference), t * t);
}

/* The mean square of the difference of both networks' outputs, whatever they mean. */
static qn_value *distance(qn_grad_job *job, qn_value *scores, qn_value *teacher)
{
    int64_t axes[QN_MAX_RANK], dims[QN_MAX_RANK], count = 1;
    if (!qn_grad_dims(job, dims, scores))
        return NULL;
    for (int32_t d = 0; d < scores->type.rank; d++) {
        axes[d] = d;
        count *= dims[d];
    }
    qn_value *apart = qn_grad_sub(job, scores, teacher);
    qn_value *sum = qn_grad_reduce(job, &qn_op_ReduceSum, qn_grad_mul(job, apart, apart), axes,
                                   (size_t)scores->type.rank);
    return qn_grad_reshape(job, qn_grad_scale(job, sum, 1 / (double)count), NULL, 0);
}

/* ---- All of it ------------------------------------------------------------------------------- */

qn_status qn_train_loss_add(qn_train_loss *out, qn_graph *graph, qn_value *scores,
                            qn_value *teacher, const qn_loss_settings *s)
{
    qn_grad_job job = {.graph = graph, .node = scores->producer};
    const double share = teacher ? s->distillation : 0;
    *out = (qn_train_loss){.labels = NULL};
    if (!scores->producer)
        return qn_fail(graph->ctx, QN_E_UNSUPPORTED, "the output '%s' is computed by no node",
                       scores->name);
    if (share == 1 && !is_classification(&job, scores)) {
        out->loss = distance(&job, scores, teacher);
        return job.status;
    }
    qn_value *logits = logits_of(&job, scores);
    out->classes = logits ? logits->type.dims[1].value : 0;
    if (share < 1 && job.status == QN_OK) {
        out->labels = add_labels(&job, logits);
        qn_value *target = target_of(&job, out->labels, logits, s->smoothing);
        qn_value *log_q = along_classes(&job, &qn_op_LogSoftmax, logits);
        out->loss = qn_grad_scale(&job, cross_entropy(&job, target, log_q), 1 - share);
        out->correct = count_correct(&job, logits, out->labels);
    }
    if (share > 0) {
        qn_value *apart =
            qn_grad_scale(&job, divergence(&job, logits, teacher, s->temperature), share);
        out->loss = out->loss ? qn_grad_add(&job, out->loss, apart) : apart;
    }
    return job.status;
}
