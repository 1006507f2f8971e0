/* Forms with all boxes in one output. */
#include <math.h>
#include <stdlib.h>

#include "task/box_layouts.h"

/* Number k of box n. */
static double number(const qn_box_decoder *r, int64_t n, int64_t k, int64_t numbers)
{
    return r->values[r->transposed ? k * r->count + n : n * numbers + k];
}

/* Finds an output [1, a, b] one axis of which has `before` numbers and one per class. `transposed`
 * decides which axis is tried first, where the number of classes does not tell. */
static bool find_rows(qn_box_decoder *r, int64_t before, bool transposed)
{
    const int64_t classes = r->classes ? r->classes : r->options->classes;
    for (r->output = 0; r->output < r->n_outputs; r->output++) {
        const qn_tensor *t = &r->outputs[r->output].tensor;
        if (t->rank != 3 || t->dims[0] != 1)
            continue;
        const int64_t numbers = t->dims[transposed ? 1 : 2];
        r->count = t->dims[transposed ? 2 : 1];
        r->transposed = transposed;
        if (!classes && numbers >= r->count)
            continue;
        if (qn_box_decoder_classes(r, numbers - before))
            return true;
    }
    return false;
}

/* All classes of one box above the limit; `factor` is for all scores. */
static qn_status add_classes(qn_boxes *out, qn_box_decoder *r, qn_box box, double factor,
                             const double *scores)
{
    for (int64_t c = 0; c < r->classes; c++) {
        box.score = factor * scores[c];
        box.kind = (int32_t)c;
        if (box.score > r->options->conf_thres)
            QN_TRY(qn_boxes_add(out, r->ctx, &box));
    }
    return QN_OK;
}

/* ---- yolov8: centre, size, a score per class ------------------------------------------------- */

static bool is_yolov8(qn_box_decoder *r, qn_status *status)
{
    (void)status;
    return find_rows(r, 4, true) || (r->options->classes && find_rows(r, 4, false));
}

static qn_box yolov8_box(const qn_box_decoder *r, int64_t n)
{
    const int64_t numbers = 4 + r->classes;
    const double centre[2] = {number(r, n, 0, numbers), number(r, n, 1, numbers)};
    const double size[2] = {number(r, n, 2, numbers), number(r, n, 3, numbers)};
    return qn_box_around(centre, size);
}

/* Class by class, since that is how the numbers lie. */
static qn_status decode_yolov8(qn_boxes *out, qn_box_decoder *r)
{
    const int64_t numbers = 4 + r->classes;
    QN_TRY(qn_box_decoder_load(r, r->output));
    for (int64_t c = 0; c < r->classes; c++) {
        for (int64_t n = 0; n < r->count; n++) {
            const double score = number(r, n, 4 + c, numbers);
            if (!(score > r->options->conf_thres))
                continue;
            qn_box box = yolov8_box(r, n);
            box.score = score;
            box.kind = (int32_t)c;
            QN_TRY(qn_boxes_add(out, r->ctx, &box));
        }
    }
    return QN_OK;
}

const qn_box_layout qn_box_layout_yolov8 = {
    .name = "yolov8",
    .shapes = "[1,4+nc,N]",
    .recognize = is_yolov8,
    .decode = decode_yolov8,
};

/* ---- yolox: offsets in cells of three or four grids, log sizes, objectness, a score per class */

enum { FIRST_STRIDE = 8, MOST_GRIDS = 4 };

/* Number of grids, strides 8, 16, 32 and maybe 64, whose cells are as many as the boxes; 0: there
 * is none. */
static int grids_of(const qn_box_decoder *r)
{
    int64_t cells = 0;
    for (int g = 0; g < MOST_GRIDS; g++) {
        const int64_t stride = (int64_t)FIRST_STRIDE << g;
        cells += (r->width / stride) * (r->height / stride);
        if (g >= 2 && cells == r->count)
            return g + 1;
    }
    return 0;
}

typedef struct cell {
    int64_t x, y, stride;
} cell;

/* The cell behind this one; false past the last. */
static bool next_cell(cell *c, const qn_box_decoder *r)
{
    const int64_t last = (int64_t)FIRST_STRIDE << (MOST_GRIDS - 1);
    if (++c->x < r->width / c->stride)
        return true;
    c->x = 0;
    if (++c->y < r->height / c->stride)
        return true;
    c->y = 0;
    c->stride *= 2;
    return c->stride <= last;
}

/* Whether centres are offsets from their cells: these lie about half a cell off it. Centres in
 * pixels do so once the cell is taken away from them. */
