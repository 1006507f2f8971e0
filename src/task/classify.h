/* Classification metrics: top-1 and top-5 hits, and the distance from the float model. */
#ifndef QN_CLASSIFY_H
#define QN_CLASSIFY_H

#include "base/base.h"

typedef struct qn_hits {
    int64_t top1, top5;
} qn_hits;

typedef struct qn_classify {
    /* The number of classes; 0: no sample seen yet. */
    int64_t classes;
    /* The number of samples seen. */
    int64_t samples;
    /* The number of samples with a label. */
    int64_t labelled;
    /* Hits of the model. */
    qn_hits hits;
    /* Hits of the float model. */
    qn_hits float_hits;
    /* The number of samples with the same best class in both models. */
    int64_t agreed;
    /* The sum of KL(float || model). */
    double divergence;
    /* Scores are probabilities already; else softmax is applied for the divergence. */
    bool probabilities;
    /* [2][classes], scratch memory. */
    double *room;
} qn_classify;

/* The scores of one sample, all finite. */
typedef struct qn_scores {
    /* [classes] */
    const double *scores;
    /* [classes], or NULL */
    const double *float_scores;
    int64_t classes;
    /* The index of the true class; -1: unknown. */
    int64_t label;
} qn_scores;

/* Adds a sample. The first one sets the number of classes, and the float model's scores decide
 * whether scores are probabilities: none negative and a sum of 1 within 1e-3. A quantized model's
 * sum may be less exact, so its scores are treated as the float model's. */
QN_MUST_CHECK qn_status qn_classify_add(qn_classify *task, qn_context *ctx,
                                        const qn_scores *sample);
void qn_classify_free(qn_classify *task, qn_context *ctx);

/* The rank of a class by its score, 0 the best; of equal scores the lower class comes first. */
int64_t qn_rank_of(const double *scores, int64_t classes, int64_t label);
int64_t qn_best_class(const double *scores, int64_t classes);
/* The KL divergence: sum over p' ln(p' / q') with p' = p + 1e-9, q' = q + 1e-9. */
double qn_divergence(const double *p, const double *q, int64_t classes);

#endif
