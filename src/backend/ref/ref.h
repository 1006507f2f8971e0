/* The reference backend: every operator by its own plain C kernel. The oracle of the others. */
#ifndef QN_REF_H
#define QN_REF_H

#include "run/backend.h"

extern const qn_backend qn_backend_ref;

#endif
