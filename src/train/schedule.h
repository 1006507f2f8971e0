/* Learning rates by step. */
#ifndef QN_TRAIN_SCHEDULE_H
#define QN_TRAIN_SCHEDULE_H

#include "base/base.h"

typedef struct qn_rate_schedule {
    /* One of qn_schedule_name */
    const char *name;
    double rate;
    /* Steps in which the rate rises, and all steps */
    int64_t warm_up, steps;
} qn_rate_schedule;

/* "cosine", ...; NULL past the last. */
const char *qn_schedule_name(size_t i);
/* The rate of step `step`, counted from 0 on. */
double qn_rate_at(const qn_rate_schedule *schedule, int64_t step);

#endif
