/* Classification metrics: hits and the divergence from the float model. */
#include "task/classify.h"

#include <math.h>

int64_t qn_rank_of(const double *scores, int64_t classes, int64_t label)
{
    int64_t rank = 0;
    for (int64_t c = 0; c < classes; c++)
        rank += scores[c] > scores[label] || (scores[c] == scores[label] && c < label);
    return rank;
}

int64_t qn_best_class(const double *scores, int64_t classes)
{
    int64_t best = 0;
    for (int64_t c = 1; c < classes; c++)
        best = scores[c] > scores[best] ? c : best;
    return best;
}

double qn_divergence(const double *p, const double *q, int64_t classes)
{
    const double least = 1e-9;
    double sum = 0;
    for (int64_t c = 0; c < classes; c++)
        sum += (p[c] + least) * log((p[c] + least) / (q[c] + least));
    return sum;
}

static bool are_probabilities(const double *scores, int64_t classes)
{
    double sum = 0;
    for (int64_t c = 0; c < classes; c++) {
        if (scores[c] < 0)
            return false;
        sum += scores[c];
    }
    return fabs(sum - 1) <= 1e-3;
}

static void softmax(double *out, const double *scores, int64_t classes)
{
    const double most = scores[qn_best_class(scores, classes)];
    double sum = 0;
    for (int64_t c = 0; c < classes; c++)
        sum += out[c] = exp(scores[c] - most);
    for (int64_t c = 0; c < classes; c++)
        out[c] /= sum;
}

/* Scores of quantized probabilities can be a little below 0. */
static void clipped(double *out, const double *scores, int64_t classes)
{
    for (int64_t c = 0; c < classes; c++)
        out[c] = QN_MAX(scores[c], 0.0);
}

static void compare(qn_classify *task, const qn_scores *s)
{
    double *own = task->room, *other = task->room + s->classes;
    void (*prepare)(double *, const double *, int64_t) = task->probabilities ? clipped : softmax;
    prepare(own, s->scores, s->classes);
    prepare(other, s->float_scores, s->classes);
    task->agreed +=
        qn_best_class(s->scores, s->classes) == qn_best_class(s->float_scores, s->classes);
    task->divergence += qn_divergence(other, own, s->classes);
}

static void count_hits(qn_hits *hits, const double *scores, const qn_scores *s)
{
    const int64_t rank = qn_rank_of(scores, s->classes, s->label);
    hits->top1 += rank < 1;
    hits->top5 += rank < 5;
}

static qn_status begin(qn_classify *task, qn_context *ctx, const qn_scores *s)
{
    task->classes = s->classes;
    task->room = qn_alloc_zero(ctx, 2 * (size_t)s->classes, sizeof *task->room);
    QN_TRY_ALLOC(ctx, task->room);
    task->probabilities =
        are_probabilities(s->float_scores ? s->float_scores : s->scores, s->classes);
    return QN_OK;
}

qn_status qn_classify_add(qn_classify *task, qn_context *ctx, const qn_scores *sample)
{
    if (!task->classes)
        QN_TRY(begin(task, ctx, sample));
    if (sample->classes != task->classes)
        return qn_fail(ctx, QN_E_INVALID, "%lld scores, the first sample had %lld",
                       (long long)sample->classes, (long long)task->classes);
    if (sample->label >= sample->classes)
        return qn_fail(ctx, QN_E_INVALID,
                       "class %lld, but the model has scores for 0 to %lld (`class_offset` moves "
                       "labels)",
                       (long long)sample->label, (long long)sample->classes - 1);
    task->samples++;
    if (sample->label >= 0) {
        task->labelled++;
        count_hits(&task->hits, sample->scores, sample);
        if (sample->float_scores)
            count_hits(&task->float_hits, sample->float_scores, sample);
    }
    if (sample->float_scores)
        compare(task, sample);
    return QN_OK;
}

void qn_classify_free(qn_classify *task, qn_context *ctx)
{
    qn_free(ctx, task->room);
    task->room = NULL;
}
