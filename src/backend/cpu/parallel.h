/* Work shared among the threads of a plan. */
#ifndef QN_CPU_PARALLEL_H
#define QN_CPU_PARALLEL_H

#include <stdint.h>

/* Does items [first, last) of what `work` describes. */
typedef void qn_range_fn(const void *work, int64_t first, int64_t last);

/* All items [0, count): each thread gets one range, always the same. Below `alone` items the
 * calling thread does them by itself, since waking another costs more. */
void qn_parallel(int threads, int64_t count, int64_t alone, qn_range_fn *fn, const void *work);

/* Does one item; `thread` counts from 0 and is for memory of a thread's own. */
typedef void qn_item_fn(const void *work, int64_t item, int thread);

/* All items [0, count), one by one: each thread begins with a range of its own, so that what it
 * left in its cache is of use again, and then takes from the end of what others have not begun. A
 * core that is slower for a while, as on any shared machine, holds up the others by one item and
 * not by its share. */
void qn_parallel_items(int threads, int64_t count, qn_item_fn *fn, const void *work);

/* Does items [first, last). */
typedef void qn_part_fn(const void *work, int64_t first, int64_t last, int thread);

/* All items [0, count) in parts that are as long as each other, shared in the same way: a few for
 * each thread, but none with fewer than `least` items, as long as each thread has one. */
void qn_parallel_parts(int threads, int64_t count, int64_t least, qn_part_fn *fn, const void *work);

#endif
