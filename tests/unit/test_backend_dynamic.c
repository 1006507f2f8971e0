/* Numbers quantized while running and their products, against the reference and bit for bit. */
#include "int8_test.h"

typedef struct product {
    qn_dtype a, b;
    int64_t rows, k, columns;
    bool by_column, b_zero, a_zero;
} product;

static product random_product(fixture *f)
{
    product p = {.a = pick_byte(f), .b = pick(f, 4) ? QN_INT8 : QN_UINT8};
    p.rows = 1 + pick(f, pick(f, 2) ? 4 : 60);
    p.k = 1 + pick(f, pick(f, 2) ? 40 : 300);
    p.columns = 1 + pick(f, pick(f, 2) ? 40 : 300);
    p.by_column = pick(f, 2);
    p.b_zero = p.b == QN_UINT8 || pick(f, 6) == 0;
    p.a_zero = pick(f, 6) != 0;
    return p;
}

static qn_value *column_zeros(fixture *f, const product *p)
{
    qn_tensor *t = constant_tensor(f, p->b, p->by_column ? 1 : 0, &p->columns);
    fill_bytes(f, t->data, p->b_zero ? qn_tensor_count(t) : 0, false);
    return constant_value(f, t);
}

/* Integers, scale and zero point of a float input. */
static void quantize(fixture *f, qn_value *out[3], int32_t rank, const int64_t *dims)
{
    qn_node *node;
    assert_int_equal(qn_node_add(&node, f->graph, &qn_op_DynamicQuantizeLinear, NULL, 1, 3), QN_OK);
    assert_int_equal(qn_node_set_input(node, 0, add_input(f, rank, dims)), QN_OK);
    for (int32_t i = 0; i < 3; i++) {
        assert_int_equal(qn_value_create(&out[i], f->graph, NULL), QN_OK);
        qn_node_set_output(node, i, out[i]);
    }
    (void)result_of(node);
}

static double quantize_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const int64_t dims[] = {1 + pick(&f, 3), 1 + pick(&f, pick(&f, 2) ? 100 : 30000)};
    qn_value *out[3];
    quantize(&f, out, 2, dims);
    for (int i = 0; i < 3; i++)
        add_output(&f, out[i]);
    const double count = differing(&f, "dynamic quantize");
    fixture_end(&f);
    return count;
}

static qn_value *scaled(fixture *f, qn_value *sums, qn_value *a_scale, const product *p)
{
    qn_value *b_scale = add_scales(f, p->by_column ? p->columns : 0, 1e-3);
    qn_node *cast = add_node(f, &qn_op_Cast, 1, &sums);
    ((qn_cast_attrs *)cast->attrs)->to = QN_FLOAT32;
    qn_value *x = result_of(cast);
    qn_value *both = pick(f, 2) ? apply(f, &qn_op_Mul, a_scale, b_scale)
                                : apply(f, &qn_op_Mul, b_scale, a_scale);
    return pick(f, 2) ? apply(f, &qn_op_Mul, x, both) : apply(f, &qn_op_Mul, both, x);
}

/* A row of biases and Relu, or not. */
static qn_value *follow(fixture *f, qn_value *y, const product *p)
{
    qn_value *bias = add_scales(f, pick(f, 4) ? p->columns : 0, 1);
    if (pick(f, 4))
        y = pick(f, 2) ? apply(f, &qn_op_Add, y, bias) : apply(f, &qn_op_Add, bias, y);
    return pick(f, 2) ? y : apply(f, &qn_op_Relu, y, NULL);
}

static double product_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const product p = random_product(&f);
    const int64_t a[] = {1 + pick(&f, 3), p.rows, p.k}, b[] = {p.k, p.columns};
    const int32_t rank = 2 + (int32_t)pick(&f, 2);
    qn_value *x[3];
    quantize(&f, x, rank, a + 3 - rank);
    qn_value *in[] = {x[0], add_bytes(&f, p.b, 2, b), p.a_zero ? x[2] : NULL,
                      p.b_zero ? column_zeros(&f, &p) : NULL};
    qn_value *sums = result_of(add_wide_node(&f, &qn_op_MatMulInteger, 4, in));
    add_output(&f, follow(&f, scaled(&f, sums, x[1], &p), &p));
    if (pick(&f, 3) == 0) { /* a second product of the same numbers */
        in[1] = add_bytes(&f, p.b, 2, b);
        sums = result_of(add_wide_node(&f, &qn_op_MatMulInteger, 4, in));
        add_output(&f, scaled(&f, sums, x[1], &p));
    }
    const double count = differing(&f, "dynamic int8 matmul");
    fixture_end(&f);
    return count;
}

