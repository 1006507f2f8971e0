/* One core for each thread of the pool. */
#ifndef QN_PIN_H
#define QN_PIN_H

#include <stdbool.h>

/* Ties thread i of an OpenMP team of this size to the i-th core that the process may use, where
 * there are just as many of them: a thread that the system moves runs into cold caches and waits
 * behind its neighbour. False where nothing was done. */
bool qn_threads_pin(int threads);
/* Gives every thread of the team all cores back. */
void qn_threads_unpin(int threads);

#endif
