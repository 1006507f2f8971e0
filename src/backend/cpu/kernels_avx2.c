#include "backend/cpu/kernels_table.h"
