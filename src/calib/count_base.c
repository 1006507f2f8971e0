#define QN_COUNT_KERNELS qn_count_kernels_base
#include "calib/count_kernels.h"
