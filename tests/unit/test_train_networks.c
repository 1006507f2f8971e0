/* Gradients of whole networks beside PyTorch's autograd: the networks of make_train_values.py, node
 * by node, with the same numbers. */
#include "train/loss.h"
#include "train_test.h"
#include "train_values.h"

/* The input or weight that is made next. */
static qn_value *tensor_of(trial *t, int32_t rank, const int64_t *dims, double scale)
{
    qn_value *value = between(t, rank, dims, 0, 1);
    const uint32_t seed = (uint32_t)t->n_inputs;
    double *x = t->numbers[t->n_inputs - 1]->data;
    uint32_t state = seed * 2654435761u + 1;
    for (int64_t i = 0; i < qn_tensor_count(t->numbers[t->n_inputs - 1]); i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = ((double)(state >> 8) / (1 << 23) - 1) * scale;
    }
    return value;
}

static qn_value *convolve(trial *t, qn_value *x, qn_value *w, qn_value *b, const int64_t how[3])
{
    const int64_t strides[2] = {how[0], how[0]}, pads[4] = {how[1], how[1], how[1], how[1]};
    qn_value *y = APPLY(t, Conv, x, w, b);
    set_ints(t, y, "strides", strides, 2);
    set_ints(t, y, "pads", pads, 4);
    set_int(y, "group", how[2]);
    return y;
}
#define HOW(...)                                                                                   \
    (const int64_t[3])                                                                             \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static qn_value *pool(trial *t, const qn_op *op, qn_value *x, int64_t size, int64_t stride)
{
    const int64_t kernel[2] = {size, size}, strides[2] = {stride, stride};
    const int64_t pad = stride < size, pads[4] = {pad, pad, pad, pad};
    qn_value *y = add_node(t, op, 1, 1, x)->out[0];
    set_ints(t, y, "kernel_shape", kernel, 2);
    set_ints(t, y, "strides", strides, 2);
    set_ints(t, y, "pads", pads, 4);
    return y;
}

static qn_value *flat(trial *t, qn_value *x)
{
    return APPLY(t, Flatten, x);
}

static qn_value *linear(trial *t, qn_value *x, qn_value *w, qn_value *b)
{
    qn_value *y = APPLY(t, Gemm, x, w, b);
    set_int(y, "transB", 1);
    return y;
}

static qn_value *relu6(trial *t, qn_value *x)
{
    return APPLY(t, Clip, x, constant(t, 0), constant(t, 6));
}

/* ---- The networks ---------------------------------------------------------------------------- */

static qn_value *mnist(trial *t)
{
    qn_value *x = tensor_of(t, DIMS(2, 1, 16, 16), 1), *w = tensor_of(t, DIMS(4, 1, 5, 5), 1);
    x = convolve(t, x, w, tensor_of(t, DIMS(4), 1), HOW(1, 0, 1));
    x = pool(t, &qn_op_MaxPool, relu6(t, APPLY(t, Mul, x, constant(t, 3))), 2, 2);
    w = tensor_of(t, DIMS(6, 4, 3, 3), 1);
    x = convolve(t, x, w, tensor_of(t, DIMS(6), 1), HOW(1, 0, 1));
    x = flat(t, pool(t, &qn_op_MaxPool, relu6(t, x), 2, 2));
    w = tensor_of(t, DIMS(8, 24), .3);
    x = relu6(t, linear(t, x, w, tensor_of(t, DIMS(8), 1)));
    w = tensor_of(t, DIMS(5, 8), .5);
    return linear(t, x, w, tensor_of(t, DIMS(5), 1));
}

static qn_value *statistic(trial *t, double number)
{
    const int64_t six = 6;
    qn_value *value;
    assert_int_equal(
        qn_value_constant(&value, t->graph, "statistic", random_tensor(t, 1, &six, number, number)),
        QN_OK);
    return value;
}

static qn_value *normalize(trial *t, qn_value *x, qn_value *scale, qn_value *shift)
{
    qn_value *y = APPLY(t, BatchNormalization, x, scale, shift, statistic(t, 0), statistic(t, 1));
    set_int(y, "training_mode", 1);
    return y;
}

