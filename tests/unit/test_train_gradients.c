/* The gradient of every operator that has one, beside finite differences of its reference kernel in
 * doubles, over random shapes and attributes. */
#include "train/gradient.h"
#include "train_test.h"

enum { TRIALS = 6 };

/* ---- Functions of one tensor ----------------------------------------------------------------- */

static qn_value *any(trial *t, double low, double high)
{
    return between(t, DIMS(2, 1 + draw(t, 4), 3), low, high);
}

#define UNARY(op, low, high)                                                                       \
    static qn_value *build_##op(trial *t)                                                          \
    {                                                                                              \
        return APPLY(t, op, any(t, low, high));                                                    \
    }
UNARY(Abs, -2, 2)
UNARY(Cos, -3, 3)
UNARY(Dropout, -2, 2)
UNARY(Erf, -2, 2)
UNARY(Exp, -2, 2)
UNARY(Gelu, -3, 3)
UNARY(HardSwish, -4, 4)
UNARY(Identity, -2, 2)
UNARY(Log, .2, 3)
UNARY(Mish, -3, 3)
UNARY(Neg, -2, 2)
UNARY(Reciprocal, .3, 3)
UNARY(Relu, -2, 2)
UNARY(Sigmoid, -4, 4)
UNARY(Sin, -3, 3)
UNARY(Softplus, -3, 3)
UNARY(Sqrt, .2, 3)
UNARY(Tanh, -2, 2)
UNARY(GlobalAveragePool, -2, 2)
UNARY(GlobalMaxPool, -2, 2)

#define WITH_ALPHA(op, least, most)                                                                \
    static qn_value *build_##op(trial *t)                                                          \
    {                                                                                              \
        qn_value *y = APPLY(t, op, any(t, -3, 3));                                                 \
        set_float(y, "alpha", draw_real(t, least, most));                                          \
        return y;                                                                                  \
    }
WITH_ALPHA(Elu, .2, 2)
WITH_ALPHA(HardSigmoid, .1, .4)
WITH_ALPHA(LeakyRelu, .01, .5)
WITH_ALPHA(Swish, .5, 2)

static qn_value *build_gelu_tanh(trial *t)
{
    qn_value *y = build_Gelu(t);
    set_int(y, "approximate", QN_GELU_TANH);
    return y;
}

static qn_value *build_Cast(trial *t)
{
    qn_value *y = APPLY(t, Cast, any(t, -2, 2));
    set_int(y, "to", QN_FLOAT64);
    return y;
}

static qn_value *build_Clip(trial *t)
{
    qn_value *x = any(t, -3, 3), *low = draw(t, 2) ? constant(t, -1) : NULL;
    return APPLY(t, Clip, x, low, constant(t, 1.5));
}

#define ALONG(op)                                                                                  \
    static qn_value *build_##op(trial *t)                                                          \
    {                                                                                              \
        qn_value *y = APPLY(t, op, any(t, -2, 2));                                                 \
        set_int(y, "axis", draw(t, 6) - 3);                                                        \
        return y;                                                                                  \
    }
ALONG(Softmax)
ALONG(LogSoftmax)

/* ---- Two tensors ----------------------------------------------------------------------------- */

/* One of several shapes that broadcast with [2, 3, 4]. */
static qn_value *operand(trial *t, double low, double high)
{
    switch (draw(t, 5)) {
    case 0: return between(t, DIMS(2, 3, 4), low, high);
    case 1: return between(t, DIMS(4), low, high);
    case 2: return between(t, DIMS(3, 1), low, high);
    case 3: return between(t, 0, NULL, low, high);
    default: return between(t, DIMS(2, 1, 4), low, high);
    }
}

#define BINARY(op, low, high)                                                                      \
    static qn_value *build_##op(trial *t)                                                          \
    {                                                                                              \
        qn_value *a = operand(t, low, high);                                                       \
        return APPLY(t, op, a, operand(t, low, high));                                             \
    }
BINARY(Add, -2, 2)
BINARY(Div, .5, 2)
BINARY(Max, -2, 2)
BINARY(Min, -2, 2)
BINARY(Mul, -2, 2)
BINARY(Pow, .5, 2)
BINARY(Sub, -2, 2)

static qn_value *build_Sum(trial *t)
{
    qn_value *a = operand(t, -2, 2), *b = operand(t, -2, 2);
    return APPLY(t, Sum, a, b, operand(t, -2, 2));
}

