/* Integer kernels that are no multiply-accumulate, against the reference, bit for bit. Tensors come
 * channels last out of a convolution, or row-major. */
#include "int8_elem.h"
#include "ops/qlinear.h"
#include "ops/resize.h"

/* ---- One operand ----------------------------------------------------------------------------- */

static double one_requantize(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const qn_dtype from = pick_narrow(&f), to = pick_narrow(&f);
    qn_value *const in[] = {image(&f, from), scale_of(&f, from), zero_of(&f, from),
                            scale_of(&f, to), zero_of(&f, to)};
    qn_value *y = result_of(add_node(&f, &qn_op_qn_Requantize, 5, in));
    return finish(&f, limited(&f, y), "requantize");
}

static double one_table(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const qn_dtype from = pick_narrow(&f), to = pick_narrow(&f);
    const int64_t size = qn_dtype_size(from) == 1 ? 256 : 65536;
    qn_value *const in[] = {image(&f, from), add_bytes(&f, to, 1, &size)};
    return finish(&f, result_of(add_node(&f, &qn_op_qn_QTable, 2, in)), "table");
}

static double one_clip(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const qn_dtype dtype = pick_narrow(&f);
    qn_value *const in[] = {image(&f, dtype), zero_of(&f, dtype), zero_of(&f, dtype)};
    qn_value *y = result_of(add_node(&f, &qn_op_Clip, pick(&f, 2) ? 2 : 3, in));
    return finish(&f, limited(&f, y), "clip");
}

static double one_quantize(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const int64_t dims[] = {1 + pick(&f, 2), pick(&f, 2) ? 3 : channels(&f), 1 + pick(&f, 40),
                            1 + pick(&f, 40)};
    const int64_t ones[] = {1, 1};
    const qn_dtype dtype = pick_narrow(&f);
    qn_value *const in[] = {add_input(&f, 2 + (int32_t)pick(&f, 3), dims), scale_of(&f, dtype),
                            zero_of(&f, dtype)};
    qn_value *y = result_of(add_node(&f, &qn_op_QuantizeLinear, 3, in));
    if (y->type.rank == 4 && qn_dtype_size(dtype) == 1 &&
        pick(&f, 3)) { /* a reader: channels last */
        qn_node *node = add_node(&f, &qn_op_MaxPool, 1, &y);
        ((qn_window_attrs *)node->attrs)->kernel_shape = keep_ints(&f, ones, 2);
        y = result_of(node);
    }
    return finish(&f, y, "quantize");
}

static double one_dequantize(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const qn_dtype dtype = pick_narrow(&f);
    qn_value *const in[] = {image(&f, dtype), scale_of(&f, dtype), zero_of(&f, dtype)};
    return finish(&f, result_of(add_node(&f, &qn_op_DequantizeLinear, 3, in)), "dequantize");
}

/* A pair in one go. */
static double one_fake(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const int64_t dims[] = {1 + pick(&f, 2), channels(&f), 1 + pick(&f, 40)};
    const qn_dtype dtype = pick_narrow(&f);
    qn_value *in[] = {add_input(&f, 3, dims), scale_of(&f, dtype), zero_of(&f, dtype)};
    in[0] = result_of(add_node(&f, &qn_op_QuantizeLinear, 3, in));
    return finish(&f, result_of(add_node(&f, &qn_op_DequantizeLinear, 3, in)), "fake quant");
}

/* ---- Two operands ---------------------------------------------------------------------------- */

/* Something of another narrow type that broadcasts to x. */
static qn_value *partner(fixture *f, const qn_value *x)
{
    const qn_dtype dtype = qn_dtype_size(x->type.dtype) == 1 ? pick_byte(f)
                           : pick(f, 2)                      ? QN_UINT16
                                                             : QN_INT16;
    const int64_t kept = pick(f, 2) ? 15 : pick(f, 4) ? pick(f, 16) : 0;
    int64_t dims[4];
    int32_t from = 0;
    for (int32_t d = 0; d < 4; d++)
        dims[d] = kept & (1 << d) ? dim(x, d) : 1;
    while (from < 4 && dims[from] == 1 && pick(f, 2)) /* it may have fewer dims */
        from++;
    return add_byte_input(f, dtype, 4 - from, dims + from);
}

