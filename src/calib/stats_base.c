/* The kernels of statistics for the base instruction set. */
#define QN_STATS_KERNELS qn_stats_kernels_base
#include "calib/stats_kernels_inc.h"
