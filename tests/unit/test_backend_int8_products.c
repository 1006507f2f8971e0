/* Products of 8- and 16-bit integers against the reference, bit for bit: Gemm, MatMul by constants
 * and of two computed matrices, of random shapes with zero points anywhere, and what is fused
 * behind. */
#include "int8_follow.h"

typedef struct product {
    qn_dtype a, b, y;
    int64_t rows, k, columns;
    bool by_column, b_zero;
} product;

static product random_product(fixture *f)
{
    product p = {.b = pick(f, 4) ? QN_INT8 : QN_UINT8};
    p.a = pick_width(f, pick_byte(f));
    p.y = pick_width(f, pick_byte(f));
    if (pick(f, 4) == 0)
        p.b = QN_INT16;
    p.rows = 1 + pick(f, pick(f, 2) ? 4 : 60);
    p.k = 1 + pick(f, pick(f, 2) ? 40 : 300);
    p.columns = 1 + pick(f, pick(f, 2) ? 40 : 300);
    p.by_column = pick(f, 2);
    p.b_zero = p.b == QN_UINT8 || pick(f, 6) == 0;
    return p;
}

static qn_value *column_zeros(fixture *f, const product *p)
{
    qn_tensor *t = constant_tensor(f, p->b, p->by_column ? 1 : 0, &p->columns);
    fill_bytes(f, t->data, p->b_zero ? qn_tensor_count(t) * (int64_t)qn_dtype_size(p->b) : 0,
               false);
    return constant_value(f, t);
}

typedef struct sides {
    /* The rank of a */
    int32_t rank;
    const int64_t *a, *b;
} sides;

/* The first six inputs of such a node: rows, and constant columns. */
static void add_factors(qn_value **in, fixture *f, const product *p, sides dims)
{
    const double unit = 4e-3 * unit_of(p->b) / sqrt((double)p->k);
    in[0] = add_byte_input(f, p->a, dims.rank, dims.a);
    in[1] = add_scales(f, 0, 0.02 * unit_of(p->a));
    in[2] = add_zero(f, p->a);
    in[3] = add_bytes(f, p->b, 2, dims.b);
    in[4] = add_scales(f, p->by_column ? p->columns : 0, unit);
    in[5] = column_zeros(f, p);
}

static double gemm_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const product p = random_product(&f);
    const bool turned = pick(&f, 2), floats = pick(&f, 3) == 0;
    const int64_t a[] = {p.rows, p.k};
    const int64_t b[] = {turned ? p.columns : p.k, turned ? p.k : p.columns};
    qn_value *in[9];
    add_factors(in, &f, &p, (sides){2, a, b});
    in[6] = pick(&f, 3) ? biases(&f, p.columns, p.a, p.b) : NULL;
    in[7] = floats ? NULL : add_scales(&f, 0, 0.01 * unit_of(p.y));
    in[8] = floats ? NULL : add_zero(&f, p.y);
    qn_node *node = add_wide_node(&f, &qn_op_ms_QGemm, floats ? 7 : 9, in);
    qn_gemm_attrs *attrs = node->attrs;
    attrs->transB = turned;
    attrs->alpha = pick(&f, 2) ? 1.0f : 0.75f;
    qn_value *y = result_of(node);
    const bool bytes = floats && pick(&f, 2);
    add_output(&f, bytes ? follow(&f, function(&f, y)) : floats ? y : follow(&f, y));
    const double count = differing(&f, has_int16(p.a, p.b) ? "int16 gemm" : "int8 gemm");
    fixture_end(&f);
    return count;
}

/* Stacks of rows by constant columns. */
static double matmul_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const product p = random_product(&f);
    const int64_t a[] = {1 + pick(&f, 3), 1 + pick(&f, 3), p.rows, p.k}, b[] = {p.k, p.columns};
    const int32_t rank = 2 + (int32_t)pick(&f, 3);
    qn_value *in[9];
    add_factors(in, &f, &p, (sides){rank, a + 4 - rank, b});
    in[6] = add_scales(&f, 0, 0.01 * unit_of(p.y));
    in[7] = add_zero(&f, p.y);
    add_output(&f, follow(&f, result_of(add_wide_node(&f, &qn_op_QLinearMatMul, 8, in))));
    const double count = differing(&f, has_int16(p.a, p.b) ? "int16 gemm" : "int8 gemm");
    fixture_end(&f);
    return count;
}

