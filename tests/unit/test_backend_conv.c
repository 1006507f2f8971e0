/* Convolutions, products and pools of the fast backends against the reference: random shapes, odd
 * channels, several samples, every way to fuse what follows. */
#include "backend_test.h"

#include "base/cpu.h"

/* ---- What stands behind ---------------------------------------------------------------------- */

static qn_value *activation(fixture *f, qn_value *x)
{
    static const qn_op *const ops[] = {&qn_op_Relu,     &qn_op_LeakyRelu, &qn_op_HardSwish,
                                       &qn_op_Swish,    &qn_op_Sigmoid,   &qn_op_HardSigmoid,
                                       &qn_op_Tanh,     &qn_op_Gelu,      &qn_op_Elu,
                                       &qn_op_Softplus, &qn_op_Mish};
    const int64_t which = pick(f, (int64_t)QN_COUNT_OF(ops) + 3);
    if (which < (int64_t)QN_COUNT_OF(ops))
        return apply(f, ops[which], x, NULL);
    if (which == (int64_t)QN_COUNT_OF(ops)) {
        qn_value *const in[] = {x, add_number(f, -0.5), add_number(f, 1.5)};
        return result_of(add_node(f, &qn_op_Clip, 3, in));
    }
    return apply(f, pick(f, 2) ? &qn_op_Mul : &qn_op_Add, x, add_number(f, 1.25));
}

/* A residual: an input of the graph, or another convolution's result. */
static qn_value *residual(fixture *f, qn_value *x)
{
    int64_t dims[QN_MAX_RANK];
    assert_true(qn_type_is_static(&x->type, dims));
    qn_value *r = add_input(f, x->type.rank, dims);
    return pick(f, 2) ? apply(f, &qn_op_Relu, r, NULL) : r;
}

static qn_value *normalize(fixture *f, qn_value *x)
{
    const int64_t channels = x->type.dims[1].value;
    qn_value *in[5] = {x};
    for (int i = 1; i < 5; i++)
        in[i] = add_weights(f, 1, &channels);
    for (int64_t c = 0; c < channels; c++)
        ((float *)in[4]->data->data)[c] += 1.5f;
    return result_of(add_node(f, &qn_op_BatchNormalization, 5, in));
}

static qn_value *follow(fixture *f, qn_value *x, qn_value *ready)
{
    const int64_t steps = pick(f, 4);
    for (int64_t i = 0; i < steps; i++) {
        const int64_t what = pick(f, 5);
        if (what == 4 && x->type.rank > 1)
            x = normalize(f, x);
        else if (what == 0 && f->graph->n_inputs < 6)
            x = apply(f, &qn_op_Add, x, ready ? ready : residual(f, x));
        else if (what == 1 && x->type.rank == 4) {
            const int64_t dims[] = {1, x->type.dims[1].value, 1, 1};
            x = apply(f, pick(f, 2) ? &qn_op_Mul : &qn_op_Add, x, add_weights(f, 4, dims));
        } else
            x = activation(f, x);
        ready = NULL;
    }
    return x;
}

/* ---- Convolutions ---------------------------------------------------------------------------- */

typedef struct conv {
    int64_t samples, channels, filters, groups, spatial;
    int64_t size[3], kernel, stride, dilation, pads[6];
    bool transposed;
} conv;

/* So that sums stay near 1, whatever their length: what follows would magnify rounding errors
 * else. */
static qn_value *tame(qn_value *weights, int64_t length)
{
    float *w = (float *)weights->data->data;
    for (int64_t i = 0; i < qn_tensor_count(weights->data); i++)
        w[i] *= 2 / sqrtf((float)length);
    return weights;
}

static qn_value *add_conv(fixture *f, qn_value *x, const conv *c)
{
    int64_t w[5] = {c->filters, c->channels / c->groups, c->kernel, c->kernel, c->kernel};
    const int64_t strides[] = {c->stride, c->stride, c->stride};
    const int64_t dilations[] = {c->dilation, c->dilation, c->dilation};
    if (c->transposed) {
        w[0] = c->channels;
        w[1] = c->filters / c->groups;
    }
    qn_value *const in[] = {x, tame(add_weights(f, (int32_t)c->spatial + 2, w), w[1] * w[2] * w[3]),
                            pick(f, 3) ? add_weights(f, 1, &c->filters) : NULL};
    qn_node *node =
        add_node(f, c->transposed ? &qn_op_ConvTranspose : &qn_op_Conv, in[2] ? 3 : 2, in);
    qn_window_attrs *a = node->attrs;
    a->group = c->groups;
    a->strides = keep_ints(f, strides, (size_t)c->spatial);
    a->dilations = keep_ints(f, dilations, (size_t)c->spatial);
    a->pads = keep_ints(f, c->pads, (size_t)c->spatial * 2);
    return result_of(node);
}

