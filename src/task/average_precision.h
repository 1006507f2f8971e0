/* Mean average precision as COCO defines it: overlaps 0.50, 0.55, ... 0.95, recalls 0, 0.01, ... 1,
 * boxes of all sizes, the best `most` boxes per picture and class, crowds matched by any number of
 * boxes that then do not count. Ties of scores go by the order in which pictures and boxes came. */
#ifndef QN_AVERAGE_PRECISION_H
#define QN_AVERAGE_PRECISION_H

#include "task/boxes.h"

typedef struct qn_scored_match qn_scored_match;

typedef struct qn_average_precision {
    qn_context *ctx;
    /* The best boxes per picture and class that count; 0: 100. */
    size_t most;
    /* [count] results, one per found box. */
    qn_scored_match *found;
    size_t count, room;
    /* [n_classes], the number of true boxes that are no crowd. */
    int64_t *wanted;
    size_t n_classes, classes_room;
    /* The pictures and true boxes seen so far. */
    int64_t pictures, n_ground_truth;
} qn_average_precision;

/* Means over the classes that have true boxes; NAN where none has. */
typedef struct qn_mean_average_precision {
    double map50, map50_95;
    /* The number of classes with true boxes. */
    int64_t classes;
} qn_mean_average_precision;

/* Adds one picture. Both lists are reordered. */
QN_MUST_CHECK qn_status qn_average_precision_add(qn_average_precision *p, qn_boxes *found,
                                                 qn_boxes *ground_truth);
QN_MUST_CHECK qn_status qn_average_precision_finish(qn_mean_average_precision *out,
                                                    qn_average_precision *p);
void qn_average_precision_free(qn_average_precision *p);

#endif
