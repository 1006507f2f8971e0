/* Convolutions of 8- and 16-bit integers against the reference, bit for bit: random shapes, odd
 * channels, groups, dilations, uneven pads, zero points anywhere, extreme sums, and what is fused
 * behind. */
#include "int8_follow.h"

typedef struct conv {
    qn_dtype x, w, y;
    int64_t samples, channels, filters, groups;
    int64_t size[2], kernel[2], stride[2], dilation[2], pads[4];
    /* Weights have zero points; parameters for each filter */
    bool w_zero, by_filter;
    /* For results */
    bool floats;
} conv;

static conv random_conv(fixture *f)
{
    conv c = {.w = pick(f, 4) ? QN_INT8 : QN_UINT8};
    c.x = pick_width(f, pick_byte(f));
    c.y = pick_width(f, pick_byte(f));
    c.samples = 1 + pick(f, 2);
    c.groups = pick(f, 4) ? 1 : 1 + pick(f, 4);
    c.channels = c.groups * (1 + pick(f, pick(f, 3) ? 12 : 80));
    c.filters = c.groups * (1 + pick(f, pick(f, 3) ? 40 : 150));
    if (pick(f, 4) == 0)
        c.w = QN_INT16;
    c.w_zero = c.w == QN_UINT8 || pick(f, 6) == 0;
    c.by_filter = pick(f, 2);
    const bool single = pick(f, 3) == 0;
    for (int d = 0; d < 2; d++) {
        c.kernel[d] = single ? 1 : 1 + pick(f, 4);
        c.stride[d] = pick(f, 2) ? 1 : 1 + pick(f, 3);
        c.dilation[d] = pick(f, 3) ? 1 : 1 + pick(f, 2);
        c.size[d] = (c.kernel[d] - 1) * c.dilation[d] + 1 + pick(f, 20);
        for (int side = 0; side < 2; side++)
            c.pads[d + 2 * side] = pick(f, single ? 5 : 2) ? 0 : pick(f, 4);
    }
    return c;
}

/* Zero points of the weights, one or one per filter. */
static qn_value *weight_zeros(fixture *f, const conv *c)
{
    qn_tensor *t = constant_tensor(f, c->w, c->by_filter ? 1 : 0, &c->filters);
    fill_bytes(f, t->data, c->w_zero ? qn_tensor_count(t) * (int64_t)qn_dtype_size(c->w) : 0,
               false);
    return constant_value(f, t);
}

/* With a result of 8 or 16 bits, or in float. */
static qn_value *add_conv(fixture *f, qn_value *x, const conv *c)
{
    const int64_t dims[] = {c->filters, c->channels / c->groups, c->kernel[0], c->kernel[1]};
    const double size = 40.0 / sqrt((double)(dims[1] * dims[2] * dims[3]));
    qn_value *in[] = {x,
                      add_scales(f, 0, 0.02 * unit_of(c->x)),
                      add_zero(f, c->x),
                      add_bytes(f, c->w, 4, dims),
                      add_scales(f, c->by_filter ? c->filters : 0, size * 1e-4 * unit_of(c->w)),
                      weight_zeros(f, c),
                      add_scales(f, 0, 0.01 * unit_of(c->y)),
                      add_zero(f, c->y),
                      biases(f, c->filters, c->x, c->w)};
    const qn_op *op = c->floats ? &qn_op_qn_ConvIntegerToFloat : &qn_op_QLinearConv;
    if (c->floats)
        in[6] = in[8];
    qn_node *node = add_wide_node(f, op, (c->floats ? 6 : 8) + (pick(f, 3) ? 1 : 0), in);
    qn_window_attrs *a = node->attrs;
    a->group = c->groups;
    a->strides = keep_ints(f, c->stride, 2);
    a->dilations = keep_ints(f, c->dilation, 2);
    a->pads = keep_ints(f, c->pads, 4);
    return result_of(node);
}

