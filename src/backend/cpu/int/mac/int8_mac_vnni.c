/* Multiply-accumulate tiles of int8 in AVX-512 VNNI. */
#include "backend/cpu/int/mac/int8_mac_kernels.h"