static qn_value *conv_input(fixture *f, const conv *c)
{
    const int64_t dims[] = {c->samples, c->channels, c->size[0], c->size[1], c->size[2]};
    return add_input(f, (int32_t)c->spatial + 2, dims);
}

static conv random_conv(fixture *f)
{
    static const int64_t kernels[] = {1, 1, 3, 3, 3, 5, 7, 2};
    conv c = {.samples = 1 + pick(f, 3), .groups = 1, .stride = 1 + pick(f, 2), .dilation = 1};
    c.spatial = pick(f, 8) ? 2 : 1 + 2 * pick(f, 2);
    c.kernel = kernels[pick(f, (int64_t)QN_COUNT_OF(kernels))];
    c.channels = 1 + pick(f, 40);
    c.filters = 1 + pick(f, 40);
    c.dilation += pick(f, 6) == 0;
    const int64_t extent = (c.kernel - 1) * c.dilation + 1;
    for (int d = 0; d < 3; d++)
        c.size[d] = extent + pick(f, c.spatial == 3 ? 4 : 14);
    for (int i = 0; i < 6; i++)
        c.pads[i] = pick(f, 3) ? pick(f, c.kernel / 2 + 1) : c.kernel / 2;
    if (pick(f, 5) == 0) {
        c.groups = 2 + pick(f, 3);
        c.channels *= c.groups;
        c.filters *= c.groups;
    }
    return c;
}

static double conv_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const conv c = random_conv(&f);
    add_output(&f, follow(&f, add_conv(&f, conv_input(&f, &c), &c), NULL));
    const double worst = compare(&f, NULL);
    fixture_end(&f);
    return worst;
}

/* Weights that another node computes. */
static double computed_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const conv c = random_conv(&f);
    const int64_t one = 1;
    qn_value *y = add_conv(&f, conv_input(&f, &c), &c);
    qn_value *w = apply(&f, &qn_op_Mul, y->producer->in[1], add_input(&f, 1, &one));
    qn_node_move(w->producer, y->producer);
    assert_int_equal(qn_node_set_input(y->producer, 1, w), QN_OK);
    add_output(&f, follow(&f, y, NULL));
    const double worst = compare(&f, lacks_backend("dnnl") ? NULL : "dnnl conv");
    fixture_end(&f);
    return worst;
}

/* Kernels of 3x3 and 5x5 with as many groups as channels. */
static double depthwise_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    conv c = random_conv(&f);
    c.spatial = 2;
    c.kernel = 3 + 2 * pick(&f, 2);
    c.dilation = 1;
    c.channels = c.filters = c.groups = 2 + pick(&f, 60);
    for (int d = 0; d < 2; d++)
        c.size[d] = c.kernel + pick(&f, 30);
    add_output(&f, follow(&f, add_conv(&f, conv_input(&f, &c), &c), NULL));
    const double worst = compare(&f, qn_cpu_isa() >= QN_ISA_AVX2 ? "depthwise" : NULL);
    fixture_end(&f);
    return worst;
}

/* Kernels of 1x1 without strides: any number of filters and places, whole tiles and rests of them,
 * some with a border. */
static conv random_pointwise(fixture *f)
{
    conv c = {.samples = 1 + pick(f, 3), .groups = 1, .spatial = 2, .kernel = 1, .stride = 1};
    c.dilation = 1;
    c.channels = 8 + pick(f, 120);
    c.filters = 1 + pick(f, 150);
    for (int d = 0; d < 2; d++)
        c.size[d] = (c.samples == 1 ? 1 : 3) + pick(f, 14);
    return c;
}

