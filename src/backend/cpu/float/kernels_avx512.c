/* Float kernels in AVX-512. */
#include "backend/cpu/float/kernels_table.h"