static double one_pair(uint32_t seed, const qn_op *op, const char *kernel)
{
    fixture f = fixture_begin(seed);
    qn_value *a = image(&f, pick_narrow(&f)), *b = partner(&f, a);
    if (pick(&f, 3) == 0) {
        qn_value *swap = a;
        a = b;
        b = swap;
    }
    const qn_dtype to = qn_dtype_size(a->type.dtype) == 1 ? pick_byte(&f) : QN_INT16;
    const bool sum = op == &qn_op_ms_QLinearAdd;
    qn_value *const in[] = {a,
                            scale_of(&f, a->type.dtype),
                            zero_of(&f, a->type.dtype),
                            b,
                            scale_of(&f, b->type.dtype),
                            zero_of(&f, b->type.dtype),
                            add_scales(&f, 0, scale_size(to) * (sum ? 1 : 0.02)),
                            zero_of(&f, to)};
    if (pick(&f, 4) == 0) { /* far apart */
        *(float *)in[4]->data->data *= 1e-7f;
        *(float *)in[6]->data->data *= 1e-3f;
    }
    return finish(&f, limited(&f, result_of(add_wide_node(&f, op, 8, in))), kernel);
}

static double one_add(uint32_t seed)
{
    return one_pair(seed, &qn_op_ms_QLinearAdd, "int add");
}

static double one_multiply(uint32_t seed)
{
    return one_pair(seed, &qn_op_ms_QLinearMul, "int mul");
}

/* Slopes along any dims, mostly along one; some are no numbers that a network has. */
static double one_prelu(uint32_t seed)
{
    static const float odd[] = {0, 1, -1, INFINITY, -INFINITY, NAN, 1e30f};
    fixture f = fixture_begin(seed);
    const qn_dtype from = pick_narrow(&f), to = pick_narrow(&f);
    qn_value *x = image(&f, from);
    const int64_t kept = pick(&f, 2) ? 2 : pick(&f, 16);
    const int32_t ahead = kept & 1 ? 0 : (int32_t)pick(&f, 2); /* [C, 1, 1] or [1, C, 1, 1] */
    int64_t dims[4];
    for (int32_t d = 0; d < 4; d++)
        dims[d] = kept & (1 << d) ? dim(x, d) : 1;
    qn_value *slope = add_weights(&f, 4 - ahead, dims + ahead);
    float *numbers = slope->data->data;
    for (int64_t i = 0; i < qn_tensor_count(slope->data); i++)
        numbers[i] = pick(&f, 30) ? numbers[i] : odd[pick(&f, 7)];
    qn_value *const in[] = {x,     scale_of(&f, from), zero_of(&f, from),
                            slope, scale_of(&f, to),   zero_of(&f, to)};
    qn_value *y = result_of(add_node(&f, &qn_op_qn_QPRelu, 6, in));
    return finish(&f, limited(&f, y), "int prelu");
}

/* ---- Windows and means ----------------------------------------------------------------------- */

static void random_window(fixture *f, qn_window_attrs *a, const qn_value *x)
{
    int64_t kernel[2], strides[2], pads[4];
    for (int d = 0; d < 2; d++) {
        kernel[d] = 1 + pick(f, QN_MIN(dim(x, d + 2), 4));
        strides[d] = 1 + pick(f, 3);
        pads[d] = pick(f, kernel[d]);
        pads[d + 2] = pick(f, kernel[d]);
    }
    a->kernel_shape = keep_ints(f, kernel, 2);
    a->strides = keep_ints(f, strides, 2);
    a->pads = keep_ints(f, pads, 4);
    a->ceil_mode = pick(f, 2);
}

static double one_max_pool(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    qn_value *x = image(&f, pick_narrow(&f));
    qn_node *node = add_node(&f, &qn_op_MaxPool, 1, &x);
    random_window(&f, node->attrs, x);
    return finish(&f, result_of(node), NULL);
}

static double one_average_pool(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const qn_dtype from = pick_narrow(&f);
    const qn_dtype to = qn_dtype_size(from) == 1 ? pick_byte(&f) : QN_UINT16;
    qn_value *const in[] = {image(&f, from), scale_of(&f, from), zero_of(&f, from),
                            scale_of(&f, to), zero_of(&f, to)};
    qn_node *node = add_node(&f, &qn_op_ms_QLinearAveragePool, 5, in);
    random_window(&f, node->attrs, in[0]);
    ((qn_window_attrs *)node->attrs)->count_include_pad = pick(&f, 2);
    return finish(&f, limited(&f, result_of(node)), NULL);
}

