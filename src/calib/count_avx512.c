#define QN_COUNT_KERNELS qn_count_kernels_avx512
#include "calib/count_kernels.h"
