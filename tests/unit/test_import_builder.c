/* Graphs that importers make: nodes by operator, names of the framework, all that is unsupported at
 * once, and layers with their channels last, run by the reference kernels and held against loops
 * over them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "import/layout.h"
#include "ops/nn_attrs.h"

typedef struct fixture {
    qn_context *ctx;
    qn_graph_builder b;
    qn_layouts layouts;
} fixture;

static fixture begin(void)
{
    fixture f;
    assert_int_equal(qn_context_create(&f.ctx, NULL), QN_OK);
    qn_model_source source = {.ctx = f.ctx, .path = "net.test"};
    assert_int_equal(qn_graph_builder_open(&f.b, &source, "Test"), QN_OK);
    return f;
}

static void end(fixture *f)
{
    qn_graph_builder_close(&f->b);
    qn_context_free(f->ctx);
}

static qn_value *input(fixture *f, const char *name, int32_t rank, const int64_t *dims)
{
    const qn_type type = qn_type_tensor(QN_FLOAT32, rank, dims);
    qn_value *value;
    assert_int_equal(qn_graph_build_input(&value, &f->b, name, &type), QN_OK);
    return value;
}

static float noise(size_t i)
{
    return (float)((i * 2654435761u >> 7) % 2001) / 1000 - 1;
}

/* Runs the finished model on noise and gives the first output, `count` numbers. */
static void run(float *out, int64_t count, fixture *f)
{
    qn_plan *plan;
    qn_session *session;
    qn_plan_options options = QN_PLAN_OPTIONS_INIT;
    const qn_value *x = f->b.graph->inputs[0];
    qn_tensor in = {.dtype = QN_FLOAT32, .rank = x->type.rank};
    options.backend = "ref";
    assert_true(qn_type_is_static(&x->type, in.dims));
    float *numbers = malloc((size_t)qn_tensor_count(&in) * sizeof *numbers);
    assert_non_null(numbers);
    for (int64_t i = 0; i < qn_tensor_count(&in); i++)
        numbers[i] = noise((size_t)i);
    in.data = numbers;
    assert_int_equal(qn_graph_builder_finish(&f->b), QN_OK);
    assert_int_equal(qn_plan_create(&plan, f->ctx, f->b.model, &options), QN_OK);
    assert_int_equal(qn_session_create(&session, f->ctx, plan), QN_OK);
    assert_int_equal(qn_session_run(session, &in, 1), QN_OK);
    assert_int_equal(qn_tensor_count(qn_session_output(session, 0)), count);
    memcpy(out, qn_session_output(session, 0)->data, (size_t)count * sizeof *out);
    qn_session_free(session);
    qn_plan_free(plan);
    free(numbers);
}

static size_t count_nodes(const fixture *f, const qn_op *op)
{
    size_t count = 0;
    for (const qn_node *node = f->b.graph->first; node; node = node->next)
        count += node->op == op;
    return count;
}

/* ---- Layers with channels last --------------------------------------------------------------- */

enum { H = 5, W = 7, C = 3, F = 4, K = 3, S = 2, OH = 3, OW = 4 };

static float weights[K * K * C * F], bias[F] = {.5f, -.25f, 0, 1};

/* relu(conv(x, w) + b) with TensorFlow's SAME, everything in its order: x [H, W, C], w [K, K, C,
 * F]. */
static float expected_at(int y, int x, int c)
{
    const int top = ((OH - 1) * S + K - H) / 2, left = ((OW - 1) * S + K - W) / 2;
    double sum = (double)bias[c];
    for (int ky = 0; ky < K; ky++) {
        for (int kx = 0; kx < K; kx++) {
            const int iy = y * S + ky - top, ix = x * S + kx - left;
            for (int i = 0; i < C && iy >= 0 && iy < H && ix >= 0 && ix < W; i++)
                sum += (double)noise((size_t)((iy * W + ix) * C + i)) *
                       (double)weights[((ky * K + kx) * C + i) * F + c];
        }
    }
    return sum < 0 ? 0 : (float)sum;
}

