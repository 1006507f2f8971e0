/* What quantized operators mean: each beside its float operator over the dequantized input. The
 * integer result may differ by the rounding of the last step, half a unit, and by nothing else. */
#include "int8_test.h"
#include "ops/qlinear.h"
#include "ops/resize.h"

/* Outputs of the graph: the float result, and the integer one dequantized with y. */
typedef struct subject {
    fixture f;
    /* uint8 */
    qn_value *x, *x_scale, *x_zero;
    /* int8 */
    qn_value *y_scale, *y_zero;
} subject;

static subject begin(uint32_t seed, int32_t rank, const int64_t *dims, float y_scale)
{
    subject s = {.f = fixture_begin(seed)};
    fixture *f = &s.f;
    s.x = add_byte_input(f, QN_UINT8, rank, dims);
    s.x_scale = add_number(f, 0.05);
    s.x_zero = add_zero(f, QN_UINT8);
    s.y_scale = add_number(f, (double)y_scale);
    s.y_zero = add_zero(f, QN_INT8);
    return s;
}

static qn_value *dequantized(fixture *f, qn_value *x, qn_value *scale, qn_value *zero)
{
    qn_value *const in[] = {x, scale, zero};
    return result_of(add_node(f, &qn_op_DequantizeLinear, 3, in));
}

static qn_value *real_input(subject *s)
{
    return dequantized(&s->f, s->x, s->x_scale, s->x_zero);
}

/* The largest difference, in units of y's scale, once the float result is limited to what y can
 * say. */
static double finish(subject *s, qn_value *real, qn_value *quantized)
{
    fixture *f = &s->f;
    qn_tensor in = {.dtype = QN_UINT8, .rank = s->x->type.rank};
    assert_true(qn_type_is_static(&s->x->type, in.dims));
    in.data = malloc((size_t)qn_tensor_count(&in));
    fill_bytes(f, in.data, qn_tensor_count(&in), false);
    add_output(f, real);
    add_output(f, dequantized(f, quantized, s->y_scale, s->y_zero));
    const double scale = (double)*(const float *)s->y_scale->data->data;
    const double zero = *(const int8_t *)s->y_zero->data->data;
    outcome o = run_with(f, "ref", &in, 1);
    const qn_tensor *a = qn_session_output(o.session, 0), *b = qn_session_output(o.session, 1);
    double worst = 0;
    assert_int_equal(qn_tensor_count(a), qn_tensor_count(b));
    for (int64_t i = 0; i < qn_tensor_count(a); i++) {
        const double wanted =
            fmin(fmax((double)((const float *)a->data)[i] / scale, -128 - zero), 127 - zero);
        worst = fmax(worst, fabs(wanted - (double)((const float *)b->data)[i] / scale));
    }
    outcome_end(&o);
    free(in.data);
    fixture_end(f);
    return worst;
}

/* ---- Subjects -------------------------------------------------------------------------------- */

static double one_transposed(uint32_t seed)
{
    const int64_t dims[] = {2, 4, 5, 3}, w_dims[] = {4, 3, 3, 2}, filters = 6, strides[] = {2, 1};
    subject s = begin(seed, 4, dims, 0.4f);
    fixture *f = &s.f;
    qn_value *w = add_bytes(f, QN_INT8, 4, w_dims), *w_scale = add_number(f, 0.01);
    qn_tensor *zeros = constant_tensor(f, QN_INT8, 1, &filters);
    qn_tensor *scales = constant_tensor(f, QN_FLOAT32, 1, &filters);
    for (int64_t i = 0; i < filters; i++)
        ((float *)scales->data)[i] = 0.01f;
    memset(zeros->data, 3, (size_t)filters);
    qn_tensor *zero = constant_tensor(f, QN_INT8, 0, NULL);
    *(int8_t *)zero->data = 3;
    qn_value *const real_in[] = {real_input(&s),
                                 dequantized(f, w, w_scale, constant_value(f, zero))};
    qn_value *const in[] = {
        s.x,       s.x_scale, s.x_zero, w, constant_value(f, scales), constant_value(f, zeros),
        s.y_scale, s.y_zero};
    qn_node *const nodes[] = {add_node(f, &qn_op_ConvTranspose, 2, real_in),
                              add_wide_node(f, &qn_op_qn_QLinearConvTranspose, 8, in)};
    for (int i = 0; i < 2; i++) {
        ((qn_window_attrs *)nodes[i]->attrs)->group = 2;
        ((qn_window_attrs *)nodes[i]->attrs)->strides = keep_ints(f, strides, 2);
    }
    return finish(&s, result_of(nodes[0]), result_of(nodes[1]));
}

