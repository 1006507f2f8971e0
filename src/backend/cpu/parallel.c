#include "backend/cpu/parallel.h"

#include <omp.h>

void qn_parallel(int threads, int64_t count, int64_t alone, qn_range_fn *fn, const void *work)
{
    if (count <= 0)
        return;
    if (threads == 1 || count < alone) {
        fn(work, 0, count);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        const int64_t id = omp_get_thread_num(), n = omp_get_num_threads();
        const int64_t first = count * id / n, last = count * (id + 1) / n;
        if (first < last)
            fn(work, first, last);
    }
}
