/* What is reported of a quantization: nodes, times, errors of outputs and tensors, refinements,
 * what stayed float. */
#ifndef QN_QUANTIZE_REPORT_H
#define QN_QUANTIZE_REPORT_H

#include "quantize/layer_times.h"
#include "quantize/search.h"

/* All of it; `times` NULL: nobody measured any. Notes the noise of the outputs in the result. */
QN_MUST_CHECK qn_status qn_quantize_report(qn_item *root, qn_quantize_result *result,
                                           const qn_quantize_input *input,
                                           const qn_layer_times *times);
/* How many nodes there are, and how many of integers. */
void qn_node_counts_report(qn_item *root, const qn_quantizer *q);
/* error_report.c: both models on the first samples: error of every output, signal-to-noise ratio of
 * the worst tensors. */
QN_MUST_CHECK qn_status qn_error_report(qn_item *root, qn_quantize_result *result,
                                        const qn_quantize_input *input, int64_t samples);

#endif
