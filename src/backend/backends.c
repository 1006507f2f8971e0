/* The table of backends of this build, in the order in which the planner asks them. */
#include "backend/ref/ref.h"
#ifdef QN_BACKEND_CPU
#include "backend/cpu/cpu.h"
#endif
#ifdef QN_BACKEND_DNNL
#include "backend/dnnl/dnnl.h"
#endif

const qn_backend *const qn_backends[] = {
#ifdef QN_BACKEND_CPU
    &qn_backend_cpu,
#endif
#ifdef QN_BACKEND_DNNL
    &qn_backend_dnnl,
#endif
    &qn_backend_ref,
    NULL,
};
