#include "backend/cpu/int/mac/int8_mac_kernels.h"
