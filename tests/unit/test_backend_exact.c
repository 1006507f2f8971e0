/* Kernels that move, choose and compare numbers of any type, against the reference, bit for bit. */
#include "int8_elem.h"

/* ---- DepthToSpace and SpaceToDepth ----------------------------------------------------------- */

/* An image with whole blocks of b; bytes are channels last now and then. */
static qn_value *blocks(fixture *f, int64_t b, bool deep)
{
    static const qn_dtype types[] = {QN_FLOAT32, QN_INT64, QN_BOOL, QN_FLOAT16};
    static const int64_t ones[] = {1, 1};
    const int64_t side = deep ? 1 : b;
    const int64_t dims[] = {1 + pick(f, 2), (1 + pick(f, 20)) * (deep ? b * b : 1),
                            (1 + pick(f, 9)) * side, (1 + pick(f, 40)) * side};
    const qn_dtype dtype = pick(f, 2) ? pick_narrow(f) : types[pick(f, 4)];
    qn_value *x = add_byte_input(f, dtype, 4, dims);
    if (qn_dtype_size(dtype) != 1 || dtype == QN_BOOL || pick(f, 2))
        return x;
    qn_node *pool = add_node(f, &qn_op_MaxPool, 1, &x);
    ((qn_window_attrs *)pool->attrs)->kernel_shape = keep_ints(f, ones, 2);
    return result_of(pool);
}

static double one_depth(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const int64_t b = 1 + pick(&f, 4);
    const bool deep = pick(&f, 2);
    qn_value *x = blocks(&f, b, deep);
    qn_node *node = add_node(&f, deep ? &qn_op_DepthToSpace : &qn_op_SpaceToDepth, 1, &x);
    qn_depth_attrs *a = node->attrs;
    a->blocksize = b;
    if (deep)
        a->mode = pick(&f, 2) ? QN_DEPTH_DCR : QN_DEPTH_CRD;
    return finish(&f, result_of(node), "depth to space");
}

/* ---- Pad with what is there ------------------------------------------------------------------ */

static double one_pad(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    qn_value *x = blocks(&f, 1, true);
    int64_t pads[8];
    for (int i = 0; i < 8; i++)
        pads[i] = pick(&f, 3) ? 0 : pick(&f, 4);
    qn_value *const in[] = {x, add_ints(&f, pads, 8)};
    qn_node *node = add_node(&f, &qn_op_Pad, 2, in);
    ((qn_pad_attrs *)node->attrs)->mode = QN_PAD_REFLECT + pick(&f, 3);
    return finish(&f, result_of(node), NULL); /* pads of nothing leave no step */
}

/* ---- ReduceMax and ReduceMin ----------------------------------------------------------------- */

static double one_extreme(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    qn_value *x = image(&f, pick_byte(&f));
    int64_t axes[4];
    size_t count = 0;
    for (int64_t d = 0; d < 4; d++) {
        if (pick(&f, 2))
            axes[count++] = pick(&f, 2) ? d : d - 4;
    }
    qn_value *const in[] = {x, add_ints(&f, axes, count)};
    qn_node *node =
        add_node(&f, pick(&f, 2) ? &qn_op_ReduceMax : &qn_op_ReduceMin, count ? 2 : 1, in);
    ((qn_reduce_attrs *)node->attrs)->keepdims = pick(&f, 2);
    return finish(&f, result_of(node), "int extreme");
}

/* ---- Where and functions of two elements ----------------------------------------------------- */

/* A tensor that has some of these dims. */
static qn_value *operand(fixture *f, qn_dtype dtype, const int64_t *dims)
{
    const int64_t kept = pick(f, 2) ? 15 : pick(f, 16);
    int64_t own[4];
    int32_t from = 0;
    for (int32_t d = 0; d < 4; d++)
        own[d] = kept & (1 << d) ? dims[d] : 1;
    while (from < 4 && own[from] == 1 && pick(f, 2))
        from++;
    return add_byte_input(f, dtype, 4 - from, own + from);
}

static double one_row(uint32_t seed)
{
    static const struct {
        const qn_op *op;
        qn_dtype dtype;
    } functions[] = {
#define QN_ROW(id, Operator, dtype, Y, X, expression) {&qn_op_##Operator, dtype},
#include "backend/cpu/float/elementwise/rows.def"
#undef QN_ROW
    };
    fixture f = fixture_begin(seed);
    const int64_t i = seed % QN_COUNT_OF(functions);
    const int64_t dims[] = {1 + pick(&f, 2), 1 + pick(&f, 3), 1 + pick(&f, 20), 1 + pick(&f, 70)};
    qn_value *const in[] = {operand(&f, functions[i].dtype, dims),
                            operand(&f, functions[i].dtype, dims)};
    const char *kernel = functions[i].dtype == QN_FLOAT32 ? NULL : "rows"; /* or a chain */
    return finish(&f, result_of(add_node(&f, functions[i].op, 2, in)), kernel);
}

static double one_where(uint32_t seed)
{
    static const qn_dtype types[] = {QN_FLOAT32, QN_INT64, QN_UINT8, QN_FLOAT16, QN_INT32};
    fixture f = fixture_begin(seed);
    const qn_dtype dtype = types[pick(&f, 5)];
    const int64_t dims[] = {1 + pick(&f, 2), 1 + pick(&f, 3), 1 + pick(&f, 20), 1 + pick(&f, 70)};
    qn_value *const in[] = {operand(&f, QN_BOOL, dims), operand(&f, dtype, dims),
                            operand(&f, dtype, dims)};
    return finish(&f, result_of(add_node(&f, &qn_op_Where, 3, in)), "rows");
}

static double one_not(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const int64_t dims[] = {1 + pick(&f, 3), 1 + pick(&f, 900)};
    qn_value *const in[] = {add_byte_input(&f, QN_BOOL, 2, dims)};
    return finish(&f, result_of(add_node(&f, &qn_op_Not, 1, in)), "cast");
}

#define CASES(name, count)                                                                         \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        run_cases(one_##name, count, 0);                                                           \
    }
CASES(depth, 120)
CASES(extreme, 120)
CASES(pad, 120)
CASES(row, 330)
CASES(where, 120)
CASES(not, 10)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_depth), cmocka_unit_test(test_extreme), cmocka_unit_test(test_pad),
        cmocka_unit_test(test_row),   cmocka_unit_test(test_where),   cmocka_unit_test(test_not),
    };
    return RUN_TESTS_OF("cpu", tests);
}
