/* A pass over data that need no infer function: samples of a feed, read and run side by side. */
#ifndef QN_DATA_PASS_H
#define QN_DATA_PASS_H

#include "executor/executor.h"
#include "quantize/calibration.h"

typedef struct qn_data_pass_options {
    qn_context *ctx;
    /* Fed. */
    const qn_calibration *calibration;
    qn_baseline *baseline;
    /* The metric is the share of hits, in percent; else there is none. */
    bool labelled;
    /* Added to every label. */
    int64_t class_offset;
    /* The most pieces whose outputs the float pass keeps. */
    int64_t most_pieces;
    /* The threads of qn_data_pass_model, and the slot of the source that the first one has. */
    int threads, slot;
    /* The checkpoint of qn_data_pass_float, as qn_collect_options has it; NULL: none. */
    const char *checkpoint;
} qn_data_pass_options;

/* Statistics of the float model after the first after[i] runs of the feed, ascending, of which the
 * last is the number of all; fills options->baseline. */
QN_MUST_CHECK qn_status qn_data_pass_float(qn_stats **out, const qn_data_pass_options *options,
                                           const int64_t *after, size_t n_after);
/* The same samples through another model, until the error has settled. Metric or error NaN: there
 * is none. */
QN_MUST_CHECK qn_status qn_data_pass_model(double *metric, double *error, qn_model *model,
                                           const qn_data_pass_options *options);

#endif
