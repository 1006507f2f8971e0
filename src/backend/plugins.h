/* The backends that a context has: those of the library, and those that shared objects bring. */
#ifndef QN_PLUGINS_H
#define QN_PLUGINS_H

#include "run/backend.h"

/* All backends in the order of preference, ended with NULL: automatic ones of plug-ins, those of
 * the library, then those of plug-ins that must be named. Plug-ins are loaded with the first
 * call and closed with the context. */
QN_MUST_CHECK qn_status qn_backends_of(const qn_backend *const **out, qn_context *ctx);
/* Those that a plan is made with, ended with NULL, valid as long as the context: `name` and the
 * reference, or, where it is NULL, all that need not be named. A plug-in with several devices calls
 * them NAME, NAME:1, ...; NAME means all of them. `out` has room for QN_MOST_BACKENDS. */
enum { QN_MOST_BACKENDS = 32 };
QN_MUST_CHECK qn_status qn_backends_choose(const qn_backend **out, qn_context *ctx,
                                           const char *name);

/* What plug-ins are opened with. (plugin_api.c) */
extern const qn_backend_api qn_backend_api_table;

#endif