/* Three dimensions. */
static double one_deep_pool(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const int64_t dims[] = {1 + pick(&f, 2), channels(&f), 2 + pick(&f, 4), 2 + pick(&f, 6),
                            2 + pick(&f, 6)};
    const int64_t kernel[] = {1 + pick(&f, 2), 1 + pick(&f, 2), 1 + pick(&f, 2)};
    const int64_t strides[] = {1 + pick(&f, 2), 1 + pick(&f, 2), 1 + pick(&f, 2)};
    int64_t pads[6];
    for (int d = 0; d < 6; d++)
        pads[d] = pick(&f, kernel[d % 3]);
    const qn_dtype from = pick_byte(&f), to = pick_byte(&f);
    const bool mean = pick(&f, 2);
    qn_value *const in[] = {add_byte_input(&f, from, 5, dims), scale_of(&f, from),
                            zero_of(&f, from), scale_of(&f, to), zero_of(&f, to)};
    qn_node *node =
        add_node(&f, mean ? &qn_op_ms_QLinearAveragePool : &qn_op_MaxPool, mean ? 5 : 1, in);
    qn_window_attrs *a = node->attrs;
    a->kernel_shape = keep_ints(&f, kernel, 3);
    a->strides = keep_ints(&f, strides, 3);
    a->pads = keep_ints(&f, pads, 6);
    a->count_include_pad = mean && pick(&f, 2);
    return finish(&f, result_of(node), mean ? "int average pool" : "int max pool");
}

static double one_mean(uint32_t seed)
{
    static const int64_t lists[][3] = {{2, 3, 0}, {1, 0, 0}, {3, 0, 0}, {2, 0, 0}, {1, 2, 3}};
    static const size_t counts[] = {2, 1, 1, 1, 3};
    fixture f = fixture_begin(seed);
    const qn_dtype from = pick_narrow(&f), to = pick_narrow(&f);
    const bool global = pick(&f, 2);
    qn_value *const in[] = {image(&f, from), scale_of(&f, from), zero_of(&f, from),
                            scale_of(&f, to), zero_of(&f, to)};
    qn_node *node = add_node(
        &f, global ? &qn_op_ms_QLinearGlobalAveragePool : &qn_op_ms_QLinearReduceMean, 5, in);
    if (!global) {
        const int64_t which = pick(&f, 5);
        qn_reduce_attrs *a = node->attrs;
        a->axes = keep_ints(&f, lists[which], counts[which]);
        a->keepdims = pick(&f, 2);
    }
    return finish(&f, limited(&f, result_of(node)), "int mean");
}

/* ---- Movements ------------------------------------------------------------------------------- */

static double one_concat(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const int64_t count = 1 + pick(&f, 4);
    const int32_t axis = (int32_t)pick(&f, 3) ? 1 : (int32_t)pick(&f, 4);
    const bool plain = pick(&f, 4) == 0;
    const qn_dtype to = pick_byte(&f);
    qn_value *in[16] = {scale_of(&f, to), zero_of(&f, to)}, *parts[4], *first = image(&f, to);
    for (int64_t i = 0; i < count; i++) {
        const qn_dtype from = plain || pick(&f, 3) ? to : pick_byte(&f);
        int64_t dims[4];
        for (int32_t d = 0; d < 4; d++)
            dims[d] = d == axis ? 1 + pick(&f, 40) : dim(first, d);
        parts[i] = in[2 + 3 * i] = i ? add_byte_input(&f, from, 4, dims) : first;
        const bool same = in[2 + 3 * i]->type.dtype == to && pick(&f, 2);
        in[3 + 3 * i] = same ? in[0] : scale_of(&f, in[2 + 3 * i]->type.dtype);
        in[4 + 3 * i] = same ? in[1] : zero_of(&f, in[2 + 3 * i]->type.dtype);
    }
    qn_node *node = plain
                        ? add_node(&f, &qn_op_Concat, (int32_t)count, parts)
                        : add_wide_node(&f, &qn_op_ms_QLinearConcat, (int32_t)(2 + 3 * count), in);
    if (plain)
        ((qn_concat_attrs *)node->attrs)->axis = axis;
    else
        ((qn_qconcat_attrs *)node->attrs)->axis = axis;
    return finish(&f, result_of(node), NULL);
}

/* A cut along one or several dims. */
static double one_slice(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    qn_value *x = image(&f, pick_narrow(&f));
    const int64_t axes[] = {0, 1, 2, 3};
    int64_t starts[4], ends[4], steps[4];
    for (int32_t d = 0; d < 4; d++) {
        const bool cut = pick(&f, 2);
        starts[d] = cut ? pick(&f, dim(x, d)) : 0;
        ends[d] = cut ? starts[d] + 1 + pick(&f, dim(x, d) - starts[d]) : dim(x, d);
        steps[d] = 1 + (cut && pick(&f, 3) == 0);
    }
    qn_value *const in[] = {x, add_ints(&f, starts, 4), add_ints(&f, ends, 4),
                            add_ints(&f, axes, 4), add_ints(&f, steps, 4)};
    return finish(&f, result_of(add_node(&f, &qn_op_Slice, 5, in)), NULL);
}

