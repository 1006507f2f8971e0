/* Threads that share the items of a job: one pool for all who run samples, pieces or strategies
 * side by side.
 *
 * Items are begun in their order, each by the next worker that is free. Of those that fail the one
 * with the lowest number counts, whatever the threads did: its message goes to the caller's
 * context, and nothing is begun any more. So it is when the caller cancels. Where OpenMP's threads
 * are wanted (since those are the ones that steps of many threads have: others would take turns
 * with them) the caller's is one of them; threads of the pool's own leave it free to watch. */
#ifndef QN_POOL_H
#define QN_POOL_H

#include "base/base.h"

typedef struct qn_pool qn_pool;

/* What the pool calls. All but `run` and `context` may be NULL. What is called with the lock held
 * must be short; it may use the caller's context, in which logs then stand one after the other. */
typedef struct qn_pool_work {
    void *user;
    int64_t count;
    int threads;
    /* OpenMP's threads, the caller's is worker 0. Else threads of the pool's own; where fewer can
     * be had those do the work. */
    bool openmp;
    /* `finish` is called in the order of the items, which makes workers wait for each other; else
     * as soon as the item is done. */
    bool ordered;
    /* The worker's own, which has the messages of its failures. */
    qn_context *(*context)(void *user, int worker);
    /* Called by the worker, before its first item. */
    qn_status (*open)(void *user, int worker);
    /* Called with the lock: whether the item may be begun; if not, the worker sleeps until
     * qn_pool_wake. */
    bool (*ready)(void *user, int64_t item);
    /* Called with the lock, before an item. */
    void (*begin)(void *user, int worker, int64_t item);
    qn_status (*run)(void *user, int worker, int64_t item);
    /* Called with the lock, after an item that did not fail; its own failure is the item's. */
    qn_status (*finish)(void *user, int worker, int64_t item);
    /* Called with the lock, when there are no more items, by workers that have not failed. */
    qn_status (*close)(void *user, int worker);
    /* Called by the caller's thread about ten times a second and after each item, without the lock;
     * only with threads of the pool's own. */
    qn_status (*watch)(void *user, qn_pool *pool);
} qn_pool_work;

/* Does all of it; the caller's thread works or watches. */
QN_MUST_CHECK qn_status qn_pool_run(qn_context *ctx, const qn_pool_work *work);

/* Threads of the pool's own that work while the caller does something else. */
QN_MUST_CHECK qn_status qn_pool_start(qn_pool **out, qn_context *ctx, const qn_pool_work *work);
/* Begins no more items, waits for those begun, frees. */
void qn_pool_end(qn_pool *pool);
/* How many threads there are. */
int qn_pool_threads(const qn_pool *pool);

void qn_pool_lock(qn_pool *pool);
void qn_pool_unlock(qn_pool *pool);
/* The caller holds the lock and sleeps until an item is done or somebody wakes all. */
void qn_pool_wait(qn_pool *pool);
/* The caller holds the lock: something has changed that `ready` or qn_pool_wait looks at. */
void qn_pool_wake(qn_pool *pool);
/* Returns when no item is being worked on; none is begun until qn_pool_resume. For `watch`. */
void qn_pool_pause(qn_pool *pool);
void qn_pool_resume(qn_pool *pool);

#endif