static bool has_offsets(const qn_box_decoder *r)
{
    const int64_t numbers = 5 + r->classes;
    cell c = {0, 0, FIRST_STRIDE};
    double raw = 0, decoded = 0;
    for (int64_t n = 0; n < r->count; n++, next_cell(&c, r)) {
        const double x = number(r, n, 0, numbers), y = number(r, n, 1, numbers);
        const double far = fabs(x - 0.5) + fabs(y - 0.5);
        if (!(far < 1e9))
            continue;
        raw += far;
        decoded += fabs(x / (double)c.stride - (double)c.x - 0.5) +
                   fabs(y / (double)c.stride - (double)c.y - 0.5);
    }
    return raw < decoded;
}

/* YOLOX shares its shape with rows: the values decide, unless the layout is named. */
static bool is_yolox(qn_box_decoder *r, qn_status *status)
{
    if (!find_rows(r, 5, false) || !grids_of(r))
        return false;
    if (r->layout || r->options->form)
        return true;
    *status = qn_box_decoder_load(r, r->output);
    return *status == QN_OK && has_offsets(r);
}

static qn_status decode_yolox(qn_boxes *out, qn_box_decoder *r)
{
    const int64_t numbers = 5 + r->classes;
    cell c = {0, 0, FIRST_STRIDE};
    QN_TRY(qn_box_decoder_load(r, r->output));
    for (int64_t n = 0; n < r->count; n++, next_cell(&c, r)) {
        const double *v = r->values + n * numbers, stride = (double)c.stride;
        if (!(v[4] > r->options->conf_thres))
            continue;
        const double centre[2] = {(v[0] + (double)c.x) * stride, (v[1] + (double)c.y) * stride};
        const double size[2] = {exp(v[2]) * stride, exp(v[3]) * stride};
        QN_TRY(add_classes(out, r, qn_box_around(centre, size), v[4], v + 5));
    }
    return QN_OK;
}

const qn_box_layout qn_box_layout_yolox = {
    .name = "yolox",
    .shapes = "[1,N,5+nc] in cells of the strides 8, 16, 32",
    .recognize = is_yolox,
    .decode = decode_yolox,
};

/* ---- boxes: x0, y0, x1, y1, score, class ----------------------------------------------------- */

static bool find_boxes(qn_box_decoder *r)
{
    for (r->output = 0; r->output < r->n_outputs; r->output++) {
        const qn_tensor *t = &r->outputs[r->output].tensor;
        r->count = t->rank == 3 ? t->dims[1] : 0;
        if (t->rank == 3 && t->dims[0] == 1 && t->dims[2] == 6)
            return true;
    }
    return false;
}

/* [1,N,6] can also be rows with one class, whose last number is a probability. */
static bool is_boxes(qn_box_decoder *r, qn_status *status)
{
    if (!find_boxes(r))
        return false;
    if (r->layout || r->options->form)
        return true;
    *status = qn_box_decoder_load(r, r->output);
    bool classes = *status == QN_OK;
    for (int64_t n = 0; classes && n < r->count; n++)
        classes = r->values[n * 6 + 5] == floor(r->values[n * 6 + 5]);
    return classes;
}

/* The output does not show how many classes there are. */
static qn_status decode_boxes(qn_boxes *out, qn_box_decoder *r)
{
    const int64_t classes = r->options->classes;
    QN_TRY(qn_box_decoder_load(r, r->output));
    for (int64_t n = 0; n < r->count; n++) {
        const double *v = r->values + n * 6;
        if (!(v[4] > r->options->conf_thres) || !(v[5] >= 0) ||
            v[5] >= (classes ? (double)classes : (double)INT32_MAX))
            continue;
        const qn_box box = {v[0], v[1], v[2], v[3], v[4], (int32_t)v[5], false, 0};
        QN_TRY(qn_boxes_add(out, r->ctx, &box));
    }
    return QN_OK;
}

const qn_box_layout qn_box_layout_boxes = {
    .name = "boxes",
    .shapes = "[1,N,6]",
    .recognize = is_boxes,
    .decode = decode_boxes,
};

/* ---- rows: centre, size, objectness, a score per class --------------------------------------- */

static bool is_rows(qn_box_decoder *r, qn_status *status)
{
    (void)status;
    return find_rows(r, 5, false);
}

static qn_status decode_rows(qn_boxes *out, qn_box_decoder *r)
{
    const int64_t numbers = 5 + r->classes;
    QN_TRY(qn_box_decoder_load(r, r->output));
    for (int64_t n = 0; n < r->count; n++) {
        const double *v = r->values + n * numbers;
        if (v[4] > r->options->conf_thres)
            QN_TRY(add_classes(out, r, qn_box_around(v, v + 2), v[4], v + 5));
    }
    return QN_OK;
}

const qn_box_layout qn_box_layout_rows = {
    .name = "rows",
    .shapes = "[1,N,5+nc] in pixels",
    .recognize = is_rows,
    .decode = decode_rows,
};
