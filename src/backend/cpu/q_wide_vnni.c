#include "backend/cpu/q_wide_kernels.h"