static double one_norm(uint32_t seed)
{
    const int64_t dims[] = {3, 2, 37}, n = 37;
    subject s = begin(seed, 3, dims, 0.03f);
    fixture *f = &s.f;
    qn_value *gamma = add_weights(f, 1, &n), *beta = seed % 2 ? add_weights(f, 1, &n) : NULL;
    qn_value *const real_in[] = {real_input(&s), gamma, beta};
    qn_value *const in[] = {s.x, s.x_scale, s.x_zero, gamma, beta, s.y_scale, s.y_zero};
    qn_value *real = result_of(add_node(f, &qn_op_LayerNormalization, beta ? 3 : 2, real_in));
    return finish(&s, real, result_of(add_node(f, &qn_op_qn_QLayerNormalization, 7, in)));
}

static double one_softmax(uint32_t seed)
{
    const int64_t dims[] = {3, 7, 20};
    subject s = begin(seed, 3, dims, 1.0f / 256);
    fixture *f = &s.f;
    qn_value *real_in = real_input(&s);
    qn_value *const in[] = {s.x, s.x_scale, s.x_zero, s.y_scale, s.y_zero};
    qn_node *real = add_node(f, &qn_op_Softmax, 1, &real_in);
    qn_node *node = add_node(f, &qn_op_ms_QLinearSoftmax, 5, in);
    ((qn_softmax_attrs *)real->attrs)->axis = 1 + seed % 2;
    *(qn_qsoftmax_attrs *)node->attrs = (qn_qsoftmax_attrs){1 + seed % 2, 13};
    return finish(&s, result_of(real), result_of(node));
}

static double one_mean(uint32_t seed)
{
    const int64_t dims[] = {3, 7, 5, 4}, axes[] = {2, 3};
    subject s = begin(seed, 4, dims, 0.05f);
    fixture *f = &s.f;
    qn_value *const real_in[] = {real_input(&s), add_ints(f, axes, 2)};
    qn_value *const in[] = {s.x, s.x_scale, s.x_zero, s.y_scale, s.y_zero};
    qn_node *node = add_node(f, &qn_op_ms_QLinearReduceMean, 5, in);
    ((qn_reduce_attrs *)node->attrs)->axes = keep_ints(f, axes, 2);
    return finish(&s, result_of(add_node(f, &qn_op_ReduceMean, 2, real_in)), result_of(node));
}

static double one_resize(uint32_t seed)
{
    const int64_t dims[] = {2, 3, 5, 4}, sizes[] = {2, 3, 9, 11};
    subject s = begin(seed, 4, dims, 0.06f);
    fixture *f = &s.f;
    qn_value *target = add_ints(f, sizes, 4);
    qn_value *const real_in[] = {real_input(&s), NULL, NULL, target};
    qn_value *const in[] = {s.x, s.x_scale, s.x_zero, s.y_scale, s.y_zero, NULL, NULL, target};
    qn_node *const nodes[] = {add_node(f, &qn_op_Resize, 4, real_in),
                              add_node(f, &qn_op_qn_QLinearResize, 8, in)};
    for (int i = 0; i < 2; i++)
        ((qn_resize_attrs *)nodes[i]->attrs)->mode = seed % 2 ? QN_RESIZE_LINEAR : QN_RESIZE_CUBIC;
    return finish(&s, result_of(nodes[0]), result_of(nodes[1]));
}

static double one_pair(uint32_t seed)
{
    const int64_t dims[] = {3, 7, 5}, other[] = {7, 1};
    const bool sum = seed % 2;
    subject s = begin(seed, 3, dims, 0.09f);
    fixture *f = &s.f;
    qn_value *b = add_bytes(f, QN_INT8, 2, other), *b_scale = add_number(f, 0.02);
    qn_value *b_zero = add_zero(f, QN_INT8);
    qn_value *const in[] = {s.x, s.x_scale, s.x_zero, b, b_scale, b_zero, s.y_scale, s.y_zero};
    qn_value *real =
        apply(f, sum ? &qn_op_Add : &qn_op_Mul, real_input(&s), dequantized(f, b, b_scale, b_zero));
    qn_node *node = add_node(f, sum ? &qn_op_ms_QLinearAdd : &qn_op_ms_QLinearMul, 8, in);
    return finish(&s, real, result_of(node));
}

#define CASES(name)                                                                                \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        run_cases(one_##name, 12, 0.5001);                                                         \
    }
CASES(transposed)
CASES(norm)
CASES(softmax)
CASES(mean)
CASES(resize)
CASES(pair)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transposed), cmocka_unit_test(test_norm),
        cmocka_unit_test(test_softmax),    cmocka_unit_test(test_mean),
        cmocka_unit_test(test_resize),     cmocka_unit_test(test_pair)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
