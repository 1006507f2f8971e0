/* Plans and sessions through the public header: shapes, types, sharing. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fault.h"

enum { MOST = 12, PIXELS = 28 * 28, CLASSES = 10 };

typedef struct fixture {
    qn_context *ctx;
    qn_model *model;
    qn_plan *plan;
    qn_session *session;
    float images[MOST * PIXELS];
} fixture;

static int set_up(void **state)
{
    static fixture f;
    qn_plan_options options = QN_PLAN_OPTIONS_INIT;
    options.backend = "ref"; /* the same bits whatever the batch */
    for (int i = 0; i < MOST * PIXELS; i++)
        f.images[i] = (float)(i * 37 % 101) / 101;
    *state = &f;
    return qn_context_create(&f.ctx, NULL) != QN_OK ||
           qn_model_load(&f.model, f.ctx, "examples/fashion.onnx") != QN_OK ||
           qn_plan_create(&f.plan, f.ctx, f.model, &options) != QN_OK ||
           qn_session_create(&f.session, f.ctx, f.plan) != QN_OK;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    qn_session_free(f->session);
    qn_plan_free(f->plan);
    qn_model_free(f->model);
    qn_context_free(f->ctx);
    return 0;
}

static qn_tensor batch_of(fixture *f, int64_t count)
{
    return (qn_tensor){QN_FLOAT32, 4, {count, 1, 28, 28}, f->images};
}

static void run(float *out, fixture *f, qn_session *session, int64_t count)
{
    const qn_tensor in = batch_of(f, count);
    if (qn_session_run(session, &in, 1) != QN_OK)
        fail_msg("%s", qn_context_error(f->ctx));
    const qn_tensor *y = qn_session_output(session, 0);
    assert_int_equal(y->dims[0], count);
    memcpy(out, y->data, (size_t)count * CLASSES * sizeof *out);
}

/* More shapes than a session keeps, back and forth. */
static void many_shapes(void **state)
{
    static const int64_t order[] = {1, 2, 3, 5, 7, 2, 1, MOST, 3, 3, 7, 1, 5};
    fixture *f = *state;
    float all[MOST * CLASSES], some[MOST * CLASSES];
    run(all, f, f->session, MOST);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        run(some, f, f->session, order[i]);
        assert_memory_equal(some, all, (size_t)order[i] * CLASSES * sizeof *all);
    }
}

static void wrong_inputs(void **state)
{
    fixture *f = *state;
    float before[CLASSES], after[CLASSES];
    qn_tensor in = batch_of(f, 1);
    run(before, f, f->session, 1);
    in.dims[1] = 3;
    assert_int_equal(qn_session_run(f->session, &in, 1), QN_E_INVALID);
    assert_string_equal(qn_context_error(f->ctx),
                        "input 'image': dimension 1 is 1 in the model, 3 was given");
    in = batch_of(f, 1);
    in.rank = 3;
    assert_int_equal(qn_session_run(f->session, &in, 1), QN_E_INVALID);
    in.rank = 99;
    assert_int_equal(qn_session_run(f->session, &in, 1), QN_E_INVALID);
    in = batch_of(f, 1);
    in.dtype = QN_FLOAT64;
    assert_int_equal(qn_session_run(f->session, &in, 1), QN_E_INVALID);
    assert_string_equal(qn_context_error(f->ctx), "input 'image' must be float32, not float64");
    assert_int_equal(qn_session_run(f->session, &in, 0), QN_E_INVALID);
    run(after, f, f->session, 1);
    assert_memory_equal(before, after, sizeof before);
}

/* Two sessions of one plan do not see each other's shapes; the model may go first. */
/* What a caller can get wrong without the compiler noticing. */
static void broken_tensors(void **state)
{
    fixture *f = *state;
    const qn_tensor broken[] = {
        {QN_FLOAT32, 4, {1, 1, 28, 28}, NULL},
        {QN_FLOAT32, 4, {-1, 1, 28, 28}, f->images},
        {QN_FLOAT32, 1000, {1, 1, 28, 28}, f->images},
        {QN_FLOAT32, -3, {1, 1, 28, 28}, NULL},
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        assert_int_equal(qn_session_run(f->session, &broken[i], 1), QN_E_INVALID);
        assert_non_null(strstr(qn_context_error(f->ctx), "input 'image'"));
    }
}

