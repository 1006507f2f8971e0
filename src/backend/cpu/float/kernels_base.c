/* Float kernels in what every CPU has. */
#include "backend/cpu/float/kernels_table.h"
