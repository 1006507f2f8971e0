/* Backends that plug-ins bring: the one of tests/plugin/inverted.c, whose memory is not the
 * host's, gives what the reference gives; those that cannot be used end in one line that names
 * the file. */
#include "backend/plugins.h"
#include "backend_test.h"
#include "ops/clone.h"

#define INVERTED PLUGIN_FOLDER "/quench_backend_inverted.so"

static bool observe_all(const void *user, const qn_value *value)
{
    (void)user;
    return !value->data;
}

/* x is read by activations and by a sum, and so is relu(x). */
static fixture make_graph(void)
{
    const int64_t dims[] = {2, 3, 4};
    fixture f = fixture_begin(1);
    qn_value *x = add_input(&f, 3, dims);
    qn_value *positive = apply(&f, &qn_op_Relu, x, NULL);
    qn_value *soft = apply(&f, &qn_op_Sigmoid, positive, NULL);
    qn_value *sum = apply(&f, &qn_op_Add, positive, soft);
    add_output(&f, apply(&f, &qn_op_Relu, apply(&f, &qn_op_Add, sum, x), NULL));
    add_output(&f, apply(&f, &qn_op_Sigmoid, sum, NULL));
    return f;
}

/* By the backend of this name, and the reference. */
static qn_status plan_with(qn_plan **out, fixture *f, const char *name, qn_observe_fn *observe)
{
    const qn_backend *backends[QN_MOST_BACKENDS];
    const qn_plan_config config = {.threads = 1, .backends = backends, .observe = observe};
    qn_model *own;
    QN_TRY(qn_backends_choose(backends, f->ctx, name));
    assert_int_equal(qn_model_clone(&own, f->ctx, f->model), QN_OK);
    assert_int_equal(qn_graph_infer(own->graph), QN_OK);
    return qn_plan_build(out, own, &config);
}

/* Values that a run has shown. */
typedef struct shown {
    struct {
        char name[64];
        float at[24];
    } values[16];
    int count;
} shown;

static qn_status see(void *user, const qn_observation *seen)
{
    shown *s = user;
    snprintf(s->values[s->count].name, sizeof s->values[0].name, "%s", seen->value->name);
    memcpy(s->values[s->count++].at, seen->tensor->data, sizeof s->values[0].at);
    return QN_OK;
}

static void assert_same(const shown *got, const shown *wanted)
{
    assert_int_equal(got->count, wanted->count);
    for (int i = 0; i < got->count; i++) {
        int k = 0;
        while (strcmp(wanted->values[k].name, got->values[i].name) != 0)
            assert_true(++k < wanted->count);
        assert_memory_equal(got->values[i].at, wanted->values[k].at, sizeof got->values[i].at);
    }
}

/* What the plan leaves in its outputs and shows on the way. */
static void run_plan(shown *seen, float (*outputs)[24], fixture *f, qn_plan *plan)
{
    const qn_session_hooks hooks = {.user = seen, .seen = see};
    float data[24];
    const qn_tensor in = {QN_FLOAT32, 3, {2, 3, 4}, data};
    qn_session *session;
    f->state = 5;
    for (int i = 0; i < 24; i++)
        data[i] = noise(f);
    seen->count = 0;
    assert_int_equal(qn_session_create(&session, f->ctx, plan), QN_OK);
    assert_int_equal(qn_session_run_hooked(session, &in, 1, &hooks), QN_OK);
    for (size_t o = 0; o < 2; o++) {
        memcpy(outputs[o], qn_session_output(session, o)->data, sizeof outputs[o]);
    }
    qn_session_free(session);
}

static int count_copies(const qn_plan *plan)
{
    int count = 0;
    for (size_t i = 0; i < plan->n_steps; i++)
        count += plan->steps[i].is_copy;
    return count;
}

/* `copies` of one device, and what is watched takes two more: relu(x) is there anyway. */
static void compare_with_reference(const char *name, int copies)
{
    for (int watched = 0; watched < 2; watched++) {
        fixture f = make_graph();
        const char *const names[] = {"ref", name};
        float outputs[2][2][24];
        shown seen[2];
        for (int i = 0; i < 2; i++) {
            qn_plan *plan;
            if (plan_with(&plan, &f, names[i], watched ? observe_all : NULL) != QN_OK)
                fail_msg("%s", qn_context_error(f.ctx));
            run_plan(&seen[i], outputs[i], &f, plan);
            assert_int_equal(seen[i].count, watched ? 7 : 0);
            if (!watched)
                assert_int_equal(count_copies(plan), i ? copies : 0);
            qn_plan_free(plan);
        }
        assert_memory_equal(outputs[0], outputs[1], sizeof outputs[0]);
        assert_same(&seen[1], &seen[0]);
        fixture_end(&f);
    }
}

/* In: x. Out: the two outputs. */
static void test_one_device(void **state)
{
    (void)state;
    setenv("QUENCH_PLUGINS", INVERTED, 1);
    compare_with_reference("inverted", 3);
}

