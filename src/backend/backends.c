#include "backend/cpu/cpu.h"
#if QN_HAVE_DNNL
#include "backend/dnnl/dnnl.h"
#endif
#include "backend/ref/ref.h"

const qn_backend *const qn_backends[] = {
    &qn_backend_cpu,
#if QN_HAVE_DNNL
    &qn_backend_dnnl,
#endif
    &qn_backend_ref,
    NULL,
};
