/* The allocator that serves where the user names none. */
#ifndef QN_MEMORY_H
#define QN_MEMORY_H

#include "quench.h"

const qn_allocator *qn_allocator_default(void);

#endif
