/* What the cores can do at most, as a measure for kernels. */
#ifndef QN_PEAK_H
#define QN_PEAK_H

enum { QN_PEAK_CHAINS = 12 }; /* latency times units of today's cores, and then some */

/* Float multiply-accumulates a second, in 1e9, of this many threads at once; takes some 20 ms. */
double qn_peak_measure(int threads);

#endif
