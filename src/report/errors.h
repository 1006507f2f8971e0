/* How far one list of numbers is from another: `left` is the one that is right, `right` the one
 * being judged. */
#ifndef QN_ERRORS_H
#define QN_ERRORS_H

#include "base/base.h"

/* Sums over all pairs of numbers so far. Pairs with a NaN or an infinity on either side are counted
 * and left out. */
typedef struct qn_errors {
    int64_t count, bad;
    /* right > left, right < left */
    int64_t greater, less;
    /* sum |right - left|, sum |left| */
    double difference, size;
    /* sum (right - left)^2, sum left^2, sum right^2 */
    double noise, left2, right2;
    /* Sum left right */
    double product;
    /* |right - left|, |left| */
    double largest, largest_left;
    /* Place of the largest difference in the list it was in */
    int64_t worst;
    double worst_left, worst_right;
    /* Of left and of right */
    double least[2], most[2];
} qn_errors;

void qn_errors_add(qn_errors *e, const double *left, const double *right, int64_t count);

/* A quotient without a size to relate to is 0 where nothing differs, else infinite. */
double qn_errors_mre(const qn_errors *e);  /* sum |right - left| / sum |left| */
double qn_errors_cos(const qn_errors *e);  /* 0.5 + 0.5 cos: 1 where the directions are the same */
double qn_errors_rmse(const qn_errors *e); /* sqrt(sum (right - left)^2 / sum left^2) */
double qn_errors_maxdiff(const qn_errors *e); /* largest |right - left| / largest |left| */
double qn_errors_above(const qn_errors *e);   /* share of right > left */
double qn_errors_below(const qn_errors *e);   /* share of right < left */

#endif
