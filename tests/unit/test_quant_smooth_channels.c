/* Factors of channels: the float results stay, and integers tell more. */
#include "pass_test.h"
#include "quant/insert.h"
#include "quant/params.h"
#include "quant/smooth_channels.h"

static qn_value *window(fixture *f, qn_value *x, int64_t filters, int64_t channels, int64_t kernel)
{
    /* One after the other: their numbers depend on the order, and arguments have none. */
    qn_value *bias = weights(f, 1, DIMS(filters));
    qn_value *w = weights(f, 4, DIMS(filters, channels, kernel, kernel));
    return apply(f, &qn_op_Conv, 3, x, w, bias);
}

static qn_value *depthwise(fixture *f, qn_value *x, int64_t channels)
{
    qn_value *y = window(f, x, channels, 1, 3);
    ((qn_window_attrs *)y->producer->attrs)->group = channels;
    return y;
}

static void finish(fixture *f, qn_value *y)
{
    assert_int_equal(qn_graph_add_output(f->graph, y), QN_OK);
    assert_int_equal(qn_graph_infer(f->graph), QN_OK);
}

static qn_quantizer *quantizer(fixture *f, const char *target)
{
    qn_quantizer *q;
    qn_quant_settings settings = {.bits = 8};
    assert_int_equal(qn_profile_find(&settings.profile, f->ctx, target), QN_OK);
    if (qn_quantizer_create(&q, f->model, &settings) != QN_OK)
        fail_msg("%s", qn_context_error(f->ctx));
    qn_quantizer_number(q);
    return q;
}

static void end(fixture *f, qn_quantizer *q)
{
    qn_quantizer_free(q);
    qn_model_free(f->model);
    qn_context_free(f->ctx);
}

/* Random factors from 1/30 to 30 on each value change the weights and nothing else. */
static void assert_carried(fixture *f, qn_value *const *values, size_t count)
{
    qn_quantizer *q = quantizer(f, NULL);
    qn_arena arena;
    uint32_t state = 5;
    float factor[64];
    qn_arena_init(&arena, &f->ctx->allocator);
    const qn_tensor *before = evaluate(f, &arena, f->graph);
    for (size_t i = 0; i < count; i++) {
        static qn_smooth_region s;
        assert_true(qn_smooth_region_of(&s, values[i]));
        assert_true(s.channels <= 64);
        for (int64_t c = 0; c < s.channels; c++)
            factor[c] = powf(30, noise(&state));
        const qn_channel_factors b = {values[i]->name, s.channels, factor};
        assert_int_equal(qn_smooth_apply(q, &b), QN_OK);
        assert_non_null(qn_quant_value_of(q, values[i])->factor);
    }
    const qn_tensor *after = evaluate(f, &arena, f->graph);
    const int64_t elements = qn_tensor_count(before);
    double most = 0, apart = 0;
    for (int64_t i = 0; i < elements; i++) {
        const double x = qn_tensor_f64(before, i);
        most = fmax(most, fabs(x));
        apart = fmax(apart, fabs(x - qn_tensor_f64(after, i)));
    }
    if (!(apart <= 1e-5 * most))
        fail_msg("results of %g are %g apart", most, apart);
    qn_arena_free(&arena);
    end(f, q);
}

static void windows_and_pools(void **state)
{
    fixture f = begin();
    qn_value *x = input(&f, "x", 4, DIMS(1, 3, 12, 12)), *a = window(&f, x, 8, 3, 3);
    qn_value *b = depthwise(&f, apply(&f, &qn_op_Relu, 1, a), 8);
    qn_value *c = window(&f, apply(&f, &qn_op_LeakyRelu, 1, b), 6, 8, 1);
    qn_value *d = apply(&f, &qn_op_GlobalAveragePool, 1, apply(&f, &qn_op_Relu, 1, c));
    (void)state;
    finish(&f, window(&f, d, 4, 6, 1));
    assert_carried(&f, (qn_value *const[]){a, b, c}, 3);
}

