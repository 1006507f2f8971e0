/* A cancel is answered inside a reference kernel that takes long, not only between nodes. It comes
 * with the first memory that the kernel asks for: after the check before the node, before the
 * work. */
#include "backend_test.h"

static qn_context *to_cancel; /* at the next allocation */

static void *cancelling_allocate(void *user, size_t size)
{
    (void)user;
    if (to_cancel)
        qn_context_cancel(to_cancel);
    return malloc(size);
}

static void *plain_resize(void *user, void *block, size_t old_size, size_t new_size)
{
    (void)user;
    (void)old_size;
    return realloc(block, new_size);
}

static void plain_release(void *user, void *block)
{
    (void)user;
    free(block);
}

static const int64_t image[] = {1, 8, 64, 64}, filters[] = {8, 8, 3, 3};
static const int64_t square[] = {128, 128}, sequence[] = {64, 1, 128};

static qn_node *make_conv(fixture *f)
{
    qn_value *const in[] = {add_input(f, 4, image), add_weights(f, 4, filters)};
    return add_node(f, &qn_op_Conv, 2, in);
}

static qn_node *make_transposed(fixture *f)
{
    qn_value *const in[] = {add_input(f, 4, image), add_weights(f, 4, filters)};
    return add_node(f, &qn_op_ConvTranspose, 2, in);
}

static qn_node *make_matmul(fixture *f)
{
    qn_value *const in[] = {add_input(f, 2, square), add_weights(f, 2, square)};
    return add_node(f, &qn_op_MatMul, 2, in);
}

static qn_node *make_gemm(fixture *f)
{
    qn_value *const in[] = {add_input(f, 2, square), add_weights(f, 2, square)};
    return add_node(f, &qn_op_Gemm, 2, in);
}

static qn_node *make_einsum(fixture *f)
{
    qn_value *const in[] = {add_input(f, 2, square), add_weights(f, 2, square)};
    qn_node *node = add_node(f, &qn_op_Einsum, 2, in);
    *(const char **)node->attrs = "ij,jk->ik"; /* the equation is all that there is */
    return node;
}

static qn_node *make_resize(fixture *f)
{
    const int64_t sizes[] = {1, 8, 128, 128};
    qn_value *const in[] = {add_input(f, 4, image), NULL, NULL, add_ints(f, sizes, 4)};
    return add_node(f, &qn_op_Resize, 4, in);
}

static qn_node *make_lstm(fixture *f)
{
    const int64_t w[] = {1, 256, 128}, r[] = {1, 256, 64};
    qn_value *const in[] = {add_input(f, 3, sequence), add_weights(f, 3, w), add_weights(f, 3, r)};
    qn_node *node = add_node(f, &qn_op_LSTM, 3, in);
    ((qn_recurrent_attrs *)node->attrs)->hidden_size = 64;
    return node;
}

static fixture begin_cancelling(void)
{
    static const qn_allocator allocator = {
        .allocate = cancelling_allocate, .resize = plain_resize, .release = plain_release};
    fixture f = {.state = 1};
    const qn_context_options options = {QN_OPTIONS_VERSION, .threads = 1, .allocator = &allocator};
    assert_int_equal(qn_context_create(&f.ctx, &options), QN_OK);
    assert_int_equal(qn_model_create(&f.model, f.ctx), QN_OK);
    f.graph = f.model->graph;
    return f;
}

static void test_kernels(void **state)
{
    static const struct {
        const char *name;
        qn_node *(*make)(fixture *f);
    } cases[] = {{"Conv", make_conv},     {"ConvTranspose", make_transposed},
                 {"MatMul", make_matmul}, {"Gemm", make_gemm},
                 {"Einsum", make_einsum}, {"Resize", make_resize},
                 {"LSTM", make_lstm}};
    static float data[8 * 64 * 64];
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(cases); i++) {
        fixture f = begin_cancelling();
        qn_plan_options options = QN_PLAN_OPTIONS_INIT;
        qn_plan *plan;
        qn_session *session = NULL;
        add_output(&f, result_of(cases[i].make(&f)));
        options.backend = "ref";
        qn_tensor in = {.dtype = QN_FLOAT32, .rank = f.graph->inputs[0]->type.rank, .data = data};
        assert_true(qn_type_is_static(&f.graph->inputs[0]->type, in.dims));
        if (qn_plan_create(&plan, f.ctx, f.model, &options) != QN_OK ||
            qn_session_create(&session, f.ctx, plan) != QN_OK)
            fail_msg("%s: %s", cases[i].name, qn_context_error(f.ctx));
        to_cancel = f.ctx;
        const qn_status status = qn_session_run(session, &in, 1);
        to_cancel = NULL;
        if (status != QN_E_CANCELLED)
            fail_msg("%s runs to its end", cases[i].name);
        assert_int_equal(qn_context_resume(f.ctx), 1);
        assert_int_equal(qn_session_run(session, &in, 1), QN_OK);
        qn_session_free(session);
        qn_plan_free(plan);
        fixture_end(&f);
    }
}

/* A context that works for another one is cancelled with it. */
static void test_child(void **state)
{
    (void)state;
    fixture f = fixture_begin(1);
    qn_context *child;
    assert_int_equal(qn_context_create_child(&child, f.ctx), QN_OK);
    assert_int_equal(qn_check_cancel(child), QN_OK);
    qn_context_cancel(f.ctx);
    assert_int_equal(qn_check_cancel(child), QN_E_CANCELLED);
    qn_context_free(child);
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels),
                                       cmocka_unit_test(test_child)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
