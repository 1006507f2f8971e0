/* Forms of a detector's outputs: how boxes stand in them. A form is recognized by the shapes, and
 * where two share a shape by the values of the first sample. nc is the number of classes, N that of
 * boxes. */
#ifndef QN_BOX_LAYOUTS_H
#define QN_BOX_LAYOUTS_H

#include "task/boxes.h"
#include "task/task.h"

enum { QN_HEADS_MAX = 8 };

/* An output with boxes on a grid. */
typedef struct qn_detection_head {
    size_t output;
    /* Of the grid */
    int64_t height, width;
    /* Elements from one anchor to the next, and from one cell */
    int64_t per_box, per_cell;
    /* From one number of a box to the next */
    int64_t per_number;
    /* [per][2]: width, height */
    const double *anchors;
} qn_detection_head;

typedef struct qn_box_layout qn_box_layout;

/* One sample's outputs as a form sees them. */
typedef struct qn_box_decoder {
    qn_context *ctx;
    const qn_detect_options *options;
    const qn_task_output *outputs;
    size_t n_outputs;
    /* Of the model's input */
    int32_t width, height;
    /* NULL: not yet settled */
    const qn_box_layout *layout;
    /* Found; 0: none yet */
    int64_t classes;
    /* What recognizing found: */
    /* With the boxes, where one has all */
    size_t output;
    /* N */
    int64_t count;
    /* [1, numbers, N], not [1, N, numbers] */
    bool transposed;
    qn_detection_head heads[QN_HEADS_MAX];
    size_t n_heads;
    /* Per cell of a head */
    int64_t anchors;
    /* Of an output */
    double *values;
    size_t room;
} qn_box_decoder;

struct qn_box_layout {
    const char *name;
    /* For messages */
    const char *shapes;
    /* Shares shapes and meaning of values with another: only when asked for */
    bool by_name;
    /* False: the outputs are of another form; *status (QN_OK before) gets a failure. */
    bool (*recognize)(qn_box_decoder *r, qn_status *status);
    qn_status (*decode)(qn_boxes *out, qn_box_decoder *r);
};

/* The i-th form's name; NULL past the last. */
const char *qn_box_layout_name(size_t i);
/* Boxes in pixels of the input whose score is above options->conf_thres. Each sample's outputs are
 * put into the reading before; the first one settles form and classes. */
QN_MUST_CHECK qn_status qn_box_decoder_decode(qn_boxes *out, qn_box_decoder *r);
void qn_box_decoder_free(qn_box_decoder *r);

/* ---- For the forms --------------------------------------------------------------------------- */

/* All numbers of an output, as r->values. */
QN_MUST_CHECK qn_status qn_box_decoder_load(qn_box_decoder *r, size_t output);
/* Makes r->classes `count` where it is not known; false where it is another number or none can have
 * it. */
bool qn_box_decoder_classes(qn_box_decoder *r, int64_t count);
/* A box by its centre and size. */
qn_box qn_box_around(const double centre[2], const double size[2]);

extern const qn_box_layout qn_box_layout_yolov8, qn_box_layout_yolox, qn_box_layout_boxes,
    qn_box_layout_rows;
extern const qn_box_layout qn_box_layout_yolov5_heads, qn_box_layout_yolov3_heads;

#endif