/* The same with a bias, into integers or floats. */
static double biased_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const product p = random_product(&f);
    const bool floats = pick(&f, 3) == 0, has_bias = pick(&f, 4) || floats;
    const int64_t a[] = {1 + pick(&f, 3), p.rows, p.k}, b[] = {p.k, p.columns};
    const int32_t rank = 2 + (int32_t)pick(&f, 2);
    qn_value *in[9];
    add_factors(in, &f, &p, (sides){rank, a + 3 - rank, b});
    in[6] = floats ? NULL : add_scales(&f, 0, 0.01 * unit_of(p.y));
    in[7] = floats ? NULL : add_zero(&f, p.y);
    in[8] = has_bias ? biases(&f, p.columns, p.a, p.b) : NULL;
    qn_value *y = result_of(add_wide_node(&f, &qn_op_qn_QMatMul, has_bias ? 9 : 8, in));
    add_output(&f, floats ? y : follow(&f, y));
    const double count = differing(&f, has_int16(p.a, p.b) ? "int16 gemm" : "int8 gemm");
    fixture_end(&f);
    return count;
}

/* A scale of results for which many sums lie halfway: then every rounding of the multiplier is
 * seen. */
static qn_value *halving_scale(fixture *f, const qn_value *a, const qn_value *b)
{
    qn_tensor *tensor = constant_tensor(f, QN_FLOAT32, 0, NULL);
    const float both = ((const float *)a->data->data)[0] * ((const float *)b->data->data)[0];
    *(float *)tensor->data = both * (float)(2 * (20 + pick(f, 200)));
    return constant_value(f, tensor);
}

/* Stacks of two computed matrices; either may be the same for all. */
static double two_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    product p = random_product(&f);
    const int64_t batch[2] = {1 + pick(&f, 3), 1 + pick(&f, 4)};
    const int64_t a[] = {pick(&f, 3) ? batch[0] : 1, batch[1], p.rows, p.k};
    const int64_t b[] = {batch[0], pick(&f, 3) ? batch[1] : 1, p.k, p.columns};
    const int32_t a_rank = 2 + (int32_t)pick(&f, 3), b_rank = 2 + (int32_t)pick(&f, 3);
    p.by_column = false;
    qn_value *in[] = {add_byte_input(&f, p.a, a_rank, a + 4 - a_rank),
                      add_scales(&f, 0, 0.02),
                      add_zero(&f, p.a),
                      add_byte_input(&f, p.b, b_rank, b + 4 - b_rank),
                      add_scales(&f, 0, 4e-3 * unit_of(p.b) / sqrt((double)p.k)),
                      pick(&f, 2) ? column_zeros(&f, &p) : add_zero(&f, p.b),
                      add_scales(&f, 0, 0.01 * unit_of(p.y)),
                      add_zero(&f, p.y)};
    if (pick(&f, 2))
        in[6] = halving_scale(&f, in[1], in[4]);
    if (pick(&f, 3))
        add_output(&f, follow(&f, result_of(add_wide_node(&f, &qn_op_QLinearMatMul, 8, in))));
    else /* a result of floats */
        add_output(&f, result_of(add_wide_node(&f, &qn_op_qn_QMatMul, 6, in)));
    const double count = differing(&f, has_int16(p.a, p.b) ? "int16 matmul" : "int8 matmul");
    fixture_end(&f);
    return count;
}

static void test_products(void **state)
{
    (void)state;
    run_cases(gemm_case, 150, 0);
    run_cases(matmul_case, 100, 0);
    run_cases(biased_case, 100, 0);
    run_cases(two_case, 150, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products)};
    return RUN_TESTS_OF("cpu", tests);
}
