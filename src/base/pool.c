/* The pool of threads: items handed out in order, failures by the lowest item, pauses, in-order
 * ends. */
#include "base/pool.h"

#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct worker {
    qn_pool *pool;
    int index;
    pthread_t thread;
} worker;

struct qn_pool {
    qn_context *ctx;
    qn_pool_work work;
    worker *workers;
    int n_workers;
    /* It guards all below */
    pthread_mutex_t lock;
    pthread_cond_t news;
    /* Items to be begun and to be finished next */
    int64_t next, due;
    int alive, resting;
    bool pausing, stopping;
    /* The failure of the failed item with the lowest number */
    qn_status status;
    int64_t failed;
    char message[QN_ERROR_SIZE];
};

/* ---- An item (with the lock held where nothing else is said) --------------------------------- */

static void note_failure(qn_pool *p, const char *message, int64_t item, qn_status status)
{
    p->stopping = true;
    if (p->status != QN_OK && item >= p->failed)
        return;
    p->status = status;
    p->failed = item;
    snprintf(p->message, sizeof p->message, "%s", message);
}

static void note_worker(const worker *w, int64_t item, qn_status status)
{
    if (status != QN_OK)
        note_failure(w->pool, qn_context_error(w->pool->work.context(w->pool->work.user, w->index)),
                     item, status);
}

static bool has_next(const qn_pool *p)
{
    return !p->stopping && p->next < p->work.count;
}

static bool must_rest(const qn_pool *p)
{
    const qn_pool_work *work = &p->work;
    return has_next(p) && (p->pausing || (work->ready && !work->ready(work->user, p->next)));
}

static void rest(qn_pool *p)
{
    if (!must_rest(p))
        return;
    p->resting++;
    pthread_cond_broadcast(&p->news);
    while (must_rest(p))
        pthread_cond_wait(&p->news, &p->lock);
    p->resting--;
}

/* False when there is none. */
static bool take_item(int64_t *item, qn_pool *p)
{
    rest(p);
    if (!has_next(p))
        return false;
    *item = p->next++;
    return true;
}

/* What fails while it is finished has its message where the caller's is. */
static void finish_item(const worker *w, int64_t item, qn_status status)
{
    qn_pool *p = w->pool;
    const qn_pool_work *work = &p->work;
    while (work->ordered && p->due != item)
        pthread_cond_wait(&p->news, &p->lock);
    note_worker(w, item, status);
    const bool counts = status == QN_OK && (!work->ordered || p->status == QN_OK);
    if (counts && work->finish) {
        const qn_status finished = work->finish(work->user, w->index, item);
        if (finished != QN_OK)
            note_failure(p, qn_context_error(p->ctx), item, finished);
    }
    p->due++;
    pthread_cond_broadcast(&p->news);
}

static bool run_item(const worker *w, int64_t item)
{
    qn_pool *p = w->pool;
    const qn_pool_work *work = &p->work;
    if (work->begin)
        work->begin(work->user, w->index, item);
    pthread_mutex_unlock(&p->lock);
    const qn_status status = work->run(work->user, w->index, item);
    pthread_mutex_lock(&p->lock);
    finish_item(w, item, status);
    return status == QN_OK;
}

/* ---- A worker -------------------------------------------------------------------------------- */

/* The worker does not hold the lock. What cannot be opened counts as the failure of the first
 * item. */
static void work_through(const worker *w)
{
    qn_pool *p = w->pool;
    const qn_pool_work *work = &p->work;
    int64_t item;
    const qn_status opened = work->open ? work->open(work->user, w->index) : QN_OK;
    pthread_mutex_lock(&p->lock);
    note_worker(w, -1, opened);
    bool good = opened == QN_OK;
    while (good && take_item(&item, p))
        good = run_item(w, item);
    if (good && work->close)
        note_worker(w, work->count, work->close(work->user, w->index));
    p->alive--;
    pthread_cond_broadcast(&p->news);
    pthread_mutex_unlock(&p->lock);
}

static void *worker_main(void *user)
{
    work_through(user);
    return NULL;
}

