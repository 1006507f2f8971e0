/* Ground-truth boxes: a folder of YOLO's text files, one per picture, or a JSON file as COCO's. */
#ifndef QN_BOX_LABELS_H
#define QN_BOX_LABELS_H

#include "task/boxes.h"

typedef struct qn_box_labels qn_box_labels;

enum { QN_CLASSES_MAX = 65536 };
#define QN_GENERATED_NOTE "GENERATED" /* file beside labels that a model made */
#define QN_CLASS_LABELS "labels.txt"  /* file of classes in such a folder */

/* Opens a .json file, a folder with one and no .txt files, or a folder of .txt files. */
QN_MUST_CHECK qn_status qn_box_labels_open(qn_box_labels **out, qn_context *ctx, const char *path);
void qn_box_labels_free(qn_box_labels *ground_truth);

/* The boxes of a picture, found by the name of its file, in the picture's pixels. Where YOLO's file
 * is missing the picture has no boxes (qn_box_labels_missing counts it). A picture that COCO's file
 * does not list is an error. */
QN_MUST_CHECK qn_status qn_box_labels_boxes(qn_boxes *out, qn_box_labels *ground_truth,
                                            const char *name, const qn_picture_place *place);
/* The number of pictures so far that had no label file. */
int64_t qn_box_labels_missing(const qn_box_labels *ground_truth);
/* Whether the path has labels at all: a .json file, or a folder with .txt or .json files. */
bool qn_box_labels_there(const char *path);
/* Whether the labels are boxes that a model found: see qn_yolo_start. */
bool qn_box_labels_generated(const qn_box_labels *labels);
/* COCO's categories in the order of their numbers, which are the classes; NULL and 0 for YOLO. */
const char *const *qn_box_labels_names(size_t *count, const qn_box_labels *ground_truth);

/* Reads lines "class cx cy w h", relative to the picture's size and with an optional score, or
 * "class x y x y x y ..." for a polygon; "#" begins a comment. `name` is for messages. */
QN_MUST_CHECK qn_status qn_yolo_read(qn_boxes *out, qn_context *ctx, const char *path,
                                     const qn_picture_place *place);
/* Writes such a file, with scores. */
QN_MUST_CHECK qn_status qn_yolo_write(qn_context *ctx, const char *path, const qn_boxes *boxes,
                                      const qn_picture_place *place);

/* Creates a folder for such files, with a file GENERATED that says what they are. A folder with
 * .txt files and no such note is refused, since it may hold somebody's labels. */
QN_MUST_CHECK qn_status qn_yolo_start(qn_context *ctx, const char *folder);

/* ---- COCO ------------------------------------------------------------------------------------ */

typedef struct qn_coco qn_coco;
QN_MUST_CHECK qn_status qn_coco_open(qn_coco **out, qn_context *ctx, const char *path);
void qn_coco_free(qn_coco *coco);
QN_MUST_CHECK qn_status qn_coco_boxes(qn_boxes *out, const qn_coco *coco, const char *name);
const char *const *qn_coco_names(size_t *count, const qn_coco *coco);

#endif
