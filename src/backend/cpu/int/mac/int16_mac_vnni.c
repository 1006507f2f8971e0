/* Multiply-accumulate tiles of int16 in AVX-512 VNNI. */
#include "backend/cpu/int/mac/int16_mac_kernels.h"