static qn_value *conv_input(fixture *f, const conv *c)
{
    const int64_t dims[] = {c->samples, c->channels, c->size[0], c->size[1]};
    return add_byte_input(f, c->x, 4, dims);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static double conv_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    conv c = random_conv(&f);
    c.floats = pick(&f, 3) == 0;
    qn_value *y = add_conv(&f, conv_input(&f, &c), &c);
    const bool bytes = c.floats && pick(&f, 3);
    if (bytes)
        y = function(&f, y);
    else if (c.floats && pick(&f, 2))
        y = result_of(add_node(&f, &qn_op_Relu, 1, &y));
    add_output(&f, c.floats && !bytes ? y : follow(&f, y));
    const double count = differing(&f, has_int16(c.x, c.w) ? "int16 conv" : "int8 conv");
    fixture_end(&f);
    return count;
}

/* Arithmetic behind a float result, in the layout that it has: what is added repeats along some
 * dims. */
static double float_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    conv c = random_conv(&f);
    int64_t dims[QN_MAX_RANK];
    c.floats = true;
    qn_value *y = add_conv(&f, conv_input(&f, &c), &c);
    assert_true(qn_type_is_static(&y->type, dims));
    for (int d = 0; d < 4; d++)
        dims[d] = pick(&f, 2) ? dims[d] : 1;
    qn_tensor *added = constant_tensor(&f, QN_FLOAT32, 4, dims);
    for (int64_t i = 0; i < qn_tensor_count(added); i++)
        ((float *)added->data)[i] = noise(&f);
    y = result_of(add_node(&f, &qn_op_Abs, 1, &y));
    add_output(&f, apply(&f, &qn_op_Add, y, constant_value(&f, added)));
    const double count = differing(&f, "chain");
    fixture_end(&f);
    return count;
}

/* Three dimensions: whole kernels, those of single frames, and those along the depth alone. */
static double volume_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const conv c = random_conv(&f);
    const bool floats = pick(&f, 3) == 0, flat = pick(&f, 4) == 0, along = pick(&f, 4) == 0;
    const int64_t kernel[3] = {flat ? 1 : 1 + pick(&f, 3), along ? 1 : c.kernel[0],
                               along ? 1 : c.kernel[1]};
    const int64_t stride[3] = {flat && pick(&f, 2) ? 1 : 1 + pick(&f, 2), c.stride[0], c.stride[1]};
    const int64_t dilation[3] = {1 + (pick(&f, 3) == 0), c.dilation[0], c.dilation[1]};
    const int64_t deep[2] = {flat ? 0 : pick(&f, 3), flat ? 0 : pick(&f, 3)};
    const int64_t pads[6] = {deep[0], c.pads[0], c.pads[1], deep[1], c.pads[2], c.pads[3]};
    const int64_t depth = (kernel[0] - 1) * dilation[0] + 1 + pick(&f, 6);
    const int64_t dims[] = {c.samples, c.channels, depth, c.size[0], c.size[1]};
    const int64_t weights[] = {c.filters, c.channels / c.groups, kernel[0], kernel[1], kernel[2]};
    const double size = 40.0 / sqrt((double)(weights[1] * kernel[0] * kernel[1] * kernel[2]));
    qn_value *in[] = {add_byte_input(&f, c.x, 5, dims),
                      add_scales(&f, 0, 0.02 * unit_of(c.x)),
                      add_zero(&f, c.x),
                      add_bytes(&f, c.w, 5, weights),
                      add_scales(&f, c.by_filter ? c.filters : 0, size * 1e-4 * unit_of(c.w)),
                      weight_zeros(&f, &c),
                      add_scales(&f, 0, 0.01 * unit_of(c.y)),
                      add_zero(&f, c.y),
                      biases(&f, c.filters, c.x, c.w)};
    if (floats)
        in[6] = in[8];
    const qn_op *op = floats ? &qn_op_qn_ConvIntegerToFloat : &qn_op_QLinearConv;
    qn_node *node = add_wide_node(&f, op, (floats ? 6 : 8) + (pick(&f, 3) ? 1 : 0), in);
    qn_window_attrs *a = node->attrs;
    a->group = c.groups;
    a->strides = keep_ints(&f, stride, 3);
    a->dilations = keep_ints(&f, dilation, 3);
    a->pads = keep_ints(&f, pads, 6);
    qn_value *y = result_of(node);
    add_output(&f, floats ? y : follow(&f, y));
    const double count = differing(&f, has_int16(c.x, c.w) ? "int16 conv 3d" : "int8 conv 3d");
    fixture_end(&f);
    return count;
}

