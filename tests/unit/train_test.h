/* Graphs of doubles with random numbers and attributes, whose gradients are compared with finite
 * differences. */
#ifndef QN_TRAIN_TEST_H
#define QN_TRAIN_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/nn_attrs.h"
#include "ops/tensor_attrs.h"
#include "ops/versions.h"
#include "train/differentiate.h"

enum { TRIAL_INPUTS = 16 };

typedef struct trial {
    qn_context *ctx;
    qn_model *model;
    qn_graph *graph;
    qn_arena arena;
    uint32_t random;
    /* The inputs that are differentiated by, with their numbers */
    qn_value *inputs[TRIAL_INPUTS];
    qn_tensor *numbers[TRIAL_INPUTS];
    size_t n_inputs;
} trial;

/* 0 <= x < n */
static inline int64_t draw(trial *t, int64_t n)
{
    t->random = t->random * 1664525u + 1013904223u;
    return (int64_t)(t->random >> 8) % n;
}

static inline double draw_real(trial *t, double low, double high)
{
    return low + (high - low) * ((double)draw(t, 1 << 20) + .5) / (1 << 20);
}

static inline qn_tensor *random_tensor(trial *t, int32_t rank, const int64_t *dims, double low,
                                       double high)
{
    const qn_type type = qn_type_tensor(QN_FLOAT64, rank, dims);
    qn_tensor *tensor;
    assert_int_equal(qn_tensor_create(&tensor, t->ctx, &t->model->arena, &type), QN_OK);
    for (int64_t i = 0; i < qn_tensor_count(tensor); i++)
        ((double *)tensor->data)[i] = draw_real(t, low, high);
    return tensor;
}

/* An input with numbers of [low, high). */
static inline qn_value *between(trial *t, int32_t rank, const int64_t *dims, double low,
                                double high)
{
    qn_value *value;
    t->numbers[t->n_inputs] = random_tensor(t, rank, dims, low, high);
    assert_int_equal(qn_value_create(&value, t->graph, "x"), QN_OK);
    value->type = qn_type_tensor(QN_FLOAT64, rank, dims);
    assert_int_equal(qn_graph_add_input(t->graph, value), QN_OK);
    t->inputs[t->n_inputs++] = value;
    return value;
}
#define DIMS(...)                                                                                  \
    (int32_t) QN_COUNT_OF(((const int64_t[]){__VA_ARGS__})), (const int64_t[])                     \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static inline qn_value *ints(trial *t, const int64_t *list, size_t count)
{
    qn_value *value;
    assert_int_equal(qn_value_ints(&value, t->graph, list, count), QN_OK);
    return value;
}
#define INTS(t, ...)                                                                               \
    ints(t, (const int64_t[]){__VA_ARGS__}, QN_COUNT_OF(((const int64_t[]){__VA_ARGS__})))

static inline qn_value *constant(trial *t, double number)
{
    qn_value *value;
    assert_int_equal(qn_value_number(&value, t->graph, QN_FLOAT64, number), QN_OK);
    return value;
}