static qn_value *residual(trial *t)
{
    qn_value *x = tensor_of(t, DIMS(3, 4, 8, 8), 1), *w = tensor_of(t, DIMS(6, 4, 3, 3), .3);
    qn_value *scale = tensor_of(t, DIMS(6), 1), *shift = tensor_of(t, DIMS(6), 1);
    qn_value *y = convolve(t, x, w, NULL, HOW(2, 1, 1));
    y = APPLY(t, Relu, normalize(t, y, scale, shift));
    y = convolve(t, y, tensor_of(t, DIMS(6, 6, 3, 3), .3), NULL, HOW(1, 1, 1));
    scale = tensor_of(t, DIMS(6), 1);
    y = normalize(t, y, scale, tensor_of(t, DIMS(6), 1));
    x = APPLY(t, Slice, x, INTS(t, 0, 0), INTS(t, 8, 8), INTS(t, 2, 3), INTS(t, 2, 2));
    x = APPLY(t, Pad, x, INTS(t, 0, 1, 0, 0, 0, 1, 0, 0));
    y = APPLY(t, Relu, APPLY(t, Add, y, x));
    y = flat(t, pool(t, &qn_op_AveragePool, y, 4, 4));
    w = tensor_of(t, DIMS(5, 6), 1);
    return linear(t, y, w, tensor_of(t, DIMS(5), 1));
}

static qn_value *permute(trial *t, qn_value *x, const int64_t *perm)
{
    qn_value *y = APPLY(t, Transpose, x);
    set_ints(t, y, "perm", perm, 4);
    return y;
}

static qn_value *transformer(trial *t)
{
    const int64_t heads[4] = {0, 2, 1, 3}, turned[4] = {0, 2, 3, 1};
    qn_value *x = tensor_of(t, DIMS(2, 5, 8), 1), *part[3];
    for (int i = 0; i < 3; i++) {
        qn_value *w = tensor_of(t, DIMS(8, 8), .5);
        part[i] = APPLY(t, Add, APPLY(t, MatMul, x, w), tensor_of(t, DIMS(8), 1));
        part[i] = APPLY(t, Reshape, part[i], INTS(t, 2, 5, 2, 4));
        part[i] = permute(t, part[i], i == 1 ? turned : heads);
    }
    qn_value *scores = APPLY(t, Div, APPLY(t, MatMul, part[0], part[1]), constant(t, 2));
    qn_value *y = permute(t, APPLY(t, MatMul, APPLY(t, Softmax, scores), part[2]), heads);
    y = APPLY(t, Add, x, APPLY(t, Reshape, y, INTS(t, 2, 5, 8)));
    qn_value *scale = tensor_of(t, DIMS(8), 1);
    y = APPLY(t, LayerNormalization, y, scale, tensor_of(t, DIMS(8), 1));
    qn_value *inner = APPLY(t, Gelu, APPLY(t, MatMul, y, tensor_of(t, DIMS(8, 12), .5)));
    y = APPLY(t, Add, y, APPLY(t, MatMul, inner, tensor_of(t, DIMS(12, 8), .5)));
    y = APPLY(t, ReduceMean, y, INTS(t, 1));
    set_int(y, "keepdims", 0);
    return APPLY(t, MatMul, y, tensor_of(t, DIMS(8, 5), 1));
}

static qn_value *silu(trial *t, qn_value *x)
{
    return APPLY(t, Mul, x, APPLY(t, Sigmoid, x));
}

