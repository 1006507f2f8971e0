/* True boxes: a folder of YOLO's text files, one per picture, or COCO's JSON. */
#ifndef QN_BOX_LABELS_H
#define QN_BOX_LABELS_H

#include "task/boxes.h"

typedef struct qn_box_labels qn_box_labels;

enum { QN_CLASSES_MAX = 65536 };
#define QN_GENERATED_NOTE "GENERATED" /* file beside labels that a model made */
#define QN_CLASS_LABELS "labels.txt"  /* file of classes in such a folder */

/* A .json file, a folder with one and no .txt files, or a folder of .txt files. */
QN_MUST_CHECK qn_status qn_box_labels_open(qn_box_labels **out, qn_context *ctx, const char *path);
void qn_box_labels_free(qn_box_labels *ground_truth);

/* Boxes of a picture by the name of its file, in its pixels. YOLO's file for it may be missing: it
 * has none then (*missing counts them). A picture that COCO's file does not list is a failure. */
QN_MUST_CHECK qn_status qn_box_labels_boxes(qn_boxes *out, qn_box_labels *ground_truth,
                                            const char *name, const qn_picture_place *place);
/* Pictures without a file so far, and those asked for. */
int64_t qn_box_labels_missing(const qn_box_labels *ground_truth);
/* Whether there are labels at all: a .json file, or a folder that has .txt or .json files. */
bool qn_box_labels_there(const char *path);
/* Whether a model's boxes were written as these labels: see qn_yolo_start. */
bool qn_box_labels_generated(const qn_box_labels *labels);
/* COCO's categories in the order of their numbers, which makes them classes; NULL and 0 for
 * YOLO. */
const char *const *qn_box_labels_names(size_t *count, const qn_box_labels *ground_truth);

/* Lines "class cx cy w h" in shares of the picture, and maybe a score behind; or "class x y x y x y
 * ...", a polygon; "#" begins a comment. `name` is for messages. */
QN_MUST_CHECK qn_status qn_yolo_read(qn_boxes *out, qn_context *ctx, const char *path,
                                     const qn_picture_place *place);
/* Such a file, with the scores. */
QN_MUST_CHECK qn_status qn_yolo_write(qn_context *ctx, const char *path, const qn_boxes *boxes,
                                      const qn_picture_place *place);

/* Makes a folder for such files, with a file GENERATED that tells people what they are. A folder
 * that has .txt files and no such note is refused: somebody's labels may be in it. */
QN_MUST_CHECK qn_status qn_yolo_start(qn_context *ctx, const char *folder);

/* ---- COCO ------------------------------------------------------------------------------------ */

typedef struct qn_coco qn_coco;
QN_MUST_CHECK qn_status qn_coco_open(qn_coco **out, qn_context *ctx, const char *path);
void qn_coco_free(qn_coco *coco);
QN_MUST_CHECK qn_status qn_coco_boxes(qn_boxes *out, const qn_coco *coco, const char *name);
const char *const *qn_coco_names(size_t *count, const qn_coco *coco);

#endif
