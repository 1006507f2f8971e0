/* Multiply-accumulate tiles of int8 in AVX2. */
#include "backend/cpu/int/mac/int8_mac_kernels.h"
