/* ONNX Runtime's results beside the reference's, integer by integer. */
#ifndef QN_BESIDE_H
#define QN_BESIDE_H

#include "api/truth.h"
#include "peer/ort.h"
#include "report/report.h"

typedef struct qn_beside qn_beside;

/* Loads the model with ONNX Runtime's library, every tensor of integers an output. */
QN_MUST_CHECK qn_status qn_beside_open(qn_beside **out, qn_context *ctx, qn_model *model,
                                       const char *library);
/* Computes it with these inputs and compares with what the reference has computed of them. */
QN_MUST_CHECK qn_status qn_beside_run(qn_beside *beside, const qn_tensor *inputs,
                                      const qn_truth *truth);
/* How far the results are, and which operators make the difference. */
void qn_beside_report(qn_item *root, const qn_beside *beside);
void qn_beside_close(qn_beside *beside);

#endif
