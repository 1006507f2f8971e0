/* Boxes around objects in pictures. */
#ifndef QN_BOXES_H
#define QN_BOXES_H

#include "data/preprocess.h"

typedef struct qn_box {
    /* Corners in pixels: finite, x0 <= x1 and y0 <= y1. */
    double x0, y0, x1, y1;
    /* The score of a found box. */
    double score;
    /* The class, from 0 on. */
    int32_t kind;
    /* A true box that stands for many objects, as in COCO. */
    bool crowd;
    /* The index at which it was added, which breaks ties. */
    size_t order;
} qn_box;

typedef struct qn_boxes {
    qn_box *at;
    size_t count, room;
} qn_boxes;

/* Adds a box and sets its order. Boxes that are not finite, or of negative size, are left out. */
QN_MUST_CHECK qn_status qn_boxes_add(qn_boxes *boxes, qn_context *ctx, const qn_box *box);
void qn_boxes_free(qn_boxes *boxes, qn_context *ctx);

double qn_box_area(const qn_box *box);
double qn_box_intersection(const qn_box *a, const qn_box *b); /* area of what they share */
double qn_box_iou(const qn_box *a, const qn_box *b);          /* intersection over union */

/* Non-maximum suppression: keeps the boxes that no better box of the same class overlaps by more
 * than `overlap` (IoU), at most `most`, the best first. Of equal scores the lower class comes
 * first, then the earlier box. Only the QN_CANDIDATES_MAX best are considered. */
enum { QN_CANDIDATES_MAX = 30000 };
QN_MUST_CHECK qn_status qn_boxes_suppress(qn_boxes *boxes, qn_context *ctx, double overlap,
                                          size_t most);
/* Maps boxes from the input's pixels to the picture's, clipped at its edges. */
void qn_boxes_to_picture(qn_boxes *boxes, const qn_picture_place *place);

#endif
