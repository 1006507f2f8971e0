#include "backend/cpu/int/elementwise/q_elementwise_kernels.h"