/* The parts of a Concat, and two readers. */
static void joined_parts(void **state)
{
    fixture f = begin();
    qn_value *x = input(&f, "x", 4, DIMS(1, 3, 12, 12));
    qn_value *a = window(&f, x, 5, 3, 1), *b = window(&f, x, 7, 3, 1);
    qn_value *joined =
        apply(&f, &qn_op_Concat, 2, apply(&f, &qn_op_Relu, 1, a), apply(&f, &qn_op_Relu, 1, b));
    (void)state;
    ((qn_concat_attrs *)joined->producer->attrs)->axis = 1;
    qn_value *c = window(&f, joined, 4, 12, 1), *d = window(&f, joined, 4, 12, 1);
    finish(&f, apply(&f, &qn_op_Add, 2, c, d));
    assert_carried(&f, (qn_value *const[]){b, a}, 2);
}

static void flattened_pixels(void **state)
{
    fixture f = begin();
    qn_value *x = input(&f, "x", 4, DIMS(1, 3, 6, 6)), *a = window(&f, x, 4, 3, 3);
    qn_value *flat = apply(&f, &qn_op_Flatten, 1, apply(&f, &qn_op_Relu, 1, a));
    (void)state;
    ((qn_window_attrs *)a->producer->attrs)->group = 1;
    finish(&f, apply(&f, &qn_op_Gemm, 2, flat, weights(&f, 2, DIMS(64, 5))));
    assert_carried(&f, (qn_value *const[]){a}, 1);
}

/* A normalization's scale and bias; a product with a bias behind it. */
static void matrices(void **state)
{
    fixture f = begin();
    qn_value *x = input(&f, "x", 3, DIMS(1, 5, 8));
    qn_value *a = apply(&f, &qn_op_LayerNormalization, 3, x, weights(&f, 1, DIMS(8)),
                        weights(&f, 1, DIMS(8)));
    qn_value *product = apply(&f, &qn_op_MatMul, 2, a, weights(&f, 2, DIMS(8, 6)));
    qn_value *b = apply(&f, &qn_op_Add, 2, product, weights(&f, 1, DIMS(6)));
    (void)state;
    ((qn_norm_attrs *)a->producer->attrs)->axis = -1;
    finish(&f,
           apply(&f, &qn_op_MatMul, 2, apply(&f, &qn_op_Relu, 1, b), weights(&f, 2, DIMS(6, 3))));
    assert_carried(&f, (qn_value *const[]){a, b}, 2);
}

/* What another node reads, a function bends or a graph gives away has no factors. */
static void refused(void **state)
{
    static qn_smooth_region s;
    fixture f = begin();
    qn_value *x = input(&f, "x", 4, DIMS(1, 3, 12, 12)), *a = window(&f, x, 4, 3, 1);
    qn_value *bent = apply(&f, &qn_op_Sigmoid, 1, a), *b = window(&f, bent, 4, 4, 1);
    qn_value *sum = apply(&f, &qn_op_Add, 2, b, bent), *c = window(&f, sum, 4, 4, 1);
    (void)state;
    finish(&f, c);
    assert_false(qn_smooth_region_of(&s, a));
    assert_false(qn_smooth_region_of(&s, b));
    assert_false(qn_smooth_region_of(&s, c));
    assert_false(qn_smooth_region_of(&s, x));
    qn_quantizer *q = quantizer(&f, NULL);
    const qn_channel_factors wrong = {a->name, 4, (float[]){1, 1, 1, 1}};
    assert_int_equal(qn_smooth_apply(q, &wrong), QN_E_INVALID);
    assert_non_null(strstr(qn_context_error(f.ctx), "cannot have 4 factors"));
    end(&f, q);
}

/* ---- Recovery -------------------------------------------------------------------------------- */

/* As many last filters as make more than a small tail, which would stay float. */
enum { WILD = 8, LAST = 16 };

/* Channels from 1 to 1000 times as large, all of which count alike in the end. */
static void build_wild(fixture *f)
{
    qn_value *x = input(f, "x", 4, DIMS(1, 3, 12, 12)), *a = window(f, x, WILD, 3, 1);
    qn_value *b = depthwise(f, apply(f, &qn_op_Relu, 1, a), WILD);
    qn_value *c = window(f, apply(f, &qn_op_Relu, 1, b), LAST, WILD, 1);
    for (int64_t k = 0; k < WILD; k++) {
        const float by = powf(1000, (float)k / (WILD - 1));
        float *first = (float *)a->producer->in[1]->data->data;
        float *last = (float *)c->producer->in[1]->data->data;
        ((float *)a->producer->in[2]->data->data)[k] *= by;
        ((float *)b->producer->in[2]->data->data)[k] *= by;
        for (int64_t i = 0; i < 3; i++)
            first[k * 3 + i] *= by;
        for (int64_t i = 0; i < LAST; i++)
            last[i * WILD + k] /= by;
    }
    finish(f, c);
}