static qn_value *build_PRelu(trial *t)
{
    qn_value *x = between(t, DIMS(2, 3, 4), -2, 2);
    return APPLY(t, PRelu, x, between(t, DIMS(3, 1), -1, 1));
}

static qn_value *build_Where(trial *t)
{
    qn_value *a = operand(t, -2, 2), *b = operand(t, -2, 2);
    qn_value *condition = APPLY(t, Greater, between(t, DIMS(3, 4), -1, 1), constant(t, 0));
    return APPLY(t, Where, condition, a, b);
}

/* One value with several readers. */
static qn_value *build_readers(trial *t)
{
    qn_value *x = any(t, -1, 1), *y = APPLY(t, Exp, x);
    return APPLY(t, Add, APPLY(t, Mul, x, y), APPLY(t, Add, y, x));
}

/* ---- Moves ----------------------------------------------------------------------------------- */

static qn_value *build_Concat(trial *t)
{
    qn_value *a = between(t, DIMS(2, 1, 3), -1, 1), *b = between(t, DIMS(2, 4, 3), -1, 1);
    qn_value *y = APPLY(t, Concat, a, b, a);
    set_int(y, "axis", draw(t, 2) ? 1 : -2);
    return y;
}

static qn_value *build_Split(trial *t)
{
    qn_node *node =
        add_node(t, &qn_op_Split, 3, 2, between(t, DIMS(2, 6), -1, 1), INTS(t, 1, 3, 2));
    *(int64_t *)qn_attr_field(node, qn_op_attr(node->op, "axis", QN_LATEST_OPSET)) = -1;
    return APPLY(t, Mul, node->out[0], node->out[2]);
}

static qn_value *build_Transpose(trial *t)
{
    const int64_t perm[3] = {2, 0, 1};
    qn_value *y = APPLY(t, Transpose, between(t, DIMS(2, 3, 4), -1, 1));
    if (draw(t, 2))
        set_ints(t, y, "perm", perm, 3);
    return y;
}

static qn_value *build_Reshape(trial *t)
{
    return APPLY(t, Reshape, between(t, DIMS(2, 6), -1, 1), INTS(t, 3, -1));
}

static qn_value *build_Flatten(trial *t)
{
    return APPLY(t, Flatten, between(t, DIMS(2, 3, 2), -1, 1));
}

static qn_value *build_Squeeze(trial *t)
{
    return APPLY(t, Squeeze, between(t, DIMS(2, 1, 3), -1, 1), INTS(t, 1));
}

static qn_value *build_Unsqueeze(trial *t)
{
    return APPLY(t, Unsqueeze, between(t, DIMS(2, 3), -1, 1), INTS(t, 0, -1));
}

static qn_value *build_Expand(trial *t)
{
    return APPLY(t, Expand, between(t, DIMS(3, 1), -1, 1), INTS(t, 2, 1, 4));
}

static qn_value *build_Tile(trial *t)
{
    return APPLY(t, Tile, between(t, DIMS(2, 3), -1, 1), INTS(t, 2, 1 + draw(t, 3)));
}

static qn_value *build_Slice(trial *t)
{
    const int64_t step = draw(t, 2) ? 2 : -2;
    qn_value *x = between(t, DIMS(2, 7, 5), -1, 1);
    return APPLY(t, Slice, x, INTS(t, step > 0 ? draw(t, 3) : -1, 1),
                 INTS(t, step > 0 ? 100 : -100, -1), INTS(t, 1, -1), INTS(t, step, 1));
}

static qn_value *build_Pad(trial *t)
{
    const int64_t a = draw(t, 3), b = draw(t, 3) - 1;
    qn_value *y = APPLY(t, Pad, between(t, DIMS(2, 4, 5), -1, 1), INTS(t, 0, a, b, 0, b, 1));
    set_int(y, "mode", draw(t, 2) ? QN_PAD_CONSTANT : QN_PAD_EDGE);
    return y;
}

static qn_value *build_reflected(trial *t)
{
    qn_value *y = APPLY(t, Pad, between(t, DIMS(2, 4, 5), -1, 1), INTS(t, 0, 2, 1, 0, 1, 3));
    set_int(y, "mode", QN_PAD_REFLECT);
    return y;
}

static qn_value *build_Gather(trial *t)
{
    qn_value *y = APPLY(t, Gather, between(t, DIMS(4, 3), -1, 1), INTS(t, 1, -1, 1));
    set_int(y, "axis", draw(t, 2));
    return y;
}

