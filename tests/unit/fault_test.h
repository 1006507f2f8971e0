/* A job that is done again and again, with another allocation failing each time. cmocka.h comes
 * first. */
#ifndef QN_FAULT_TEST_H
#define QN_FAULT_TEST_H

#include <string.h>

#include "fault.h"

enum { FAULT_NUMBERS = 10 };

typedef struct fault_result {
    qn_status status;
    char message[256];
    /* The numbers that the job gives, the same each time that it is done */
    float numbers[FAULT_NUMBERS];
} fault_result;

typedef fault_result fault_attempt(fault *f, const void *user);

/* Past the first 500 only each stride-th allocation fails; 0: each one. */
static inline void fault_each(fault_attempt *attempt, const void *user, long stride)
{
    fault never = {.until = -1};
    const fault_result good = attempt(&never, user);
    if (good.status != QN_OK)
        fail_msg("%s", good.message);
    assert_int_equal(never.live, 0);
    long struck = 0;
    for (long n = 0;; n += stride && n >= 500 ? stride : 1) {
        fault f = {.until = n};
        const fault_result r = attempt(&f, user);
        if (f.live != 0)
            fail_msg("allocation %ld fails: %ld blocks are left behind", n, f.live);
        /* Memory kept for the next run is nothing a caller must hear of. */
        if (r.status != QN_OK && (!f.struck || r.status != QN_E_NOMEM || r.message[0] == 0))
            fail_msg("allocation %ld fails: status %d, '%s'", n, (int)r.status, r.message);
        if (r.status == QN_OK)
            assert_memory_equal(r.numbers, good.numbers, sizeof r.numbers);
        if (!f.struck)
            break;
        struck++;
    }
    print_message("%ld allocations failed one after the other\n", struck);
    assert_true(struck > 50);
}

#endif
