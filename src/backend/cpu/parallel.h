/* Work shared among the threads of a plan. */
#ifndef QN_PARALLEL_H
#define QN_PARALLEL_H

#include <stdint.h>

/* Does items [first, last) of what `work` describes. */
typedef void qn_range_fn(const void *work, int64_t first, int64_t last);

/* All items [0, count): each thread gets one range, always the same. Below `alone` items the calling
 * thread does them by itself, since waking another costs more. */
void qn_parallel(int threads, int64_t count, int64_t alone, qn_range_fn *fn, const void *work);

#endif