static qn_value *build_GatherElements(trial *t)
{
    qn_value *where = APPLY(t, Reshape, INTS(t, 0, 2, 2, 1), INTS(t, 2, 2));
    return APPLY(t, GatherElements, between(t, DIMS(3, 2), -1, 1), where);
}

static qn_value *build_GatherND(trial *t)
{
    qn_value *where = APPLY(t, Reshape, INTS(t, 0, 2, 0, 1), INTS(t, 2, 2));
    return APPLY(t, GatherND, between(t, DIMS(2, 3, 2), -1, 1), where);
}

static qn_value *build_DepthToSpace(trial *t)
{
    qn_value *y = APPLY(t, DepthToSpace, between(t, DIMS(1, 8, 2, 3), -1, 1));
    set_int(y, "blocksize", 2);
    set_int(y, "mode", draw(t, 2));
    return y;
}

static qn_value *build_SpaceToDepth(trial *t)
{
    qn_value *y = APPLY(t, SpaceToDepth, between(t, DIMS(1, 2, 4, 6), -1, 1));
    set_int(y, "blocksize", 2);
    return y;
}

static qn_value *build_Resize(trial *t)
{
    qn_value *x = between(t, DIMS(1, 2, 3, 2), -1, 1);
    return APPLY(t, Resize, x, NULL, NULL, INTS(t, 1, 2, 3 + draw(t, 5), 4));
}

/* ---- Products -------------------------------------------------------------------------------- */

static qn_value *build_MatMul(trial *t)
{
    qn_value *a, *b;
    switch (draw(t, 5)) {
    case 0:
        a = between(t, DIMS(2, 3), -1, 1);
        b = between(t, DIMS(3, 4), -1, 1);
        break;
    case 1:
        a = between(t, DIMS(2, 5, 3), -1, 1);
        b = between(t, DIMS(3, 4), -1, 1);
        break;
    case 2:
        a = between(t, DIMS(2, 1, 2, 3), -1, 1);
        b = between(t, DIMS(3, 3, 2), -1, 1);
        break;
    case 3:
        a = between(t, DIMS(3), -1, 1);
        b = between(t, DIMS(2, 3, 4), -1, 1);
        break;
    default:
        a = between(t, DIMS(2, 4, 3), -1, 1);
        b = between(t, DIMS(3), -1, 1);
        break;
    }
    return APPLY(t, MatMul, a, b);
}

static qn_value *build_Gemm(trial *t)
{
    const int64_t trans_a = draw(t, 2), trans_b = draw(t, 2);
    qn_value *a = trans_a ? between(t, DIMS(3, 2), -1, 1) : between(t, DIMS(2, 3), -1, 1);
    qn_value *b = trans_b ? between(t, DIMS(4, 3), -1, 1) : between(t, DIMS(3, 4), -1, 1);
    qn_value *c = draw(t, 2) ? between(t, DIMS(4), -1, 1) : between(t, DIMS(2, 1), -1, 1);
    qn_value *y = APPLY(t, Gemm, a, b, c);
    set_int(y, "transA", trans_a);
    set_int(y, "transB", trans_b);
    set_float(y, "alpha", draw_real(t, .5, 2));
    set_float(y, "beta", draw_real(t, .5, 2));
    return y;
}

static void set_window(trial *t, qn_value *y, bool has_pads)
{
    const int64_t strides[2] = {1 + draw(t, 2), 1 + draw(t, 3)};
    const int64_t dilations[2] = {1 + draw(t, 2), 1};
    const int64_t pads[4] = {draw(t, 2), draw(t, 2), draw(t, 2), draw(t, 2)};
    set_ints(t, y, "strides", strides, 2);
    set_ints(t, y, "dilations", dilations, 2);
    if (has_pads)
        set_ints(t, y, "pads", pads, 4);
    else
        set_int(y, "auto_pad", QN_AUTO_PAD_SAME_UPPER + draw(t, 2));
}

static qn_value *build_Conv(trial *t)
{
    const int64_t group = 1 + draw(t, 3), each = 1 + draw(t, 2), filters = group * (1 + draw(t, 2));
    qn_value *x = between(t, DIMS(2, group * each, 5, 7), -1, 1);
    qn_value *w = between(t, DIMS(filters, each, 1 + draw(t, 3), 2), -1, 1);
    qn_value *y =
        draw(t, 2) ? APPLY(t, Conv, x, w, between(t, DIMS(filters), -1, 1)) : APPLY(t, Conv, x, w);
    set_int(y, "group", group);
    set_window(t, y, draw(t, 4) != 0);
    return y;
}

