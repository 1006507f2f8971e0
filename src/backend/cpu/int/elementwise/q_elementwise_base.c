/* Element-wise kernels of integers in what every CPU has. */
#include "backend/cpu/int/elementwise/q_elementwise_kernels.h"
