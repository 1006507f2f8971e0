/* Integer convolutions of which sums need more than 32 bits, and those between floats, against the
 * reference, bit for bit. */
#include "int8_test.h"

typedef struct layer {
    /* y: QN_FLOAT32 for ConvIntegerToFloat */
    qn_dtype x, w, y;
    int64_t channels, filters, groups, kernel, stride;
    /* The largest of the weights' magnitudes; 0: all of the type's range */
    int64_t most;
} layer;

/* Weights of magnitudes up to `most`, nothing but that one of it in some filters. */
static qn_value *weights(fixture *f, const layer *l)
{
    const int64_t dims[] = {l->filters, l->channels / l->groups, l->kernel, l->kernel};
    if (!l->most)
        return add_bytes(f, l->w, 4, dims);
    qn_tensor *t = constant_tensor(f, l->w, 4, dims);
    const int64_t each = dims[1] * dims[2] * dims[3];
    for (int64_t filter = 0; filter < l->filters; filter++) {
        const bool extreme = pick(f, 6) == 0;
        const int64_t most = extreme ? l->most : 1 + pick(f, l->most);
        const bool alternates = pick(f, 2);
        for (int64_t i = filter * each; i < (filter + 1) * each; i++) {
            const int64_t x =
                extreme ? (alternates && pick(f, 2) ? -most : most) : pick(f, 2 * most + 1) - most;
            if (l->w == QN_INT16)
                ((int16_t *)t->data)[i] = (int16_t)x;
            else
                ((int8_t *)t->data)[i] = (int8_t)x;
        }
    }
    return constant_value(f, t);
}

static qn_value *bias(fixture *f, int64_t count)
{
    qn_tensor *t = constant_tensor(f, QN_INT32, 1, &count);
    for (int64_t i = 0; i < count; i++)
        ((int32_t *)t->data)[i] = (int32_t)(pick(f, 1 << 20) - (1 << 19)) * (pick(f, 2) ? 1 : 4000);
    return constant_value(f, t);
}

static qn_value *add_layer(fixture *f, qn_value *x, const layer *l)
{
    const bool floats = l->y == QN_FLOAT32;
    const int64_t pad = l->kernel / 2, pads[] = {pad, pad, pad, pad};
    const int64_t strides[] = {l->stride, l->stride};
    const double length = (double)(l->channels / l->groups * l->kernel * l->kernel);
    qn_tensor *none = constant_tensor(f, l->w, 0, NULL);
    memset(none->data, 0, qn_dtype_size(l->w));
    qn_value *in[] = {x,
                      add_scales(f, 0, 0.02 * unit_of(l->x)),
                      add_zero(f, l->x),
                      weights(f, l),
                      add_scales(f, l->filters, 4e-3 / sqrt(length) * unit_of(l->w)),
                      constant_value(f, none),
                      floats ? bias(f, l->filters) : add_scales(f, 0, 0.01 * unit_of(l->y)),
                      floats ? NULL : add_zero(f, l->y),
                      floats ? NULL : bias(f, l->filters)};
    qn_node *node = add_wide_node(f, floats ? &qn_op_qn_ConvIntegerToFloat : &qn_op_QLinearConv,
                                  floats ? 7 : 9, in);
    qn_window_attrs *a = node->attrs;
    a->group = l->groups;
    a->pads = keep_ints(f, pads, 4);
    a->strides = keep_ints(f, strides, 2);
    return result_of(node);
}

static qn_value *image(fixture *f, const layer *l)
{
    const int64_t size = 1 + pick(f, 13);
    const int64_t dims[] = {1 + pick(f, 2), l->channels, size, 1 + pick(f, 13)};
    return add_byte_input(f, l->x, 4, dims);
}

/* ---- Sums beyond 32 bits --------------------------------------------------------------------- */

/* All numbers the least of their type: farthest from the middle of the range, where kernels
 * begin. */
static qn_value *least(fixture *f, qn_value *x)
{
    const qn_dtype dtype = x->type.dtype;
    qn_tensor *t = constant_tensor(f, dtype, 0, NULL);
    if (qn_dtype_size(dtype) == 2)
        *(uint16_t *)t->data = dtype == QN_INT16 ? 0x8000 : 0;
    else
        *(uint8_t *)t->data = dtype == QN_INT8 ? 0x80 : 0;
    qn_value *const in[] = {x, NULL, constant_value(f, t)};
    return result_of(add_node(f, &qn_op_Clip, 3, in));
}

/* Weights of 8 and 16 bits from tiny to the largest: sums take one step or hundreds before they
 * would overflow. */
