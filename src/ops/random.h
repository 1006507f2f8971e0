/* A seeded stream of random numbers: the Mersenne Twister with numpy's conversions, so that a seed
 * gives the numbers that numpy.random.RandomState(seed) gives, on every machine. */
#ifndef QN_RANDOM_H
#define QN_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct qn_random {
    uint32_t state[624];
    int at;
    /* The second of a pair of normal numbers waits */
    bool has_normal;
    double normal;
} qn_random;

void qn_random_seed(qn_random *random, uint32_t seed);
/* In [0, 1), with 53 random bits. */
double qn_random_uniform(qn_random *random);
/* Mean 0, standard deviation 1. */
double qn_random_normal(qn_random *random);

#endif
