/* What the cores can do at most, as a measure for kernels. */
#ifndef QN_CPU_PEAK_H
#define QN_CPU_PEAK_H

enum { QN_PEAK_CHAINS = 12 }; /* latency times units of today's cores, and then some */

/* As of qn_backend.peak; takes some 20 ms. */
double qn_peak_measure(int threads);

#endif
