/* What this CPU can do. */
#ifndef QN_CPU_H
#define QN_CPU_H

#include <stdbool.h>

/* In ascending order: each level includes the ones before it. */
typedef enum qn_isa {
    /* What the compiler assumes anyway: SSE2 on x86-64 */
    QN_ISA_BASE,
    QN_ISA_SSE41,
    /* AVX2 with FMA. */
    QN_ISA_AVX2,
    /* F, BW, DQ, VL */
    QN_ISA_AVX512,
    /* AVX-512 with VNNI */
    QN_ISA_VNNI
} qn_isa;

/* The best level that CPU and system offer, limited by the environment variable ONEDNN_MAX_CPU_ISA
 * (oneDNN's own names: SSE41, AVX2, AVX512_CORE, AVX512_CORE_VNNI, ...), so that our kernels and
 * oneDNN's always obey one limit. */
qn_isa qn_cpu_isa(void);
/* What the variable says, where it names no instruction set that there is; NULL: all is well. */
const char *qn_isa_unknown_limit(void);
/* Whether the CPU multiplies bytes without saturating on the way (VNNI). This is what ONNX Runtime
 * meets, which does not ask for the limit of ONEDNN_MAX_CPU_ISA. */
bool qn_cpu_has_vnni(void);

/* Permutations of bytes (AVX-512 VBMI), which some CPUs of level QN_ISA_VNNI have. */
bool qn_cpu_has_vbmi(void);
const char *qn_isa_name(qn_isa isa);
/* Cores this process may run on; at least 1. */
int qn_cpu_count(void);

#endif
