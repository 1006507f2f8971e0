/* Small graphs made in C, run by the reference backend and by the one that users get, and compared.
 * Every case is made from a seed, which is printed when it fails; QUENCH_SEED in the environment
 * runs just that one, QUENCH_CASES other numbers of them, and QUENCH_SAVE names a file that gets
 * the last case's model. */
#ifndef QN_BACKEND_TEST_H
#define QN_BACKEND_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ops/infer.h"
#include "ops/nn_attrs.h"
#include "ops/op.h"
#include "ops/tensor_attrs.h"
#include "ops/versions.h"
#include "run/session.h"

typedef struct fixture {
    qn_context *ctx;
    qn_model *model;
    qn_graph *graph;
    /* The state of the random numbers */
    uint32_t state;
} fixture;

static inline fixture fixture_begin(uint32_t seed)
{
    fixture f = {.state = seed * 2654435761u + 1};
    qn_context_options options = QN_CONTEXT_OPTIONS_INIT;
    options.threads = 1 + (int)(seed % 3);
    assert_int_equal(qn_context_create(&f.ctx, &options), QN_OK);
    assert_int_equal(qn_model_create(&f.model, f.ctx), QN_OK);
    f.graph = f.model->graph;
    return f;
}

static inline void fixture_end(fixture *f)
{
    qn_model_free(f->model);
    qn_context_free(f->ctx);
}

/* 0 .. below - 1 */
static inline int64_t pick(fixture *f, int64_t below)
{
    f->state = f->state * 1664525u + 1013904223u;
    return (int64_t)((f->state >> 8) % (uint32_t)below);
}

static inline float noise(fixture *f)
{
    return (float)pick(f, 1 << 23) / (float)(1 << 22) - 1.0f;
}

static inline qn_value *add_input(fixture *f, int32_t rank, const int64_t *dims)
{
    qn_value *value;
    assert_int_equal(qn_value_create(&value, f->graph, "x"), QN_OK);
    value->type = qn_type_tensor(QN_FLOAT32, rank, dims);
    assert_int_equal(qn_graph_add_input(f->graph, value), QN_OK);
    return value;
}

static inline qn_value *add_weights(fixture *f, int32_t rank, const int64_t *dims)
{
    const qn_type type = qn_type_tensor(QN_FLOAT32, rank, dims);
    qn_tensor *tensor;
    qn_value *value;
    assert_int_equal(qn_tensor_create(&tensor, f->ctx, f->graph->arena, &type), QN_OK);
    for (int64_t i = 0; i < qn_tensor_count(tensor); i++)
        ((float *)tensor->data)[i] = noise(f);
    assert_int_equal(qn_value_constant(&value, f->graph, "w", tensor), QN_OK);
    return value;
}

static inline qn_value *add_number(fixture *f, double x)
{
    qn_value *value;
    assert_int_equal(qn_value_number(&value, f->graph, QN_FLOAT32, x), QN_OK);
    return value;
}

static inline qn_value *add_ints(fixture *f, const int64_t *list, size_t count)
{
    qn_value *value;
    assert_int_equal(qn_value_ints(&value, f->graph, list, count), QN_OK);
    return value;
}

static inline qn_ints keep_ints(fixture *f, const int64_t *list, size_t count)
{
    const int64_t *at = qn_arena_copy(f->graph->arena, list, count * sizeof *list);
    assert_non_null(at);
    return (qn_ints){at, count};
}

static inline qn_node *add_node(fixture *f, const qn_op *op, int32_t n_in, qn_value *const *in)
{
    qn_node_spec spec = {.op = op, .n_in = n_in};
    qn_node *node;
    for (int32_t i = 0; i < n_in; i++)
        spec.in[i] = in[i];
    assert_int_equal(qn_node_build(&node, f->graph, &spec), QN_OK);
    return node;
}

/* Once its attributes are set. */
static inline qn_value *result_of(qn_node *node)
{
    if (qn_node_infer(node) != QN_OK)
        fail_msg("%s", qn_context_error(node->graph->ctx));
    return node->out[0];
}

static inline qn_value *apply(fixture *f, const qn_op *op, qn_value *a, qn_value *b)
{
    qn_value *const in[] = {a, b};
    return result_of(add_node(f, op, b ? 2 : 1, in));
}

static inline void add_output(fixture *f, qn_value *value)
{
    if (!value->is_output)
        assert_int_equal(qn_graph_add_output(f->graph, value), QN_OK);
}

/* ---- Running --------------------------------------------------------------------------------- */

typedef struct outcome {
    qn_plan *plan;
    qn_session *session;
} outcome;