static double to_float_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const product p = random_product(&f);
    const int64_t a[] = {p.rows, p.k}, b[] = {p.k, p.columns};
    qn_value *const in[] = {add_byte_input(&f, p.a, 2, a),
                            add_bytes(&f, p.b, 2, b),
                            add_scales(&f, 0, 0.02),
                            add_scales(&f, p.by_column ? p.columns : 0, 1e-3),
                            p.a_zero ? add_zero(&f, p.a) : NULL,
                            p.b_zero ? column_zeros(&f, &p) : NULL,
                            pick(&f, 2) ? add_scales(&f, p.columns, 1) : NULL};
    qn_value *y = result_of(add_wide_node(&f, &qn_op_ms_MatMulIntegerToFloat, 7, in));
    add_output(&f, pick(&f, 2) ? y : apply(&f, &qn_op_Relu, y, NULL));
    const double count = differing(&f, "dynamic int8 matmul");
    fixture_end(&f);
    return count;
}

/* Parameters of weights: one for a direction, or one for a column. */
static qn_value *lstm_params(fixture *f, qn_dtype dtype, int64_t both, int64_t columns, bool each)
{
    const int64_t dims[] = {both, columns};
    qn_tensor *t = constant_tensor(f, dtype, each ? 2 : 1, dims);
    if (dtype != QN_FLOAT32)
        fill_bytes(f, t->data, pick(f, 2) ? qn_tensor_count(t) : 0, false);
    for (int64_t i = 0; dtype == QN_FLOAT32 && i < qn_tensor_count(t); i++)
        ((float *)t->data)[i] = 1e-3f * (1.5f + noise(f));
    return constant_value(f, t);
}

static qn_value *lstm_lengths(fixture *f, const int64_t x[3])
{
    qn_tensor *t = constant_tensor(f, QN_INT32, 1, &x[1]);
    for (int64_t b = 0; b < x[1]; b++)
        ((int32_t *)t->data)[b] = (int32_t)pick(f, x[0] + 1);
    return constant_value(f, t);
}

static double lstm_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const int64_t both = 1 + pick(&f, 2), hidden = 1 + pick(&f, 70), columns = 4 * hidden;
    const int64_t x[] = {1 + pick(&f, 4), 1 + pick(&f, 3), 1 + pick(&f, 70)};
    const int64_t w[] = {both, x[2], columns}, r[] = {both, hidden, columns};
    const int64_t b[] = {both, 2 * columns}, p[] = {both, 3 * hidden}, h[] = {both, x[1], hidden};
    const qn_dtype dtype = pick_byte(&f);
    const bool each = pick(&f, 2);
    qn_value *const in[] = {add_input(&f, 3, x),
                            add_bytes(&f, dtype, 3, w),
                            add_bytes(&f, dtype, 3, r),
                            pick(&f, 3) ? add_weights(&f, 2, b) : NULL,
                            pick(&f, 3) ? NULL : lstm_lengths(&f, x),
                            pick(&f, 2) ? add_input(&f, 3, h) : NULL,
                            pick(&f, 2) ? add_input(&f, 3, h) : NULL,
                            pick(&f, 3) ? NULL : add_weights(&f, 2, p),
                            lstm_params(&f, QN_FLOAT32, both, columns, each),
                            lstm_params(&f, dtype, both, columns, each),
                            lstm_params(&f, QN_FLOAT32, both, columns, each),
                            lstm_params(&f, dtype, both, columns, each)};
    qn_node *node;
    assert_int_equal(qn_node_add(&node, f.graph, &qn_op_ms_DynamicQuantizeLSTM, NULL,
                                 (int32_t)QN_COUNT_OF(in), 3),
                     QN_OK);
    for (size_t i = 0; i < QN_COUNT_OF(in); i++)
        assert_int_equal(qn_node_set_input(node, (int32_t)i, in[i]), QN_OK);
    for (int32_t o = 0; o < 3; o++) {
        qn_value *out;
        assert_int_equal(qn_value_create(&out, f.graph, NULL), QN_OK);
        qn_node_set_output(node, o, out);
    }
    qn_recurrent_attrs *a = node->attrs;
    a->direction = both == 2     ? QN_DIRECTION_BOTH
                   : pick(&f, 2) ? QN_DIRECTION_FORWARD
                                 : QN_DIRECTION_REVERSE;
    a->input_forget = pick(&f, 6) == 0;
    (void)result_of(node);
    for (int32_t o = 0; o < 3; o++)
        add_output(&f, node->out[o]);
    const double count = differing(&f, "dynamic int8 lstm");
    fixture_end(&f);
    return count;
}

static void test_lstm(void **state)
{
    (void)state;
    run_cases(lstm_case, 150, 0);
}

static void test_quantize(void **state)
{
    (void)state;
    run_cases(quantize_case, 100, 0);
}

static void test_products(void **state)
{
    (void)state;
    run_cases(product_case, 200, 0);
    run_cases(to_float_case, 100, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_quantize),
                                       cmocka_unit_test(test_products),
                                       cmocka_unit_test(test_lstm)};
    return RUN_TESTS_OF("cpu", tests);
}
