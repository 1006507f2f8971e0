#define QN_COUNT_KERNELS qn_count_kernels_avx2
#include "calib/count_kernels.h"
