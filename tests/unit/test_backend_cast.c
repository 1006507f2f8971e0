/* Cast has the bits of the reference kernel, for every half and for numbers near the borders of
 * rounding. */
#include "backend_test.h"
#include "ops/eval.h"

/* Every upper half of a float's bits with lower halves at and next to where halves round, so every
 * exponent, NaN, infinity and denormal number. */
static const uint16_t lows[] = {0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x7fff,
                                0x8000, 0x8001, 0xefff, 0xf000, 0xf001, 0xffff};
enum { LOWS = (int)QN_COUNT_OF(lows), HALVES = 65536, FLOATS = HALVES * LOWS };

static void fill_floats(float *x)
{
    for (uint32_t i = 0; i < FLOATS; i++) {
        const uint32_t bits = i / LOWS << 16 | lows[i % LOWS];
        memcpy(&x[i], &bits, sizeof bits);
    }
}

static void fill(qn_tensor *x)
{
    const size_t size = qn_dtype_size(x->dtype);
    if (x->dtype == QN_FLOAT32) {
        fill_floats(x->data);
    } else if (x->dtype == QN_FLOAT64) {
        float *floats = malloc(FLOATS * sizeof *floats);
        assert_non_null(floats);
        fill_floats(floats);
        for (size_t i = 0; i < FLOATS; i++)
            ((double *)x->data)[i] = (double)floats[i];
        free(floats);
    } else { /* any bits, of bool only those of false and true */
        for (size_t i = 0; i < (size_t)x->dims[0] * size; i++)
            ((uint8_t *)x->data)[i] = (uint8_t)(x->dtype == QN_BOOL ? i % 3 == 1 : i * 40503u >> 5);
        for (size_t i = 0; size == 2 && i < HALVES; i++)
            ((uint16_t *)x->data)[i] = (uint16_t)i;
    }
}

static void compare_casts(qn_dtype from, qn_dtype to)
{
    fixture f = fixture_begin((uint32_t)(from + to));
    const int64_t count = qn_dtype_is_float(from) && qn_dtype_size(from) > 2 ? FLOATS : HALVES;
    qn_value *x = add_input(&f, 1, &count);
    qn_tensor in = {.dtype = from, .rank = 1, .dims = {count}};
    in.data = malloc((size_t)count * qn_dtype_size(from));
    assert_non_null(in.data);
    fill(&in);
    x->type.dtype = from;
    qn_node *node = add_node(&f, &qn_op_Cast, 1, &x);
    ((qn_cast_attrs *)node->attrs)->to = to;
    add_output(&f, result_of(node));
    outcome plain = run_with(&f, "ref", &in, 1), fast = run_with(&f, NULL, &in, 1);
    must_use(fast.plan, "cast");
    const qn_tensor *a = qn_session_output(plain.session, 0),
                    *b = qn_session_output(fast.session, 0);
    const size_t size = qn_dtype_size(to);
    for (size_t i = 0; i < (size_t)count; i++) {
        if (memcmp((char *)a->data + i * size, (char *)b->data + i * size, size) != 0)
            fail_msg("%s to %s: element %zu (%a): %g, but %g by reference", qn_dtype_name(from),
                     qn_dtype_name(to), i, qn_tensor_f64(&in, (int64_t)i),
                     qn_tensor_f64(b, (int64_t)i), qn_tensor_f64(a, (int64_t)i));
    }
    outcome_end(&plain);
    outcome_end(&fast);
    free(in.data);
    fixture_end(&f);
}

static void casts_halves(void **state)
{
    (void)state;
    if (lacks_backend("cpu"))
        skip();
    compare_casts(QN_FLOAT16, QN_FLOAT32);
    compare_casts(QN_BFLOAT16, QN_FLOAT32);
    compare_casts(QN_FLOAT32, QN_FLOAT16);
    compare_casts(QN_FLOAT32, QN_BFLOAT16);
}

static void casts_numbers(void **state)
{
    static const qn_dtype all[] = {QN_FLOAT32, QN_FLOAT64, QN_INT8, QN_UINT8,
                                   QN_INT32,   QN_INT64,   QN_BOOL};
    (void)state;
    if (lacks_backend("cpu"))
        skip();
    for (size_t a = 0; a < QN_COUNT_OF(all); a++) {
        for (size_t b = 0; b < QN_COUNT_OF(all); b++) {
            if (a != b)
                compare_casts(all[a], all[b]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(casts_halves),
                                       cmocka_unit_test(casts_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
