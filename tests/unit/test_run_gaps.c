/* The lowest free addresses over a time are those that a look at everything placed so far finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/gaps.h"

enum { MANY = 600, STEPS = 70 };

typedef struct placed {
    size_t address, bytes;
    int32_t first, last;
} placed;

static uint32_t draw(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

static bool meets(const placed *a, const placed *b)
{
    return a->first <= b->last && b->first <= a->last && a->address < b->address + b->bytes &&
           b->address < a->address + a->bytes;
}

/* The lowest is 0 or the end of something that is there. */
static bool is_free(placed p, size_t address, const placed *others, size_t count)
{
    bool met = false;
    p.address = address;
    for (size_t i = 0; i < count && !met; i++)
        met = meets(&p, &others[i]);
    return !met;
}

static size_t lowest(const placed *p, const placed *others, size_t count)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i <= count; i++) {
        const size_t address = i < count ? others[i].address + others[i].bytes : 0;
        if (address < best && is_free(*p, address, others, count))
            best = address;
    }
    return best;
}

static void takes_the_lowest(void **state)
{
    (void)state;
    uint32_t seed = 5;
    qn_context *ctx;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    for (uint32_t longest = 1; longest <= STEPS + 1; longest += 35) {
        placed all[MANY];
        qn_gaps gaps;
        assert_int_equal(qn_gaps_init(&gaps, ctx, STEPS), QN_OK);
        for (size_t i = 0; i < MANY; i++) {
            placed *p = &all[i];
            p->bytes = draw(&seed, 5) * 64;
            p->first = (int32_t)draw(&seed, STEPS + 2) - 1;
            p->last = (int32_t)QN_MIN(p->first + (int32_t)draw(&seed, longest), STEPS);
            assert_int_equal(qn_gaps_take(&p->address, &gaps, p->bytes, p->first, p->last), QN_OK);
            assert_int_equal(p->address, lowest(p, all, i));
        }
        qn_gaps_free(&gaps);
    }
    qn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(takes_the_lowest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