static void two_sessions(void **state)
{
    fixture *f = *state;
    qn_model *model;
    qn_plan *plan;
    qn_session *a, *b;
    float from_a[3 * CLASSES], from_b[CLASSES];
    qn_plan_options options = QN_PLAN_OPTIONS_INIT;
    options.backend = "ref";
    assert_int_equal(qn_model_load(&model, f->ctx, "examples/fashion.onnx"), QN_OK);
    assert_int_equal(qn_plan_create(&plan, f->ctx, model, &options), QN_OK);
    assert_int_equal(qn_session_create(&a, f->ctx, plan), QN_OK);
    assert_int_equal(qn_session_create(&b, f->ctx, plan), QN_OK);
    qn_model_free(model);
    qn_plan_free(plan);
    run(from_a, f, a, 3);
    run(from_b, f, b, 1);
    assert_memory_equal(from_a, from_b, sizeof from_b);
    assert_int_equal(qn_session_output(a, 0)->dims[0], 3);
    assert_null(qn_session_output(a, 1));
    qn_session_free(a);
    qn_session_free(b);
}

static void reported_types(void **state)
{
    fixture *f = *state;
    qn_value_info info;
    qn_tensor type;
    qn_model_input_info(&info, f->model, 0);
    assert_string_equal(info.name, "image");
    assert_int_equal(info.dtype, QN_FLOAT32);
    assert_int_equal(info.rank, 4);
    assert_int_equal(info.dims[0], -1);
    assert_string_equal(info.symbols[0], "N");
    assert_int_equal(info.dims[3], 28);
    qn_model_output_info(&info, f->model, 0);
    assert_string_equal(info.name, "logits");
    qn_plan_input(&type, f->plan, 0);
    assert_int_equal(type.dims[0], 1);
    assert_null(type.data);
    qn_plan_output(&type, f->plan, 0);
    assert_int_equal(type.dims[1], CLASSES);
}

static void batches(void **state)
{
    fixture *f = *state;
    qn_plan *plan;
    qn_model *fixed;
    qn_tensor type;
    qn_plan_options options = QN_PLAN_OPTIONS_INIT;
    options.graph.batch = 5;
    assert_int_equal(qn_plan_create(&plan, f->ctx, f->model, &options), QN_OK);
    qn_plan_output(&type, plan, 0);
    assert_int_equal(type.dims[0], 5);
    qn_plan_free(plan);
    assert_int_equal(qn_model_optimize(&fixed, f->ctx, f->model, &options.graph), QN_OK);
    options.graph.batch = 4;
    assert_int_equal(qn_plan_create(&plan, f->ctx, fixed, &options), QN_E_OPTION);
    assert_string_equal(qn_context_error(f->ctx),
                        "batch 4 does not fit: input 'image' begins with 5 in the model");
    qn_model_free(fixed);
}

/* Memory runs out while a plan for another shape is made: the session stays what it was. */
static void short_memory(void **state)
{
    fixture *whole = *state;
    fault f = {.until = -1};
    const qn_allocator allocator = fault_allocator(&f);
    qn_context_options context = QN_CONTEXT_OPTIONS_INIT;
    qn_plan_options options = QN_PLAN_OPTIONS_INIT;
    qn_context *ctx;
    qn_model *model;
    qn_plan *plan;
    qn_session *session;
    context.allocator = &allocator;
    context.threads = 1;
    options.backend = "ref";
    assert_int_equal(qn_context_create(&ctx, &context), QN_OK);
    assert_int_equal(qn_model_load(&model, ctx, "examples/fashion.onnx"), QN_OK);
    assert_int_equal(qn_plan_create(&plan, ctx, model, &options), QN_OK);
    const qn_tensor one = batch_of(whole, 1), two = batch_of(whole, 2);
    for (long n = 0; n < 100000; n++) {
        const long live = f.live;
        assert_int_equal(qn_session_create(&session, ctx, plan), QN_OK);
        assert_int_equal(qn_session_run(session, &one, 1), QN_OK);
        f = (fault){.until = n, .live = f.live};
        const qn_status status = qn_session_run(session, &two, 1);
        const int struck = f.struck;
        f.until = -1;
        assert_int_equal(status, struck ? QN_E_NOMEM : QN_OK);
        assert_int_equal(qn_session_run(session, &one, 1), QN_OK);
        qn_session_free(session);
        assert_int_equal(f.live, live);
        if (!struck)
            break;
    }
    qn_plan_free(plan);
    qn_model_free(model);
    qn_context_free(ctx);
    assert_int_equal(f.live, 0);
}

