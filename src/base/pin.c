/* Threads of the pool pinned to cores. */
#define _GNU_SOURCE /* sched_setaffinity */
#include "base/pin.h"

#include <omp.h>
#include <sched.h>

#include "base/cpu.h"

#if defined(__linux__)

/* The cores of `set` from the one called `place` on, `count` of them. */
static cpu_set_t take_cores(const cpu_set_t *set, int place, int count)
{
    cpu_set_t out;
    CPU_ZERO(&out);
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, set))
            continue;
        if (place-- <= 0 && count-- > 0)
            CPU_SET(core, &out);
    }
    return out;
}

bool qn_threads_pin(int threads)
{
    cpu_set_t all;
    if (threads != qn_cpu_count() || sched_getaffinity(0, sizeof all, &all) != 0)
        return false;
#pragma omp parallel num_threads(threads)
    {
        const cpu_set_t own = take_cores(&all, omp_get_thread_num(), 1);
        (void)sched_setaffinity(0, sizeof own, &own);
    }
    return true;
}

void qn_threads_unpin(int threads)
{
    cpu_set_t all;
    CPU_ZERO(&all);
#pragma omp parallel num_threads(threads)
    {
        cpu_set_t own;
        const bool known = sched_getaffinity(0, sizeof own, &own) == 0;
#pragma omp critical
        if (known)
            CPU_OR(&all, &all, &own);
#pragma omp barrier
        (void)sched_setaffinity(0, sizeof all, &all);
    }
}

#else

bool qn_threads_pin(int threads)
{
    (void)threads;
    return false;
}

void qn_threads_unpin(int threads)
{
    (void)threads;
}

#endif
