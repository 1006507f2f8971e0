#include "backend/cpu/q_mac_kernels.h"
