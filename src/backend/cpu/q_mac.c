#include "backend/cpu/q_mac.h"

#include "base/cpu.h"

const qn_mac_kernels *qn_mac_kernels_get(bool narrow)
{
#if QN_X86
    const qn_isa isa = qn_cpu_isa();
    if (isa >= QN_ISA_VNNI && narrow)
        return &qn_mac_kernels_vnni;
    if (isa >= QN_ISA_AVX512)
        return &qn_mac_kernels_avx512;
    if (isa >= QN_ISA_AVX2)
        return &qn_mac_kernels_avx2;
#endif
    (void)narrow;
    return &qn_mac_kernels_base;
}
