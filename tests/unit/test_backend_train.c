/* The operators of training by fast kernels beside their reference kernels, over random shapes and
 * attributes. */
#include "backend_test.h"
#include "ops/grad_attrs.h"

/* A node with this many outputs, all of which the graph gives. */
static qn_node *make_node(fixture *f, const qn_op *op, int32_t n_in, qn_value *const *in,
                          int32_t n_out)
{
    qn_node *node;
    assert_int_equal(qn_node_add(&node, f->graph, op, op->name, n_in, n_out), QN_OK);
    for (int32_t i = 0; i < n_in; i++)
        assert_int_equal(qn_node_set_input(node, i, in[i]), QN_OK);
    for (int32_t o = 0; o < n_out; o++) {
        qn_value *value;
        assert_int_equal(qn_value_create(&value, f->graph, "y"), QN_OK);
        qn_node_set_output(node, o, value);
    }
    return node;
}

static double finish(fixture *f, qn_node *node, const char *kernel)
{
    result_of(node);
    for (int32_t o = 0; o < node->n_out; o++)
        add_output(f, node->out[o]);
    const double worst = compare(f, kernel);
    fixture_end(f);
    return worst;
}

#define DIMS(...)                                                                                  \
    (int32_t) QN_COUNT_OF(((const int64_t[]){__VA_ARGS__})), (const int64_t[])                     \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* ---- Convolutions ---------------------------------------------------------------------------- */

typedef struct shape {
    int64_t batch, channels, each, filters, kernel, height, width, out[2];
    qn_window_attrs window;
} shape;

/* Whole blocks of channels, few, or any number. */
static int64_t pick_channels(fixture *f)
{
    const int64_t kind = pick(f, 3);
    return kind == 0 ? 16 * (1 + pick(f, 3)) : kind == 1 ? 1 + pick(f, 4) : 1 + pick(f, 40);
}

static shape pick_shape(fixture *f)
{
    shape s = {.batch = 1 + pick(f, 4), .kernel = 1 + 2 * pick(f, 3)};
    const int64_t stride = 1 + pick(f, 2), pad = pick(f, s.kernel / 2 + 1);
    const int64_t groups = pick(f, 4) ? 1 : 2;
    s.each = pick_channels(f);
    s.channels = groups * s.each;
    s.filters = groups * pick_channels(f);
    s.height = s.kernel + pick(f, 12);
    s.width = s.kernel + pick(f, 12);
    s.out[0] = (s.height + 2 * pad - s.kernel) / stride + 1;
    s.out[1] = (s.width + 2 * pad - s.kernel) / stride + 1;
    s.window.group = groups;
    s.window.strides = keep_ints(f, (const int64_t[]){stride, stride}, 2);
    s.window.pads = keep_ints(f, (const int64_t[]){pad, pad, pad, pad}, 4);
    return s;
}

static double conv_by_input(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const shape s = pick_shape(&f);
    qn_value *const in[] = {add_input(&f, DIMS(s.batch, s.filters, s.out[0], s.out[1])),
                            add_input(&f, DIMS(s.filters, s.each, s.kernel, s.kernel))};
    qn_node *node = make_node(&f, &qn_op_qn_ConvGradInput, 2, in, 1);
    qn_window_grad_attrs *a = node->attrs;
    a->window = s.window;
    a->shape = keep_ints(&f, (const int64_t[]){s.batch, s.channels, s.height, s.width}, 4);
    return finish(&f, node, NULL);
}

static double conv_by_weights(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const shape s = pick_shape(&f);
    qn_value *const in[] = {add_input(&f, DIMS(s.batch, s.channels, s.height, s.width)),
                            add_input(&f, DIMS(s.batch, s.filters, s.out[0], s.out[1]))};
    qn_node *node = make_node(&f, &qn_op_qn_ConvGradWeights, 2, in, 1 + (int32_t)pick(&f, 2));
    qn_window_grad_attrs *a = node->attrs;
    a->window = s.window;
    a->shape = keep_ints(&f, (const int64_t[]){s.filters, s.each, s.kernel, s.kernel}, 4);
    return finish(&f, node, NULL);
}

/* Weights and bias that change, and what may be fused behind. */
static double conv_forward(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const shape s = pick_shape(&f);
    qn_value *const in[] = {add_input(&f, DIMS(s.batch, s.channels, s.height, s.width)),
                            add_input(&f, DIMS(s.filters, s.each, s.kernel, s.kernel)),
                            add_input(&f, DIMS(s.filters))};
    qn_node *node = add_node(&f, &qn_op_Conv, 2 + (int32_t)pick(&f, 2), in);
    *(qn_window_attrs *)node->attrs = s.window;
    qn_value *y = result_of(node);
    if (pick(&f, 2))
        y = apply(&f, &qn_op_Add, y, add_input(&f, DIMS(s.batch, s.filters, s.out[0], s.out[1])));
    add_output(&f, apply(&f, &qn_op_Relu, y, NULL));
    const double worst = compare(&f, NULL);
    fixture_end(&f);
    return worst;
}

/* ---- Pools and norms ------------------------------------------------------------------------- */

