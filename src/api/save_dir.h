/* The folder that a job writes into, and the files it leaves there. */
#ifndef QN_SAVE_DIR_H
#define QN_SAVE_DIR_H

#include "ir/graph.h"
#include "quant/quant.h"
#include "report/report.h"

/* With the folders above it. */
QN_MUST_CHECK qn_status qn_folder_make(qn_context *ctx, const char *folder);

/* A folder that is another process's at the moment is refused. The lock is a file "<folder>/.quench.lock", which a
 * process that dies lets go of. */
typedef struct qn_folder_lock {
    char *path;
    int file;
} qn_folder_lock;
QN_MUST_CHECK qn_status qn_folder_lock_take(qn_folder_lock *out, qn_context *ctx, qn_arena *arena,
                                            const char *folder);
/* Takes a lock that was not taken (all zero) too. */
void qn_folder_lock_drop(qn_folder_lock *lock);

/* "<folder>/<name of the model's file><suffix>" */
QN_MUST_CHECK qn_status qn_folder_file(char **out, qn_arena *arena, const qn_model *model,
                                       const char *folder, const char *suffix);

/* Fails where the file to be written is `original` (may be NULL), which messages call `what`. */
QN_MUST_CHECK qn_status qn_folder_spare(qn_context *ctx, const char *path, const char *original,
                                        const char *what);

/* A quantized model on its way to a file. */
typedef struct qn_quantized_file {
    qn_context *ctx;
    const char *path;
    const char *form;                  /* NULL: the default */
    int asked;                         /* opset; 0: the least that has a form for every node */
    const qn_quant_settings *settings; /* that say the types of its inputs; NULL: as they are */
    int64_t batch;                     /* where the model leaves it open; 0: stays open */
    const char *original;              /* file that is not to be written over; NULL: none */
    int opset;                         /* that was written */
} qn_quantized_file;
/* A qn_model_fn. */
QN_MUST_CHECK qn_status qn_quantized_save(void *file, qn_model *model);
/* Puts what is to be said of the file before all else. (quantize_file.c) */
void qn_quantized_tell(qn_report *report, const qn_model *model, const char *path, int opset);

#endif
