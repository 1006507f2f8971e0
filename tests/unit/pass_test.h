/* Small graphs for tests of passes: built node by node, evaluated by the reference kernels. */
#ifndef QN_PASS_TEST_H
#define QN_PASS_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ops/clone.h"
#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/nn_attrs.h"
#include "ops/tensor_attrs.h"
#include "ops/versions.h"
#include "pass/pass.h"

/* ---- Building -------------------------------------------------------------------------------- */

typedef struct fixture {
    qn_context *ctx;
    qn_model *model;
    qn_graph *graph;
} fixture;

static inline fixture begin(void)
{
    fixture f;
    assert_int_equal(qn_context_create(&f.ctx, NULL), QN_OK);
    assert_int_equal(qn_model_create(&f.model, f.ctx), QN_OK);
    f.graph = f.model->graph;
    return f;
}

static inline qn_value *input(fixture *f, const char *name, int32_t rank, const int64_t *dims)
{
    qn_value *value;
    assert_int_equal(qn_value_create(&value, f->graph, name), QN_OK);
    value->type = qn_type_tensor(QN_FLOAT32, rank, dims);
    assert_int_equal(qn_graph_add_input(f->graph, value), QN_OK);
    return value;
}

static inline float noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (float)(1 << 23) - 1.0f;
}

static inline qn_value *weights(fixture *f, int32_t rank, const int64_t *dims)
{
    const qn_type type = qn_type_tensor(QN_FLOAT32, rank, dims);
    qn_tensor *tensor;
    qn_value *value;
    uint32_t state = 7u + (uint32_t)f->graph->n_values;
    assert_int_equal(qn_tensor_create(&tensor, f->ctx, f->graph->arena, &type), QN_OK);
    for (int64_t i = 0; i < qn_tensor_count(tensor); i++)
        ((float *)tensor->data)[i] = noise(&state);
    assert_int_equal(qn_value_constant(&value, f->graph, "w", tensor), QN_OK);
    return value;
}

static inline qn_value *number(fixture *f, double x)
{
    qn_value *value;
    assert_int_equal(qn_value_number(&value, f->graph, QN_FLOAT32, x), QN_OK);
    return value;
}

static inline qn_value *ints(fixture *f, const int64_t *list, size_t count)
{
    qn_value *value;
    assert_int_equal(qn_value_ints(&value, f->graph, list, count), QN_OK);
    return value;
}

static inline qn_value *apply(fixture *f, const qn_op *op, int32_t n_in, ...)
{
    qn_node_spec spec = {.op = op, .n_in = n_in};
    qn_node *node;
    va_list args;
    va_start(args, n_in);
    for (int32_t i = 0; i < n_in; i++)
        spec.in[i] = va_arg(args, qn_value *);
    va_end(args);
    assert_int_equal(qn_node_build(&node, f->graph, &spec), QN_OK);
    return node->out[0];
}

#define DIMS(...)                                                                                  \
    (const int64_t[])                                                                              \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static inline qn_value *any_image(fixture *f)
{
    return input(f, "x", 4, DIMS(2, 4, 5, 6));
}

/* ---- Checking -------------------------------------------------------------------------------- */

static inline size_t pass_index(const char *name)
{
    for (size_t p = 0; p < qn_passes_count; p++) {
        if (strcmp(qn_passes[p]->name, name) == 0)
            return p;
    }
    fail_msg("there is no pass %s", name);
    return 0;
}

/* One that the pass serves. */
static inline qn_purpose purpose_of(const char *pass)
{
    const bool runs = qn_pass_serves(pass_index(pass), QN_PURPOSE_RUN);
    const bool converts = qn_pass_serves(pass_index(pass), QN_PURPOSE_CONVERT);
    return runs ? QN_PURPOSE_RUN : converts ? QN_PURPOSE_CONVERT : QN_PURPOSE_QUANTIZE;
}

static inline const qn_tensor *evaluate(fixture *f, qn_arena *arena, const qn_graph *graph)
{
    const qn_tensor *in[4], *out[4];
    uint32_t state = 99;
    for (size_t i = 0; i < graph->n_inputs; i++) {
        qn_tensor *tensor;
        assert_int_equal(qn_tensor_create(&tensor, f->ctx, arena, &graph->inputs[i]->type), QN_OK);
        for (int64_t k = 0; k < qn_tensor_count(tensor); k++)
            ((float *)tensor->data)[k] = 4 * noise(&state);
        in[i] = tensor;
    }
    const qn_graph_args args = {in, NULL};
    if (qn_graph_eval(out, f->ctx, arena, graph, &args) != QN_OK)
        fail_msg("%s", qn_context_error(f->ctx));
    return out[0];
}

static inline void assert_close(const qn_tensor *a, const qn_tensor *b)
{
    assert_int_equal(a->rank, b->rank);
    assert_int_equal(qn_tensor_count(a), qn_tensor_count(b));
    for (int64_t i = 0; i < qn_tensor_count(a); i++) {
        const double x = qn_tensor_f64(a, i), y = qn_tensor_f64(b, i);
        if (fabs(x - y) > 1e-5 * fmax(1, fabs(x)))
            fail_msg("element %lld: %.9g became %.9g", (long long)i, x, y);
    }
}

static inline size_t count_op(const qn_graph *graph, const qn_op *op)
{
    size_t count = 0;
    for (const qn_node *node = graph->first; node; node = node->next)
        count += node->op == op;
    return count;
}

/* `pass` must change the graph to `nodes` nodes of which one is `left` (NULL: any); with the pass
 * left out it must not. The result stays. Ends the fixture. */
static inline void check_pass(fixture *f, qn_value *y, const char *pass, size_t nodes,
                              const qn_op *left)
{
    int64_t changes[64];
    qn_model *without;
    qn_arena arena;
    const qn_purpose purpose = purpose_of(pass);
    const qn_pass_options all = {.purpose = purpose},
                          skipping = {.skip = &pass, .n_skip = 1, .purpose = purpose};
    qn_arena_init(&arena, &f->ctx->allocator);
    assert_int_equal(qn_graph_add_output(f->graph, y), QN_OK);
    assert_int_equal(qn_graph_infer(f->graph), QN_OK);
    const qn_tensor *before = evaluate(f, &arena, f->graph);
    assert_int_equal(qn_model_clone(&without, f->ctx, f->model), QN_OK);
    if (qn_passes_run(f->model, &all, changes) != QN_OK)
        fail_msg("%s", qn_context_error(f->ctx));
    assert_true(changes[pass_index(pass)] > 0);
    assert_int_equal(f->graph->n_nodes, nodes);
    assert_true(!left || count_op(f->graph, left) == 1);
    assert_close(before, evaluate(f, &arena, f->graph));
    assert_int_equal(qn_passes_run(without, &skipping, changes), QN_OK);
    assert_int_equal(changes[pass_index(pass)], 0);
    assert_close(before, evaluate(f, &arena, without->graph));
    qn_arena_free(&arena);
    qn_model_free(without);
    qn_model_free(f->model);
    qn_context_free(f->ctx);
}

#endif
