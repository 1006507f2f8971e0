/* Every operator on random inputs and attributes, in the latest and in older forms: it may refuse
 * them, it may not crash, and what it computes must have the type and shape that inference
 * promised. `test_ops_hostile SEED ROUNDS NAME` repeats or lengthens a run, of all operators or of
 * one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"

static uint64_t seed = 1, state;
static int rounds = 60;
static const char *only; /* one operator's name */

/* ---- Random things --------------------------------------------------------------------------- */

static uint64_t draw(void) /* xorshift64* */
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * UINT64_C(2685821657736338717);
}

static int64_t between(int64_t low, int64_t high)
{
    return low + (int64_t)((draw() >> 11) % (uint64_t)(high - low + 1));
}

static bool chance(int percent)
{
    return between(1, 100) <= percent;
}

static int64_t random_int(void)
{
    static const int64_t odd[] = {INT64_MIN + 1, INT64_MAX, INT64_C(1) << 40, -7, INT32_MAX, 33};
    return chance(8) ? odd[between(0, 5)] : between(-2, 4);
}

static double random_real(void)
{
    static const double odd[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 1e30, -0.0,
                                 1e-30};
    return chance(8) ? odd[between(0, 5)] : (double)between(-40, 40) / 8;
}

static qn_dtype random_dtype(uint32_t set)
{
    static const qn_dtype usual[] = {QN_FLOAT32, QN_INT64, QN_FLOAT32, QN_UINT8, QN_BOOL, QN_INT32};
    const qn_dtype first = usual[between(0, 5)];
    if (QN_SET(first) & set && chance(70))
        return first;
    for (;;) {
        const qn_dtype d = (qn_dtype)between(1, QN_SEQUENCE - 1);
        if (QN_SET(d) & set)
            return d;
    }
}

/* ---- A node ---------------------------------------------------------------------------------- */

/* All memory of a round; large requests fail, as they would on a small machine. */
static void *small_allocate(void *user, size_t size)
{
    (void)user;
    return size > (size_t)1 << 24 ? NULL : malloc(size);
}

static void *small_resize(void *user, void *block, size_t old_size, size_t new_size)
{
    (void)user;
    (void)old_size;
    return new_size > (size_t)1 << 24 ? NULL : realloc(block, new_size);
}

static void small_release(void *user, void *block)
{
    (void)user;
    free(block);
}

typedef struct subject {
    qn_context *ctx;
    qn_model *model;
    qn_node *node;
    /* The shape that most inputs share */
    int32_t rank;
    int64_t dims[QN_MAX_RANK];
    qn_dtype letters[128];
    /* One per graph input */
    const qn_tensor *fed[16];
} subject;

static void *take(subject *s, size_t count, size_t size)
{
    void *block = qn_arena_array(&s->model->arena, count + 1, size);
    assert_non_null(block);
    return block;
}

static void fill(subject *s, qn_tensor *t)
{
    const int64_t count = qn_tensor_count(t);
    t->data = take(s, (size_t)count, QN_MAX(qn_dtype_size(t->dtype), 1));
    for (int64_t i = 0; i < count; i++) {
        const double real = random_real();
        const int64_t whole = random_int();
        static const char *const words[] = {"1.5", "", "inf", "abc", "-3"};
        const char *word = words[between(0, 4)];
        if (t->dtype == QN_STRING)
            ((qn_string *)t->data)[i] = (qn_string){word, strlen(word)};
        else if (qn_dtype_is_float(t->dtype))
            qn_store_f64(t->data, t->dtype, i, &real, 1);
        else
            qn_store_i64(t->data, t->dtype, i, &whole, 1);
    }
}

/* The shared shape, a part of it, a list, a scalar, or anything. */
static void random_shape(const subject *s, qn_tensor *t)
{
    const int64_t kind = between(0, 9);
    t->rank = s->rank;
    memcpy(t->dims, s->dims, sizeof t->dims);
    if (kind < 2 && s->rank > 0) {
        t->rank = 1;
        t->dims[0] = s->dims[between(0, s->rank - 1)];
    } else if (kind < 4) {
        t->rank = (int32_t)between(0, 1);
        t->dims[0] = between(0, 4);
    } else if (kind < 5 && s->rank > 0) {
        t->dims[between(0, s->rank - 1)] = between(0, 3);
    } else if (kind < 6) {
        t->rank = (int32_t)between(0, 5);
        for (int32_t d = 0; d < t->rank; d++)
            t->dims[d] = between(0, 4);
    }
}

static qn_tensor *random_tensor(subject *s, uint32_t set)
{
    qn_tensor *t = take(s, 1, sizeof *t);
    t->dtype = random_dtype(set);
    random_shape(s, t);
    fill(s, t);
    return t;
}