/* Padded so that results are about as large as the map. */
static double padded_case(fixture *f, conv *c)
{
    for (int d = 0; d < 2; d++)
        c->pads[d] = c->pads[d + 2] = c->kernel[d] / 2 * c->dilation[d];
    add_output(f, follow(f, add_conv(f, conv_input(f, c), c)));
    const double count = differing(f, "int8 conv");
    fixture_end(f);
    return count;
}

/* As networks have them: many channels and short rows, of which windows left and right see padding,
 * and work enough to be cut into pieces. */
static double layer_case(uint32_t seed)
{
    static const int64_t sizes[] = {6, 7, 13, 14, 15, 28};
    fixture f = fixture_begin(seed);
    conv c = {.x = QN_UINT8, .w = QN_INT8, .y = pick_byte(&f), .by_filter = true, .groups = 1};
    c.samples = 1 + pick(&f, 2);
    c.channels = 64 * (1 + pick(&f, 2));
    c.filters = 32 * (1 + pick(&f, 4)) + (pick(&f, 3) ? 0 : 8);
    for (int d = 0; d < 2; d++) {
        c.size[d] = sizes[pick(&f, QN_COUNT_OF(sizes))];
        c.kernel[d] = 1 + 2 * pick(&f, 3);
        c.stride[d] = 1 + pick(&f, 2);
        c.dilation[d] = 1 + pick(&f, 2);
    }
    return padded_case(&f, &c);
}

/* 3x3 kernels side by side: Winograd's form below VNNI, where a filter is not too large for it. */
static double winograd_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    conv c = {.x = pick_byte(&f), .w = QN_INT8, .y = pick_byte(&f), .groups = 1};
    c.w_zero = pick(&f, 4) == 0;
    c.by_filter = pick(&f, 2);
    c.samples = 1 + pick(&f, 2);
    c.channels = 12 + pick(&f, pick(&f, 2) ? 40 : 220);
    c.filters = 12 + pick(&f, 60);
    for (int d = 0; d < 2; d++) {
        c.kernel[d] = 3;
        c.stride[d] = c.dilation[d] = 1;
        c.size[d] = 3 + pick(&f, 24);
        for (int side = 0; side < 2; side++)
            c.pads[d + 2 * side] = pick(&f, 3) ? 1 : pick(&f, 4);
    }
    c.floats = pick(&f, 3) == 0;
    qn_value *y = add_conv(&f, conv_input(&f, &c), &c);
    if (c.floats && pick(&f, 2))
        add_output(&f, follow(&f, function(&f, y)));
    else
        add_output(&f, c.floats ? y : follow(&f, y));
    const double count = differing(&f, "int8 conv");
    fixture_end(&f);
    return count;
}

/* Every channel by itself: the kernels that have no tiles. */
static double depthwise_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    conv c = random_conv(&f);
    c.channels = c.filters = c.groups = 2 + pick(&f, pick(&f, 2) ? 30 : 200);
    c.floats = pick(&f, 3) == 0;
    const bool bytes = !c.floats || pick(&f, 3);
    qn_value *y = add_conv(&f, conv_input(&f, &c), &c);
    if (bytes)
        y = follow(&f, c.floats ? function(&f, y) : y);
    else if (pick(&f, 2))
        y = result_of(add_node(&f, &qn_op_Relu, 1, &y));
    add_output(&f, y);
    const double count = differing(&f, has_int16(c.x, c.w) ? "int16 conv" : "int8 conv");
    fixture_end(&f);
    return count;
}

