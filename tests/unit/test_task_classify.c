/* Ranks, divergence, agreement. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "task/classify.h"

static void ranks(void **state)
{
    const double scores[] = {0.5, 2, 2, -1, 2};
    (void)state;
    /* The lower class of equal scores is the better one. */
    assert_int_equal(qn_rank_of(scores, 5, 1), 0);
    assert_int_equal(qn_rank_of(scores, 5, 2), 1);
    assert_int_equal(qn_rank_of(scores, 5, 4), 2);
    assert_int_equal(qn_rank_of(scores, 5, 0), 3);
    assert_int_equal(qn_rank_of(scores, 5, 3), 4);
    assert_int_equal(qn_best_class(scores, 5), 1);
}

static void divergence(void **state)
{
    const double p[] = {0.5, 0.5}, q[] = {0.25, 0.75}, zero[] = {1, 0};
    (void)state;
    assert_true(fabs(qn_divergence(p, q, 2) - (0.5 * log(2) + 0.5 * log(2. / 3))) < 1e-8);
    assert_true(qn_divergence(p, p, 2) == 0);
    /* 1e-9 stands in for nothing. */
    assert_true(fabs(qn_divergence(p, zero, 2) - (0.5 * log(0.5) + 0.5 * log(0.5e9))) < 1e-6);
}

static void add(qn_classify *task, qn_context *ctx, const double *own, const double *other,
                int64_t label)
{
    const qn_scores sample = {own, other, 6, label};
    assert_int_equal(qn_classify_add(task, ctx, &sample), QN_OK);
}

static void counts(void **state)
{
    static const double a[] = {0, 1, 2, 3, 4, 5}, b[] = {5, 4, 3, 2, 1, 0};
    qn_classify task = {.classes = 0};
    qn_context *ctx;
    (void)state;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    add(&task, ctx, a, b, 5);
    add(&task, ctx, a, a, 1);
    add(&task, ctx, a, a, 0);
    add(&task, ctx, b, b, -1);
    assert_int_equal(task.samples, 4);
    assert_int_equal(task.labelled, 3);
    assert_int_equal(task.hits.top1, 1);
    assert_int_equal(task.hits.top5, 2);
    assert_int_equal(task.float_hits.top1, 0);
    assert_int_equal(task.float_hits.top5, 1);
    assert_int_equal(task.agreed, 3);
    assert_false(task.probabilities);
    assert_true(task.divergence > 1);
    /* What does not fit is refused. */
    const qn_scores beyond = {a, NULL, 6, 6}, fewer = {a, NULL, 5, 0};
    assert_int_equal(qn_classify_add(&task, ctx, &beyond), QN_E_INVALID);
    assert_int_equal(qn_classify_add(&task, ctx, &fewer), QN_E_INVALID);
    qn_classify_free(&task, ctx);
    qn_context_free(ctx);
}

static void probabilities(void **state)
{
    /* The float scores decide; the others need not sum up. */
    static const double own[] = {0.5, 0.3, 0, 0, 0, 0.1}, other[] = {0.5, 0.25, 0.25, 0, 0, 0};
    qn_classify task = {.classes = 0};
    qn_context *ctx;
    (void)state;
    assert_int_equal(qn_context_create(&ctx, NULL), QN_OK);
    add(&task, ctx, own, other, -1);
    assert_true(task.probabilities);
    assert_true(fabs(task.divergence - qn_divergence(other, own, 6)) < 1e-12);
    qn_classify_free(&task, ctx);
    qn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks),
        cmocka_unit_test(divergence),
        cmocka_unit_test(counts),
        cmocka_unit_test(probabilities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
