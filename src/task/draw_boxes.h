/* Draws boxes on pictures. */
#ifndef QN_DRAW_BOXES_H
#define QN_DRAW_BOXES_H

#include "data/dataset.h"
#include "task/boxes.h"

typedef struct qn_box_style {
    /* Names of the classes; a class without one is shown by its number. */
    const char *const *names;
    size_t n_names;
    /* The least score of a box that is drawn. */
    double least;
} qn_box_style;

/* Draws boxes, which are sorted with the best first. The best box covers the others, and its text
 * gets a place first. A grey picture becomes one of three channels. */
QN_MUST_CHECK qn_status qn_boxes_draw(qn_image *image, qn_context *ctx, const qn_boxes *boxes,
                                      const qn_box_style *style);
/* Writes a copy of a sample's picture with boxes to the folder, under the picture's name (folders
 * in it joined by "_"): a JPEG where the picture is one, else a PNG. It refuses to overwrite the
 * picture itself. */
QN_MUST_CHECK qn_status qn_boxes_draw_to_file(qn_context *ctx, const char *folder,
                                              const qn_dataset *data, int64_t i,
                                              const qn_boxes *boxes, const qn_box_style *style);
/* "folder/name" with another ending (NULL: its own) and "_" for each "/" in the name; in
 * `arena`. */
QN_MUST_CHECK qn_status qn_renamed_path(const char **out, qn_context *ctx, qn_arena *arena,
                                        const char *folder, const char *name, const char *ending);

#endif
