/* Integer recurrent cells in AVX2. */
#include "backend/cpu/int/recurrent/q_recurrent_kernels.h"
