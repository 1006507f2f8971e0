/* The kernels of statistics for AVX-512. */
#define QN_STATS_KERNELS qn_stats_kernels_avx512
#include "calib/stats_kernels_inc.h"
