/* Classification: hits among the best scores, and how far a model is from its float original. */
#ifndef QN_CLASSIFY_H
#define QN_CLASSIFY_H

#include "base/base.h"

typedef struct qn_hits {
    int64_t top1, top5;
} qn_hits;

typedef struct qn_classify {
    int64_t classes;    /* 0: no sample seen yet */
    int64_t samples;    /* seen */
    int64_t labelled;   /* of them */
    qn_hits hits;       /* of the model */
    qn_hits float_hits; /* of the float model */
    int64_t agreed;     /* samples with the same best class in both */
    double divergence;  /* sum of KL(float || model) */
    bool probabilities; /* scores are taken as they are for it; else softmax comes first */
    double *room;       /* [2][classes] */
} qn_classify;

/* One sample's scores, all finite. */
typedef struct qn_scores {
    const double *scores;       /* [classes] */
    const double *float_scores; /* [classes], or NULL */
    int64_t classes;
    int64_t label; /* class number among the scores; -1: not known */
} qn_scores;

/* Takes the scores of a sample. The first one settles the number of classes, and by the float model's scores
 * whether these are probabilities: none negative, sum 1 within 1e-3. A quantized model's need not sum up
 * so well, and are what the float model's are. */
QN_MUST_CHECK qn_status qn_classify_add(qn_classify *task, qn_context *ctx,
                                        const qn_scores *sample);
void qn_classify_free(qn_classify *task, qn_context *ctx);

/* Place of a class by its score, 0 the best; of equal scores the lower class comes first. */
int64_t qn_rank_of(const double *scores, int64_t classes, int64_t label);
int64_t qn_best_class(const double *scores, int64_t classes);
/* sum over p' ln(p' / q') with p' = p + 1e-9, q' = q + 1e-9. */
double qn_divergence(const double *p, const double *q, int64_t classes);

#endif