static qn_value *build_ConvTranspose(trial *t)
{
    const int64_t group = 1 + draw(t, 2), each = 1 + draw(t, 2);
    qn_value *x = between(t, DIMS(2, group * 2, 3, 4), -1, 1);
    qn_value *w = between(t, DIMS(group * 2, each, 3, 2), -1, 1);
    qn_value *y = draw(t, 2) ? APPLY(t, ConvTranspose, x, w, between(t, DIMS(group * each), -1, 1))
                             : APPLY(t, ConvTranspose, x, w);
    set_int(y, "group", group);
    set_window(t, y, true);
    return y;
}

/* ---- Reductions, pools, norms ---------------------------------------------------------------- */

#define REDUCE(op)                                                                                 \
    static qn_value *build_##op(trial *t)                                                          \
    {                                                                                              \
        qn_value *x = between(t, DIMS(2, 3, 4), -2, 2);                                            \
        qn_value *y = draw(t, 3) ? APPLY(t, op, x, INTS(t, -1, 0)) : APPLY(t, op, x);              \
        set_int(y, "keepdims", draw(t, 2));                                                        \
        return y;                                                                                  \
    }
REDUCE(ReduceMax)
REDUCE(ReduceMean)
REDUCE(ReduceMin)
REDUCE(ReduceSum)
REDUCE(ReduceSumSquare)

static qn_value *pool_of(trial *t, qn_value *y)
{
    const int64_t kernel[2] = {2 + draw(t, 2), 3};
    set_ints(t, y, "kernel_shape", kernel, 2);
    set_int(y, "ceil_mode", draw(t, 2));
    set_window(t, y, draw(t, 4) != 0);
    return y;
}

static qn_value *build_MaxPool(trial *t)
{
    return pool_of(t, APPLY(t, MaxPool, between(t, DIMS(2, 2, 6, 7), -1, 1)));
}

static qn_value *build_AveragePool(trial *t)
{
    qn_value *y = pool_of(t, APPLY(t, AveragePool, between(t, DIMS(2, 2, 6, 7), -1, 1)));
    set_int(y, "count_include_pad", draw(t, 2));
    return y;
}

/* Fixed statistics are constants. */
static qn_value *statistics(trial *t, int64_t channels)
{
    qn_value *value;
    assert_int_equal(
        qn_value_constant(&value, t->graph, "statistics", random_tensor(t, 1, &channels, .5, 2)),
        QN_OK);
    return value;
}

static qn_value *build_BatchNormalization(trial *t)
{
    const int64_t channels = 1 + draw(t, 3), training = draw(t, 2);
    qn_value *x = between(t, DIMS(3, channels, 2, 2), -1, 1);
    qn_value *scale = between(t, DIMS(channels), .5, 2), *shift = between(t, DIMS(channels), -1, 1);
    qn_value *mean = statistics(t, channels), *variance = statistics(t, channels);
    const bool gives = training && draw(t, 2);
    qn_node *node =
        add_node(t, &qn_op_BatchNormalization, gives ? 3 : 1, 5, x, scale, shift, mean, variance);
    set_int(node->out[0], "training_mode", training);
    set_float(node->out[0], "momentum", gives ? 0 : .9);
    return node->out[0];
}

static qn_value *build_LayerNormalization(trial *t)
{
    const int64_t axis = 1 + draw(t, 2);
    qn_value *x = between(t, DIMS(2, 3, 4), -1, 1);
    qn_value *scale = axis == 1 ? between(t, DIMS(3, 4), .5, 2) : between(t, DIMS(4), .5, 2);
    qn_value *shift = axis == 1 ? between(t, DIMS(3, 4), -1, 1) : between(t, DIMS(4), -1, 1);
    qn_value *y = draw(t, 2) ? APPLY(t, LayerNormalization, x, scale, shift)
                             : APPLY(t, LayerNormalization, x, scale);
    set_int(y, "axis", draw(t, 2) ? axis : axis - 3);
    return y;
}

static qn_value *build_InstanceNormalization(trial *t)
{
    qn_value *x = between(t, DIMS(2, 3, 2, 4), -1, 1), *scale = between(t, DIMS(3), .5, 2);
    return APPLY(t, InstanceNormalization, x, scale, between(t, DIMS(3), -1, 1));
}

/* ---- The table ------------------------------------------------------------------------------- */

