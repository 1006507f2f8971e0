/* Chooses the kernels of statistics for this CPU. */
#include "calib/stats_kernels.h"

#include "base/cpu.h"

const qn_stats_kernels *qn_stats_kernels_get(void)
{
#if QN_X86
    const qn_isa isa = qn_cpu_isa();
    if (isa >= QN_ISA_AVX512)
        return &qn_stats_kernels_avx512;
    if (isa >= QN_ISA_AVX2)
        return &qn_stats_kernels_avx2;
#endif
    return &qn_stats_kernels_base;
}