/* Runs of shapes that were seen before ask the allocator for nothing: `until` counts what is asked
 * for. The scratch memory of reference kernels grows in the first round and is put together in the
 * second. */
static void nothing_allocated(void **state)
{
    static const char *const backends[] = {NULL, "ref"};
    fixture *whole = *state;
    for (size_t b = 0; b < sizeof backends / sizeof *backends; b++) {
        fault f = {.until = -1};
        const qn_allocator allocator = fault_allocator(&f);
        qn_context_options context = QN_CONTEXT_OPTIONS_INIT;
        qn_plan_options options = QN_PLAN_OPTIONS_INIT;
        qn_context *ctx;
        qn_model *model;
        qn_plan *plan;
        qn_session *session;
        context.allocator = &allocator;
        options.backend = backends[b];
        assert_int_equal(qn_context_create(&ctx, &context), QN_OK);
        assert_int_equal(qn_model_load(&model, ctx, "examples/fashion.onnx"), QN_OK);
        assert_int_equal(qn_plan_create(&plan, ctx, model, &options), QN_OK);
        assert_int_equal(qn_session_create(&session, ctx, plan), QN_OK);
        long asked[3], live[3];
        for (int round = 0; round < 3; round++) {
            for (int64_t count = 1; count <= 3; count++) {
                const qn_tensor in = batch_of(whole, count);
                assert_int_equal(qn_session_run(session, &in, 1), QN_OK);
            }
            asked[round] = f.until;
            live[round] = f.live;
        }
        assert_true(asked[0] < -1);
        assert_int_equal(asked[2], asked[1]);
        assert_int_equal(live[2], live[1]);
        qn_session_free(session);
        qn_plan_free(plan);
        qn_model_free(model);
        qn_context_free(ctx);
        assert_int_equal(f.live, 0);
    }
}

/* What is too large is called by its name. */
static void named_memory(void **state)
{
    (void)state;
    fault f = {.until = -1};
    const qn_allocator allocator = fault_allocator(&f);
    qn_context_options context = QN_CONTEXT_OPTIONS_INIT;
    qn_plan_options options = QN_PLAN_OPTIONS_INIT;
    qn_context *ctx;
    qn_model *model;
    qn_plan *plan;
    qn_session *session;
    context.allocator = &allocator;
    options.graph.batch = 100;
    options.backend = "ref";
    assert_int_equal(qn_context_create(&ctx, &context), QN_OK);
    assert_int_equal(qn_model_load(&model, ctx, "examples/fashion.onnx"), QN_OK);
    assert_int_equal(qn_plan_create(&plan, ctx, model, &options), QN_OK);
    f.most = 1 << 20;
    assert_int_equal(qn_session_create(&session, ctx, plan), QN_E_NOMEM);
    unsigned long all, largest;
    char name[64];
    assert_int_equal(sscanf(qn_context_error(ctx),
                            "out of memory: %lu bytes wanted for values between steps, the largest "
                            "of them '%63[^']' with %lu bytes",
                            &all, name, &largest),
                     3);
    assert_true(all >= largest && largest > f.most && *name);
    qn_plan_free(plan);
    qn_model_free(model);
    qn_context_free(ctx);
    assert_int_equal(f.live, 0);
}

/* A request to stop holds until it is taken back. */
static void cancelled(void **state)
{
    fixture *f = *state;
    const qn_tensor in = batch_of(f, 2);
    float before[2 * CLASSES], after[2 * CLASSES];
    qn_model *model;
    run(before, f, f->session, 2);
    assert_int_equal(qn_context_resume(f->ctx), 0);
    qn_context_cancel(f->ctx);
    for (int i = 0; i < 2; i++)
        assert_int_equal(qn_session_run(f->session, &in, 1), QN_E_CANCELLED);
    assert_int_equal(qn_model_optimize(&model, f->ctx, f->model, NULL), QN_E_CANCELLED);
    assert_int_not_equal(qn_context_resume(f->ctx), 0);
    assert_int_equal(qn_context_resume(f->ctx), 0);
    run(after, f, f->session, 2);
    assert_memory_equal(before, after, sizeof before);
}

static void *cancel(void *ctx)
{
    qn_context_cancel(ctx);
    return NULL;
}

