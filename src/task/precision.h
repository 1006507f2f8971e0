/* Mean average precision as COCO defines it: overlaps 0.50, 0.55, ... 0.95, recalls 0, 0.01, ... 1, boxes of all
 * sizes, the best `most` boxes per picture and class, crowds matched by any number of boxes that then do not
 * count. Ties of scores go by the order in which pictures and boxes came. */
#ifndef QN_PRECISION_H
#define QN_PRECISION_H

#include "task/boxes.h"

typedef struct qn_verdict qn_verdict;

typedef struct qn_precision {
    qn_context *ctx;
    size_t most;       /* boxes per picture and class; 0: 100 */
    qn_verdict *found; /* of every found box */
    size_t count, room;
    int64_t *wanted; /* [n_classes] true boxes that are no crowd */
    size_t n_classes, classes_room;
    int64_t pictures, truths; /* seen */
} qn_precision;

/* Results of qn_precision_finish: means over the classes that have true boxes; NAN where none has. */
typedef struct qn_mean_precision {
    double map50, map50_95;
    int64_t classes; /* with true boxes */
} qn_mean_precision;

/* One picture. Both lists are put into another order. */
QN_MUST_CHECK qn_status qn_precision_add(qn_precision *p, qn_boxes *found, qn_boxes *truth);
QN_MUST_CHECK qn_status qn_precision_finish(qn_mean_precision *out, qn_precision *p);
void qn_precision_free(qn_precision *p);

#endif
