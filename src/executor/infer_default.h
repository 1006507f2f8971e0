/* The built-in infer function for pictures: classification and detection, as "input-configs" of a
 * run configuration say. */
#ifndef QN_INFER_DEFAULT_H
#define QN_INFER_DEFAULT_H

#include "executor/executor.h"
#include "executor/input_configs.h"

/* A qn_infer_fn. */
qn_status qn_infer_default(void *user, qn_executor *executor, double *metric);
/* What its results depend on besides the model: configurations, samples, labels. */
QN_MUST_CHECK qn_status qn_infer_default_print(qn_fingerprint *print, qn_context *ctx,
                                               const qn_function *function);

/* ---- Labels (infer_labels.c) ----------------------------------------------------------------- */

typedef struct qn_label_place {
    /* File or folder to read; NULL: none */
    const char *labels;
    /* Folder to write them to; NULL: not */
    const char *made;
    /* They are what a model found */
    bool generated;
    /* Labels that lie beside the samples, though nobody named them; NULL: there are none */
    const char *ignored;
} qn_label_place;

/* Where labels come from: those of people, where label_dir names them; else the float model's
 * outputs, which are written, and which quantized models are measured by. `is_float`: of the model
 * at hand. A quantized one without any fails. */
QN_MUST_CHECK qn_status qn_label_place_find(qn_label_place *out, qn_context *ctx, qn_arena *arena,
                                            const qn_input_config *config, bool is_float);
/* A folder beside that of the samples; NULL when memory is short. */
const char *qn_sibling_folder(qn_arena *arena, const char *data_dir, const char *name);

#endif
