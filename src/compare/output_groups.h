/* Noise of outputs group by group: a detector's boxes are numbers of hundreds and its scores of
 * less than one, and an error that spoils all scores is nothing beside the boxes. */
#ifndef QN_OUTPUT_GROUPS_H
#define QN_OUTPUT_GROUPS_H

#include "ir/graph.h"

enum { QN_MOST_GROUPS = 8 };

/* The groups of an output: what a Concat before it puts together along the axis. */
typedef struct qn_output_groups {
    int32_t axis;
    /* 0: the output is one thing */
    size_t count;
    /* Along the axis; the last one is its length */
    int64_t ends[QN_MOST_GROUPS];
} qn_output_groups;

/* Where several axes have a Concat it takes the shortest: that of boxes and scores, not that of
 * places. */
void qn_output_groups_find(qn_output_groups *out, const qn_value *output);

/* Sums of squares, of the output as a whole first. */
typedef struct qn_group_sums {
    double signal[QN_MOST_GROUPS + 1], noise[QN_MOST_GROUPS + 1];
} qn_group_sums;

/* Adds an output of one run, as many numbers on both sides; scale: of the quantized one. */
void qn_group_sums_add(qn_group_sums *sums, const qn_output_groups *groups, const qn_tensor *real,
                       const qn_tensor *quantized, double scale);
/* sqrt(noise / signal) of the whole. */
double qn_group_sums_whole(const qn_group_sums *sums);
/* The larger one of that and of 0.4 times what the worst group has: detectors whose scores have a
 * noise of 0.3 still detect nearly as well as in float. */
double qn_group_sums_worst(const qn_group_sums *sums);

/* The noise an output may have before layers get more bits or stay float; and what people are
 * warned of: networks of mixed precision, judged by few samples, may come out a little above the
 * first. */
#define QN_MOST_NOISE 0.125
#define QN_WARNED_NOISE 0.1875

#endif
