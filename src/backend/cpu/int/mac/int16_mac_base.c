/* Multiply-accumulate tiles of int16 in what every CPU has. */
#include "backend/cpu/int/mac/int16_mac_kernels.h"