/* A convolution as an importer of TensorFlow makes it: weights [K, K, C, F] become [F, C, K, K]. */
static void add_conv(fixture *f, const char *from, const char *to)
{
    static const int64_t dims[] = {K, K, C, F};
    const qn_type type = qn_type_tensor(QN_FLOAT32, 4, dims);
    const qn_string bytes = {(const char *)weights, sizeof weights};
    const qn_slide rows = {H, K, S, 1}, columns = {W, K, S, 1};
    int64_t top, bottom, left, right;
    qn_value *x, *w, *y;
    qn_graph_builder *b = &f->b;
    qn_graph_builder_layer(b, to, "Conv2D");
    qn_same_padding(&top, &bottom, &rows);
    qn_same_padding(&left, &right, &columns);
    assert_int_equal(qn_layout_find(&x, &f->layouts, from, QN_ORDER_CHANNELS_FIRST), QN_OK);
    assert_int_equal(qn_graph_build_constant(&w, b, "w", &type, bytes), QN_OK);
    assert_int_equal(qn_graph_build(&w, b, &qn_op_Transpose, QN_INPUTS(w),
                                    QN_WITH(QN_A_INTS("perm", 3, 2, 0, 1))),
                     QN_OK);
    assert_int_equal(
        qn_graph_build(&y, b, &qn_op_Conv, QN_INPUTS(x, w),
                       QN_WITH(QN_A_INTS("strides", S, S),
                               QN_A_INTS("pads", top, left, bottom, right), QN_A_INT("group", 1))),
        QN_OK);
    assert_int_equal(qn_layout_define(&f->layouts, to, y, QN_ORDER_CHANNELS_FIRST), QN_OK);
}

/* A layer to which the order of axes means nothing. */
static void add_relu(fixture *f, const char *from, const char *to)
{
    qn_value *x, *y;
    qn_axis_order order;
    assert_int_equal(qn_layout_any(&x, &order, &f->layouts, from), QN_OK);
    assert_int_equal(qn_graph_build(&y, &f->b, &qn_op_Relu, QN_INPUTS(x), QN_PLAIN), QN_OK);
    assert_int_equal(qn_layout_define(&f->layouts, to, y, order), QN_OK);
}

static void add_sum(fixture *f, const char *left, const char *right, const char *to)
{
    const char *names[] = {left, right};
    qn_value *values[2], *y;
    qn_axis_order order;
    assert_int_equal(qn_layout_agree(values, &order, &f->layouts, names, 2), QN_OK);
    assert_int_equal(order, QN_ORDER_CHANNELS_FIRST);
    assert_int_equal(
        qn_graph_build(&y, &f->b, &qn_op_Add, QN_INPUTS(values[0], values[1]), QN_PLAIN), QN_OK);
    assert_int_equal(qn_layout_define(&f->layouts, to, y, order), QN_OK);
}

static void channels_last(void **state)
{
    static const int64_t dims[] = {1, H, W, C};
    float out[OH * OW * F];
    fixture f = begin();
    qn_value *value;
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(weights); i++)
        weights[i] = noise(i + 99);
    qn_layouts_init(&f.layouts, &f.b);
    value = input(&f, "x", 4, dims);
    assert_int_equal(qn_layout_define(&f.layouts, "x", value, QN_ORDER_OWN), QN_OK);
    add_conv(&f, "x", "conv");
    assert_int_equal(qn_graph_build_reals(&value, &f.b, bias, F), QN_OK);
    assert_int_equal(qn_layout_define(&f.layouts, "b", value, QN_ORDER_OWN), QN_OK);
    add_sum(&f, "conv", "b", "sum");
    add_relu(&f, "sum", "y");
    assert_int_equal(qn_layout_find(&value, &f.layouts, "y", QN_ORDER_OWN), QN_OK);
    assert_int_equal(qn_graph_build_define(&f.b, "y", value), QN_OK);
    assert_int_equal(qn_graph_build_output(&f.b, "y"), QN_OK);
    /* The picture in and out, the weights, and the bias: nothing between the layers. */
    assert_int_equal(count_nodes(&f, &qn_op_Transpose), 4);
    /* Asked for again, the same value. */
    qn_value *again;
    assert_int_equal(qn_layout_find(&again, &f.layouts, "y", QN_ORDER_OWN), QN_OK);
    assert_ptr_equal(again, value);
    run(out, OH * OW * F, &f);
    for (int i = 0; i < OH * OW * F; i++) {
        const float wanted = expected_at(i / F / OW, i / F % OW, i % F);
        assert_true(fabsf(out[i] - wanted) < 1e-5f);
    }
    qn_layouts_free(&f.layouts);
    end(&f);
}

