/* Work shared among the threads of a plan. */
#include "backend/cpu/parallel.h"

#include <omp.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

void qn_parallel(int threads, int64_t count, int64_t alone, qn_range_fn *fn, const void *work)
{
    if (count <= 0)
        return;
    if (threads == 1 || count < alone) {
        fn(work, 0, count);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        const int64_t id = omp_get_thread_num(), n = omp_get_num_threads();
        const int64_t first = count * id / n, last = count * (id + 1) / n;
        if (first < last)
            fn(work, first, last);
    }
}

/* ---- Items ----------------------------------------------------------------------------------- */

enum { MOST_SHARES = 64, LINE = 64 };

/* What a thread has not begun: items [first, last), in one 16-bit number, so that nobody takes one
 * twice. */
typedef struct share {
    alignas(LINE) _Atomic uint64_t range;
} share;

static uint64_t range_of(int64_t first, int64_t last)
{
    return (uint64_t)first << 32 | (uint64_t)last;
}

/* The first item of it, or the last one; false: none is left. */
static bool take(int64_t *item, share *s, bool from_end)
{
    uint64_t range = atomic_load_explicit(&s->range, memory_order_relaxed), rest;
    do {
        const int64_t first = (int64_t)(range >> 32), last = (int64_t)(range & UINT32_MAX);
        if (first >= last)
            return false;
        *item = from_end ? last - 1 : first;
        rest = from_end ? range_of(first, last - 1) : range_of(first + 1, last);
    } while (!atomic_compare_exchange_weak_explicit(&s->range, &range, rest, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

void qn_parallel_items(int threads, int64_t count, qn_item_fn *fn, const void *work)
{
    share shares[MOST_SHARES];
    const int n = threads < MOST_SHARES ? threads : MOST_SHARES;
    if (n <= 1 || count <= 1 ||
        count > UINT32_MAX) { /* more than half a 16-bit number counts: alone */
        for (int64_t item = 0; item < count; item++)
            fn(work, item, 0);
        return;
    }
    for (int i = 0; i < n; i++)
        atomic_init(&shares[i].range, range_of(count * i / n, count * (i + 1) / n));
#pragma omp parallel num_threads(n)
    {
        const int id = omp_get_thread_num();
        int64_t item;
        for (int i = 0; i < n; i++) {
            share *s = &shares[(id + i) % n];
            while (take(&item, s, i > 0))
                fn(work, item, id);
        }
    }
}

/* ---- Parts ----------------------------------------------------------------------------------- */

typedef struct parts {
    qn_part_fn *fn;
    const void *work;
    int64_t count, n_parts;
} parts;

static void do_part(const void *opaque, int64_t part, int thread)
{
    const parts *p = opaque;
    p->fn(p->work, p->count * part / p->n_parts, p->count * (part + 1) / p->n_parts, thread);
}

void qn_parallel_parts(int threads, int64_t count, int64_t least, qn_part_fn *fn, const void *work)
{
    enum { MOST_EACH = 8 };
    const int64_t each = threads > 1 ? count / (least * threads) : 1;
    const int64_t wanted = (each < 1 ? 1 : each < MOST_EACH ? each : MOST_EACH) * threads;
    const parts p = {fn, work, count, wanted < count ? wanted : count};
    qn_parallel_items(threads, p.n_parts, do_part, &p);
}
