/* Forms with an output per grid, before the sigmoid: [1,na*(5+nc),h,w] or [1,na,h,w,5+nc], na
 * anchors a cell. */
#include <math.h>

#include "task/box_layouts.h"

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* ---- Recognizing ----------------------------------------------------------------------------- */

static bool find_head(qn_detection_head *head, qn_box_decoder *r, size_t output)
{
    const qn_tensor *t = &r->outputs[output].tensor;
    const int64_t *d = t->dims, na = r->anchors;
    head->output = output;
    if (t->rank == 4 && d[0] == 1 && d[1] % na == 0) {
        const int64_t cells = d[2] * d[3];
        *head = (qn_detection_head){.output = output,
                                    .height = d[2],
                                    .width = d[3],
                                    .per_box = d[1] / na * cells,
                                    .per_cell = 1,
                                    .per_number = cells};
        return qn_box_decoder_classes(r, d[1] / na - 5);
    }
    if (t->rank == 5 && d[0] == 1 && d[1] == na) {
        *head = (qn_detection_head){.output = output,
                                    .height = d[2],
                                    .width = d[3],
                                    .per_box = d[2] * d[3] * d[4],
                                    .per_cell = d[4],
                                    .per_number = 1};
        return qn_box_decoder_classes(r, d[4] - 5);
    }
    return false;
}

/* The finest grid first, as anchors are given. */
static void sort_heads(qn_box_decoder *r)
{
    for (size_t i = 1; i < r->n_heads; i++) {
        for (size_t k = i; k > 0 && r->heads[k].height * r->heads[k].width >
                                        r->heads[k - 1].height * r->heads[k - 1].width;
             k--) {
            const qn_detection_head head = r->heads[k];
            r->heads[k] = r->heads[k - 1];
            r->heads[k - 1] = head;
        }
    }
    for (size_t i = 0; i < r->n_heads; i++)
        r->heads[i].anchors = r->options->anchors + i * 2 * (size_t)r->anchors;
}

static bool is_heads(qn_box_decoder *r, qn_status *status)
{
    const size_t pairs = r->options->n_anchors / 2;
    (void)status;
    r->n_heads = r->n_outputs;
    if (!pairs || r->n_heads < 1 || r->n_heads > QN_HEADS_MAX || pairs % r->n_heads)
        return false;
    r->anchors = (int64_t)(pairs / r->n_heads);
    for (size_t i = 0; i < r->n_heads; i++) {
        if (!find_head(&r->heads[i], r, i) || r->heads[i].height < 1 || r->heads[i].width < 1)
            return false;
    }
    sort_heads(r);
    return true;
}

/* ---- Decoding -------------------------------------------------------------------------------- */

/* Centre in cells from the corner of its cell, and size in anchors. */
typedef void shape_fn(double centre[2], double size[2], const double t[4]);

/* 2 s - 0.5 and (2 s)^2, s = sigmoid(t). */
static void shape_v5(double centre[2], double size[2], const double t[4])
{
    for (int i = 0; i < 2; i++) {
        const double s = 2 * sigmoid(t[2 + i]);
        centre[i] = 2 * sigmoid(t[i]) - 0.5;
        size[i] = s * s;
    }
}

/* s and exp(t). */
static void shape_v3(double centre[2], double size[2], const double t[4])
{
    for (int i = 0; i < 2; i++) {
        centre[i] = sigmoid(t[i]);
        size[i] = exp(t[2 + i]);
    }
}

/* All classes of the box at `v`, whose numbers stand `step` apart. */
static qn_status add_box(qn_boxes *out, qn_box_decoder *r, qn_box box, const double *v,
                         int64_t step)
{
    const double object = sigmoid(v[4 * step]);
    for (int64_t c = 0; c < r->classes; c++) {
        box.score = object * sigmoid(v[(5 + c) * step]);
        box.kind = (int32_t)c;
        if (box.score > r->options->conf_thres)
            QN_TRY(qn_boxes_add(out, r->ctx, &box));
    }
    return QN_OK;
}

static qn_status decode_cell(qn_boxes *out, qn_box_decoder *r, const qn_detection_head *head,
                             int64_t at, shape_fn *shape)
{
    const int64_t cells = head->height * head->width, anchor = at / cells, cell = at % cells;
    const double *v = r->values + anchor * head->per_box + cell * head->per_cell;
    const int64_t step = head->per_number;
    if (!(sigmoid(v[4 * step]) > r->options->conf_thres))
        return QN_OK;
    const double t[4] = {v[0], v[step], v[2 * step], v[3 * step]};
    double centre[2], size[2];
    shape(centre, size, t);
    centre[0] = (centre[0] + (double)(cell % head->width)) * r->width / (double)head->width;
    centre[1] = (centre[1] + (double)(cell / head->width)) * r->height / (double)head->height;
    size[0] *= head->anchors[2 * anchor];
    size[1] *= head->anchors[2 * anchor + 1];
    return add_box(out, r, qn_box_around(centre, size), v, step);
}

static qn_status decode_heads(qn_boxes *out, qn_box_decoder *r, shape_fn *shape)
{
    for (size_t i = 0; i < r->n_heads; i++) {
        const qn_detection_head *head = &r->heads[i];
        QN_TRY(qn_box_decoder_load(r, head->output));
        for (int64_t at = 0; at < r->anchors * head->height * head->width; at++)
            QN_TRY(decode_cell(out, r, head, at, shape));
    }
    return QN_OK;
}

static qn_status decode_v5(qn_boxes *out, qn_box_decoder *r)
{
    return decode_heads(out, r, shape_v5);
}

static qn_status decode_v3(qn_boxes *out, qn_box_decoder *r)
{
    return decode_heads(out, r, shape_v3);
}

const qn_box_layout qn_box_layout_yolov5_heads = {
    .name = "yolov5-heads",
    .shapes = "[1,na*(5+nc),h,w] or [1,na,h,w,5+nc] with anchors",
    .recognize = is_heads,
    .decode = decode_v5,
};

const qn_box_layout qn_box_layout_yolov3_heads = {
    .name = "yolov3-heads",
    .shapes = "the same",
    .by_name = true,
    .recognize = is_heads,
    .decode = decode_v3,
};
