/* The table of float kernels of the best instruction set there is. */
#include "backend/cpu/float/kernels.h"

#include "base/cpu.h"

const qn_kernels *qn_kernels_get(void)
{
#if QN_X86
    const qn_isa isa = qn_cpu_isa();
    if (isa >= QN_ISA_AVX512)
        return &qn_kernels_avx512;
    if (isa >= QN_ISA_AVX2)
        return &qn_kernels_avx2;
#endif
    return &qn_kernels_base;
}
