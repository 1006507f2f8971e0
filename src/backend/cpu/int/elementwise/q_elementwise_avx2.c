/* Element-wise kernels of integers in AVX2. */
#include "backend/cpu/int/elementwise/q_elementwise_kernels.h"
