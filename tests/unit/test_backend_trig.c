/* Trigonometric functions and Sign: floats of every size against the reference, in units of the
 * last place. */
#include "backend_test.h"
#include "base/cpu.h"

enum { COUNT = 1 << 18 };

/* Where a float stands among all floats. */
static int64_t place_of(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? (int64_t)INT32_MIN - bits : bits;
}

/* Every 2^14th pattern of bits, so every exponent, infinities and what is no number; then numbers
 * near multiples of pi / 2, of which sine and cosine leave little, and plain ones. */
static void fill(float *x)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t bits = i << 14 | (i * 2654435761u >> 18);
        memcpy(&x[i], &bits, sizeof bits);
    }
    for (int i = 0; i < 4096; i++) {
        x[64 * i] = (float)(1.5707963267948966 * (double)(i * 151 - 300000));
        x[64 * i + 1] = nextafterf(x[64 * i], INFINITY);
        x[64 * i + 2] = (float)(i - 2048) / 1024;
    }
    x[3] = 0;
    x[7] = INFINITY;
    x[11] = -INFINITY;
    x[15] = NAN;
}

static void check_function(const qn_op *op, int64_t most)
{
    fixture f = fixture_begin(1);
    const int64_t dims[] = {1, COUNT};
    float *x = malloc(COUNT * sizeof *x);
    assert_non_null(x);
    fill(x);
    const qn_tensor in = {.dtype = QN_FLOAT32, .rank = 2, .dims = {1, COUNT}, .data = x};
    add_output(&f, apply(&f, op, add_input(&f, 2, dims), NULL));
    outcome plain = run_with(&f, "ref", &in, 1), fast = run_with(&f, NULL, &in, 1);
    must_use(fast.plan, "chain");
    const float *a = qn_session_output(fast.session, 0)->data;
    const float *b = qn_session_output(plain.session, 0)->data;
    for (int i = 0; i < COUNT; i++) {
        if (isnan(b[i]) ? !isnan(a[i]) : !(llabs(place_of(a[i]) - place_of(b[i])) <= most))
            fail_msg("%s(%.9g) is %.9g, not %.9g", op->name, (double)x[i], (double)a[i],
                     (double)b[i]);
    }
    outcome_end(&plain);
    outcome_end(&fast);
    free(x);
    fixture_end(&f);
}

static void test_functions(void **state)
{
    /* Units in the last place. Without fused multiply-adds e^x has fewer digits the larger x is. */
    const int64_t exponential = qn_cpu_isa() < QN_ISA_AVX2 ? 128 : 4;
    const struct {
        const qn_op *op;
        int64_t most;
    } list[] = {{&qn_op_Acos, 4},  {&qn_op_Acosh, 4},          {&qn_op_Asin, 4},
                {&qn_op_Asinh, 4}, {&qn_op_Atan, 4},           {&qn_op_Atanh, 4},
                {&qn_op_Cos, 4},   {&qn_op_Cosh, exponential}, {&qn_op_Sign, 0},
                {&qn_op_Sin, 4},   {&qn_op_Sinh, exponential}, {&qn_op_Tan, 4}};
    (void)state;
    for (size_t i = 0; i < QN_COUNT_OF(list); i++)
        check_function(list[i].op, list[i].most);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_functions)};
    return RUN_TESTS_OF("cpu", tests);
}
