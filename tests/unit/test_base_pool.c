/* The pool of threads: every item once, failures by the lowest item, ends in order, pauses,
 * cancelling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/pool.h"

enum { THREADS = 4, ITEMS = 200 };

typedef struct job {
    qn_context *ctx, *own[THREADS];
    int runs[ITEMS];
    int64_t order[ITEMS], finished, taken, closed, begun;
    /* This item and all behind it fail */
    int64_t fail_from;
    bool paused;
} job;

static void job_init(job *j, int64_t fail_from)
{
    *j = (job){.fail_from = fail_from};
    assert_int_equal(qn_context_create(&j->ctx, NULL), QN_OK);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(qn_context_create_child(&j->own[i], j->ctx), QN_OK);
}

static void job_free(job *j)
{
    for (int i = 0; i < THREADS; i++)
        qn_context_free(j->own[i]);
    qn_context_free(j->ctx);
}

static qn_context *context_of(void *user, int worker)
{
    return ((job *)user)->own[worker];
}

static void dawdle(int64_t item)
{
    const struct timespec a_little = {.tv_nsec = (long)(item * 7919 % 5) * 20000};
    nanosleep(&a_little, NULL);
}

static qn_status run(void *user, int worker, int64_t item)
{
    job *j = user;
    dawdle(item);
    j->runs[item]++;
    return item < j->fail_from ? QN_OK
                               : qn_fail(j->own[worker], QN_E_FORMAT, "item %lld", (long long)item);
}

static qn_status finish(void *user, int worker, int64_t item)
{
    job *j = user;
    (void)worker;
    j->order[j->finished++] = item;
    return QN_OK;
}

static qn_status close_worker(void *user, int worker)
{
    (void)worker;
    ((job *)user)->closed++;
    return QN_OK;
}

static qn_pool_work work_of(job *j, bool openmp, bool ordered)
{
    return (qn_pool_work){.user = j,
                          .count = ITEMS,
                          .threads = THREADS,
                          .openmp = openmp,
                          .ordered = ordered,
                          .context = context_of,
                          .run = run,
                          .finish = finish,
                          .close = close_worker};
}

static void test_all_items(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        job j;
        job_init(&j, ITEMS);
        const qn_pool_work work = work_of(&j, kind & 1, kind & 2);
        assert_int_equal(qn_pool_run(j.ctx, &work), QN_OK);
        assert_int_equal(j.finished, ITEMS);
        for (int i = 0; i < ITEMS; i++) {
            assert_int_equal(j.runs[i], 1);
            assert_true(!(kind & 2) || j.order[i] == i);
        }
        assert_true(j.closed >= 1 && j.closed <= THREADS);
        job_free(&j);
    }
}

/* Whoever fails first: the message is that of the first item. */
static void test_failures(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        job j;
        job_init(&j, 17);
        const qn_pool_work work = work_of(&j, kind & 1, kind & 2);
        assert_int_equal(qn_pool_run(j.ctx, &work), QN_E_FORMAT);
        assert_string_equal(qn_context_error(j.ctx), "item 17");
        assert_int_equal(j.finished, 17);
        job_free(&j);
    }
}

static qn_status cancel_later(void *user, qn_pool *pool)
{
    job *j = user;
    qn_pool_lock(pool);
    if (j->finished > 10)
        qn_context_cancel(j->ctx);
    qn_pool_unlock(pool);
    return QN_OK;
}

static qn_status run_slowly(void *user, int worker, int64_t item)
{
    const struct timespec a_while = {.tv_nsec = 2000000};
    nanosleep(&a_while, NULL);
    return run(user, worker, item);
}

static void test_cancel(void **state)
{
    (void)state;
    job j;
    job_init(&j, ITEMS);
    qn_pool_work work = work_of(&j, false, false);
    work.run = run_slowly;
    work.watch = cancel_later;
    assert_int_equal(qn_pool_run(j.ctx, &work), QN_E_CANCELLED);
    assert_true(j.finished > 10 && j.finished < ITEMS);
    assert_int_equal(qn_pool_run(j.ctx, &work), QN_E_CANCELLED); /* begins nothing */
    job_free(&j);
}

static void note_begin(void *user, int worker, int64_t item)
{
    job *j = user;
    (void)worker;
    (void)item;
    assert_false(j->paused);
    j->begun++;
}

static qn_status pause_a_while(void *user, qn_pool *pool)
{
    job *j = user;
    qn_pool_pause(pool);
    assert_int_equal(j->begun, j->finished);
    j->paused = true;
    dawdle(2);
    j->paused = false;
    qn_pool_resume(pool);
    return QN_OK;
}

static void test_pause(void **state)
{
    (void)state;
    job j;
    job_init(&j, ITEMS);
    qn_pool_work work = work_of(&j, false, false);
    work.run = run_slowly;
    work.begin = note_begin;
    work.watch = pause_a_while;
    assert_int_equal(qn_pool_run(j.ctx, &work), QN_OK);
    assert_int_equal(j.finished, ITEMS);
    job_free(&j);
}

/* At most ten items ahead of what was taken. */
static bool is_ready(void *user, int64_t item)
{
    return item < ((job *)user)->taken + 10;
}

static void test_behind_a_gate(void **state)
{
    (void)state;
    job j;
    qn_pool *pool;
    job_init(&j, ITEMS);
    qn_pool_work work = work_of(&j, false, false);
    work.ready = is_ready;
    assert_int_equal(qn_pool_start(&pool, j.ctx, &work), QN_OK);
    assert_int_equal(qn_pool_threads(pool), THREADS);
    for (int64_t taken = 0; taken < 50; taken++) {
        qn_pool_lock(pool);
        while (j.finished <= taken)
            qn_pool_wait(pool);
        assert_true(j.finished <= taken + 10);
        j.taken++;
        qn_pool_wake(pool);
        qn_pool_unlock(pool);
    }
    qn_pool_end(pool);
    assert_true(j.finished >= 50 && j.finished <= 60);
    job_free(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_items),     cmocka_unit_test(test_failures),
        cmocka_unit_test(test_cancel),        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_behind_a_gate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
