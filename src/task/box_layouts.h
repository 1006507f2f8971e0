/* Box layouts: how boxes are stored in a detector's outputs. A layout is recognized by the shapes
 * of the outputs, and where two layouts share shapes by the values of the first sample. nc is the
 * number of classes, N the number of boxes. */
#ifndef QN_BOX_LAYOUTS_H
#define QN_BOX_LAYOUTS_H

#include "task/boxes.h"
#include "task/task.h"

enum { QN_HEADS_MAX = 8 };

/* An output with boxes on a grid. */
typedef struct qn_detection_head {
    size_t output;
    /* The size of the grid. */
    int64_t height, width;
    /* The distance in elements from one anchor to the next, and from one cell to the next. */
    int64_t per_box, per_cell;
    /* The distance from one number of a box to the next. */
    int64_t per_number;
    /* [anchors][2], width and height of each anchor. */
    const double *anchors;
    /* The output with its distances, of layout nanodet, where `output` has the scores. */
    size_t distances;
} qn_detection_head;

typedef struct qn_box_layout qn_box_layout;

/* Decodes boxes: one sample's outputs, and what is known of their layout. */
typedef struct qn_box_decoder {
    qn_context *ctx;
    const qn_detect_options *options;
    const qn_task_output *outputs;
    size_t n_outputs;
    /* The size of the model's input. */
    int32_t width, height;
    /* The layout; NULL: not recognized yet. */
    const qn_box_layout *layout;
    /* The number of classes; 0: unknown yet. */
    int64_t classes;
    /* The fields that follow are set when the layout is recognized. */
    /* The output with the boxes, where one has all of them. */
    size_t output;
    /* The number N of boxes. */
    int64_t count;
    /* Whether the output is [1, numbers, N] instead of [1, N, numbers]. */
    bool transposed;
    qn_detection_head heads[QN_HEADS_MAX];
    size_t n_heads;
    /* The number of anchors per cell of a head. */
    int64_t anchors;
    /* The numbers of a distribution, and whether scores stand before the sigmoid. */
    int64_t bins;
    bool raw_scores;
    /* The numbers of the output that was loaded last. */
    double *values;
    size_t room;
} qn_box_decoder;

struct qn_box_layout {
    const char *name;
    /* The shapes, for messages. */
    const char *shapes;
    /* Shares shapes and ranges of values with another layout, so that it is only used when
     * named. */
    bool by_name;
    /* Whether the outputs have this layout; *status (QN_OK before) gets a failure. */
    bool (*recognize)(qn_box_decoder *r, qn_status *status);
    qn_status (*decode)(qn_boxes *out, qn_box_decoder *r);
};

/* The name of layout i; NULL past the last. */
const char *qn_box_layout_name(size_t i);
/* Gives the boxes with a score above options->conf_thres, in pixels of the input. The caller sets
 * the decoder's outputs for each sample; the first sample fixes layout and number of classes. */
QN_MUST_CHECK qn_status qn_box_decoder_decode(qn_boxes *out, qn_box_decoder *r);
void qn_box_decoder_free(qn_box_decoder *r);

/* ---- For the layouts ------------------------------------------------------------------------- */

/* Loads all numbers of an output into r->values. */
QN_MUST_CHECK qn_status qn_box_decoder_load(qn_box_decoder *r, size_t output);
/* Sets r->classes where it is unknown; false where it differs from `count` or `count` cannot be. */
bool qn_box_decoder_classes(qn_box_decoder *r, int64_t count);
/* The box with this centre and size. */
qn_box qn_box_around(const double centre[2], const double size[2]);

extern const qn_box_layout qn_box_layout_yolov8, qn_box_layout_yolox, qn_box_layout_boxes,
    qn_box_layout_rows;
extern const qn_box_layout qn_box_layout_yolov5_heads, qn_box_layout_yolov3_heads,
    qn_box_layout_nanodet;

#endif
