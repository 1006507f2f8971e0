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

/* oneDNN reads both spellings; a name it does not know means no limit, to it and to us. */
static qn_isa environment_limit(void)
{
    static const struct {
        const char *name;
        qn_isa isa;
    } limits[] = {
        {"SSE41", QN_ISA_SSE41},    {"AVX", QN_ISA_SSE41},          {"AVX2", QN_ISA_AVX2},
        {"AVX2_VNNI", QN_ISA_AVX2}, {"AVX512_CORE", QN_ISA_AVX512},
    };
    const char *wanted = getenv("ONEDNN_MAX_CPU_ISA");
    if (!wanted)
        wanted = getenv("DNNL_MAX_CPU_ISA");
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
