/* Memory runs out at every single allocation between a file and its result: each time there is an error
 * with a message, no crash, and nothing is left behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fault.h"

enum { OUTPUTS = 10 };
static float numbers[28 * 28];

/* A model, an input for it, of which it makes OUTPUTS numbers, and how to plan it. */
typedef struct subject {
    const char *path, *backend;
    qn_tensor input;
} subject;

typedef struct result {
    qn_status status;
    char message[256];
    float logits[OUTPUTS];
} result;

static void run_session(result *r, qn_context *ctx, qn_plan *plan, const qn_tensor *input)
{
    qn_session *session = NULL;
    r->status = qn_session_create(&session, ctx, plan);
    if (r->status == QN_OK)
        r->status = qn_session_run(session, input, 1);
    if (r->status == QN_OK)
        memcpy(r->logits, qn_session_output(session, 0)->data, sizeof r->logits);
    qn_session_free(session);
}

/* Load, plan, run, with the allocator that fails. */
static result attempt(fault *f, const subject *s)
{
    const qn_allocator allocator = fault_allocator(f);
    qn_context_options context_options = QN_CONTEXT_OPTIONS_INIT;
    qn_plan_options plan_options = QN_PLAN_OPTIONS_INIT;
    qn_context *ctx = NULL;
    qn_model *model = NULL;
    qn_plan *plan = NULL;
    result r = {.status = QN_OK};
    context_options.allocator = &allocator;
    context_options.threads = 1;
    plan_options.backend = s->backend;
    r.status = qn_context_create(&ctx, &context_options);
    if (r.status == QN_OK)
        r.status = qn_model_load(&model, ctx, s->path);
    if (r.status == QN_OK)
        r.status = qn_plan_create(&plan, ctx, model, &plan_options);
    if (r.status == QN_OK)
        run_session(&r, ctx, plan, &s->input);
    snprintf(r.message, sizeof r.message, "%s", qn_context_error(ctx));
    qn_plan_free(plan);
    qn_model_free(model);
    qn_context_free(ctx);
    return r;
}

static void every_allocation(const subject *s)
{
    fault never = {.until = -1};
    const result good = attempt(&never, s);
    if (good.status != QN_OK)
        fail_msg("%s", good.message);
    assert_int_equal(never.live, 0);
    long struck = 0;
    for (long n = 0;; n++) {
        fault f = {.until = n};
        const result r = attempt(&f, s);
        if (f.live != 0)
            fail_msg("allocation %ld fails: %ld blocks are left behind", n, f.live);
        if (!f.struck) {
            assert_int_equal(r.status, QN_OK);
            assert_memory_equal(r.logits, good.logits, sizeof r.logits);
            break;
        }
        struck++;
        /* Memory kept for the next run is nothing a caller must hear of. */
        if (r.status != QN_OK && (r.status != QN_E_NOMEM || r.message[0] == 0))
            fail_msg("allocation %ld fails: status %d, '%s'", n, (int)r.status, r.message);
        if (r.status == QN_OK)
            assert_memory_equal(r.logits, good.logits, sizeof r.logits);
    }
    print_message("%ld allocations failed one after the other\n", struck);
    assert_true(struck > 50);
}

static void reference_backend(void **state)
{
    (void)state;
    every_allocation(
        &(subject){"examples/fashion.onnx", "ref", {QN_FLOAT32, 4, {1, 1, 28, 28}, numbers}});
}

static void all_backends(void **state)
{
    (void)state;
    every_allocation(
        &(subject){"examples/fashion.onnx", NULL, {QN_FLOAT32, 4, {1, 1, 28, 28}, numbers}});
}

/* A plan that the first run finishes. */
static void deferred_plan(void **state)
{
    (void)state;
    every_allocation(
        &(subject){"tests/cli/window.onnx", NULL, {QN_FLOAT32, 3, {1, 1, 4 * OUTPUTS}, numbers}});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reference_backend),
                                       cmocka_unit_test(all_backends),
                                       cmocka_unit_test(deferred_plan)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