static void axes(void **state)
{
    static const int64_t pairs[4][2] = {{0, 0}, {1, 2}, {3, 4}, {5, 6}};
    static const int64_t pads_first[] = {0, 5, 1, 3, 0, 6, 2, 4};
    int64_t perm[4], back[4], both[4], pads[8];
    (void)state;
    assert_int_equal(qn_layout_axis(QN_ORDER_CHANNELS_FIRST, 4, -1), 1);
    assert_int_equal(qn_layout_axis(QN_ORDER_CHANNELS_FIRST, 4, 1), 2);
    assert_int_equal(qn_layout_axis(QN_ORDER_CHANNELS_FIRST, 5, 3), 4);
    assert_int_equal(qn_layout_axis(QN_ORDER_CHANNELS_FIRST, 2, 1), 1);
    assert_int_equal(qn_layout_axis(QN_ORDER_OWN, 4, -1), 3);
    qn_layout_perm(perm, 4, QN_ORDER_CHANNELS_FIRST);
    qn_layout_perm(back, 4, QN_ORDER_OWN);
    assert_memory_equal(perm, ((int64_t[]){0, 3, 1, 2}), sizeof perm);
    assert_memory_equal(back, ((int64_t[]){0, 2, 3, 1}), sizeof back);
    qn_perm_compose(both, 4, perm, back);
    assert_memory_equal(both, ((int64_t[]){0, 1, 2, 3}), sizeof both);
    qn_layout_pads(pads, 4, QN_ORDER_CHANNELS_FIRST, pairs);
    assert_memory_equal(pads, pads_first, sizeof pads);
}

/* Every size, kernel, stride and padding that fits into small numbers, held against the
 * definitions. */
static void windows(void **state)
{
    int64_t begin, end;
    (void)state;
    for (int64_t size = 1; size < 12; size++) {
        for (int64_t kernel = 1; kernel <= 4; kernel++) {
            for (int64_t stride = 1; stride <= 4; stride++) {
                const qn_slide slide = {size, kernel, stride, 1};
                qn_same_padding(&begin, &end, &slide);
                assert_in_range(end - begin, 0, 1);
                assert_true(size + begin + end >= kernel);
                assert_int_equal((size + begin + end - kernel) / stride + 1,
                                 (size + stride - 1) / stride);
                for (int64_t pad = 0; pad < kernel && size + 2 * pad >= kernel; pad++) {
                    /* pooling_layer.cpp */
                    int64_t pooled =
                        (int64_t)ceil((double)(size + 2 * pad - kernel) / (double)stride) + 1;
                    if (pad && (pooled - 1) * stride >= size + pad)
                        --pooled;
                    end = qn_ceil_padding(&slide, pad, pad);
                    assert_int_equal((size + pad + end - kernel) / stride + 1, pooled);
                    assert_int_equal((size + pad + end - kernel) % stride, 0);
                }
            }
        }
    }
}

/* ---- Names, constants, failures -------------------------------------------------------------- */

/* Layers in place give one name to several values; the output keeps it. */
static void names(void **state)
{
    static const int64_t dims[] = {1, 4};
    float out[4];
    fixture f = begin();
    qn_value *x = input(&f, "data", 2, dims), *y;
    (void)state;
    qn_graph_builder_layer(&f.b, "ip", "Power");
    assert_int_equal(qn_graph_build(&y, &f.b, &qn_op_Neg, QN_INPUTS(x), QN_PLAIN), QN_OK);
    assert_string_equal(y->name, "ip");
    assert_int_equal(qn_graph_build_define(&f.b, "ip", y), QN_OK);
    qn_graph_builder_layer(&f.b, "relu", "ReLU");
    assert_int_equal(qn_graph_build_find(&x, &f.b, "ip"), QN_OK);
    assert_int_equal(qn_graph_build(&y, &f.b, &qn_op_Relu, QN_INPUTS(x), QN_PLAIN), QN_OK);
    assert_int_equal(qn_graph_build_define(&f.b, "ip", y), QN_OK);
    assert_int_equal(qn_graph_build_output(&f.b, "ip"), QN_OK);
    assert_string_equal(y->name, "ip");
    assert_string_not_equal(x->name, "ip");
    /* An input that is an output too. */
    assert_int_equal(qn_graph_build_output(&f.b, "data"), QN_OK);
    assert_int_equal(f.b.graph->n_outputs, 2);
    qn_graph_builder_layer(&f.b, "lost", "ReLU");
    assert_int_equal(qn_graph_build_find(&y, &f.b, "nobody"), QN_E_FORMAT);
    assert_string_equal(qn_context_error(f.ctx), "layer 'lost' (ReLU): nothing computes 'nobody'");
    run(out, 4, &f);
    for (size_t i = 0; i < 4; i++)
        assert_true(out[i] == fmaxf(-noise(i), 0));
    end(&f);
}

