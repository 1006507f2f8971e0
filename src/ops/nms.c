/* NonMaxSuppression: boxes of each class, best first, that do not overlap a chosen one too much. */
#include <math.h>

#include "ops/eval.h"
#include "ops/infer.h"

typedef struct nms_attrs {
    int64_t center_point_box;
} nms_attrs;
static const qn_attr_spec nms_specs[] = {QN_INT_ATTR(nms_attrs, center_point_box, 0)};
static const qn_port nms_in[] = {{"boxes", 0, QN_SET(QN_FLOAT32), 0},
                                 {"scores", 0, QN_SET(QN_FLOAT32), 0},
                                 {"max_output_boxes_per_class", 0, QN_SET(QN_INT64), QN_OPTIONAL},
                                 {"iou_threshold", 0, QN_SET(QN_FLOAT32), QN_OPTIONAL},
                                 {"score_threshold", 0, QN_SET(QN_FLOAT32), QN_OPTIONAL}};
static const qn_port nms_out[] = {{"selected_indices", 0, QN_SET(QN_INT64), 0}};

/* boxes [batch, n, 4], scores [batch, classes, n] -> [selected, 3] */
static qn_status nms_infer(qn_infer *self)
{
    const qn_type *boxes = self->in[0], *scores = self->in[1];
    const qn_dim dims[2] = {qn_dim_unknown(), qn_dim_of(3)};
    qn_dim same;
    if ((boxes->rank >= 0 && boxes->rank != 3) || (scores->rank >= 0 && scores->rank != 3))
        return qn_infer_fail(self, "boxes and scores must have three dimensions");
    if (boxes->rank == 3 && !qn_dim_merge(&same, boxes->dims[2], qn_dim_of(4)))
        return qn_infer_fail(self, "a box must have four numbers");
    if (boxes->rank == 3 && scores->rank == 3 &&
        (!qn_dim_merge(&same, boxes->dims[0], scores->dims[0]) ||
         !qn_dim_merge(&same, boxes->dims[1], scores->dims[2])))
        return qn_infer_fail(self, "boxes and scores do not fit each other");
    qn_infer_set(self, 0, QN_INT64, 2, dims);
    return QN_OK;
}

typedef struct box {
    float low[2], high[2], area;
} box;

/* Corners in either order, or centre and size (x, y, w, h). */
static box box_of(const float *b, bool centre)
{
    box out;
    for (int d = 0; d < 2; d++) {
        const float a = centre ? b[d] - b[d + 2] / 2 : b[d];
        const float z = centre ? b[d] + b[d + 2] / 2 : b[d + 2];
        out.low[d] = a < z ? a : z;
        out.high[d] = a < z ? z : a;
    }
    out.area = (out.high[0] - out.low[0]) * (out.high[1] - out.low[1]);
    return out;
}

static bool meet(const box *a, const box *b)
{
    return (a->low[0] < b->high[0]) & (b->low[0] < a->high[0]) & (a->low[1] < b->high[1]) &
           (b->low[1] < a->high[1]);
}

/* Most boxes do not meet at all, which is cheap to see. */
static float overlap(const box *a, const box *b)
{
    float common = 1;
    if (!meet(a, b))
        return 0;
    for (int d = 0; d < 2; d++) {
        const float low = a->low[d] > b->low[d] ? a->low[d] : b->low[d];
        const float high = a->high[d] < b->high[d] ? a->high[d] : b->high[d];
        common *= high - low;
    }
    const float whole = a->area + b->area - common;
    return whole > 0 ? common / whole : 0;
}

/* ---- Candidates, the best first -------------------------------------------------------------- */

typedef struct candidate {
    float score;
    int64_t box;
} candidate;

/* The higher score, NaN above all, and among equal ones the first box. */
static bool is_better(const candidate *a, const candidate *b)
{
    if (isnan(a->score) || isnan(b->score))
        return isnan(a->score) && (!isnan(b->score) || a->box < b->box);
    return a->score > b->score || (a->score == b->score && a->box < b->box);
}

/* Puts `item` where it belongs below place `at`, which is free: nobody in a heap is better than the
 * one above it. */
static void sink(candidate *heap, int64_t count, int64_t at, candidate item)
{
    for (int64_t below = 2 * at + 1; below < count; below = 2 * at + 1) {
        if (below + 1 < count && is_better(&heap[below + 1], &heap[below]))
            below++;
        if (!is_better(&heap[below], &item))
            break;
        heap[at] = heap[below];
        at = below;
    }
    heap[at] = item;
}

static candidate take_best(candidate *heap, int64_t *count)
{
    const candidate best = heap[0];
    if (--*count > 0)
        sink(heap, *count, 0, heap[*count]);
    return best;
}

/* ---- Choosing -------------------------------------------------------------------------------- */

typedef struct nms_run {
    const qn_tensor *boxes, *scores;
    int64_t n, most;
    float iou, score;
    bool has_score, centre;
    /* Room for n */
    candidate *heap;
    int64_t *chosen;
    /* The boxes that are chosen */
    box *kept;
} nms_run;

