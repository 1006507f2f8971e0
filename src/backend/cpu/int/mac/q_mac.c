/* The multiply-accumulate kernels of the best instruction set there is. */
#include "backend/cpu/int/mac/q_mac.h"

#include "base/cpu.h"

static const qn_mac_kernels *int16_kernels(qn_mac_kind kind)
{
    const int at = kind - QN_MAC_INT16_BY_INT8;
#if QN_X86
    const qn_isa isa = qn_cpu_isa();
    if (isa >= QN_ISA_VNNI)
        return &qn_int16_mac_kernels_vnni[at];
    if (isa >= QN_ISA_AVX512)
        return &qn_int16_mac_kernels_avx512[at];
    if (isa >= QN_ISA_AVX2)
        return &qn_int16_mac_kernels_avx2[at];
#endif
    return &qn_int16_mac_kernels_base[at];
}

const qn_mac_kernels *qn_mac_kernels_get(qn_mac_kind kind, bool fit_int8)
{
    if (kind != QN_MAC_INT8)
        return int16_kernels(kind);
#if QN_X86
    const qn_isa isa = qn_cpu_isa();
    if (isa >= QN_ISA_VNNI && fit_int8)
        return &qn_int8_mac_kernels_vnni;
    if (isa >= QN_ISA_AVX512)
        return &qn_int8_mac_kernels_avx512;
    if (isa >= QN_ISA_AVX2)
        return &qn_int8_mac_kernels_avx2;
#endif
    (void)fit_int8;
    return &qn_int8_mac_kernels_base;
}
