/* Float kernels in AVX2. */
#include "backend/cpu/float/kernels_table.h"