#define CASE(op)                                                                                   \
    {                                                                                              \
        &qn_op_##op, #op, build_##op                                                               \
    }
static const struct {
    const qn_op *op;
    const char *name;
    build_fn *build;
} cases[] = {CASE(Abs),
             CASE(Add),
             CASE(AveragePool),
             CASE(BatchNormalization),
             CASE(Cast),
             CASE(Clip),
             CASE(Concat),
             CASE(Conv),
             CASE(ConvTranspose),
             CASE(Cos),
             CASE(DepthToSpace),
             CASE(Div),
             CASE(Dropout),
             CASE(Elu),
             CASE(Erf),
             CASE(Exp),
             CASE(Expand),
             CASE(Flatten),
             CASE(Gather),
             CASE(GatherElements),
             CASE(GatherND),
             CASE(Gelu),
             CASE(Gemm),
             CASE(GlobalAveragePool),
             CASE(GlobalMaxPool),
             CASE(HardSigmoid),
             CASE(HardSwish),
             CASE(Identity),
             CASE(InstanceNormalization),
             CASE(LayerNormalization),
             CASE(LeakyRelu),
             CASE(Log),
             CASE(LogSoftmax),
             CASE(MatMul),
             CASE(Max),
             CASE(MaxPool),
             CASE(Min),
             CASE(Mish),
             CASE(Mul),
             CASE(Neg),
             CASE(PRelu),
             CASE(Pad),
             CASE(Pow),
             CASE(Reciprocal),
             CASE(ReduceMax),
             CASE(ReduceMean),
             CASE(ReduceMin),
             CASE(ReduceSum),
             CASE(ReduceSumSquare),
             CASE(Relu),
             CASE(Reshape),
             CASE(Resize),
             CASE(Sigmoid),
             CASE(Sin),
             CASE(Slice),
             CASE(Softmax),
             CASE(Softplus),
             CASE(SpaceToDepth),
             CASE(Split),
             CASE(Sqrt),
             CASE(Squeeze),
             CASE(Sub),
             CASE(Sum),
             CASE(Swish),
             CASE(Tanh),
             CASE(Tile),
             CASE(Transpose),
             CASE(Unsqueeze),
             CASE(Where),
             {&qn_op_Gelu, "Gelu, tanh", build_gelu_tanh},
             {&qn_op_Pad, "Pad, reflected", build_reflected},
             {NULL, "several readers", build_readers}};

static void finite_differences(void **state)
{
    (void)state;
    for (size_t c = 0; c < QN_COUNT_OF(cases); c++) {
        for (uint32_t i = 0; i < TRIALS; i++)
            check_trial(cases[c].name, cases[c].build, 1000 * (uint32_t)c + 77 * i + 1);
    }
}

/* A row without a case would be a gradient that nobody has checked. Fake quantization, whose
 * gradient is not that of what it computes, is checked in test_train_steps.c. */
static void every_row_has_a_case(void **state)
{
    (void)state;
    for (size_t r = 0; r < qn_gradients_count; r++) {
        bool found = !qn_gradients[r].fn || qn_gradients[r].op == &qn_op_qn_FakeQuant;
        for (size_t c = 0; c < QN_COUNT_OF(cases); c++)
            found = found || cases[c].op == qn_gradients[r].op;
        if (!found)
            fail_msg("the gradient of %s has no case", qn_gradients[r].op->name);
    }
}

/* An operator without a gradient is named, but only where a gradient would have to go through. */
static void refused(void **state)
{
    trial t = {.random = 1};
    qn_value *gradient, *x, *loss;
    (void)state;
    assert_int_equal(qn_context_create(&t.ctx, NULL), QN_OK);
    assert_int_equal(qn_model_create(&t.model, t.ctx), QN_OK);
    t.graph = t.model->graph;
    x = between(&t, DIMS(2, 2), 1, 2);
    loss = APPLY(&t, ReduceSum, APPLY(&t, Det, APPLY(&t, Exp, x)));
    assert_int_equal(qn_graph_infer(t.graph), QN_OK);
    assert_int_equal(qn_differentiate(&gradient, t.graph, loss, &x, 1), QN_E_UNSUPPORTED);
    assert_non_null(strstr(qn_context_error(t.ctx), "'Det' (Det)"));
    assert_int_equal(qn_differentiate(&gradient, t.graph, x, &x, 1), QN_E_INVALID);
    qn_model_free(t.model);
    qn_context_free(t.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finite_differences),
        cmocka_unit_test(every_row_has_a_case),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
