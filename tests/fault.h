/* An allocator that fails once, at a chosen allocation, or for all large blocks, and counts what is
 * alive. */
#ifndef QN_TEST_FAULT_H
#define QN_TEST_FAULT_H

#include <stdatomic.h>
#include <stdlib.h>

#include "quench.h"

/* Readers of data allocate in threads of their own. */
typedef struct fault {
    /* This many allocations succeed, the next one fails; negative: none fails */
    atomic_long until;
    /* Blocks not yet released */
    atomic_long live;
    atomic_int struck;
    /* Bytes that a block may have; 0: any number */
    size_t most;
} fault;

static inline int fault_now(fault *f, size_t size)
{
    const int now = atomic_fetch_sub(&f->until, 1) == 0 || (f->most && size > f->most);
    if (now)
        f->struck = 1;
    return now;
}

static inline void *fault_allocate(void *user, size_t size)
{
    fault *f = user;
    void *block = fault_now(f, size) ? NULL : malloc(size);
    f->live += block != NULL;
    return block;
}

static inline void *fault_resize(void *user, void *block, size_t old_size, size_t new_size)
{
    fault *f = user;
    (void)old_size;
    void *grown = fault_now(f, new_size) ? NULL : realloc(block, new_size);
    f->live += grown != NULL && block == NULL;
    return grown;
}

static inline void fault_release(void *user, void *block)
{
    fault *f = user;
    f->live -= block != NULL;
    free(block);
}

static inline qn_allocator fault_allocator(fault *f)
{
    const qn_allocator allocator = {f, fault_allocate, fault_resize, fault_release};
    return allocator;
}

/* A context of one thread with this memory; NULL: malloc's. */
static inline qn_status fault_context(qn_context **out, fault *f)
{
    const qn_allocator allocator = fault_allocator(f);
    qn_context_options options = QN_CONTEXT_OPTIONS_INIT;
    options.allocator = f ? &allocator : NULL;
    options.threads = 1;
    options.log_level = QN_LOG_ERROR;
    return qn_context_create(out, &options);
}

#endif
