/* A float graph and its data, for those who calibrate or quantize it: what one of them observes is what the
 * other one would have observed, bit for bit. */
#ifndef QN_CALIBRATION_H
#define QN_CALIBRATION_H

#include "calib/calib.h"
#include "executor/feed_source.h"
#include "report/report.h"

typedef struct qn_calibration {
    qn_context *ctx;
    const qn_calibrate_options *options;
    qn_model *real;         /* after the passes */
    qn_fingerprint print;   /* of it */
    qn_graph_options graph; /* of its plans: with the shapes of the data once there are any */
    qn_data_options data;
    qn_feed_options feed_options;
    qn_feed feed;
    bool feed_open;
    bool fed;                /* there are samples to run, below; */
    bool with_data;          /* and they are no random numbers */
    const qn_source *source; /* those of the feed, or others */
    size_t n_inputs;
    int workers; /* samples run at once */
    /* What is wanted of the collection beyond the statistics of all: `after`, `took`. */
    qn_collect_options collect;
    /* Until it is dropped: with one thread, and the values that a quantized graph would carry observed. */
    qn_plan *plan;
    qn_feed_source samples;
    double plan_ms, run_ms;
} qn_calibration;

/* The passes. The options must outlive it; qn_calibration_close in any case. */
QN_MUST_CHECK qn_status qn_calibration_open(qn_calibration *c, qn_context *ctx, qn_model *model,
                                            const qn_calibrate_options *options);
/* Opens the data; without any, c->samples are random numbers, with a warning. */
QN_MUST_CHECK qn_status qn_calibration_feed(qn_calibration *c);
/* A line where they are. */
void qn_calibration_report_data(qn_item *root, const qn_calibration *c);
/* After qn_calibration_feed. `course` may be NULL; out [c->collect.n_after + 1]. */
QN_MUST_CHECK qn_status qn_calibration_collect(qn_stats **out, qn_course *course,
                                               qn_calibration *c);
/* The plan's memory, when nothing is left to collect; the samples stay. */
void qn_calibration_drop_plan(qn_calibration *c);
void qn_calibration_close(qn_calibration *c);

#endif
