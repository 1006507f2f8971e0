/* Lists of boxes: areas, overlaps, non-maximum suppression. */
#include "task/boxes.h"

#include <math.h>
#include <stdlib.h>

qn_status qn_boxes_add(qn_boxes *boxes, qn_context *ctx, const qn_box *box)
{
    const double most = 1e9;
    const bool usable = box->x0 > -most && box->y0 > -most && box->x1 < most && box->y1 < most &&
                        box->x0 <= box->x1 && box->y0 <= box->y1;
    if (!usable)
        return QN_OK;
    QN_TRY_GROW(ctx, boxes->at, boxes->room, boxes->count + 1);
    boxes->at[boxes->count] = *box;
    boxes->at[boxes->count].order = boxes->count;
    boxes->count++;
    return QN_OK;
}

void qn_boxes_free(qn_boxes *boxes, qn_context *ctx)
{
    qn_free(ctx, boxes->at);
    *boxes = (qn_boxes){.at = NULL};
}

double qn_box_area(const qn_box *box)
{
    return (box->x1 - box->x0) * (box->y1 - box->y0);
}

double qn_box_intersection(const qn_box *a, const qn_box *b)
{
    const double width = QN_MIN(a->x1, b->x1) - QN_MAX(a->x0, b->x0);
    const double height = QN_MIN(a->y1, b->y1) - QN_MAX(a->y0, b->y0);
    return width > 0 && height > 0 ? width * height : 0;
}

double qn_box_iou(const qn_box *a, const qn_box *b)
{
    const double both = qn_box_intersection(a, b);
    return both > 0 ? both / (qn_box_area(a) + qn_box_area(b) - both) : 0;
}

/* ---- Suppression ----------------------------------------------------------------------------- */

static int by_score(const void *left, const void *right)
{
    const qn_box *a = left, *b = right;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static int by_class(const void *left, const void *right)
{
    const qn_box *a = left, *b = right;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return by_score(left, right);
}

static void sort(qn_box *at, size_t count, int (*compare)(const void *, const void *))
{
    if (count > 1)
        qsort(at, count, sizeof *at, compare);
}

static bool is_covered(const qn_box *box, const qn_box *kept, size_t count, double overlap)
{
    for (size_t i = 0; i < count; i++) {
        if (qn_box_iou(box, &kept[i]) > overlap)
            return true;
    }
    return false;
}

/* Boxes are compared with the kept ones of their class only, and a class keeps `most` at the
 * most. */
qn_status qn_boxes_suppress(qn_boxes *boxes, qn_context *ctx, double overlap, size_t most)
{
    size_t kept = 0, first = 0;
    if (boxes->count > QN_CANDIDATES_MAX) {
        sort(boxes->at, boxes->count, by_score);
        boxes->count = QN_CANDIDATES_MAX;
    }
    sort(boxes->at, boxes->count, by_class);
    for (size_t i = 0; i < boxes->count; i++) {
        const qn_box box = boxes->at[i];
        if (kept && boxes->at[kept - 1].kind != box.kind)
            first = kept;
        if (kept - first < most && !is_covered(&box, boxes->at + first, kept - first, overlap))
            boxes->at[kept++] = box;
        if (i % 1024 == 0)
            QN_TRY(qn_check_cancel(ctx));
    }
    sort(boxes->at, kept, by_score);
    boxes->count = QN_MIN(kept, most);
    return QN_OK;
}

/* ---- Where they are in the picture ----------------------------------------------------------- */

static double back(double at, double from, double scale, double most)
{
    const double x = (at - from) / scale;
    return QN_MIN(QN_MAX(x, 0), most);
}

void qn_boxes_to_picture(qn_boxes *boxes, const qn_picture_place *place)
{
    for (size_t i = 0; i < boxes->count; i++) {
        qn_box *box = &boxes->at[i];
        box->x0 = back(box->x0, place->left, place->scale_x, place->width);
        box->x1 = back(box->x1, place->left, place->scale_x, place->width);
        box->y0 = back(box->y0, place->top, place->scale_y, place->height);
        box->y1 = back(box->y1, place->top, place->scale_y, place->height);
    }
}
