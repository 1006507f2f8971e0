/* Boxes around objects in pictures. */
#ifndef QN_BOXES_H
#define QN_BOXES_H

#include "data/preprocess.h"

typedef struct qn_box {
    /* Pixels, finite, x0 <= x1 and y0 <= y1 */
    double x0, y0, x1, y1;
    /* Of a found one */
    double score;
    /* Class, from 0 on */
    int32_t kind;
    /* Of a true one: stands for many objects, as COCO has them */
    bool crowd;
    /* Place in which it came: ties go by it */
    size_t order;
} qn_box;

typedef struct qn_boxes {
    qn_box *at;
    size_t count, room;
} qn_boxes;

/* Sets the order. Boxes that are not finite, or empty by less than nothing, are passed over. */
QN_MUST_CHECK qn_status qn_boxes_add(qn_boxes *boxes, qn_context *ctx, const qn_box *box);
void qn_boxes_free(qn_boxes *boxes, qn_context *ctx);

double qn_box_area(const qn_box *box);
double qn_box_intersection(const qn_box *a, const qn_box *b); /* area of what they share */
double qn_box_iou(const qn_box *a, const qn_box *b);          /* intersection over union */

/* Keeps those that no better one of the same class overlaps by more than `overlap`, at most `most`
 * of them, the best first; of equal scores the lower class, then the earlier one. Only the
 * QN_CANDIDATES_MAX best are looked at. */
enum { QN_CANDIDATES_MAX = 30000 };
QN_MUST_CHECK qn_status qn_boxes_suppress(qn_boxes *boxes, qn_context *ctx, double overlap,
                                          size_t most);
/* From the input's pixels to the picture's, cut off at its edges. */
void qn_boxes_to_picture(qn_boxes *boxes, const qn_picture_place *place);

#endif