static double pointwise_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    conv c = random_pointwise(&f);
    for (int i = 0; i < 4 && seed % 3 == 0; i++)
        c.pads[i] = pick(&f, 3);
    add_output(&f, follow(&f, add_conv(&f, conv_input(&f, &c), &c), NULL));
    const double worst = compare(&f, qn_cpu_isa() >= QN_ISA_AVX2 ? "pointwise" : NULL);
    fixture_end(&f);
    return worst;
}

/* Both behind each other, with nothing or a function between them that the first one can do. */
static double separable_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    conv after = random_pointwise(&f), c = after;
    c.kernel = 3 + 2 * pick(&f, 2);
    c.stride = 1 + pick(&f, 2);
    c.filters = c.groups = c.channels;
    for (int d = 0; d < 2; d++)
        c.size[d] = 20 + pick(&f, 30);
    for (int i = 0; i < 4; i++)
        c.pads[i] = pick(&f, c.kernel / 2 + 1);
    qn_value *y = add_conv(&f, conv_input(&f, &c), &c);
    if (pick(&f, 3))
        y = apply(&f, pick(&f, 2) ? &qn_op_Relu : &qn_op_Swish, y, NULL);
    add_output(&f, follow(&f, add_conv(&f, y, &after), NULL));
    const double worst = compare(&f, qn_cpu_isa() >= QN_ISA_AVX2 ? "separable" : NULL);
    fixture_end(&f);
    return worst;
}

/* What the rule for Winograd takes, alone and behind a convolution whose result is added again. */
static double winograd_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    conv c = random_conv(&f);
    c.spatial = 2;
    c.kernel = 3;
    c.stride = c.dilation = c.groups = 1;
    c.channels = 12 + pick(&f, 80);
    c.filters = 16 + pick(&f, 80);
    for (int d = 0; d < 2; d++)
        c.size[d] = 8 + pick(&f, 24);
    for (int i = 0; i < 4; i++)
        c.pads[i] = pick(&f, 3);
    qn_value *y = add_conv(&f, conv_input(&f, &c), &c), *ready = NULL;
    if (pick(&f, 2)) {
        conv same = c;
        same.channels = c.filters;
        ready = y = activation(&f, y);
        memset(same.pads, 0, sizeof same.pads);
        for (int i = 0; i < 4; i++)
            same.pads[i] = 1;
        y = add_conv(&f, y, &same);
    }
    add_output(&f, follow(&f, y, ready));
    const double worst = compare(&f, qn_cpu_isa() >= QN_ISA_AVX2 ? "winograd" : NULL);
    fixture_end(&f);
    return worst;
}

static double transposed_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    conv c = random_conv(&f);
    c.transposed = true;
    c.spatial = 2;
    for (int i = 0; i < 4; i++)
        c.pads[i] = pick(&f, c.kernel / 2 + 1);
    add_output(&f, follow(&f, add_conv(&f, conv_input(&f, &c), &c), NULL));
    const double worst = compare(&f, NULL);
    fixture_end(&f);
    return worst;
}

/* ---- Products -------------------------------------------------------------------------------- */

static double matmul_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const int64_t m = 1 + pick(&f, 20), k = 1 + pick(&f, 40), n = 1 + pick(&f, 40);
    const int64_t batch[2] = {1 + pick(&f, 3), 1 + pick(&f, 3)};
    const int64_t a[] = {batch[0], batch[1], m, k};
    const int64_t b[] = {pick(&f, 2) ? batch[0] : 1, pick(&f, 2) ? batch[1] : 1, k, n};
    const int32_t a_rank = 1 + (int32_t)pick(&f, 4), b_rank = 1 + (int32_t)pick(&f, 4);
    /* A vector on the right has the length k. */
    const int64_t *b_dims = b_rank == 1 ? &k : b + 4 - b_rank;
    qn_value *x = add_input(&f, a_rank, a + 4 - a_rank);
    qn_value *w = pick(&f, 2) ? add_weights(&f, b_rank, b_dims) : add_input(&f, b_rank, b_dims);
    qn_value *y = apply(&f, &qn_op_MatMul, x, w);
    if (pick(&f, 2) && b_rank > 1 && y->type.rank > 0)
        y = apply(&f, &qn_op_Add, y, add_weights(&f, 1, &n));
    add_output(&f, follow(&f, y, NULL));
    const double worst = compare(&f, NULL);
    fixture_end(&f);
    return worst;
}

