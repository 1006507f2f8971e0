/* Classification: hits among the best scores, and how far a model is from its float original. */
#ifndef QN_CLASSIFY_H
#define QN_CLASSIFY_H

#include "base/base.h"

typedef struct qn_hits {
    int64_t top1, top5;
} qn_hits;

typedef struct qn_classify {
    /* 0: no sample seen yet */
    int64_t classes;
    /* Seen */
    int64_t samples;
    /* Of them */
    int64_t labelled;
    /* Of the model */
    qn_hits hits;
    /* Of the float model */
    qn_hits float_hits;
    /* Samples with the same best class in both */
    int64_t agreed;
    /* Sum of KL(float || model) */
    double divergence;
    /* Scores are taken as they are for it; else softmax comes first */
    bool probabilities;
    /* [2][classes] */
    double *room;
} qn_classify;

/* One sample's scores, all finite. */
typedef struct qn_scores {
    /* [classes] */
    const double *scores;
    /* [classes], or NULL */
    const double *float_scores;
    int64_t classes;
    /* Class number among the scores; -1: not known */
    int64_t label;
} qn_scores;

/* Takes the scores of a sample. The first one settles the number of classes, and by the float
 * model's scores whether these are probabilities: none negative, sum 1 within 1e-3. A quantized
 * model's need not sum up so well, and are what the float model's are. */
QN_MUST_CHECK qn_status qn_classify_add(qn_classify *task, qn_context *ctx,
                                        const qn_scores *sample);
void qn_classify_free(qn_classify *task, qn_context *ctx);

/* Place of a class by its score, 0 the best; of equal scores the lower class comes first. */
int64_t qn_rank_of(const double *scores, int64_t classes, int64_t label);
int64_t qn_best_class(const double *scores, int64_t classes);
/* sum over p' ln(p' / q') with p' = p + 1e-9, q' = q + 1e-9. */
double qn_divergence(const double *p, const double *q, int64_t classes);

#endif
