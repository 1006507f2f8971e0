/* The parts of qn_quantize. */
#ifndef QN_QUANTIZE_JOB_H
#define QN_QUANTIZE_JOB_H

#include "api/calibrate.h"
#include "api/prepare.h"
#include "quant/insert.h"
#include "report/report.h"

/* Compares the float graph with the quantized one on the first samples. `tensors` are the names of values
 * of the float graph that the other has as integers. */
typedef struct qn_compare_options {
    qn_source *source;
    size_t n_inputs;
    const qn_graph_options *graph;
    int64_t samples;
    const char **tensors;
    size_t n_tensors;
} qn_compare_options;
QN_MUST_CHECK qn_status qn_compare_models(qn_item *root, qn_context *ctx, qn_model *real,
                                          qn_model *quantized, const qn_compare_options *options);

#endif
