/* How far the outputs of quantized models are from the float model's, on the first samples: what
 * searches decide by.
 *
 *     qn_output_check_open     nothing runs yet
 *     qn_output_check_use      from now on so many samples; the float model runs on new ones
 *     qn_output_check_noise    as often as there are models
 *
 * All searches of a job share one: its float outputs are the job's baseline, its samples are kept
 * by the calibration. Plans are direct, so that what is decided does not depend on the number of
 * threads. */
#ifndef QN_OUTPUT_CHECK_H
#define QN_OUTPUT_CHECK_H

#include "compare/output_groups.h"
#include "executor/baseline.h"
#include "quantize/job.h"
#include "quantize/prefix_cache.h"

typedef struct qn_output_check {
    qn_context *ctx;
    const qn_calibration *data;
    qn_baseline *baseline;
    qn_arena arena;
    /* [n_outputs] of the float model */
    qn_output_groups *groups;
    size_t n_outputs;
    /* The samples that models are run on. */
    int64_t samples;
    /* Values that runs of quantized models begin at, and what the float model makes of them:
     * [prefix_samples * prefixes.count]. */
    qn_prefix_cache prefixes;
    qn_tensor *between;
    int64_t prefix_samples;
    qn_arena prefix_arena;
} qn_output_check;

/* The data are fed; the baseline has its pieces in the order of their samples, and may have none.
 * qn_output_check_free in any case. */
QN_MUST_CHECK qn_status qn_output_check_open(qn_output_check *out, qn_context *ctx,
                                             const qn_calibration *data, qn_baseline *baseline);
/* Samples beyond those there are do not count. */
QN_MUST_CHECK qn_status qn_output_check_use(qn_output_check *o, int64_t samples);
/* For those who run many quantized models on so many samples: values in between are kept too, and
 * what the float model computes before the first integer of a quantized one is not computed
 * again. */
QN_MUST_CHECK qn_status qn_output_check_use_prefixes(qn_output_check *o, int64_t samples);
/* Noise beside signal of the worst output: of every sample it is sqrt(sum (quantized - float)^2 /
 * sum float^2), and what three of four samples stay within counts, since a sample that float itself
 * is of two minds about says nothing. For chips it is that of the worst group of an output. */
QN_MUST_CHECK qn_status qn_output_check_noise(double *noise, qn_output_check *o,
                                              const qn_quantized_model *quantized);
/* qn_relative_error over all samples, of the worst output. */
QN_MUST_CHECK qn_status qn_output_check_error(double *error, qn_output_check *o,
                                              const qn_quantized_model *quantized);
/* Takes one that was never opened (all zero) too. */
void qn_output_check_free(qn_output_check *o);

#endif