static inline qn_node *add_node(trial *t, const qn_op *op, int32_t n_out, int32_t n_in, ...)
{
    qn_node *node;
    va_list args;
    assert_int_equal(qn_node_add(&node, t->graph, op, op->name, n_in, n_out), QN_OK);
    va_start(args, n_in);
    for (int32_t i = 0; i < n_in; i++)
        assert_int_equal(qn_node_set_input(node, i, va_arg(args, qn_value *)), QN_OK);
    va_end(args);
    for (int32_t o = 0; o < n_out; o++) {
        qn_value *value;
        assert_int_equal(qn_value_create(&value, t->graph, "y"), QN_OK);
        qn_node_set_output(node, o, value);
    }
    return node;
}
#define APPLY(t, op, ...)                                                                          \
    (add_node(t, &qn_op_##op, 1, (int32_t)QN_COUNT_OF(((qn_value *[]){__VA_ARGS__})), __VA_ARGS__) \
         ->out[0])

static inline void set_int(qn_value *y, const char *name, int64_t value)
{
    const qn_attr_spec *spec = qn_op_attr(y->producer->op, name, QN_LATEST_OPSET);
    assert_non_null(spec);
    *(int64_t *)qn_attr_field(y->producer, spec) = value;
}

static inline void set_float(qn_value *y, const char *name, double value)
{
    const qn_attr_spec *spec = qn_op_attr(y->producer->op, name, QN_LATEST_OPSET);
    assert_non_null(spec);
    *(float *)qn_attr_field(y->producer, spec) = (float)value;
}

static inline void set_ints(trial *t, qn_value *y, const char *name, const int64_t *list,
                            size_t count)
{
    const qn_attr_spec *spec = qn_op_attr(y->producer->op, name, QN_LATEST_OPSET);
    assert_non_null(spec);
    assert_int_equal(qn_ints_copy(qn_attr_field(y->producer, spec), t->graph, list, count), QN_OK);
}

/* ---- Checking -------------------------------------------------------------------------------- */

static inline double evaluate(trial *t, const qn_tensor **out)
{
    const qn_graph_args args = {(const qn_tensor *const *)t->numbers, NULL};
    qn_arena_reset(&t->arena);
    if (qn_graph_eval(out, t->ctx, &t->arena, t->graph, &args) != QN_OK)
        fail_msg("%s", qn_context_error(t->ctx));
    return qn_tensor_f64(out[0], 0);
}

/* The sum of y times random numbers, which makes every element count. */
static inline qn_value *loss_of(trial *t, qn_value *y)
{
    int64_t dims[QN_MAX_RANK];
    qn_value *random;
    if (qn_graph_infer(t->graph) != QN_OK)
        fail_msg("%s", qn_context_error(t->ctx));
    assert_true(qn_type_is_static(&y->type, dims));
    assert_int_equal(
        qn_value_constant(&random, t->graph, "r", random_tensor(t, y->type.rank, dims, -1, 1)),
        QN_OK);
    qn_value *loss = APPLY(t, ReduceSum, APPLY(t, Mul, y, random));
    set_int(loss, "keepdims", 0);
    assert_int_equal(qn_graph_infer(t->graph), QN_OK);
    return loss;
}

/* dL/dx = (L(x + h) - L(x - h)) / 2h: with h = 1e-5 off by h^2 = 1e-10 and by the rounding of
 * doubles / h, a few 1e-11. */
static inline void compare(trial *t, const char *name, size_t k, const qn_tensor *gradient)
{
    const qn_tensor *now[1 + TRIAL_INPUTS];
    double *x = t->numbers[k]->data;
    const double h = 1e-5;
    for (int64_t i = 0; i < qn_tensor_count(t->numbers[k]); i++) {
        const double kept = x[i], got = gradient ? qn_tensor_f64(gradient, i) : 0;
        x[i] = kept + h;
        const double more = evaluate(t, now);
        x[i] = kept - h;
        const double less = evaluate(t, now), wanted = (more - less) / (2 * h);
        x[i] = kept;
        if (!(fabs(got - wanted) <= 1e-6 * fmax(1, fabs(wanted))))
            fail_msg("%s, seed %u, input %d, element %d: the gradient is %.9g instead of %.9g",
                     name, t->random, (int)k, (int)i, got, wanted);
    }
}

typedef qn_value *build_fn(trial *t);

static inline void check_trial(const char *name, build_fn *build, uint32_t seed)
{
    trial t = {.random = seed};
    qn_value *gradients[TRIAL_INPUTS];
    const qn_tensor *out[1 + TRIAL_INPUTS];
    qn_tensor copies[TRIAL_INPUTS];
    qn_arena kept;
    assert_int_equal(qn_context_create(&t.ctx, NULL), QN_OK);
    assert_int_equal(qn_model_create(&t.model, t.ctx), QN_OK);
    t.graph = t.model->graph;
    qn_arena_init(&t.arena, &t.ctx->allocator);
    qn_arena_init(&kept, &t.ctx->allocator);
    qn_value *loss = loss_of(&t, build(&t));
    assert_int_equal(qn_graph_add_output(t.graph, loss), QN_OK);
    if (qn_differentiate(gradients, t.graph, loss, t.inputs, t.n_inputs) != QN_OK)
        fail_msg("%s: %s", name, qn_context_error(t.ctx));
    for (size_t k = 0, n = 1; k < t.n_inputs; k++) {
        if (!gradients[k])
            continue;
        assert_int_equal(qn_graph_add_output(t.graph, gradients[k]), QN_OK);
        evaluate(&t, out);
        assert_int_equal(out[n]->rank, t.numbers[k]->rank);
        assert_int_equal(qn_tensor_count(out[n]), qn_tensor_count(t.numbers[k]));
        assert_int_equal(qn_tensor_copy(&copies[k], t.ctx, &kept, out[n++]), QN_OK);
    }
    for (size_t k = 0; k < t.n_inputs; k++)
        compare(&t, name, k, gradients[k] ? &copies[k] : NULL);
    qn_arena_free(&kept);
    qn_arena_free(&t.arena);
    qn_model_free(t.model);
    qn_context_free(t.ctx);
}

#endif