static qn_tensor *random_sequence(subject *s)
{
    qn_tensor *t = take(s, 1, sizeof *t);
    qn_sequence *sequence = take(s, 1, sizeof *sequence);
    sequence->count = between(0, 3);
    sequence->items = take(s, (size_t)sequence->count, sizeof *sequence->items);
    const uint32_t set = QN_SET(random_dtype(QN_SET_TENSOR));
    for (int64_t i = 0; i < sequence->count; i++)
        sequence->items[i] = *random_tensor(s, set);
    *t = (qn_tensor){.dtype = QN_SEQUENCE, .data = sequence};
    return t;
}

static const qn_tensor *random_input(subject *s, const qn_port *port)
{
    const bool tensors = port->types & QN_SET_TENSOR;
    if ((port->types & QN_SET_SEQUENCE) && (!tensors || chance(20)))
        return random_sequence(s);
    if (!tensors || ((port->types & QN_SET_OPTIONAL) && chance(10))) {
        qn_tensor *none = take(s, 1, sizeof *none);
        none->dtype = QN_NONE;
        return none;
    }
    uint32_t set = port->types & QN_SET_TENSOR;
    qn_dtype *bound = &s->letters[port->letter & 127];
    if (port->letter && *bound != QN_UNDEFINED && (QN_SET(*bound) & set) && chance(97))
        set = QN_SET(*bound);
    const qn_tensor *t = random_tensor(s, set);
    *bound = t->dtype;
    return t;
}

static void random_attribute(subject *s, const qn_attr_spec *spec)
{
    static const char *const words[] = {"Tanh", "relu", "ij,jk->ik", "...i->i", "HardSigmoid", "x"};
    void *field = qn_attr_field(s->node, spec);
    const size_t count = (size_t)between(0, 5);
    if (!spec->required && chance(55))
        return;
    switch (spec->kind) {
    case QN_ATTR_INT: *(int64_t *)field = random_int(); break;
    case QN_ATTR_FLOAT: *(float *)field = (float)random_real(); break;
    case QN_ATTR_STRING: *(const char **)field = words[between(0, 5)]; break;
    case QN_ATTR_ENUM: {
        int64_t n = 0;
        while (spec->words[n])
            n++;
        *(int64_t *)field = between(0, n - 1);
        break;
    }
    case QN_ATTR_INTS: {
        int64_t *list = take(s, count, sizeof *list);
        for (size_t i = 0; i < count; i++)
            list[i] = chance(70) ? between(0, 3) : random_int();
        *(qn_ints *)field = (qn_ints){list, chance(60) ? QN_MIN(count, (size_t)s->rank) : count};
        break;
    }
    case QN_ATTR_FLOATS: {
        float *list = take(s, count, sizeof *list);
        for (size_t i = 0; i < count; i++)
            list[i] = (float)random_real();
        *(qn_floats *)field = (qn_floats){list, count};
        break;
    }
    case QN_ATTR_STRINGS: {
        qn_string *list = take(s, count, sizeof *list);
        for (size_t i = 0; i < count; i++) {
            list[i].text = words[between(0, 5)];
            list[i].length = strlen(list[i].text);
        }
        *(qn_strings *)field = (qn_strings){list, count};
        break;
    }
    case QN_ATTR_TENSOR: *(const qn_tensor **)field = random_tensor(s, QN_SET_TENSOR); break;
    case QN_ATTR_GRAPH:
    case QN_ATTR_TYPE: break;
    }
}

static int32_t slots(const qn_port *ports, int n)
{
    const bool variadic = n && (ports[n - 1].flags & QN_VARIADIC);
    return (int32_t)(variadic ? n - 1 + between(1, 4) : n);
}

static void make_inputs(subject *s, const qn_op *op)
{
    for (int32_t i = 0; i < s->node->n_in; i++) {
        const qn_port *port = &op->in[QN_MIN(i, op->n_in - 1)];
        qn_value *value;
        if ((port->flags & QN_OPTIONAL) && chance(40))
            continue;
        const qn_tensor *data = random_input(s, port);
        assert_int_equal(qn_value_create(&value, s->model->graph, "in"), QN_OK);
        value->type = qn_type_of(data);
        if (chance(50)) {
            value->data = data;
        } else {
            s->fed[s->model->graph->n_inputs] = data;
            assert_int_equal(qn_graph_add_input(s->model->graph, value), QN_OK);
            if (chance(10) && value->type.kind == QN_TYPE_TENSOR)
                value->type.rank = -1;
        }
        assert_int_equal(qn_node_set_input(s->node, i, value), QN_OK);
    }
}