static void constants(void **state)
{
    static const int64_t dims[] = {2, 3};
    static _Alignas(16) const char file[32] = {0};
    const qn_type type = qn_type_tensor(QN_FLOAT32, 2, dims);
    fixture f = begin();
    qn_value *value;
    (void)state;
    qn_graph_builder_layer(&f.b, "fc", "InnerProduct");
    assert_int_equal(qn_graph_build_constant(&value, &f.b, "w", &type, (qn_string){file, 24}),
                     QN_OK);
    assert_ptr_equal(value->data->data, file);
    assert_int_equal(qn_graph_build_constant(&value, &f.b, "w", &type, (qn_string){file + 1, 24}),
                     QN_OK);
    assert_true(qn_tensor_is_aligned(value->data));
    assert_int_equal(qn_graph_build_constant(&value, &f.b, "w", &type, (qn_string){file, 20}),
                     QN_E_FORMAT);
    assert_string_equal(
        qn_context_error(f.ctx),
        "layer 'fc' (InnerProduct): 'w' has 20 bytes where float32[2,3] asks for 24");
    end(&f);
}

static void failures_name_the_layer(void **state)
{
    static const int64_t dims[] = {1, 4}, other[] = {3, 5};
    fixture f = begin();
    qn_value *x = input(&f, "x", 2, dims), *w = input(&f, "w", 2, other), *y;
    (void)state;
    qn_graph_builder_layer(&f.b, "fc", "InnerProduct");
    const qn_status status = qn_graph_build(&y, &f.b, &qn_op_MatMul, QN_INPUTS(x, w), QN_PLAIN);
    assert_int_not_equal(status, QN_OK);
    assert_int_equal(strncmp(qn_context_error(f.ctx), "layer 'fc' (InnerProduct): ", 27), 0);
    /* Words of enumerations are checked. */
    assert_int_equal(qn_graph_build(&y, &f.b, &qn_op_MaxPool, QN_INPUTS(x),
                                    QN_WITH(QN_A_TEXT("auto_pad", "BOTH"))),
                     QN_E_INVALID);
    assert_non_null(strstr(qn_context_error(f.ctx), "'BOTH' is no auto_pad"));
    end(&f);
}

/* All layers that cannot be read are found, however many there are, and what hangs on them is no
 * fault of its own. */
static void unsupported_layers_are_listed(void **state)
{
    static const int64_t dims[] = {1, 4};
    fixture f = begin();
    qn_value *x, *y;
    (void)state;
    input(&f, "x", 2, dims);
    for (int i = 0; i < 40; i++) {
        char *name = qn_arena_format(&f.b.model->arena, "proposal%d", i);
        const char *outputs[] = {name};
        qn_graph_builder_layer(&f.b, name, i ? "Proposal" : "Python");
        const qn_status status = i == 1
                                     ? qn_graph_builder_fail(&f.b, QN_E_UNSUPPORTED, "no anchors")
                                     : qn_fail(f.ctx, QN_E_UNSUPPORTED, "no such layer is known");
        assert_int_equal(qn_graph_builder_settle(&f.b, status, outputs, 1), QN_OK);
        qn_graph_builder_layer(&f.b, "relu", "ReLU");
        assert_int_equal(qn_graph_build_find(&x, &f.b, name), QN_OK);
        assert_int_equal(qn_graph_build(&y, &f.b, &qn_op_Relu, QN_INPUTS(x), QN_PLAIN), QN_OK);
    }
    assert_int_equal(qn_graph_builder_finish(&f.b), QN_E_UNSUPPORTED);
    const char *message = qn_context_error(f.ctx);
    assert_int_equal(strncmp(message, "40 layers cannot be read: 'proposal0' (Python: no such", 53),
                     0);
    assert_non_null(strstr(message, "'proposal1' (Proposal: no anchors)"));
    assert_string_equal(message + strlen(message) - 5, ", ...");
    /* A failure behind them is theirs. */
    const qn_status later = qn_fail(f.ctx, QN_E_INVALID, "a shape does not fit");
    assert_int_equal(qn_graph_builder_settle(&f.b, later, NULL, 0), QN_E_UNSUPPORTED);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_last),
        cmocka_unit_test(axes),
        cmocka_unit_test(windows),
        cmocka_unit_test(names),
        cmocka_unit_test(constants),
        cmocka_unit_test(failures_name_the_layer),
        cmocka_unit_test(unsupported_layers_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
