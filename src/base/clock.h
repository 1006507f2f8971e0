/* Time for measuring. */
#ifndef QN_CLOCK_H
#define QN_CLOCK_H

#include <time.h>

/* Milliseconds since some moment. */
static inline double qn_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

#endif