static void make_node(subject *s, const qn_op *op, int opset)
{
    const int32_t n_in = slots(op->in, op->n_in), n_out = slots(op->out, op->n_out);
    s->rank = (int32_t)between(0, 5);
    for (int32_t d = 0; d < QN_MAX_RANK; d++)
        s->dims[d] = chance(5) ? 0 : between(1, 4);
    assert_int_equal(qn_node_add(&s->node, s->model->graph, op, "subject", n_in, n_out), QN_OK);
    make_inputs(s, op);
    for (size_t a = 0; a < op->n_attrs; a++) {
        const qn_attr_spec *spec = &op->attrs[a];
        if (spec->since <= opset && (!spec->until || opset < spec->until))
            random_attribute(s, spec);
    }
    for (int32_t o = 0; o < n_out; o++) {
        qn_value *value;
        if (chance(15))
            continue;
        assert_int_equal(qn_value_create(&value, s->model->graph, "out"), QN_OK);
        qn_node_set_output(s->node, o, value);
        assert_int_equal(qn_graph_add_output(s->model->graph, value), QN_OK);
    }
}

/* ---- The test -------------------------------------------------------------------------------- */

/* What was promised must have come. */
static void check_outputs(const qn_graph *graph, const qn_tensor *const *out)
{
    for (size_t o = 0; o < graph->n_outputs; o++) {
        const qn_type *type = &graph->outputs[o]->type;
        if (type->kind != QN_TYPE_TENSOR || out[o]->dtype == QN_SEQUENCE)
            continue;
        if (type->dtype != QN_UNDEFINED)
            assert_int_equal(type->dtype, out[o]->dtype);
        if (type->rank >= 0)
            assert_int_equal(type->rank, out[o]->rank);
        for (int32_t d = 0; d < type->rank; d++) {
            if (type->dims[d].value >= 0)
                assert_int_equal(type->dims[d].value, out[o]->dims[d]);
        }
    }
}

/* True when the graph took what it was given. */
static bool run(const subject *s)
{
    const qn_tensor *out[16] = {NULL};
    const qn_graph_args args = {s->fed, NULL};
    qn_graph *graph = s->model->graph;
    qn_arena arena;
    if (qn_graph_infer(graph) != QN_OK)
        return false;
    for (const qn_node *node = graph->first; node; node = node->next)
        (void)qn_node_macs(node);
    qn_arena_init(&arena, &s->ctx->allocator);
    const bool done = qn_graph_eval(out, s->ctx, &arena, graph, &args) == QN_OK;
    if (done)
        check_outputs(graph, out);
    qn_arena_free(&arena);
    return done;
}

static bool try_once(const qn_op *op)
{
    const qn_allocator allocator = {NULL, small_allocate, small_resize, small_release};
    const qn_context_options options = {QN_OPTIONS_VERSION, .threads = 1, .allocator = &allocator};
    const int latest = op->until ? op->until - 1 : QN_MAX(QN_LATEST_OPSET, op->since);
    const int opset = chance(60) ? latest : (int)between(op->since, latest);
    subject s = {.rank = 0};
    assert_int_equal(qn_context_create(&s.ctx, &options), QN_OK);
    assert_int_equal(qn_model_create(&s.model, s.ctx), QN_OK);
    make_node(&s, op, opset);
    const bool done = qn_node_upgrade(&s.node, opset) == QN_OK && run(&s);
    qn_status lowered = QN_OK;
    if (done && s.node)
        lowered = qn_node_downgrade(&s.node, (int)between(1, QN_LATEST_OPSET));
    assert_in_range(lowered, QN_OK, QN_E_CANCELLED);
    qn_model_free(s.model);
    qn_context_free(s.ctx);
    return done;
}

/* Control flow has tests of its own. */
static bool is_out(const qn_op *op)
{
    for (size_t a = 0; a < op->n_attrs; a++) {
        if (op->attrs[a].kind == QN_ATTR_GRAPH)
            return true;
    }
    return false;
}

static void test_all(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < qn_ops_count; i++) {
        int taken = 0;
        if (is_out(qn_ops[i]) || (only && strcmp(only, qn_ops[i]->name) != 0))
            continue;
        for (int r = 0; r < rounds; r++) {
            state = (seed * 1000003 + i) * 1000003 + (uint64_t)r + 1;
            if (getenv("QUENCH_TRACE"))
                fprintf(stderr, "%s, operator %zu, round %d\n", qn_ops[i]->name, i, r);
            for (int warm = 0; warm < 8; warm++)
                (void)draw();
            taken += try_once(qn_ops[i]);
        }
        if (getenv("QUENCH_TRACE"))
            fprintf(stderr, "%s: %d of %d taken\n", qn_ops[i]->name, taken, rounds);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    if (argc > 1)
        seed = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        rounds = atoi(argv[2]);
    if (argc > 3)
        only = argv[3];
    print_message("seed %" PRIu64 ", %d rounds\n", seed, rounds);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