static double gemm_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const int64_t m = 1 + pick(&f, 20), k = 1 + pick(&f, 40), n = 1 + pick(&f, 40);
    const bool a_swapped = pick(&f, 2), b_swapped = pick(&f, 2);
    const int64_t a[] = {a_swapped ? k : m, a_swapped ? m : k};
    const int64_t b[] = {b_swapped ? n : k, b_swapped ? k : n}, c[] = {1, n};
    const int32_t c_rank = 1 + (int32_t)pick(&f, 2);
    qn_value *const in[] = {add_input(&f, 2, a),
                            pick(&f, 3) ? add_weights(&f, 2, b) : add_input(&f, 2, b),
                            add_weights(&f, c_rank, c + 2 - c_rank)};
    qn_node *node = add_node(&f, &qn_op_Gemm, pick(&f, 3) ? 3 : 2, in);
    qn_gemm_attrs *attrs = node->attrs;
    attrs->transA = a_swapped;
    attrs->transB = b_swapped;
    attrs->alpha = pick(&f, 2) ? 1.0f : 0.75f;
    attrs->beta = pick(&f, 2) ? 1.0f : -1.5f;
    add_output(&f, follow(&f, result_of(node), NULL));
    const double worst = compare(&f, NULL);
    fixture_end(&f);
    return worst;
}

/* ---- Pools ----------------------------------------------------------------------------------- */

static double pool_case(uint32_t seed)
{
    static const qn_op *const ops[] = {&qn_op_MaxPool, &qn_op_AveragePool, &qn_op_GlobalAveragePool,
                                       &qn_op_GlobalMaxPool};
    fixture f = fixture_begin(seed);
    conv c = random_conv(&f);
    const int64_t which = pick(&f, 4), kernel[] = {2 + pick(&f, 2), 2 + pick(&f, 3)};
    const int64_t strides[] = {1 + pick(&f, 2), 1 + pick(&f, 3)};
    const int64_t pads[] = {pick(&f, 2), pick(&f, 2), pick(&f, 2), pick(&f, 2)};
    c.spatial = 2;
    c.groups = 1;
    qn_value *x = conv_input(&f, &c);
    if (pick(&f, 2)) /* in the layout of convolutions */
        x = add_conv(&f, x, &c);
    qn_value *const in[] = {x};
    qn_node *node = add_node(&f, ops[which], 1, in);
    if (which < 2) {
        qn_window_attrs *a = node->attrs;
        a->kernel_shape = keep_ints(&f, kernel, 2);
        a->strides = keep_ints(&f, strides, 2);
        a->pads = keep_ints(&f, pads, 4);
        a->ceil_mode = pick(&f, 2);
        a->count_include_pad = which == 1 ? pick(&f, 2) : 0;
    }
    double worst = 0;
    if (qn_node_infer(node) == QN_OK) { /* else the window is larger than the map */
        add_output(&f, follow(&f, node->out[0], NULL));
        worst = compare(&f, NULL);
    }
    fixture_end(&f);
    return worst;
}

static void test_conv(void **state)
{
    (void)state;
    run_cases(conv_case, 150, 1e-5);
}

static void test_computed_weights(void **state)
{
    (void)state;
    run_cases(computed_case, 60, 1e-5);
}

static void test_depthwise(void **state)
{
    (void)state;
    if (lacks_backend("cpu"))
        skip();
    run_cases(depthwise_case, 60, 1e-5);
}

static void test_pointwise(void **state)
{
    (void)state;
    run_cases(pointwise_case, 80, 1e-5);
}

static void test_separable(void **state)
{
    (void)state;
    run_cases(separable_case, 60, 1e-5);
}

static void test_winograd(void **state)
{
    (void)state;
    if (lacks_backend("cpu"))
        skip();
    run_cases(winograd_case, 40, 2e-5);
}

static void test_transposed(void **state)
{
    (void)state;
    run_cases(transposed_case, 40, 1e-5);
}

static void test_matmul(void **state)
{
    (void)state;
    run_cases(matmul_case, 80, 1e-5);
    run_cases(gemm_case, 80, 1e-5);
}

static void test_pool(void **state)
{
    (void)state;
    run_cases(pool_case, 80, 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_depthwise),
        cmocka_unit_test(test_pointwise),
        cmocka_unit_test(test_separable),
        cmocka_unit_test(test_winograd),
        cmocka_unit_test(test_transposed),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_computed_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