/* As networks have them: large kernels that see padding on all sides, and maps of several bands. */
static double depthwise_layer_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    conv c = {.x = pick_byte(&f), .w = QN_INT8, .y = pick_byte(&f), .by_filter = true};
    c.samples = 1 + pick(&f, 2);
    c.channels = c.filters = c.groups = 8 * (1 + pick(&f, 12)) + (pick(&f, 3) ? 0 : pick(&f, 8));
    for (int d = 0; d < 2; d++) {
        c.size[d] = 1 + pick(&f, 60);
        c.kernel[d] = pick(&f, 4) ? 3 + 2 * pick(&f, 3) : 1 + pick(&f, 2);
        c.stride[d] = 1 + pick(&f, 2);
        c.dilation[d] = pick(&f, 3) ? 1 : 1 + pick(&f, 3);
    }
    return padded_case(&f, &c);
}

/* Transposed: weights are [channels, filters, ...]. */
static double transposed_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    conv c = random_conv(&f);
    const bool to_float = pick(&f, 3) == 0;
    if (pick(&f, 4) == 0)
        c.channels = c.filters = c.groups = 1 + pick(&f, 40);
    for (int d = 0; d < 2; d++) {
        c.size[d] = 1 + pick(&f, 9);
        c.pads[d] = QN_MIN(c.pads[d], (c.kernel[d] - 1) * c.dilation[d] / 2);
        c.pads[d + 2] = QN_MIN(c.pads[d + 2], (c.kernel[d] - 1) * c.dilation[d] / 2);
    }
    const int64_t dims[] = {c.channels, c.filters / c.groups, c.kernel[0], c.kernel[1]};
    const double size = 40.0 / sqrt((double)(dims[0] * dims[2] * dims[3]));
    qn_value *in[] = {conv_input(&f, &c),
                      add_scales(&f, 0, 0.02 * unit_of(c.x)),
                      add_zero(&f, c.x),
                      add_bytes(&f, c.w, 4, dims),
                      add_scales(&f, c.by_filter ? c.filters : 0, size * 1e-4 * unit_of(c.w)),
                      weight_zeros(&f, &c),
                      add_scales(&f, 0, 0.01 * unit_of(c.y)),
                      add_zero(&f, c.y),
                      biases(&f, c.filters, c.x, c.w)};
    const int32_t n_in = pick(&f, 3) ? 9 : 8;
    if (to_float)
        in[6] = in[8];
    const qn_op *op =
        to_float ? &qn_op_qn_ConvTransposeIntegerToFloat : &qn_op_qn_QLinearConvTranspose;
    qn_node *node = add_wide_node(&f, op, to_float ? n_in - 2 : n_in, in);
    qn_window_attrs *a = node->attrs;
    a->group = c.groups;
    const int64_t more[2] = {pick(&f, c.stride[0]), pick(&f, c.stride[1])};
    a->strides = keep_ints(&f, c.stride, 2);
    a->dilations = keep_ints(&f, c.dilation, 2);
    a->pads = keep_ints(&f, c.pads, 4);
    a->output_padding = keep_ints(&f, more, 2);
    qn_value *y = result_of(node);
    add_output(&f, to_float ? y : follow(&f, y));
    const double count = differing(&f, has_int16(c.x, c.w) ? "int16 deconv" : "int8 deconv");
    fixture_end(&f);
    return count;
}

/* Windows that are all padding but for a few elements, of sizes whose products no integer holds:
 * left to the reference where a copy of what they see would be out of all proportion. */
