/* A backend whose values lie in memory of its own: the planner copies them there and back, and
 * refuses one that cannot. The "device" is ordinary memory in which every byte is inverted, so that
 * who reads it as the host's, or the host's as its own, gets nonsense; its kernels also check that
 * they got nothing else. */
#include "backend/ref/ref.h"
#include "backend_test.h"
#include "ops/clone.h"

/* ---- The device ------------------------------------------------------------------------------ */

enum { MOST_BLOCKS = 16 };

static struct block {
    char *at;
    size_t size;
} blocks[MOST_BLOCKS];
static int copies_in, copies_out;

static void *device_alloc(qn_context *ctx, size_t size)
{
    size_t i = 0;
    while (blocks[i].at)
        i++;
    assert_true(i + 1 < MOST_BLOCKS);
    blocks[i] = (struct block){qn_alloc_aligned(&ctx->allocator, size), size};
    return blocks[i].at;
}

static void device_free(qn_context *ctx, void *block)
{
    for (size_t i = 0; block && i < MOST_BLOCKS; i++) {
        if (blocks[i].at == block)
            blocks[i].at = NULL;
    }
    qn_free_aligned(&ctx->allocator, block);
}

static const qn_space device = {"fake", device_alloc, device_free};

static bool on_device(const void *data)
{
    for (size_t i = 0; i < MOST_BLOCKS; i++) {
        const char *at = blocks[i].at;
        if (at && (const char *)data >= at && (const char *)data < at + blocks[i].size)
            return true;
    }
    return false;
}

static float load(const qn_tensor *tensor, int64_t i)
{
    uint32_t bits;
    float x;
    memcpy(&bits, (const char *)tensor->data + i * 4, 4);
    bits = ~bits;
    memcpy(&x, &bits, 4);
    return x;
}

static void store(const qn_tensor *tensor, int64_t i, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits = ~bits;
    memcpy((char *)tensor->data + i * 4, &bits, 4);
}

/* ---- Its kernels ----------------------------------------------------------------------------- */

static qn_status device_run(const void *state, void *bound, const qn_step_io *io)
{
    const qn_op *op = *(const qn_op *const *)state;
    (void)bound;
    assert_true(on_device(io->in[0]->data) && on_device(io->out[0]->data));
    assert_true(on_device(io->scratch));
    memset(io->scratch, 0xa5, 64);
    for (int64_t i = 0; i < qn_tensor_count(io->out[0]); i++) {
        const float x = load(io->in[0], i);
        store(io->out[0], i, op == &qn_op_Add ? x + load(io->in[1], i) : x > 0 ? x : 0);
    }
    return QN_OK;
}

static const qn_kernel device_kernel = {.name = "device", .run = device_run};

static qn_status device_claim(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    const qn_op **op = qn_build_alloc(claim->builder, sizeof *op);
    QN_TRY_ALLOC(qn_build_context(claim->builder), op);
    if (node->op != &qn_op_Add && node->op != &qn_op_Relu)
        return QN_OK;
    qn_claim_plain(claim);
    *op = node->op;
    claim->in_place = 0;
    claim->scratch = 64;
    claim->kernel = &device_kernel;
    claim->state = op;
    *taken = true;
    return QN_OK;
}

static qn_status copy_run(const void *state, void *bound, const qn_step_io *io)
{
    const size_t bytes = (size_t)qn_tensor_count(io->in[0]) * sizeof(float);
    (void)state;
    (void)bound;
    assert_int_equal(on_device(io->in[0]->data), !on_device(io->out[0]->data));
    copies_in += on_device(io->out[0]->data);
    copies_out += on_device(io->in[0]->data);
    for (size_t i = 0; i < bytes; i++)
        ((char *)io->out[0]->data)[i] = (char)~((const char *)io->in[0]->data)[i];
    return QN_OK;
}

static const qn_kernel copy_kernel = {.name = "device copy", .run = copy_run};

static qn_status device_convert(qn_claim *claim)
{
    assert_true(claim->in[0].space == &device || claim->out[0].space == &device);
    if (qn_layout_same(claim->in[0].layout, claim->out[0].layout))
        claim->kernel = &copy_kernel;
    return QN_OK;
}

static const qn_backend device_backend = {
    .name = "fake", .claim = device_claim, .space = &device, .convert = device_convert};

/* ---- Graphs ---------------------------------------------------------------------------------- */

static bool observe_all(const void *user, const qn_value *value)
{
    (void)user;
    return !value->data;
}

/* Sigmoid stays on the host. x is read in both spaces, and so is relu(x); the sum goes from device
 * to device and back. */
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

static qn_status plan_with(qn_plan **out, fixture *f, const qn_backend *first,
                           qn_observe_fn *observe)
{
    const qn_backend *const backends[] = {first, &qn_backend_ref, NULL};
    const qn_plan_config config = {.threads = 1, .backends = backends, .observe = observe};
    qn_model *own;
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
    assert_false(on_device(seen->tensor->data));
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
        assert_false(on_device(qn_session_output(session, o)->data));
        memcpy(outputs[o], qn_session_output(session, o)->data, sizeof outputs[o]);
    }
    qn_session_free(session);
}

static void test_copies(void **state)
{
    (void)state;
    for (int watched = 0; watched < 2; watched++) {
        fixture f = make_graph();
        qn_observe_fn *observe = watched ? observe_all : NULL;
        const qn_backend *const backends[] = {&qn_backend_ref, &device_backend};
        float outputs[2][2][24];
        shown seen[2];
        for (int i = 0; i < 2; i++) {
            qn_plan *plan;
            copies_in = copies_out = 0;
            if (plan_with(&plan, &f, backends[i], observe) != QN_OK)
                fail_msg("%s", qn_context_error(f.ctx));
            run_plan(&seen[i], outputs[i], &f, plan);
            assert_int_equal(seen[i].count, watched ? 7 : 0);
            /* In: x once, sigmoid(relu(x)). Out: relu(x), the first sum, the first output. */
            assert_int_equal(copies_in, i ? 2 : 0);
            assert_int_equal(copies_out, i ? 3 + watched : 0);
            qn_plan_free(plan);
        }
        assert_memory_equal(outputs[0], outputs[1], sizeof outputs[0]);
        assert_same(&seen[1], &seen[0]);
        fixture_end(&f);
    }
}

static void test_refused(void **state)
{
    (void)state;
    const qn_backend without = {.name = "fake", .claim = device_claim, .space = &device};
    fixture f = make_graph();
    qn_plan *plan;
    assert_int_equal(plan_with(&plan, &f, &without, NULL), QN_E_UNSUPPORTED);
    assert_non_null(strstr(qn_context_error(f.ctx), "backend 'fake'"));
    fixture_end(&f);
}

/* A shape that only a run can tell has no place on a device. */
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
    assert_int_equal(plan_with(&plan, &f, &device_backend, NULL), QN_E_UNSUPPORTED);
    assert_non_null(strstr(qn_context_error(f.ctx), "known only while running"));
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_unknown_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
