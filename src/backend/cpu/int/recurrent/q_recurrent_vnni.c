/* Integer recurrent cells in AVX-512 VNNI. */
#include "backend/cpu/int/recurrent/q_recurrent_kernels.h"
