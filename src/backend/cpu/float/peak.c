/* The measured peak of the cores: multiply-adds a second. */
#include "backend/cpu/float/peak.h"

#include "backend/cpu/float/kernels.h"
#include "base/clock.h"

/* The best of a few rounds that all threads work through at the same time. */
double qn_peak_measure(int threads)
{
    enum { ROUNDS = 100000, TRIES = 40 };
    const qn_kernels *kernels = qn_kernels_get();
    const double macs = (double)QN_PEAK_CHAINS * kernels->width * ROUNDS * threads;
    double best = 0;
    volatile float sink;
    for (int t = 0; t < TRIES; t++) {
        const double start = qn_clock_ms();
#pragma omp parallel num_threads(threads)
        {
            const float sum = kernels->peak(ROUNDS);
#pragma omp critical
            sink = sum;
        }
        const double rate = macs / ((qn_clock_ms() - start) * 1e6);
        best = QN_MAX(best, rate);
    }
    (void)sink;
    return best;
}
