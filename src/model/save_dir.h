/* The folder that a job writes into: made, locked, and the names of its files. */
#ifndef QN_SAVE_DIR_H
#define QN_SAVE_DIR_H

#include "ir/graph.h"

/* Makes the folder with those above it. */
QN_MUST_CHECK qn_status qn_folder_make(qn_context *ctx, const char *folder);

/* A folder that is another process's at the moment is refused. The lock is a file
 * "<folder>/.quench.lock", which a process that dies lets go of. */
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

#endif
