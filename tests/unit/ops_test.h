/* One node at a time: inputs from arrays, an opset to come from, outputs to look at. */
#ifndef QN_OPS_TEST_H
#define QN_OPS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"

typedef struct bench {
    qn_context *ctx;
    qn_model *model;
    qn_node *node;
    qn_arena arena;
    /* One per graph input */
    const qn_tensor *fed[8];
    /* One per graph output, after bench_run */
    const qn_tensor *out[8];
} bench;

static inline int bench_setup(void **state)
{
    bench *b = calloc(1, sizeof *b);
    assert_int_equal(qn_context_create(&b->ctx, NULL), QN_OK);
    assert_int_equal(qn_model_create(&b->model, b->ctx), QN_OK);
    qn_arena_init(&b->arena, &b->ctx->allocator);
    *state = b;
    return 0;
}

static inline int bench_teardown(void **state)
{
    bench *b = *state;
    qn_arena_free(&b->arena);
    qn_model_free(b->model);
    qn_context_free(b->ctx);
    free(b);
    return 0;
}

/* A tensor of `count` numbers, given as doubles. */
static inline qn_tensor *numbers(bench *b, qn_dtype dtype, int32_t rank, const int64_t *dims,
                                 const double *values)
{
    const qn_type type = qn_type_tensor(dtype, rank, dims);
    qn_tensor *t;
    assert_int_equal(qn_tensor_create(&t, b->ctx, &b->model->arena, &type), QN_OK);
    qn_store_f64(t->data, dtype, 0, values, qn_tensor_count(t));
    return t;
}
#define DIMS(...)                                                                                  \
    (int32_t) QN_COUNT_OF(((const int64_t[]){__VA_ARGS__})), (const int64_t[])                     \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define SCALAR 0, NULL
#define VALUES(...)                                                                                \
    (const double[])                                                                               \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* A node with these many slots; its outputs are the graph's. */
static inline void bench_node(bench *b, const qn_op *op, int32_t n_in, int32_t n_out)
{
    assert_int_equal(qn_node_add(&b->node, b->model->graph, op, "node", n_in, n_out), QN_OK);
    for (int32_t o = 0; o < n_out; o++) {
        qn_value *value;
        assert_int_equal(qn_value_create(&value, b->model->graph, "out"), QN_OK);
        assert_int_equal(qn_graph_add_output(b->model->graph, value), QN_OK);
        qn_node_set_output(b->node, o, value);
    }
}

/* Input `slot` is a graph input that will be fed with `data`. */
static inline void bench_feed(bench *b, int32_t slot, const qn_tensor *data)
{
    qn_value *value;
    assert_int_equal(qn_value_create(&value, b->model->graph, "in"), QN_OK);
    value->type = qn_type_of(data);
    b->fed[b->model->graph->n_inputs] = data;
    assert_int_equal(qn_graph_add_input(b->model->graph, value), QN_OK);
    assert_int_equal(qn_node_set_input(b->node, slot, value), QN_OK);
}

static inline void bench_constant(bench *b, int32_t slot, const qn_tensor *data)
{
    qn_value *value;
    assert_int_equal(qn_value_constant(&value, b->model->graph, "constant", data), QN_OK);
    assert_int_equal(qn_node_set_input(b->node, slot, value), QN_OK);
}

/* The field of an attribute as opset `version` has it. */
static inline void *bench_attr(bench *b, const char *name, int version)
{
    const qn_attr_spec *spec = qn_op_attr(b->node->op, name, version);
    assert_non_null(spec);
    return qn_attr_field(b->node, spec);
}
#define ATTR(b, type, name, version) (*(type *)bench_attr(b, name, version))
#define INTS(...)                                                                                  \
    (qn_ints)                                                                                      \
    {                                                                                              \
        (const int64_t[]){__VA_ARGS__}, QN_COUNT_OF(((const int64_t[]){__VA_ARGS__}))              \
    }

static inline void bench_upgrade(bench *b, int from)
{
    if (qn_node_upgrade(&b->node, from) != QN_OK)
        fail_msg("%s", qn_context_error(b->ctx));
}

static inline void bench_run(bench *b)
{
    const qn_graph_args args = {b->fed, NULL};
    if (qn_graph_infer(b->model->graph) != QN_OK ||
        qn_graph_eval(b->out, b->ctx, &b->arena, b->model->graph, &args) != QN_OK)
        fail_msg("%s", qn_context_error(b->ctx));
}

/* Output o has this type, these dims and these numbers (to 1e-6). */
static inline void expect(const bench *b, size_t o, qn_dtype dtype, int32_t rank,
                          const int64_t *dims, const double *values)
{
    const qn_tensor *out = b->out[o];
    const qn_type *type = &b->model->graph->outputs[o]->type;
    assert_int_equal(out->dtype, dtype);
    assert_int_equal(out->rank, rank);
    assert_int_equal(type->dtype, dtype);
    for (int32_t d = 0; d < rank; d++)
        assert_int_equal(out->dims[d], dims[d]);
    for (int64_t i = 0; i < qn_tensor_count(out); i++) {
        const double got = qn_tensor_f64(out, i), want = values[i];
        const bool same = got == want || (isnan(got) && isnan(want)) ||
                          fabs(got - want) <= 1e-6 * fmax(1, fabs(want));
        if (!same)
            fail_msg("element %d is %.9g instead of %.9g", (int)i, got, want);
    }
}

#endif