/* Activations on the second one: x comes to both, relu(x), the sums and their results cross. */
static void test_two_devices(void **state)
{
    (void)state;
    setenv("QUENCH_PLUGINS", INVERTED, 1);
    setenv("QUENCH_INVERTED_DEVICES", "2", 1);
    compare_with_reference("inverted", 8);
    unsetenv("QUENCH_INVERTED_DEVICES");
}

/* The second device alone: sums stay on the host. In: x, both sums. Out: what they read, and the
 * outputs. */
static void test_named_device(void **state)
{
    (void)state;
    setenv("QUENCH_PLUGINS", INVERTED, 1);
    setenv("QUENCH_INVERTED_DEVICES", "2", 1);
    compare_with_reference("inverted:1", 7);
    unsetenv("QUENCH_INVERTED_DEVICES");
}

/* The whole message of making a plan and running it. */
static void expect_failure(const char *plugins, const char *message)
{
    fixture f = make_graph();
    qn_plan *plan = NULL;
    qn_session *session = NULL;
    float data[24] = {0};
    const qn_tensor in = {QN_FLOAT32, 3, {2, 3, 4}, data};
    setenv("QUENCH_PLUGINS", plugins, 1);
    qn_status status = plan_with(&plan, &f, "inverted", NULL);
    if (status == QN_OK)
        status = qn_session_create(&session, f.ctx, plan);
    if (status == QN_OK)
        status = qn_session_run(session, &in, 1);
    assert_int_not_equal(status, QN_OK);
    if (!strstr(qn_context_error(f.ctx), message) || !strstr(qn_context_error(f.ctx), plugins))
        fail_msg("'%s' instead of '%s'", qn_context_error(f.ctx), message);
    qn_session_free(session);
    qn_plan_free(plan);
    fixture_end(&f);
}

static void test_failures(void **state)
{
    static const char *const cases[][2] = {
        {"open",
         "cannot be opened (take it out of QUENCH_PLUGINS, or away from the library): there "
         "is no such device here"},
        {"alloc", "bytes wanted for values between steps"},
        {"claim", "the device does not answer (to go without it name another backend)"},
        {"prepare", "weights do not fit the device (to go without it name another backend)"},
        {"bind", "the device is busy (to go without it name another backend)"},
        {"run", "the device fell off the bus (to go without it name another backend)"},
    };
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(cases); i++) {
        setenv("QUENCH_INVERTED_FAIL", cases[i][0], 1);
        expect_failure(INVERTED, cases[i][1]);
    }
    unsetenv("QUENCH_INVERTED_FAIL");
}

static void test_refused(void **state)
{
    (void)state;
    expect_failure(PLUGIN_FOLDER "/quench_backend_broken_entry.so",
                   "is no plug-in of quench, it has no symbol qn_plugin_main: take it out of");
    expect_failure(PLUGIN_FOLDER "/quench_backend_broken_version.so",
                   "has version 3 of the interface, this library has version 2: compile it again");
    expect_failure(PLUGIN_FOLDER "/quench_backend_broken_space.so",
                   "brings a memory space that lacks functions");
    expect_failure(PLUGIN_FOLDER "/not_there.so", "cannot be loaded");
}

/* A shape that only a run can tell has no place on a device: the node before it stays on the
 * host. */
static void test_unknown_shape(void **state)
{
    (void)state;
    fixture f = fixture_begin(1);
    const int64_t dims[] = {2, 3, 4};
    qn_value *x = add_input(&f, 3, dims);
    qn_value *list = apply(&f, &qn_op_NonZero, x, NULL);
    qn_node *cast = add_node(&f, &qn_op_Cast, 1, &list);
    ((qn_cast_attrs *)cast->attrs)->to = QN_FLOAT32;
    add_output(&f, apply(&f, &qn_op_Relu, result_of(cast), NULL));
    qn_plan *plan;
    setenv("QUENCH_PLUGINS", INVERTED, 1);
    assert_int_equal(plan_with(&plan, &f, "inverted", NULL), QN_OK);
    assert_int_equal(count_copies(plan), 0);
    qn_plan_free(plan);
    fixture_end(&f);
}

/* Plug-ins of a folder, and none where the list is empty. */
static void test_places(void **state)
{
    const qn_backend *const *all;
    fixture f = fixture_begin(1);
    (void)state;
    setenv("QUENCH_PLUGINS", "", 1);
    assert_int_equal(qn_backends_of(&all, f.ctx), QN_OK);
    for (size_t i = 0; all[i]; i++)
        assert_null(all[i]->file);
    fixture_end(&f);
    f = fixture_begin(1);
    setenv("QUENCH_PLUGINS", PLUGIN_FOLDER, 1);
    assert_int_equal(qn_backends_of(&all, f.ctx), QN_E_UNSUPPORTED);
    assert_non_null(strstr(qn_context_error(f.ctx), "quench_backend_broken_entry.so"));
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_device),   cmocka_unit_test(test_two_devices),
        cmocka_unit_test(test_named_device), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_unknown_shape),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
