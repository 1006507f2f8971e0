/* Boxes drawn on pictures. */
#ifndef QN_DRAW_BOXES_H
#define QN_DRAW_BOXES_H

#include "data/dataset.h"
#include "task/boxes.h"

typedef struct qn_box_style {
    /* Of the classes; those without one are told by number */
    const char *const *names;
    size_t n_names;
    /* Score of a box that is drawn */
    double least;
} qn_box_style;

/* Boxes stand with the best first; it comes over the others, and its text has the first choice of a
 * place. A grey picture becomes one of three channels. */
QN_MUST_CHECK qn_status qn_boxes_draw(qn_image *image, qn_context *ctx, const qn_boxes *boxes,
                                      const qn_box_style *style);
/* A copy of a sample's picture with boxes on it, in the folder, under the picture's name (folders
 * in it joined by "_"); JPEG where it is one, else PNG. A file that is the picture itself is
 * refused. */
QN_MUST_CHECK qn_status qn_boxes_draw_to_file(qn_context *ctx, const char *folder,
                                              const qn_dataset *data, int64_t i,
                                              const qn_boxes *boxes, const qn_box_style *style);
/* "folder/name" with another ending (NULL: its own), "/" in the name as "_"; in `arena`. */
QN_MUST_CHECK qn_status qn_renamed_path(const char **out, qn_context *ctx, qn_arena *arena,
                                        const char *folder, const char *name, const char *ending);

#endif
