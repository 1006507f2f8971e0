/* Multiply-accumulate tiles of int8 in what every CPU has. */
#include "backend/cpu/int/mac/int8_mac_kernels.h"