/* Requests from another thread, at any moment of a run: none is lost, none outlives its return. */
static void cancelled_by_another_thread(void **state)
{
    fixture *f = *state;
    const qn_tensor in = batch_of(f, MOST);
    float result[CLASSES];
    for (int i = 0; i < 20; i++) {
        pthread_t other;
        qn_status status = QN_OK;
        assert_int_equal(pthread_create(&other, NULL, cancel, f->ctx), 0);
        while (status == QN_OK)
            status = qn_session_run(f->session, &in, 1);
        assert_int_equal(status, QN_E_CANCELLED);
        pthread_join(other, NULL);
        assert_int_not_equal(qn_context_resume(f->ctx), 0);
        run(result, f, f->session, 1);
    }
}

/* The shortest use of a model whose open dimensions cannot be 1: planned by the first run. */
static void planned_by_inputs(void **state)
{
    fixture *f = *state;
    float numbers[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
    const qn_tensor long_one = {QN_FLOAT32, 3, {1, 1, 16}, numbers};
    const qn_tensor two = {QN_FLOAT32, 3, {2, 1, 8}, numbers};
    const qn_tensor too_short = {QN_FLOAT32, 3, {1, 1, 3}, numbers};
    const qn_tensor wrong = {QN_INT8, 3, {1, 1, 16}, numbers};
    const float wanted[] = {4, 9, 8, 9};
    qn_model *model;
    qn_plan *plan;
    qn_session *session;
    qn_tensor type;
    assert_int_equal(qn_model_load(&model, f->ctx, "tests/cli/window.onnx"), QN_OK);
    assert_int_equal(qn_plan_create(&plan, f->ctx, model, NULL), QN_OK);
    qn_plan_input(&type, plan, 0);
    assert_int_equal(type.rank, -1);
    assert_int_equal(type.dtype, QN_FLOAT32);
    assert_int_equal(qn_session_create(&session, f->ctx, plan), QN_OK);
    qn_model_free(model);
    qn_plan_free(plan);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(qn_session_run(session, &long_one, 1), QN_OK);
        assert_int_equal(qn_session_output(session, 0)->dims[2], 4);
        assert_memory_equal(qn_session_output(session, 0)->data, wanted, sizeof wanted);
        assert_int_equal(qn_session_run(session, &two, 1), QN_OK);
        assert_int_equal(qn_session_output(session, 0)->dims[0], 2);
        assert_memory_equal(qn_session_output(session, 0)->data, wanted, sizeof wanted);
        assert_int_equal(qn_session_run(session, &too_short, 1), QN_E_INVALID);
        assert_non_null(strstr(qn_context_error(f->ctx), "node 'pool' (MaxPool)"));
        assert_int_equal(qn_session_run(session, &wrong, 1), QN_E_INVALID);
        assert_string_equal(qn_context_error(f->ctx), "input 'x' must be float32, not int8");
    }
    qn_session_free(session);
}

/* What a caller may give by mistake is refused with a message that names it. */
static void wrong_arguments(void **state)
{
    const fixture *f = *state;
    static const char missing[] = "the name of a file is missing: it is NULL";
    qn_plan_options options = QN_PLAN_OPTIONS_INIT;
    qn_plan *plan;
    qn_model *model;
    qn_tensor *tensor;
    qn_stats *stats;
    options.threads = -3;
    assert_int_equal(qn_plan_create(&plan, f->ctx, f->model, &options), QN_E_OPTION);
    assert_null(plan);
    assert_string_equal(qn_context_error(f->ctx), "threads: -3 is not from 1 to 1024");
    assert_int_equal(qn_model_load(&model, f->ctx, NULL), QN_E_INVALID);
    assert_null(model);
    assert_string_equal(qn_context_error(f->ctx), missing);
    assert_int_equal(qn_model_save(f->ctx, f->model, NULL, NULL), QN_E_INVALID);
    assert_string_equal(qn_context_error(f->ctx), missing);
    assert_int_equal(qn_tensor_load(&tensor, f->ctx, NULL, NULL), QN_E_INVALID);
    assert_null(tensor);
    assert_int_equal(qn_stats_load(&stats, f->ctx, NULL), QN_E_INVALID);
    assert_string_equal(qn_context_error(f->ctx), missing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_shapes),
        cmocka_unit_test(wrong_inputs),
        cmocka_unit_test(broken_tensors),
        cmocka_unit_test(two_sessions),
        cmocka_unit_test(reported_types),
        cmocka_unit_test(batches),
        cmocka_unit_test(short_memory),
        cmocka_unit_test(nothing_allocated),
        cmocka_unit_test(named_memory),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(cancelled_by_another_thread),
        cmocka_unit_test(planned_by_inputs),
        cmocka_unit_test(wrong_arguments),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