static double one_split(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    qn_value *x = image(&f, pick_narrow(&f));
    const int32_t axis = (int32_t)pick(&f, 3) ? 1 : (int32_t)pick(&f, 4);
    const int64_t size = dim(x, axis), first = 1 + pick(&f, size), parts[] = {first, size - first};
    qn_node *node;
    assert_int_equal(qn_node_add(&node, f.graph, &qn_op_Split, "split", 2, 2), QN_OK);
    ((qn_split_attrs *)node->attrs)->axis = axis;
    qn_value *const in[] = {x, add_ints(&f, parts, 2)};
    for (int32_t i = 0; i < 2; i++) {
        qn_value *part;
        assert_int_equal(qn_node_set_input(node, i, in[i]), QN_OK);
        assert_int_equal(qn_value_create(&part, f.graph, "part"), QN_OK);
        qn_node_set_output(node, i, part);
    }
    add_output(&f, result_of(node));
    return finish(&f, node->out[1], NULL);
}

static double one_pad(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    qn_value *x = image(&f, pick_narrow(&f));
    int64_t pads[8];
    for (int d = 0; d < 8; d++)
        pads[d] = pick(&f, 2) ? pick(&f, 4) : 0;
    qn_value *const in[] = {x, add_ints(&f, pads, 8), zero_of(&f, x->type.dtype)};
    return finish(&f, result_of(add_node(&f, &qn_op_Pad, pick(&f, 3) ? 3 : 2, in)), NULL);
}

static double one_transpose(uint32_t seed)
{
    static const int64_t perms[][4] = {
        {0, 2, 3, 1}, {0, 3, 1, 2}, {0, 1, 3, 2}, {1, 0, 2, 3}, {3, 2, 1, 0}};
    const int64_t ones[] = {1, 1};
    fixture f = fixture_begin(seed);
    qn_value *x = image(&f, pick_narrow(&f));
    qn_node *node = add_node(&f, &qn_op_Transpose, 1, &x);
    ((qn_transpose_attrs *)node->attrs)->perm = keep_ints(&f, perms[pick(&f, 5)], 4);
    qn_value *y = result_of(node);
    if (pick(&f, 2) && qn_dtype_size(y->type.dtype) == 1) {
        node = add_node(&f, &qn_op_MaxPool, 1, &y);
        ((qn_window_attrs *)node->attrs)->kernel_shape = keep_ints(&f, ones, 2);
        y = result_of(node);
    }
    return finish(&f, y, NULL);
}

/* [N, C, W] to [N, W, C] and back: of rank 3 one permutation leads into channels last and out of
 * it. */
static double one_turn(uint32_t seed)
{
    static const int64_t perm[] = {0, 2, 1};
    const int64_t one = 1;
    fixture f = fixture_begin(seed);
    const int64_t dims[] = {1 + pick(&f, 2), channels(&f), 1 + pick(&f, 40)};
    qn_value *x = add_byte_input(&f, pick_byte(&f), 3, dims);
    for (int64_t left = 1 + pick(&f, 4); left > 0; left--) {
        const bool turns = pick(&f, 2);
        qn_node *node = add_node(&f, turns ? &qn_op_Transpose : &qn_op_MaxPool, 1, &x);
        if (turns)
            ((qn_transpose_attrs *)node->attrs)->perm = keep_ints(&f, perm, 3);
        else
            ((qn_window_attrs *)node->attrs)->kernel_shape = keep_ints(&f, &one, 1);
        x = result_of(node);
    }
    return finish(&f, x, NULL);
}

