#include "backend/ref/ref.h"

const qn_backend *const qn_backends[] = {&qn_backend_ref, NULL};
