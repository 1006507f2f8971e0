/* What this CPU can do, under the limit of ONEDNN_MAX_CPU_ISA. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/cpu.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

static qn_isa detect(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return __builtin_cpu_supports("avx512vnni") ? QN_ISA_VNNI : QN_ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return QN_ISA_AVX2;
    if (__builtin_cpu_supports("sse4.1"))
        return QN_ISA_SSE41;
#endif
    return QN_ISA_BASE;
}

/* Those above AVX512_CORE_VNNI limit nothing that quench has. */
static const struct {
    const char *name;
    qn_isa isa;
} limits[] = {
    {"SSE41", QN_ISA_SSE41},
    {"AVX", QN_ISA_SSE41},
    {"AVX2", QN_ISA_AVX2},
    {"AVX2_VNNI", QN_ISA_AVX2},
    {"AVX2_VNNI_2", QN_ISA_AVX2},
    {"AVX512_CORE", QN_ISA_AVX512},
    {"AVX512_CORE_VNNI", QN_ISA_VNNI},
    {"AVX512_CORE_BF16", QN_ISA_VNNI},
    {"AVX512_CORE_FP16", QN_ISA_VNNI},
    {"AVX512_CORE_AMX", QN_ISA_VNNI},
    {"AVX512_CORE_AMX_FP16", QN_ISA_VNNI},
    {"AVX10_1_512", QN_ISA_VNNI},
    {"AVX10_1_512_AMX", QN_ISA_VNNI},
    {"AVX10_1_512_AMX_FP16", QN_ISA_VNNI},
    {"DEFAULT", QN_ISA_VNNI},
    {"ALL", QN_ISA_VNNI},
};

/* oneDNN reads both spellings. */
static const char *wanted_limit(void)
{
    const char *wanted = getenv("ONEDNN_MAX_CPU_ISA");
    return wanted ? wanted : getenv("DNNL_MAX_CPU_ISA");
}

const char *qn_isa_unknown_limit(void)
{
    const char *wanted = wanted_limit();
    for (size_t i = 0; wanted && i < QN_COUNT_OF(limits); i++) {
        if (strcmp(wanted, limits[i].name) == 0)
            return NULL;
    }
    return wanted && *wanted ? wanted : NULL;
}

/* A name that oneDNN does not know means no limit, to it and to us. */
static qn_isa environment_limit(void)
{
    const char *wanted = wanted_limit();
    for (size_t i = 0; wanted && i < QN_COUNT_OF(limits); i++) {
        if (strcmp(wanted, limits[i].name) == 0)
            return limits[i].isa;
    }
    return QN_ISA_VNNI;
}

qn_isa qn_cpu_isa(void)
{
    const qn_isa found = detect(), limit = environment_limit();
    return QN_MIN(found, limit);
}

bool qn_cpu_has_vnni(void)
{
    return detect() >= QN_ISA_VNNI;
}

bool qn_cpu_has_vbmi(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    return qn_cpu_isa() >= QN_ISA_VNNI && __builtin_cpu_supports("avx512vbmi");
#else
    return false;
#endif
}

const char *qn_isa_name(qn_isa isa)
{
    static const char *const names[] = {
        [QN_ISA_BASE] = "baseline",  [QN_ISA_SSE41] = "SSE4.1",      [QN_ISA_AVX2] = "AVX2",
        [QN_ISA_AVX512] = "AVX-512", [QN_ISA_VNNI] = "AVX-512 VNNI",
    };
    return names[isa];
}

int qn_cpu_count(void)
{
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
#endif
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}
