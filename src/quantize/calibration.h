/* A float graph and its data, for those who calibrate, quantize or compare it: what one of them
 * observes is what the other one would have observed, bit for bit.
 *
 *     qn_calibration_open      the passes
 *     qn_calibration_feed      opens the data (or the driver gives other samples: what an infer
 *                              function fed)
 *     qn_calibration_keep      samples that are read again come from memory
 *     qn_calibration_collect   statistics
 *
 * After the feed it is only read, by any number of threads: each has a slot of the source. */
#ifndef QN_CALIBRATION_H
#define QN_CALIBRATION_H

#include "executor/feed_source.h"
#include "quantize/sample_cache.h"
#include "report/report.h"

typedef struct qn_calibration {
    qn_context *ctx;
    const qn_calibrate_options *options;
    /* The float model after the passes, and a fingerprint of that. */
    qn_model *real;
    qn_fingerprint print;
    /* The options of its plans: with the shapes of the data once there are any. */
    qn_graph_options graph;
    qn_data_options data;
    qn_feed_options feed_options;
    qn_feed feed;
    bool feed_open;
    /* There are samples to run, below; and they are no random numbers. */
    bool fed, with_data;
    /* Those of the feed, those that are kept of it, or others. */
    const qn_sample_source *source;
    size_t n_inputs;
    /* Samples run at once. */
    int workers;
    /* Until it is dropped: with one thread, and the values that a quantized graph would carry
     * observed. */
    qn_plan *plan;
    qn_feed_source samples;
    qn_sample_cache cache;
    double plan_ms;
} qn_calibration;

/* The passes. The options must outlive it; qn_calibration_close in any case. */
QN_MUST_CHECK qn_status qn_calibration_open(qn_calibration *c, qn_context *ctx, qn_model *model,
                                            const qn_calibrate_options *options);
/* Opens the data; without any, c->source gives random numbers, with a warning. */
QN_MUST_CHECK qn_status qn_calibration_feed(qn_calibration *c);
/* Whether the user gives samples: without any random numbers stand in. */
static inline bool qn_calibrate_has_data(const qn_calibrate_options *o)
{
    return o->n_inputs || o->data.n_data;
}
/* Keeps, once they are read, as many of the first `most` samples as memory is meant for. */
QN_MUST_CHECK qn_status qn_calibration_keep(qn_calibration *c, int64_t most);
/* A line where the data are random numbers. */
void qn_calibration_report_data(qn_item *root, const qn_calibration *c);
/* After qn_calibration_feed. `convergence` may be NULL; `wanted` beyond the statistics of all
 * samples: `after`, on_sample, a checkpoint; NULL: nothing. out [wanted->n_after + 1]. */
QN_MUST_CHECK qn_status qn_calibration_collect(qn_stats **out, qn_convergence *convergence,
                                               const qn_calibration *c,
                                               const qn_collect_options *wanted);
/* The plan's memory, when nothing is left to collect; the samples stay. */
void qn_calibration_drop_plan(qn_calibration *c);
void qn_calibration_close(qn_calibration *c);

#endif
