/* ONNX Runtime's results beside the reference's, integer by integer. */
#ifndef QN_ORT_COMPARISON_H
#define QN_ORT_COMPARISON_H

#include "compare/reference_values.h"
#include "ort/ort.h"
#include "report/report.h"

typedef struct qn_ort_comparison qn_ort_comparison;

/* Loads the model with ONNX Runtime's library, every tensor of integers an output. */
QN_MUST_CHECK qn_status qn_ort_comparison_open(qn_ort_comparison **out, qn_context *ctx,
                                               qn_model *model, const char *library);
/* Computes it with these inputs and compares with what the reference has computed of them. */
QN_MUST_CHECK qn_status qn_ort_comparison_run(qn_ort_comparison *comparison,
                                              const qn_tensor *inputs,
                                              const qn_reference_values *reference);
/* How far the results are, and which operators make the difference. */
void qn_ort_comparison_report(qn_item *root, const qn_ort_comparison *comparison);
void qn_ort_comparison_close(qn_ort_comparison *comparison);

#endif
