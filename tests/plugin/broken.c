/* Plug-ins that cannot be used, one for each way: BROKEN_ENTRY, BROKEN_VERSION, BROKEN_SPACE. */
#include "quench/backend.h"

#if defined(BROKEN_ENTRY)
QN_API int qn_something_else(void);
int qn_something_else(void)
{
    return 0;
}
#else

static qn_status claim(bool *taken, qn_claim *claimed)
{
    (void)claimed;
    *taken = false;
    return QN_OK;
}

static const qn_space space = {.name = "half a space"};
static const qn_backend backend = {.name = "broken", .claim = claim, .space = &space};

static qn_status open(qn_plugin_set *out, qn_context *ctx, const qn_backend_api *api)
{
    (void)ctx;
    (void)api;
    *out = (qn_plugin_set){.backends = &backend, .count = 1};
    return QN_OK;
}

QN_API const qn_plugin qn_plugin_main = {
#if defined(BROKEN_VERSION)
    .version = QN_BACKEND_VERSION + 1,
#else
    .version = QN_BACKEND_VERSION,
#endif
    .size = sizeof(qn_plugin),
    .name = "broken",
    .release_name = "0",
    .open = open};
#endif
