/* The kernels of statistics for AVX2. */
#define QN_STATS_KERNELS qn_stats_kernels_avx2
#include "calib/stats_kernels_inc.h"
