/* Folders. */
#ifndef QN_FOLDER_H
#define QN_FOLDER_H

#include "base/base.h"

bool qn_folder_is(const char *path);
/* Whether there is a file, a folder or whatever else of that name. */
bool qn_path_exists(const char *path);
/* Makes the folder and those above it, where they are missing. `hint` (may be NULL) ends the
 * message where it is not allowed. */
QN_MUST_CHECK qn_status qn_folder_create(qn_context *ctx, const char *folder, const char *hint);

#endif