static double pool(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const int64_t x[4] = {1 + pick(&f, 3), 1 + pick(&f, 20), 5 + pick(&f, 8), 5 + pick(&f, 8)};
    const bool is_max = pick(&f, 2);
    const qn_op *op = is_max ? &qn_op_qn_MaxPoolGrad : &qn_op_qn_AveragePoolGrad;
    const int64_t pad = pick(&f, 2), strides[2] = {1 + pick(&f, 3), 1 + pick(&f, 3)};
    qn_window_attrs w = {.ceil_mode = pick(&f, 2), .count_include_pad = pick(&f, 2)};
    w.kernel_shape = keep_ints(&f, (const int64_t[]){2 + pick(&f, 2), 3}, 2);
    w.strides = keep_ints(&f, strides, 2);
    w.pads = keep_ints(&f, (const int64_t[]){pad, 1, pad, 0}, 4);
    w.dilations = keep_ints(&f, (const int64_t[]){1 + pick(&f, 2), 1}, 2);
    qn_value *image = add_input(&f, 4, x);
    qn_node *forward = add_node(&f, is_max ? &qn_op_MaxPool : &qn_op_AveragePool, 1, &image);
    *(qn_window_attrs *)forward->attrs = w;
    qn_value *y = result_of(forward);
    qn_value *const in[] = {apply(&f, &qn_op_Mul, y, y), image};
    qn_node *node = make_node(&f, op, is_max ? 2 : 1, in, 1);
    ((qn_window_grad_attrs *)node->attrs)->window = w;
    ((qn_window_grad_attrs *)node->attrs)->shape = keep_ints(&f, x, 4);
    return finish(&f, node, is_max ? "max pool gradient" : "average pool gradient");
}

static double batchnorm(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const int64_t channels = 1 + pick(&f, 20);
    const int64_t dims[4] = {2 + pick(&f, 3), channels, 3 + pick(&f, 5), 3};
    qn_value *x = add_input(&f, 4, dims), *scale = add_input(&f, 1, &channels);
    qn_value *shift = add_input(&f, 1, &channels), *mean = add_input(&f, 1, &channels);
    qn_value *root = add_input(&f, 1, &channels), *dy = add_input(&f, 4, dims);
    qn_value *variance = apply(&f, &qn_op_Mul, root, root);
    qn_value *const in[] = {x, scale, shift, mean, variance};
    qn_node *forward = make_node(&f, &qn_op_BatchNormalization, 5, in, 3);
    ((qn_batchnorm_attrs *)forward->attrs)->training_mode = 1;
    ((qn_batchnorm_attrs *)forward->attrs)->momentum = pick(&f, 2) ? 0 : .9f;
    result_of(forward);
    for (int32_t o = 0; o < 3; o++)
        add_output(&f, forward->out[o]);
    /* A variance near 0 makes large factors, which cost digits of what they multiply. */
    qn_value *wide = apply(&f, &qn_op_Add, variance, add_number(&f, .1));
    qn_value *const back[] = {dy, x, scale, mean, wide};
    qn_node *node = make_node(&f, &qn_op_qn_BatchNormGrad, 5, back, 3);
    ((qn_batchnorm_attrs *)node->attrs)->training_mode = pick(&f, 2);
    return finish(&f, node, "batch normalization gradient");
}

/* ---- Element by element ---------------------------------------------------------------------- */

static double steps(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const int64_t count = 1 + pick(&f, 40000);
    const bool is_adam = pick(&f, 2);
    qn_value *w = add_input(&f, 1, &count), *g = add_input(&f, 1, &count);
    qn_value *m = add_input(&f, 1, &count), *root = add_input(&f, 1, &count);
    qn_value *rate = add_number(&f, .1), *factor = pick(&f, 2) ? add_number(&f, .5) : NULL;
    qn_value *v = is_adam ? apply(&f, &qn_op_Mul, root, root) : NULL;
    qn_value *const in[2][7] = {{w, g, m, rate, factor},
                                {w, g, m, v, rate, add_number(&f, 7), factor}};
    qn_node *node = make_node(&f, is_adam ? &qn_op_qn_AdamStep : &qn_op_qn_SgdStep, is_adam ? 7 : 5,
                              in[is_adam], is_adam ? 3 : 2);
    if (is_adam)
        *(qn_adam_attrs *)node->attrs = (qn_adam_attrs){.9f, .99f, 1e-2f, .1f, pick(&f, 2)};
    else
        *(qn_sgd_attrs *)node->attrs = (qn_sgd_attrs){.9f, .1f, pick(&f, 2)};
    return finish(&f, node, is_adam ? "adam step" : "sgd step");
}

/* In any layout: behind a gradient that comes in blocks, and with either input first. */
static double relu_grad(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const int64_t dims[4] = {1 + pick(&f, 3), 16 + pick(&f, 20), 4, 5};
    qn_value *y = apply(&f, &qn_op_Relu, add_input(&f, 4, dims), NULL);
    qn_value *dy = add_input(&f, 4, dims);
    const bool scaled = pick(&f, 2);
    qn_value *const in[] = {scaled ? apply(&f, &qn_op_Exp, dy, NULL) : dy, y};
    return finish(&f, make_node(&f, &qn_op_qn_ReluGrad, 2, in, 1), NULL);
}

/* Sums of some thousand products in float: rounding of 6e-8, a few hundred times at worst. */
#define TOLERANCE 5e-5
#define TEST(name, cases)                                                                          \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        run_cases(name, cases, TOLERANCE);                                                         \
    }
TEST(conv_by_input, 60)
TEST(conv_by_weights, 60)
TEST(conv_forward, 60)
TEST(pool, 60)
TEST(batchnorm, 40)
TEST(steps, 30)
TEST(relu_grad, 30)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv_by_input), cmocka_unit_test(test_conv_by_weights),
        cmocka_unit_test(test_conv_forward),  cmocka_unit_test(test_pool),
        cmocka_unit_test(test_batchnorm),     cmocka_unit_test(test_steps),
        cmocka_unit_test(test_relu_grad),
    };
    return RUN_TESTS_OF("cpu", tests);
}