static void start_threads(qn_pool *p)
{
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < p->work.threads; i++) {
        worker *w = &p->workers[i];
        *w = (worker){.pool = p, .index = i};
        p->alive++;
        if (pthread_create(&w->thread, NULL, worker_main, w) != 0) {
            p->alive--;
            break;
        }
        p->n_workers++;
    }
    pthread_mutex_unlock(&p->lock);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static qn_status pool_create(qn_pool **out, qn_context *ctx, const qn_pool_work *work)
{
    pthread_condattr_t monotonic;
    qn_pool *p = *out = qn_alloc_zero(ctx, 1, sizeof *p);
    QN_TRY_ALLOC(ctx, p);
    p->ctx = ctx;
    p->work = *work;
    p->workers = qn_alloc_zero(ctx, (size_t)QN_MAX(work->threads, 1), sizeof *p->workers);
    if (!p->workers) {
        qn_free(ctx, p);
        *out = NULL;
        return qn_fail_nomem(ctx);
    }
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->news, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return QN_OK;
}

void qn_pool_end(qn_pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->news);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_workers; i++)
        pthread_join(p->workers[i].thread, NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->news);
    qn_free(p->ctx, p->workers);
    qn_free(p->ctx, p);
}

qn_status qn_pool_start(qn_pool **out, qn_context *ctx, const qn_pool_work *work)
{
    QN_TRY(pool_create(out, ctx, work));
    start_threads(*out);
    return QN_OK;
}

int qn_pool_threads(const qn_pool *pool)
{
    return pool->n_workers;
}

void qn_pool_lock(qn_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
}

void qn_pool_unlock(qn_pool *pool)
{
    pthread_mutex_unlock(&pool->lock);
}

void qn_pool_wait(qn_pool *pool)
{
    pthread_cond_wait(&pool->news, &pool->lock);
}

void qn_pool_wake(qn_pool *pool)
{
    pthread_cond_broadcast(&pool->news);
}

void qn_pool_pause(qn_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->pausing = true;
    while (pool->resting < pool->alive)
        pthread_cond_wait(&pool->news, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void qn_pool_resume(qn_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->pausing = false;
    pthread_cond_broadcast(&pool->news);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- A whole job ----------------------------------------------------------------------------- */

static void wait_a_while(qn_pool *p)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 100 * 1000 * 1000;
    if (until.tv_nsec >= 1000 * 1000 * 1000) {
        until.tv_nsec -= 1000 * 1000 * 1000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&p->news, &p->lock, &until);
}

/* Until all workers are gone. */
static void watch(qn_pool *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->alive > 0) {
        wait_a_while(p);
        qn_status status = qn_check_cancel(p->ctx);
        pthread_mutex_unlock(&p->lock);
        if (status == QN_OK && p->work.watch)
            status = p->work.watch(p->work.user, p);
        pthread_mutex_lock(&p->lock);
        if (status != QN_OK)
            note_failure(p, qn_context_error(p->ctx), p->work.count, status);
    }
    pthread_mutex_unlock(&p->lock);
}

static void run_openmp(qn_pool *p)
{
    for (int i = 0; i < p->work.threads; i++)
        p->workers[i] = (worker){.pool = p, .index = i};
    p->alive = p->work.threads;
#pragma omp parallel num_threads(p->work.threads) if (p->work.threads > 1)
    work_through(&p->workers[omp_get_thread_num()]);
}

qn_status qn_pool_run(qn_context *ctx, const qn_pool_work *work)
{
    char message[QN_ERROR_SIZE];
    qn_pool *p;
    QN_TRY(qn_check_cancel(ctx));
    QN_TRY(pool_create(&p, ctx, work));
    if (work->openmp)
        run_openmp(p);
    else
        start_threads(p);
    if (!work->openmp && p->n_workers == 0)
        note_failure(p, "no thread can be started", -1, QN_E_NOMEM);
    if (!work->openmp)
        watch(p);
    const qn_status status = p->status;
    memcpy(message, p->message, sizeof message);
    qn_pool_end(p);
    QN_TRY(status == QN_OK ? QN_OK : qn_fail(ctx, status, "%s", message));
    return qn_check_cancel(ctx);
}
