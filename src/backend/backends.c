#include "backend/cpu/cpu.h"
#include "backend/ref/ref.h"

const qn_backend *const qn_backends[] = {&qn_backend_cpu, &qn_backend_ref, NULL};