static double long_case(uint32_t seed)
{
    static const qn_dtype maps[] = {QN_UINT16, QN_INT16, QN_UINT16, QN_INT16, QN_UINT8};
    static const int64_t mosts[] = {32767, 32767, 16400, 8200, 500, 0};
    fixture f = fixture_begin(seed);
    layer l = {.x = maps[pick(&f, QN_COUNT_OF(maps))],
               .w = pick(&f, 3) ? QN_INT16 : QN_INT8,
               .y = pick(&f, 2) ? QN_UINT16 : QN_INT16,
               .groups = pick(&f, 3) ? 1 : 2,
               .kernel = 1 + 2 * pick(&f, 2),
               .stride = 1 + pick(&f, 2)};
    if (l.w == QN_INT8 && l.x == QN_UINT8)
        l.x = QN_UINT16;
    l.channels = l.groups * (1 + pick(&f, pick(&f, 2) ? 20 : 300));
    l.filters = l.groups * (1 + pick(&f, 60));
    l.most = l.w == QN_INT16 ? mosts[pick(&f, QN_COUNT_OF(mosts))] : 1 + pick(&f, 127);
    if (pick(&f, 4) == 0)
        l.y = QN_FLOAT32;
    qn_value *x = image(&f, &l);
    add_output(&f, add_layer(&f, pick(&f, 3) ? x : least(&f, x), &l));
    const double count = differing(&f, "int16 conv");
    fixture_end(&f);
    return count;
}

/* ---- Between floats -------------------------------------------------------------------------- */

/* A function that rounds nothing, or as the reference does. */
static qn_value *function(fixture *f, qn_value *x)
{
    static const qn_op *const ops[] = {&qn_op_LeakyRelu, &qn_op_Abs, &qn_op_Neg, &qn_op_Relu};
    const int64_t which = pick(f, QN_COUNT_OF(ops) + 1);
    return which == QN_COUNT_OF(ops) ? x : result_of(add_node(f, ops[which], 1, &x));
}

/* Every channel times a power of two, which is exact: a reader that works in blocks. */
static qn_value *reader(fixture *f, qn_value *x)
{
    const int64_t channels = x->type.dims[1].value, dims[] = {channels, 1, 1, 1};
    qn_tensor *t = constant_tensor(f, QN_FLOAT32, 4, dims);
    for (int64_t i = 0; i < channels; i++)
        ((float *)t->data)[i] = ldexpf(pick(f, 2) ? 1 : -1, (int)pick(f, 5) - 2);
    qn_value *const in[] = {x, constant_value(f, t)};
    qn_node *node = add_node(f, &qn_op_Conv, 2, in);
    ((qn_window_attrs *)node->attrs)->group = channels;
    return result_of(node);
}

static qn_value *quantized(fixture *f, qn_value *x, qn_dtype dtype)
{
    qn_value *const in[] = {x, add_scales(f, 0, 0.03 * unit_of(dtype)), add_zero(f, dtype)};
    return result_of(add_node(f, &qn_op_QuantizeLinear, 3, in));
}

static qn_value *dequantized(fixture *f, qn_value *x)
{
    const qn_dtype dtype = x->type.dtype;
    qn_value *const in[] = {x, add_scales(f, 0, 0.03 * unit_of(dtype)), add_zero(f, dtype)};
    return result_of(add_node(f, &qn_op_DequantizeLinear, 3, in));
}

static layer byte_layer(fixture *f, qn_dtype x, int64_t channels)
{
    layer l = {.x = x, .w = QN_INT8, .groups = 1, .kernel = 1 + 2 * pick(f, 2), .stride = 1};
    l.y = pick_width(f, pick_byte(f));
    l.channels = channels;
    l.filters = pick(f, 3) ? 8 * (1 + pick(f, 8)) : 1 + pick(f, 70);
    return l;
}

/* bytes -> floats -> a kernel in blocks, of floats and of bytes brought back -> bytes -> bytes */
static double mixed_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    layer first = byte_layer(&f, pick_width(&f, pick_byte(&f)), 1 + pick(&f, 40));
    first.y = QN_FLOAT32;
    qn_value *x = image(&f, &first);
    qn_value *y = function(&f, add_layer(&f, x, &first));
    if (pick(&f, 4) == 0)
        add_output(&f, y);
    if (pick(&f, 2))
        y = reader(&f, y);
    if (pick(&f, 3) == 0) {
        qn_value *parts[] = {y, function(&f, add_layer(&f, x, &first))};
        qn_node *node = add_node(&f, &qn_op_Concat, 2, parts);
        ((qn_concat_attrs *)node->attrs)->axis = 1;
        y = result_of(node);
    }
    qn_value *bytes = quantized(&f, y, pick_width(&f, pick_byte(&f)));
    const layer second = byte_layer(&f, bytes->type.dtype, y->type.dims[1].value);
    qn_value *z = add_layer(&f, bytes, &second);
    add_output(&f, z);
    if (pick(&f, 2))
        add_output(&f, reader(&f, dequantized(&f, pick(&f, 2) ? bytes : z)));
    const double count = differing(&f, NULL);
    fixture_end(&f);
    return count;
}

static void test_long_sums(void **state)
{
    (void)state;
    run_cases(long_case, 300, 0);
}

static void test_mixed(void **state)
{
    (void)state;
    run_cases(mixed_case, 300, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_long_sums),
                                       cmocka_unit_test(test_mixed)};
    return RUN_TESTS_OF("cpu", tests);
}
