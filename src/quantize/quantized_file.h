/* A quantized model on its way to a file: the opset that it needs, the types of its inputs, and
 * what is reported of it. */
#ifndef QN_QUANTIZED_FILE_H
#define QN_QUANTIZED_FILE_H

#include "model/save_dir.h"
#include "quant/quant.h"
#include "report/report.h"

/* A quantized model on its way to a file. */
typedef struct qn_quantized_file {
    qn_context *ctx;
    const char *path;
    /* NULL: the default */
    const char *form;
    /* Opset; 0: the least that has a form for every node */
    int asked;
    /* The settings that say the types of its inputs; NULL: they stay as they are */
    const qn_quant_settings *settings;
    /* Where the model leaves it open; 0: stays open */
    int64_t batch;
    /* File that is not to be written over; NULL: none */
    const char *original;
    /* The opset that was written */
    int opset;
} qn_quantized_file;
/* A qn_model_fn. */
QN_MUST_CHECK qn_status qn_quantized_save(void *file, qn_model *model);
/* Puts what is to be said of the file before all else. */
void qn_quantized_file_report(qn_report *report, const qn_model *model, const char *path,
                              int opset);

#endif
