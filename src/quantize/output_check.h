/* What the float model makes of the first samples, kept to see how far quantized ones are from it. */
#ifndef QN_OUTPUT_CHECK_H
#define QN_OUTPUT_CHECK_H

#include "compare/output_groups.h"
#include "quantize/job.h"
#include "quantize/prefix_cache.h"

typedef struct qn_output_check {
    qn_quantize_job *j;
    int64_t samples;
    size_t n_outputs;
    qn_arena arena;
    qn_tensor *inputs; /* [samples * inputs of the model]; NULL: too much to keep, read again */
    qn_prefix_cache starts;  /* that runs of quantized models begin at; none unless asked for */
    qn_tensor *between;      /* [samples * starts.count]: what the float model makes of them */
    double **values;         /* [samples * n_outputs], row-major; NULL: not a float tensor */
    int64_t *counts;         /* of them */
    qn_output_groups *parts; /* [n_outputs] */
} qn_output_check;

/* Runs the job's float model; samples beyond those there are do not count. qn_output_check_free in any case. */
QN_MUST_CHECK qn_status qn_output_check_open(qn_output_check *out, qn_quantize_job *j,
                                             int64_t samples);
/* For those who run many quantized models: values in between are kept too, and what the float model computes before the
 * first integer of a quantized one is not computed again. */
QN_MUST_CHECK qn_status qn_output_check_use_prefixes(qn_output_check *o);
/* Noise beside signal of the worst output of the job's quantized model: of every sample it is
 * sqrt(sum (fixed - float)^2 / sum float^2), and what three of four samples stay within counts, since a sample that
 * float itself is of two minds about says nothing. For chips it is that of the worst part of an output. */
QN_MUST_CHECK qn_status qn_output_check_noise(double *noise, const qn_output_check *o);
/* sum |fixed - float| / sum |float| over all samples, of the worst output. */
QN_MUST_CHECK qn_status qn_output_check_error(double *error, const qn_output_check *o);
/* Takes one that was never made (all zero) too. */
void qn_output_check_free(qn_output_check *o);

#endif