static double one_resize(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const qn_dtype from = pick_narrow(&f);
    const qn_dtype to = qn_dtype_size(from) == 1 ? pick_byte(&f) : QN_UINT16;
    const bool linear = pick(&f, 2), by_scales = pick(&f, 2);
    qn_value *x = image(&f, from);
    const int64_t sizes[] = {dim(x, 0), dim(x, 1), 1 + pick(&f, 20), 1 + pick(&f, 20)}, four = 4;
    qn_tensor *scales = constant_tensor(&f, QN_FLOAT32, 1, &four);
    for (int d = 0; d < 4; d++)
        ((float *)scales->data)[d] = d < 2 ? 1 : 1 + (float)pick(&f, 5) / 2;
    qn_value *s = by_scales ? constant_value(&f, scales) : NULL;
    qn_value *z = by_scales ? NULL : add_ints(&f, sizes, 4);
    qn_value *const quantized[] = {
        x, scale_of(&f, from), zero_of(&f, from), scale_of(&f, to), zero_of(&f, to), NULL, s, z};
    qn_value *const plain[] = {x, NULL, s, z};
    qn_node *node = linear ? add_node(&f, &qn_op_qn_QLinearResize, 8, quantized)
                           : add_node(&f, &qn_op_Resize, 4, plain);
    qn_resize_attrs *a = node->attrs;
    a->mode = linear ? QN_RESIZE_LINEAR : QN_RESIZE_NEAREST;
    a->coordinate_transformation_mode = pick(&f, QN_COORD_TF_CROP_AND_RESIZE);
    a->nearest_mode = pick(&f, 4);
    return finish(&f, limited(&f, result_of(node)), linear ? "int linear" : "int nearest");
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static qn_value *matrix(fixture *f, qn_dtype dtype)
{
    const int64_t dims[] = {1 + pick(f, 3), 1 + pick(f, 40), 1 + pick(f, 300)};
    return add_byte_input(f, dtype, 3, dims);
}

static double one_softmax(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const qn_dtype from = pick_narrow(&f), to = pick_narrow(&f);
    const bool bytes = qn_dtype_size(from) == 1 && qn_dtype_size(to) == 1;
    qn_value *const in[] = {matrix(&f, from), scale_of(&f, from), zero_of(&f, from),
                            add_scales(&f, 0, 0.003), zero_of(&f, to)};
    if (pick(&f, 2))
        *(float *)in[3]->data->data = 1.0f / 256;
    qn_node *node = add_node(&f, &qn_op_ms_QLinearSoftmax, 5, in);
    qn_qsoftmax_attrs *a = node->attrs;
    a->axis = pick(&f, 4) ? -1 : pick(&f, 3);
    a->opset = pick(&f, 4) ? 13 : 12;
    return finish(&f, result_of(node), bytes ? "int softmax" : "int16 softmax");
}

static double one_norm(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const qn_dtype from = pick_narrow(&f), to = pick_narrow(&f);
    qn_value *x = matrix(&f, from);
    const int64_t n = dim(x, 2);
    qn_value *const in[] = {x,
                            scale_of(&f, from),
                            zero_of(&f, from),
                            add_weights(&f, 1, &n),
                            pick(&f, 2) ? add_weights(&f, 1, &n) : NULL,
                            scale_of(&f, to),
                            zero_of(&f, to)};
    qn_value *y = result_of(add_node(&f, &qn_op_qn_QLayerNormalization, 7, in));
    return finish(&f, y,
                  qn_dtype_size(from) == 1 && qn_dtype_size(to) == 1 ? "int layer norm"
                                                                     : "int16 layer norm");
}

#define CASES(name, count)                                                                         \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        run_cases(one_##name, count, 0);                                                           \
    }
CASES(requantize, 40)
CASES(table, 20)
CASES(clip, 40)
CASES(quantize, 40)
CASES(dequantize, 20)
CASES(fake, 20)
CASES(add, 80)
CASES(multiply, 60)
CASES(prelu, 80)
CASES(max_pool, 40)
CASES(average_pool, 40)
CASES(deep_pool, 60)
CASES(mean, 60)
CASES(concat, 80)
CASES(slice, 60)
CASES(split, 40)
CASES(pad, 40)
CASES(transpose, 40)
CASES(turn, 40)
CASES(resize, 60)
CASES(softmax, 40)
CASES(norm, 40)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requantize), cmocka_unit_test(test_table),
        cmocka_unit_test(test_clip),       cmocka_unit_test(test_quantize),
        cmocka_unit_test(test_dequantize), cmocka_unit_test(test_fake),
        cmocka_unit_test(test_add),        cmocka_unit_test(test_multiply),
        cmocka_unit_test(test_max_pool),   cmocka_unit_test(test_average_pool),
        cmocka_unit_test(test_deep_pool),  cmocka_unit_test(test_mean),
        cmocka_unit_test(test_concat),     cmocka_unit_test(test_slice),
        cmocka_unit_test(test_split),      cmocka_unit_test(test_pad),
        cmocka_unit_test(test_transpose),  cmocka_unit_test(test_turn),
        cmocka_unit_test(test_resize),     cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_norm),       cmocka_unit_test(test_prelu),
    };
    return RUN_TESTS_OF("cpu", tests);
}
