/* Noise of outputs part by part: a detector's boxes are numbers of hundreds and its scores of less than one, and an
 * error that spoils all scores is nothing beside the boxes. */
#ifndef QN_PARTS_H
#define QN_PARTS_H

#include "ir/graph.h"

enum { QN_MOST_PARTS = 8 };

/* Of an output: what a Concat before it puts together along the axis. */
typedef struct qn_parts {
    int32_t axis;
    size_t count;                /* 0: the output is one thing */
    int64_t ends[QN_MOST_PARTS]; /* along the axis; the last one is its length */
} qn_parts;

/* Of several axes with a Concat, the shortest: that of boxes and scores, not that of places. */
void qn_parts_find(qn_parts *out, const qn_value *output);

/* Sums of squares, of the output as a whole first. */
typedef struct qn_part_sums {
    double signal[QN_MOST_PARTS + 1], noise[QN_MOST_PARTS + 1];
} qn_part_sums;

/* Adds an output of one run, as many numbers on both sides; scale: of the fixed one. */
void qn_parts_add(qn_part_sums *sums, const qn_parts *parts, const qn_tensor *real,
                  const qn_tensor *fixed, double scale);
/* sqrt(noise / signal) of the whole. */
double qn_parts_whole(const qn_part_sums *sums);
/* The larger one of that and of 0.4 times what the worst part has: detectors whose scores have a noise of 0.3 still
 * detect nearly as well as in float. */
double qn_parts_worst(const qn_part_sums *sums);

/* What an output may have before layers are mended; and what is told, since mended networks, judged by few samples, may
 * come out a little above the first. */
#define QN_MOST_NOISE 0.125
#define QN_TOLD_NOISE 0.1875

#endif
