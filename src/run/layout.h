/* How the elements of a value lie in memory. Row-major is what files and users see; the others are
 * for values of the form [N, C, spatial...] between the steps of a plan. */
#ifndef QN_LAYOUT_H
#define QN_LAYOUT_H

#include "ir/tensor.h"

typedef enum qn_layout_kind {
    /* Row-major */
    QN_LAYOUT_ROWS,
    /* [N, C/b, spatial..., b]: oneDNN's nChw8c, nChw16c; C is padded up to a multiple of b, and the
     * padding always holds zeros */
    QN_LAYOUT_BLOCKED,
    /* [N, spatial..., C] */
    QN_LAYOUT_CHANNELS_LAST
} qn_layout_kind;

typedef struct qn_layout {
    uint8_t kind;
    /* b of QN_LAYOUT_BLOCKED, else 0 */
    uint8_t block;
} qn_layout;

#define QN_ROWS ((qn_layout){QN_LAYOUT_ROWS, 0})

static inline bool qn_layout_same(qn_layout a, qn_layout b)
{
    return a.kind == b.kind && a.block == b.block;
}

/* Bytes of a tensor in this layout, padding included; false on overflow. */
bool qn_layout_bytes(size_t *out, qn_layout layout, const qn_tensor *shape);
/* The same bytes mean the same in both layouts. */
bool qn_layout_alike(qn_layout a, qn_layout b, const qn_tensor *shape);

typedef struct qn_laid_out {
    void *data;
    qn_layout layout;
    /* Bytes from one sample to the next */
    size_t stride;
} qn_laid_out;
/* Copies between any two layouts, zeroing the padding of the target. Plain C: backends bring faster
 * ways of their own. */
void qn_layout_convert(const qn_laid_out *to, const qn_laid_out *from, const qn_tensor *shape);

#endif
