/* Where plug-ins are: files and folders that QUENCH_PLUGINS names, between colons; where that is
 * not set, the folder of the library and the folder `quench` in it. */
#ifndef QN_PLUGIN_FILES_H
#define QN_PLUGIN_FILES_H

#include "base/base.h"

/* Whether a file is a plug-in of the kind in question. `name` has no folder; `is_named`: the user
 * names the file itself, not its folder. */
typedef bool qn_plugin_is_fn(const char *name, bool is_named);
typedef qn_status qn_plugin_visit_fn(void *user, const char *path);
/* Calls visit for each such file, in the order of the list, and of names in a folder. */
QN_MUST_CHECK qn_status qn_plugin_files(qn_plugin_is_fn *is_plugin, qn_plugin_visit_fn *visit,
                                        void *user);

#endif
