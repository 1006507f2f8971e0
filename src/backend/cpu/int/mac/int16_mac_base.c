#include "backend/cpu/int/mac/int16_mac_kernels.h"
