#include "backend/cpu/q_elem_kernels.h"
