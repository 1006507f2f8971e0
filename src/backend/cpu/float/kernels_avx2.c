#include "backend/cpu/float/kernels_table.h"