static inline outcome run_with(fixture *f, const char *backend, const qn_tensor *in, size_t n_in)
{
    outcome o;
    qn_plan_options options = QN_PLAN_OPTIONS_INIT;
    options.backend = backend;
    if (qn_plan_create(&o.plan, f->ctx, f->model, &options) != QN_OK ||
        qn_session_create(&o.session, f->ctx, o.plan) != QN_OK ||
        qn_session_run(o.session, in, n_in) != QN_OK ||
        qn_session_run(o.session, in, n_in) != QN_OK) /* what a run leaves behind is no matter */
        fail_msg("%s", qn_context_error(f->ctx));
    return o;
}

static inline void outcome_end(outcome *o)
{
    qn_session_free(o->session);
    qn_plan_free(o->plan);
}

/* Largest difference, in parts of the largest magnitude. */
static inline double difference(const qn_tensor *got, const qn_tensor *wanted)
{
    double most = 1e-30, worst = 0;
    assert_int_equal(qn_tensor_count(got), qn_tensor_count(wanted));
    for (int64_t i = 0; i < qn_tensor_count(wanted); i++) {
        const double a = (double)((const float *)got->data)[i];
        const double b = (double)((const float *)wanted->data)[i];
        const double d = a == b || (isnan(a) && isnan(b)) ? 0 : fabs(a - b); /* infinity too */
        most = isfinite(b) ? fmax(most, fabs(b)) : most;
        worst = !(d <= worst) ? d : worst;
    }
    return worst / most;
}

/* Kernels that a test looks for by name may belong to a backend that was left out of the build. */
static inline bool lacks_backend(const char *name)
{
    for (size_t i = 0; qn_backends[i]; i++) {
        if (strcmp(qn_backends[i]->name, name) == 0)
            return false;
    }
    printf("skipped: this build has no backend '%s'\n", name);
    return true;
}

/* What main returns of a program that tests kernels of this backend and nothing else; 77:
 * skipped. */
#define RUN_TESTS_OF(backend, tests)                                                               \
    (lacks_backend(backend) ? 77 : cmocka_run_group_tests(tests, NULL, NULL))

/* Some step of the plan has this kernel; NULL: whatever it has. */
static inline void must_use(const qn_plan *plan, const char *kernel)
{
    bool found = !kernel;
    for (size_t i = 0; i < plan->n_steps; i++)
        found = found || strcmp(plan->steps[i].kernel->name, kernel) == 0;
    if (!found)
        fail_msg("no step is '%s'", kernel);
}

/* Runs both ways. `kernel` NULL, or the name of a kernel that some step must have. */
static inline double compare(fixture *f, const char *kernel)
{
    qn_tensor in[8];
    double worst = 0;
    const size_t n_in = f->graph->n_inputs;
    if (getenv("QUENCH_SAVE"))
        assert_int_equal(qn_model_save(f->ctx, f->model, getenv("QUENCH_SAVE"), NULL), QN_OK);
    assert_true(n_in <= QN_COUNT_OF(in));
    for (size_t i = 0; i < n_in; i++) {
        in[i] = (qn_tensor){.dtype = QN_FLOAT32, .rank = f->graph->inputs[i]->type.rank};
        assert_true(qn_type_is_static(&f->graph->inputs[i]->type, in[i].dims));
        in[i].data = malloc((size_t)qn_tensor_count(&in[i]) * sizeof(float) + 1);
        for (int64_t k = 0; k < qn_tensor_count(&in[i]); k++)
            ((float *)in[i].data)[k] = noise(f);
    }
    outcome plain = run_with(f, "ref", in, n_in), fast = run_with(f, NULL, in, n_in);
    for (size_t i = 0; i < f->graph->n_outputs; i++)
        worst = fmax(worst, difference(qn_session_output(fast.session, i),
                                       qn_session_output(plain.session, i)));
    must_use(fast.plan, kernel);
    outcome_end(&plain);
    outcome_end(&fast);
    for (size_t i = 0; i < n_in; i++)
        free(in[i].data);
    return worst;
}

/* Builds and compares one case; returns the difference. */
typedef double case_fn(uint32_t seed);

static inline void run_cases(case_fn *one, uint32_t count, double tolerance)
{
    const char *chosen = getenv("QUENCH_SEED"), *cases = getenv("QUENCH_CASES");
    count = cases ? (uint32_t)strtoul(cases, NULL, 10) : count;
    const uint32_t first = chosen ? (uint32_t)strtoul(chosen, NULL, 10) : 1;
    for (uint32_t seed = first; seed < (chosen ? first + 1 : first + count); seed++) {
        const double worst = one(seed);
        if (!(worst <= tolerance))
            fail_msg("seed %u: differs by %g of the largest magnitude", seed, worst);
    }
}

#endif