/* Boxes of one class above the threshold; returns how many. */
static int64_t make_heap(const nms_run *r, const float *scores)
{
    int64_t count = 0;
    for (int64_t i = 0; i < r->n; i++) {
        if (!r->has_score || scores[i] > r->score)
            r->heap[count++] = (candidate){scores[i], i};
    }
    for (int64_t at = count / 2 - 1; at >= 0; at--)
        sink(r->heap, count, at, r->heap[at]);
    return count;
}

/* Boxes of one class of one sample: their numbers in r->chosen; how many. Few are chosen of many,
 * so that the order of the others does not matter. */
static qn_status choose(int64_t *count, const qn_eval *self, const nms_run *r, int64_t batch,
                        int64_t class_base)
{
    const float *boxes = (const float *)r->boxes->data + batch * r->n * 4;
    int64_t left = make_heap(r, (const float *)r->scores->data + class_base);
    *count = 0;
    while (left > 0 && *count < r->most) {
        const int64_t at = take_best(r->heap, &left).box;
        const box mine = box_of(boxes + 4 * at, r->centre);
        bool keep = true;
        QN_TRY(qn_check_cancel(self->ctx));
        for (int64_t k = 0; k < *count && keep; k++)
            keep = overlap(&mine, &r->kept[k]) <= r->iou;
        if (!keep)
            continue;
        r->kept[*count] = mine;
        r->chosen[(*count)++] = at;
    }
    return QN_OK;
}

static qn_status nms_setup(qn_eval *self, nms_run *r)
{
    const qn_tensor *most = qn_eval_in(self, 2), *iou = qn_eval_in(self, 3);
    const qn_tensor *score = qn_eval_in(self, 4);
    const qn_tensor *const numbers[] = {most, iou, score};
    void *heap, *chosen, *kept;
    for (int i = 0; i < 3; i++) {
        if (numbers[i] && qn_tensor_count(numbers[i]) != 1)
            return qn_eval_fail(self, "input %d must be one number", i + 2);
    }
    *r = (nms_run){.boxes = self->in[0], .scores = self->in[1], .n = self->in[0]->dims[1]};
    if (r->boxes->rank != 3 || r->scores->rank != 3 || r->boxes->dims[2] != 4 ||
        r->boxes->dims[0] != r->scores->dims[0] || r->scores->dims[2] != r->n)
        return qn_eval_fail(self, "boxes and scores do not fit each other");
    r->most = most ? qn_tensor_i64(most, 0) : 0;
    r->iou = iou ? *(const float *)iou->data : 0;
    r->has_score = score != NULL;
    r->score = score ? *(const float *)score->data : 0;
    r->centre = ((const nms_attrs *)self->attrs)->center_point_box != 0;
    QN_TRY(qn_eval_scratch(self, &heap, r->n + 1, sizeof(candidate)));
    QN_TRY(qn_eval_scratch(self, &chosen, r->n + 1, sizeof(int64_t)));
    QN_TRY(qn_eval_scratch(self, &kept, r->n + 1, sizeof(box)));
    r->heap = heap;
    r->chosen = chosen;
    r->kept = kept;
    return QN_OK;
}

static qn_status nms_eval(qn_eval *self)
{
    nms_run r = {.n = 0};
    void *block;
    int64_t total = 0, capacity;
    QN_TRY(nms_setup(self, &r));
    const int64_t batches = r.scores->dims[0], classes = r.scores->dims[1];
    if (!qn_mul_int64(&capacity, batches * classes, QN_MIN(QN_MAX(r.most, 0), r.n)))
        return qn_eval_fail(self, "too many boxes");
    QN_TRY(qn_eval_scratch(self, &block, capacity + 1, 3 * sizeof(int64_t)));
    int64_t *found = block;
    for (int64_t b = 0; b < batches; b++) {
        for (int64_t c = 0; c < classes; c++) {
            int64_t count;
            QN_TRY(choose(&count, self, &r, b, (b * classes + c) * r.n));
            for (int64_t i = 0; i < count; i++, total++) {
                found[3 * total] = b;
                found[3 * total + 1] = c;
                found[3 * total + 2] = r.chosen[i];
            }
        }
    }
    const int64_t dims[2] = {total, 3};
    QN_TRY(qn_eval_output(self, 0, QN_INT64, 2, dims));
    for (int64_t i = 0; i < 3 * total; i++)
        ((int64_t *)self->out[0]->data)[i] = found[i];
    return QN_OK;
}

const qn_op qn_op_NonMaxSuppression = {.name = "NonMaxSuppression",
                                       .domain = "",
                                       .since = 10,
                                       QN_PORTS(in, nms_in),
                                       QN_PORTS(out, nms_out),
                                       QN_ATTRS(nms_specs, nms_attrs),
                                       .flags = QN_OP_ALLOCATES,
                                       .quant = QN_QUANT_FLOAT,
                                       .infer = nms_infer,
                                       .eval = nms_eval,
                                       .brief = "best boxes that do not overlap"};
