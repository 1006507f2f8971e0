/* Element-wise kernels of integers in AVX-512. */
#include "backend/cpu/int/elementwise/q_elementwise_kernels.h"
