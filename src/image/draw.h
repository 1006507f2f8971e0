/* Lines and letters on pictures of three channels. All is cut off at the edges. */
#ifndef QN_DRAW_H
#define QN_DRAW_H

#include "image/image.h"

typedef struct qn_rgb {
    uint8_t r, g, b;
} qn_rgb;

/* Columns x0 to x1 and rows y0 to y1, the last of both left out. */
typedef struct qn_area {
    int32_t x0, y0, x1, y1;
} qn_area;

void qn_draw_fill(qn_image *image, const qn_area *area, qn_rgb colour);
/* The edge of an area, `thick` pixels wide, inside it. */
void qn_draw_frame(qn_image *image, const qn_area *area, int32_t thick, qn_rgb colour);

/* Letters of 5 x 8 pixels, one between two of them, each `scale` times as large. What is no ASCII
 * is a box. */
enum { QN_LETTER_WIDTH = 6, QN_LETTER_HEIGHT = 8 };
/* Letters of a text: UTF-8 sequences count as one. */
int32_t qn_draw_letters(const char *text);
void qn_draw_text(qn_image *image, int32_t x, int32_t y, const char *text, int32_t scale,
                  qn_rgb colour);

#endif
