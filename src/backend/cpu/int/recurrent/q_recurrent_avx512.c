/* Integer recurrent cells in AVX-512. */
#include "backend/cpu/int/recurrent/q_recurrent_kernels.h"
