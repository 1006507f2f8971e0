/* Bands: a few rows of outputs of one sample that are computed at once, and the rows of the map
 * that they see, which are copied first where the tiles cannot read the map as it is. */
#ifndef QN_CPU_Q_CONV_BAND_H
#define QN_CPU_Q_CONV_BAND_H

#include <stdalign.h>

#include "backend/cpu/int/conv/q_conv.h"

typedef struct qn_q_band {
    const uint8_t *x, *r;
    uint8_t *y;
    /* The sums that Winograd's inner product subtracts, by pixel. */
    const int32_t *pair_sums;
    /* The first patch of the first row begins x_first bytes from x (before it, where that patch is
     * all padding), that of the next row x_row bytes later. */
    int64_t x_first, x_row;
    /* Rows of outputs. */
    int64_t first, count;
    /* The band was copied before, for other filters, and nothing else since. */
    bool copied_before;
} qn_q_band;

/* A thread's copy of a band. */
typedef struct qn_q_band_copy {
    /* The row of outputs, of all samples, where it begins; -1: none yet. */
    int64_t row;
    alignas(64) uint8_t bytes[];
} qn_q_band_copy;

/* Bytes of an element as the tiles read it. */
int64_t qn_q_conv_element_bytes(const qn_q_conv *c);
/* Bytes of a row of the copy. */
int64_t qn_q_band_row_bytes(const qn_q_conv *c);
/* Rows of the map are copied in pairs (qn_depthwise_phase). */
bool qn_q_band_in_pairs(const qn_q_conv *c);
/* Bytes of the longest copy; 0 where none is needed. */
size_t qn_q_band_copy_bytes(const qn_q_conv *c);
/* Copies what band `b` sees of the sample at `x`, and points b to the copy. `row` is the band's
 * first one, of all samples. Memory for the sums of the inner product follows the copy. */
void qn_q_band_make(qn_q_band *b, const qn_q_conv *c, const uint8_t *x, qn_q_band_copy *to,
                    int64_t row);

#endif
