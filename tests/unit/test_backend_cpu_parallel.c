/* Work shared among threads: everything is done, nothing twice, and parts are neither short nor
 * uneven. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/cpu/parallel.h"

enum { MOST = 1000, THREADS = 100 };

typedef struct tally {
    atomic_int done[MOST];
    /* Wrong: parts by threads or of lengths that cannot be */
    atomic_int parts, wrong;
    int64_t threads, shortest, longest;
} tally;

static void count_part(const void *work, int64_t first, int64_t last, int thread)
{
    tally *t = (tally *)(uintptr_t)work;
    atomic_fetch_add(&t->parts, 1);
    if (thread < 0 || thread >= t->threads)
        atomic_fetch_add(&t->wrong, 1);
    if (last - first < t->shortest || last - first > t->longest)
        atomic_fetch_add(&t->wrong, 1);
    for (int64_t i = first; i < last; i++)
        atomic_fetch_add(&t->done[i], 1);
}

static void count_item(const void *work, int64_t item, int thread)
{
    count_part(work, item, item + 1, thread);
}

static void count_range(const void *work, int64_t first, int64_t last)
{
    count_part(work, first, last, 0);
}

static tally begin(int64_t threads, int64_t shortest, int64_t longest)
{
    return (tally){.threads = threads, .shortest = shortest, .longest = longest};
}

static void check(tally *t, int64_t count)
{
    for (int64_t i = 0; i < MOST; i++)
        assert_int_equal(atomic_load(&t->done[i]), i < count);
    assert_int_equal(atomic_load(&t->wrong), 0);
}

static const int threads_of[] = {1, 2, 3, 7, 64, 65, THREADS};
static const int64_t counts[] = {0, 1, 2, 3, 63, 64, 65, 100, 999, MOST};
#define EACH(i, array) for (size_t i = 0; i < sizeof(array) / sizeof *(array); i++)

static void test_ranges(void **state)
{
    (void)state;
    EACH(i, threads_of)
    EACH(k, counts)
    {
        tally t = begin(THREADS, 1, MOST);
        qn_parallel(threads_of[i], counts[k], 2, count_range, &t);
        check(&t, counts[k]);
    }
}

static void test_items(void **state)
{
    (void)state;
    EACH(i, threads_of)
    EACH(k, counts)
    {
        tally t = begin(threads_of[i], 1, 1);
        qn_parallel_items(threads_of[i], counts[k], count_item, &t);
        check(&t, counts[k]);
        assert_int_equal(atomic_load(&t.parts), counts[k]);
    }
}

/* Parts differ by one item at most, have `least` items where every thread can have one such, and
 * each thread has as many of them. */
static void test_parts(void **state)
{
    static const int64_t leasts[] = {1, 4, 48, MOST + 1};
    (void)state;
    EACH(i, threads_of)
    EACH(k, counts)
    EACH(l, leasts)
    {
        const int64_t threads = threads_of[i], count = counts[k], least = leasts[l];
        tally t = begin(threads, 1, MOST);
        qn_parallel_parts((int)threads, count, least, count_part, &t);
        check(&t, count);
        const int64_t parts = atomic_load(&t.parts);
        if (count >= threads && parts % threads != 0)
            fail_msg("%ld parts for %ld threads", (long)parts, (long)threads);
        if (count >= least * threads)
            assert_true(parts == 0 || count / parts >= least);
        t = begin(threads, parts ? count / parts : 0, parts ? (count + parts - 1) / parts : 0);
        qn_parallel_parts((int)threads, count, least, count_part, &t);
        check(&t, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranges), cmocka_unit_test(test_items),
                                       cmocka_unit_test(test_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