/* A part of a Concat that is 400 times as large as the other, which no factor gets through; both
 * count alike. */
static void build_uneven(fixture *f)
{
    qn_value *x = input(f, "x", 4, DIMS(1, 3, 12, 12)), *large = window(f, x, WILD, 3, 1);
    qn_value *small = apply(f, &qn_op_Sigmoid, 1, window(f, x, WILD, 3, 1));
    qn_value *joined = apply(f, &qn_op_Concat, 2, large, small);
    ((qn_concat_attrs *)joined->producer->attrs)->axis = 1;
    qn_value *c = window(f, joined, LAST, 2 * WILD, 1);
    float *first = (float *)large->producer->in[1]->data->data;
    float *bias = (float *)large->producer->in[2]->data->data;
    float *last = (float *)c->producer->in[1]->data->data;
    for (int64_t k = 0; k < WILD; k++) {
        bias[k] *= 400;
        for (int64_t i = 0; i < 3; i++)
            first[k * 3 + i] *= 400;
        for (int64_t i = 0; i < LAST; i++)
            last[i * 2 * WILD + k] /= 400;
    }
    finish(f, c);
}

/* Numbers like the random ones that a model is calibrated with. */
static const qn_tensor *evaluate_inside(fixture *f, qn_arena *arena, const qn_graph *graph)
{
    const qn_tensor *out[1];
    qn_tensor *x;
    uint32_t state = 3;
    assert_int_equal(qn_tensor_create(&x, f->ctx, arena, &graph->inputs[0]->type), QN_OK);
    for (int64_t k = 0; k < qn_tensor_count(x); k++)
        ((float *)x->data)[k] = 0.45f * (1 + noise(&state));
    const qn_tensor *in[] = {x};
    const qn_graph_args args = {in, NULL};
    assert_int_equal(qn_graph_eval(out, f->ctx, arena, graph, &args), QN_OK);
    return out[0];
}

/* sum |fixed - float| / sum |float| of the result, with random data to calibrate with. */
static double error_of(void (*build)(fixture *), const char *target, bool equalized)
{
    fixture f = begin();
    qn_model *quantized;
    qn_quantize_options options = QN_QUANTIZE_OPTIONS_INIT;
    qn_arena arena;
    double error = 0, signal = 0;
    build(&f);
    options.target = target;
    options.bits = 8;
    options.no_equalization = !equalized;
    if (qn_model_quantize(&quantized, NULL, f.ctx, f.model, &options) != QN_OK)
        fail_msg("%s", qn_context_error(f.ctx));
    qn_arena_init(&arena, &f.ctx->allocator);
    const qn_tensor *real = evaluate_inside(&f, &arena, f.graph);
    const qn_tensor *fixed = evaluate_inside(&f, &arena, quantized->graph);
    const int64_t elements = qn_tensor_count(real);
    for (int64_t i = 0; i < elements; i++) {
        signal += fabs(qn_tensor_f64(real, i));
        error += fabs(qn_tensor_f64(fixed, i) - qn_tensor_f64(real, i));
    }
    qn_arena_free(&arena);
    qn_model_free(quantized);
    qn_model_free(f.model);
    qn_context_free(f.ctx);
    return error / signal;
}

static void assert_recovers(void (*build)(fixture *))
{
    static const char *const targets[] = {"qdq-generic", "quench"};
    for (size_t i = 0; i < QN_COUNT_OF(targets); i++) {
        const double plain = error_of(build, targets[i], false);
        const double equal = error_of(build, targets[i], true);
        print_message("%s: error %.4f, equalized %.4f\n", targets[i], plain, equal);
        assert_true(plain > 0.1);
        assert_true(equal < plain / 3);
    }
}

static void wild_channels_recover(void **state)
{
    (void)state;
    assert_recovers(build_wild);
}

static void uneven_parts_recover(void **state)
{
    (void)state;
    assert_recovers(build_uneven);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_and_pools),
        cmocka_unit_test(joined_parts),
        cmocka_unit_test(flattened_pixels),
        cmocka_unit_test(matrices),
        cmocka_unit_test(refused),
        cmocka_unit_test(wild_channels_recover),
        cmocka_unit_test(uneven_parts_recover),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
