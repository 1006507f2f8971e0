/* Values whose contents a caller reads and writes between runs of one plan. */
#include "backend/plugins.h"
#include "backend_test.h"
#include "model/prepare.h"
#include "ops/clone.h"

#define INVERTED PLUGIN_FOLDER "/quench_backend_inverted.so"

static qn_tensor *weights(fixture *f, float first)
{
    const int64_t dims[] = {3, 2, 3, 3};
    const qn_type type = qn_type_tensor(QN_FLOAT32, 4, dims);
    qn_tensor *tensor;
    assert_int_equal(qn_tensor_create(&tensor, f->ctx, f->graph->arena, &type), QN_OK);
    for (int i = 0; i < 54; i++)
        ((float *)tensor->data)[i] = first + (float)(i % 7) / 8;
    return tensor;
}

/* y = relu(conv(x, w)), w a parameter or a constant. */
static fixture make_graph(float first, bool is_parameter)
{
    const int64_t dims[] = {1, 2, 6, 6};
    fixture f = fixture_begin(1);
    qn_value *x = add_input(&f, 4, dims), *w;
    x->type.dims[2].value = -1;
    assert_int_equal(is_parameter ? qn_value_parameter(&w, f.graph, "w", weights(&f, first))
                                  : qn_value_constant(&w, f.graph, "w", weights(&f, first)),
                     QN_OK);
    add_output(&f, apply(&f, &qn_op_Relu, apply(&f, &qn_op_Conv, x, w), NULL));
    return f;
}

static qn_session *open_session(fixture *f, const char *backend)
{
    qn_plan_options options = QN_PLAN_OPTIONS_INIT;
    const qn_observe_options train = {.purpose = QN_PURPOSE_TRAIN};
    const qn_input_shape shape = {f->graph->inputs[0]->name, 4, {1, 2, 6, 6}};
    qn_plan *plan;
    qn_session *session;
    options.backend = backend;
    options.graph.shapes = &shape;
    options.graph.n_shapes = 1;
    if (qn_plan_create_observed(&plan, f->ctx, f->model, &options, &train) != QN_OK)
        fail_msg("%s", qn_context_error(f->ctx));
    assert_int_equal(qn_session_create(&session, f->ctx, plan), QN_OK);
    qn_plan_free(plan);
    return session;
}

/* out: [3 (height - 2) 4] */
static void run(float *out, qn_session *session, int64_t height)
{
    float data[2 * 8 * 6];
    const qn_tensor x = {QN_FLOAT32, 4, {1, 2, height, 6}, data};
    for (int i = 0; i < (int)QN_COUNT_OF(data); i++)
        data[i] = (float)(i % 11) / 4 - 1;
    if (qn_session_run(session, &x, 1) != QN_OK)
        fail_msg("%s", qn_context_error(session->ctx));
    memcpy(out, qn_session_output(session, 0)->data, (size_t)(3 * (height - 2) * 4) * sizeof *out);
}

/* What a plan with these weights as constants gives. */
static void expect(const float *got, float first, int64_t height)
{
    float wanted[3 * 6 * 4];
    fixture f = make_graph(first, false);
    qn_session *session = open_session(&f, "ref");
    run(wanted, session, height);
    for (int i = 0; i < 3 * (height - 2) * 4; i++)
        assert_true(fabsf(got[i] - wanted[i]) < 1e-4f);
    qn_session_free(session);
    fixture_end(&f);
}

static void write_weights(fixture *f, qn_session *session, float first)
{
    assert_int_equal(qn_session_parameter_set(session, "w", weights(f, first)), QN_OK);
}

static void follow_writes(const char *backend)
{
    fixture f = make_graph(0, true);
    qn_session *a = open_session(&f, backend), *b = open_session(&f, backend);
    const qn_tensor *now;
    float out[3 * 6 * 4];
    run(out, a, 6);
    expect(out, 0, 6);
    write_weights(&f, a, -1);
    run(out, a, 6);
    expect(out, -1, 6);
    assert_int_equal(qn_session_parameter_get(&now, a, "w"), QN_OK);
    assert_true(qn_tensor_equal(now, weights(&f, -1)));
    run(out, b, 6); /* another session */
    expect(out, 0, 6);
    run(out, a, 8); /* another shape */
    expect(out, -1, 8);
    write_weights(&f, a, 2);
    run(out, a, 8);
    expect(out, 2, 8);
    qn_session_free(a);
    qn_session_free(b);
    fixture_end(&f);
}

static void test_backends(void **state)
{
    (void)state;
    setenv("QUENCH_PLUGINS", INVERTED, 1);
    for (size_t i = 0; qn_backends[i]; i++)
        follow_writes(qn_backends[i]->name);
    follow_writes(NULL);
    follow_writes("inverted");
}

static void test_refused(void **state)
{
    (void)state;
    fixture f = make_graph(0, true);
    qn_session *session = open_session(&f, NULL);
    float one = 1;
    const qn_tensor scalar = {.dtype = QN_FLOAT32, .data = &one};
    const qn_tensor *now;
    assert_int_equal(qn_session_parameter_get(&now, session, "v"), QN_E_INVALID);
    assert_string_equal(qn_context_error(f.ctx), "the plan has no parameter 'v'");
    assert_int_equal(qn_session_parameter_set(session, "w", &scalar), QN_E_INVALID);
    assert_non_null(strstr(qn_context_error(f.ctx), "parameter 'w' must be float32[3,2,3,3]"));
    qn_session_free(session);
    fixture_end(&f);
}

/* Passes for training leave batch normalization, which learns, alone. */
static void test_passes(void **state)
{
    size_t folded = 0;
    (void)state;
    for (size_t p = 0; p < qn_passes_count; p++) {
        if (strcmp(qn_passes[p]->name, "fold-batchnorm") != 0)
            continue;
        folded++;
        assert_true(qn_pass_serves(p, QN_PURPOSE_RUN));
        assert_false(qn_pass_serves(p, QN_PURPOSE_TRAIN));
    }
    assert_int_equal(folded, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backends),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