static double far_case(uint32_t seed)
{
    static const int64_t far[] = {5, 300, 4000, (1 << 22) - 1, (1 << 23) - 1};
    fixture f = fixture_begin(seed);
    const int64_t channels = pick(&f, 6) ? 64 : 1 << 17;
    conv c = {.x = pick_byte(&f), .w = QN_INT8, .y = pick_byte(&f), .samples = 1};
    c.channels = c.groups = channels;
    c.filters = channels * (1 + pick(&f, 2));
    for (int d = 0; d < 2; d++) {
        c.size[d] = 1 + pick(&f, 2);
        c.kernel[d] = 2 + pick(&f, 2);
        c.stride[d] = 1;
        c.dilation[d] = far[pick(&f, QN_COUNT_OF(far))];
        const int64_t reach = (c.kernel[d] - 1) * c.dilation[d];
        c.pads[d] = reach / 2;
        c.pads[d + 2] = reach - reach / 2;
    }
    add_output(&f, add_conv(&f, conv_input(&f, &c), &c));
    const double count = differing(&f, NULL);
    fixture_end(&f);
    return count;
}

/* Two in a row, the second over the first one's result and added to it. */
static double chain_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    conv c = random_conv(&f);
    qn_value *x = add_conv(&f, conv_input(&f, &c), &c);
    conv next = random_conv(&f);
    next.samples = c.samples;
    next.x = c.y;
    next.groups = 1;
    next.channels = c.filters;
    for (int d = 0; d < 2; d++)
        next.pads[d] = next.pads[d + 2] = (next.kernel[d] - 1) * next.dilation[d];
    add_output(&f, x);
    add_output(&f, follow(&f, add_conv(&f, x, &next)));
    const double count = differing(&f, has_int16(c.x, c.w) ? "int16 conv" : "int8 conv");
    fixture_end(&f);
    return count;
}

/* Several of one map and joined; some of them are bytes of another type, or read by somebody
 * else. */
static double join_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const conv first = random_conv(&f);
    qn_value *x = conv_input(&f, &first), *parts[3];
    const int32_t count = 2 + (int32_t)pick(&f, 2);
    const bool seen = pick(&f, 5) == 0, plain = first.groups == 1 && qn_dtype_size(first.y) == 1;
    for (int32_t i = 0; i < count; i++) {
        conv c = first;
        c.filters = c.groups * (1 + pick(&f, pick(&f, 2) ? 20 : 90));
        c.kernel[0] = c.kernel[1] = 1 + 2 * pick(&f, 2);
        for (int d = 0; d < 2; d++) /* outputs of one size */
            c.pads[d] = c.pads[d + 2] = c.kernel[d] / 2 * c.dilation[d];
        parts[i] = add_conv(&f, x, &c);
        if (pick(&f, 2))
            parts[i] = clip(&f, parts[i]);
    }
    qn_node *node = add_wide_node(&f, &qn_op_Concat, count, parts);
    ((qn_concat_attrs *)node->attrs)->axis = pick(&f, 2) ? 1 : -3;
    add_output(&f, follow(&f, result_of(node)));
    if (seen)
        add_output(&f, parts[0]);
    const double differ = differing(&f, plain && !seen ? "int8 convs" : NULL);
    fixture_end(&f);
    return differ;
}

static void test_conv(void **state)
{
    (void)state;
    run_cases(conv_case, 300, 0);
    run_cases(float_case, 50, 0);
    run_cases(volume_case, 150, 0);
    run_cases(layer_case, 80, 0);
    run_cases(far_case, 25, 0);
    run_cases(chain_case, 60, 0);
    run_cases(join_case, 100, 0);
    run_cases(transposed_case, 100, 0);
}

static void test_winograd(void **state)
{
    (void)state;
    run_cases(winograd_case, 120, 0);
}

static void test_depthwise(void **state)
{
    (void)state;
    run_cases(depthwise_case, 200, 0);
    run_cases(depthwise_layer_case, 80, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_conv), cmocka_unit_test(test_winograd),
                                       cmocka_unit_test(test_depthwise)};
    return RUN_TESTS_OF("cpu", tests);
}
