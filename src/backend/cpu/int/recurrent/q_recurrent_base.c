/* Integer recurrent cells in what every CPU has. */
#include "backend/cpu/int/recurrent/q_recurrent_kernels.h"