static qn_value *detector(trial *t)
{
    qn_value *x = tensor_of(t, DIMS(2, 3, 8, 8), 1), *w = tensor_of(t, DIMS(8, 3, 3, 3), .4);
    x = silu(t, convolve(t, x, w, tensor_of(t, DIMS(8), 1), HOW(2, 1, 1)));
    qn_node *split = add_node(t, &qn_op_Split, 2, 2, x, INTS(t, 4, 4));
    set_int(split->out[0], "axis", 1);
    qn_value *a = split->out[0], *b = split->out[1];
    b = silu(t, convolve(t, b, tensor_of(t, DIMS(4, 1, 3, 3), .5), NULL, HOW(1, 1, 4)));
    qn_value *y = APPLY(t, Concat, a, b, APPLY(t, Add, a, b));
    set_int(y, "axis", 1);
    y = APPLY(t, Resize, y, NULL, NULL, INTS(t, 2, 12, 8, 8));
    set_int(y, "coordinate_transformation_mode", 4); /* asymmetric, rounded down */
    set_int(y, "nearest_mode", 2);
    w = tensor_of(t, DIMS(12, 12, 1, 1), .4);
    qn_value *gate = convolve(t, APPLY(t, GlobalAveragePool, y), w, NULL, HOW(1, 0, 1));
    y = APPLY(t, Mul, y, APPLY(t, Sigmoid, gate));
    y = pool(t, &qn_op_MaxPool, y, 3, 1);
    w = tensor_of(t, DIMS(5, 12, 8, 8), .05);
    return flat(t, convolve(t, y, w, NULL, HOW(1, 0, 1)));
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static void expect_near(double got, double wanted, const char *what, int i)
{
    if (!(fabs(got - wanted) <= 1e-4 * fmax(1e-2, fabs(wanted))))
        fail_msg("%s of tensor %d is %.9g, PyTorch has %.9g", what, i, got, wanted);
}

static void expect_gradient(const qn_tensor *gradient, const double *wanted, int i)
{
    double squares = 0, product = 0;
    uint32_t state = (uint32_t)(100 + i) * 2654435761u + 1;
    for (int64_t k = 0; k < qn_tensor_count(gradient); k++) {
        const double g = qn_tensor_f64(gradient, k);
        state = state * 1664525u + 1013904223u;
        squares += g * g;
        product += g * ((double)(state >> 8) / (1 << 23) - 1);
    }
    expect_near(sqrt(squares), wanted[0], "the norm", i);
    expect_near(product, wanted[1], "the product", i);
}

static void check(build_fn *build, const double *values, size_t count)
{
    trial t = {.random = 1};
    qn_value *by[TRIAL_INPUTS], *scores;
    const qn_tensor *out[1 + TRIAL_INPUTS];
    const qn_loss_settings settings = {.smoothing = 0};
    qn_train_loss loss;
    qn_tensor labels = {QN_INT64, 1, {0}, (int64_t[]){1, 3, 0}};
    assert_int_equal(qn_context_create(&t.ctx, NULL), QN_OK);
    assert_int_equal(qn_model_create(&t.model, t.ctx), QN_OK);
    t.graph = t.model->graph;
    qn_arena_init(&t.arena, &t.ctx->allocator);
    scores = build(&t);
    assert_int_equal(2 * t.n_inputs + 1, count);
    if (qn_graph_infer(t.graph) != QN_OK ||
        qn_train_loss_add(&loss, t.graph, scores, NULL, &settings) != QN_OK ||
        qn_differentiate(by, t.graph, loss.loss, t.inputs, t.n_inputs) != QN_OK)
        fail_msg("%s", qn_context_error(t.ctx));
    labels.dims[0] = scores->type.dims[0].value;
    t.numbers[t.n_inputs] = &labels;
    assert_int_equal(qn_graph_add_output(t.graph, loss.loss), QN_OK);
    for (size_t k = 0; k < t.n_inputs; k++)
        assert_int_equal(qn_graph_add_output(t.graph, by[k]), QN_OK);
    expect_near(evaluate(&t, out), values[0], "the loss", -1);
    for (size_t k = 0; k < t.n_inputs; k++)
        expect_gradient(out[k + 1], values + 1 + 2 * k, (int)k);
    qn_arena_free(&t.arena);
    qn_model_free(t.model);
    qn_context_free(t.ctx);
}

#define NETWORK(name)                                                                              \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        check(name, name##_values, QN_COUNT_OF(name##_values));                                    \
    }
NETWORK(mnist)
NETWORK(residual)
NETWORK(transformer)
NETWORK(detector)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mnist),
        cmocka_unit_test(test_residual),
        cmocka_unit_test(test_transformer),
        cmocka_unit_test(test_detector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
