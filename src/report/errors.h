/* Measures of error between two lists of numbers: `left` has the reference values, `right` the
 * values that are judged. */
#ifndef QN_ERRORS_H
#define QN_ERRORS_H

#include "base/base.h"

/* Sums over all pairs of numbers so far. Pairs with a NaN or an infinity on either side are counted
 * in `bad` and otherwise left out. */
typedef struct qn_errors {
    int64_t count, bad;
    /* right > left, right < left */
    int64_t greater, less;
    /* sum |right - left|, sum |left| */
    double difference, size;
    /* sum (right - left)^2, sum left^2, sum right^2 */
    double noise, left2, right2;
    /* sum left * right */
    double product;
    /* |right - left|, |left| */
    double largest, largest_left;
    /* The index of the largest difference in its list. */
    int64_t worst;
    double worst_left, worst_right;
    /* The extremes of left and of right. */
    double least[2], most[2];
} qn_errors;

void qn_errors_add(qn_errors *e, const double *left, const double *right, int64_t count);

/* Relative errors. Where the reference is all 0 they are 0 without a difference, else infinite. */
double qn_errors_mre(const qn_errors *e);  /* sum |right - left| / sum |left| */
double qn_errors_cos(const qn_errors *e);  /* 0.5 + 0.5 cos: 1 where the directions are the same */
double qn_errors_rmse(const qn_errors *e); /* sqrt(sum (right - left)^2 / sum left^2) */
double qn_errors_maxdiff(const qn_errors *e); /* largest |right - left| / largest |left| */
double qn_errors_above(const qn_errors *e);   /* share of right > left */
double qn_errors_below(const qn_errors *e);   /* share of right < left */

#endif
