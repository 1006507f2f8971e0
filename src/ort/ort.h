/* ONNX Runtime as a witness: its shared library, opened while running, computes the same model
 * beside quench. Nothing of it is needed to build quench or to run it. */
#ifndef QN_ORT_H
#define QN_ORT_H

#include "ir/tensor.h"

typedef struct qn_ort qn_ort;

/* Opens the library and loads the model with it. Fails with QN_E_UNSUPPORTED where the file is no
 * such library and with QN_E_FORMAT where it refuses the model. */
QN_MUST_CHECK qn_status qn_ort_open(qn_ort **out, qn_context *ctx, const char *library,
                                    const char *model_path);
/* What the library calls itself. */
const char *qn_ort_version(const qn_ort *ort);

typedef struct qn_ort_run {
    const char *const *in_names;
    /* Row-major */
    const qn_tensor *in;
    size_t n_in;
    const char *const *out_names;
    size_t n_out;
    /* Called for every output in its order; the tensor lives as long as the call. */
    qn_status (*seen)(void *user, size_t i, const qn_tensor *tensor);
    void *user;
} qn_ort_run;
QN_MUST_CHECK qn_status qn_ort_compute(qn_ort *ort, const qn_ort_run *run);
void qn_ort_close(qn_ort *ort);

#endif
