/* Convolutions and products of 8- and 16-bit integers against the reference, bit for bit: random shapes, odd
 * channels, groups, dilations, uneven pads, zero points anywhere, extreme sums, and what is fused behind. */
#include "backend/cpu/q_wino.h"
#include "int8_test.h"
#include "ops/qfunction.h"

typedef struct conv {
    qn_dtype x, w, y;
    int64_t samples, channels, filters, groups;
    int64_t size[2], kernel[2], stride[2], dilation[2], pads[4];
    bool w_zero, by_filter; /* weights have zero points; parameters for each filter */
    bool floats;            /* for results */
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

/* Of sums of such numbers. */
static qn_value *biases(fixture *f, int64_t count, qn_dtype x, qn_dtype w)
{
    const bool wide = qn_dtype_size(x) == 2 || qn_dtype_size(w) == 2;
    qn_tensor *t = constant_tensor(f, wide && pick(f, 4) ? QN_INT64 : QN_INT32, 1, &count);
    const int64_t size =
        pick(f, 4) ? 2000 : 1 << 23; /* beyond what floats hold exactly, sometimes */
    for (int64_t i = 0; i < count; i++) {
        const int64_t b = (pick(f, 2 * size) - size) * (pick(f, 8) ? 1 : 200);
        if (t->dtype == QN_INT64)
            ((int64_t *)t->data)[i] = b * (1 + pick(f, 1 << 16));
        else
            ((int32_t *)t->data)[i] = (int32_t)b;
    }
    return constant_value(f, t);
}

static bool is_wide(qn_dtype x, qn_dtype w)
{
    return qn_dtype_size(x) == 2 || qn_dtype_size(w) == 2;
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

/* ---- What stands behind ------------------------------------------------------------------------------ */

static qn_value *clip(fixture *f, qn_value *x)
{
    qn_value *const in[] = {x, pick(f, 4) ? add_zero(f, x->type.dtype) : NULL,
                            pick(f, 4) ? add_zero(f, x->type.dtype) : NULL};
    return result_of(add_node(f, &qn_op_Clip, 3, in));
}

static qn_value *sum(fixture *f, qn_value *x)
{
    int64_t dims[QN_MAX_RANK];
    const qn_dtype dtype = x->type.dtype;
    assert_true(qn_type_is_static(&x->type, dims));
    const qn_dtype other = pick_width(f, pick_byte(f)), result = pick_width(f, pick_byte(f));
    qn_value *r = add_byte_input(f, other, x->type.rank, dims);
    if (pick(f, 2)) /* a tensor whose memory may be reused */
        r = clip(f, r);
    qn_value *const zeros[] = {add_zero(f, dtype), add_zero(f, other)};
    const int first = pick(f, 4) == 0; /* the other way round it is not the same */
    qn_value *const sides[] = {x, r};
    qn_value *in[] = {sides[first],
                      add_scales(f, 0, 0.01 * unit_of(sides[first]->type.dtype)),
                      zeros[first],
                      sides[!first],
                      add_scales(f, 0, 0.01 * unit_of(sides[!first]->type.dtype)),
                      zeros[!first],
                      add_scales(f, 0, 0.02 * unit_of(result)),
                      add_zero(f, result)};
    return result_of(add_wide_node(f, &qn_op_ms_QLinearAdd, 8, in));
}

static qn_value *table(fixture *f, qn_value *x)
{
    const int64_t size = 256;
    if (qn_dtype_size(x->type.dtype) == 2)
        return x;
    return apply(f, &qn_op_qn_QTable, x, add_bytes(f, pick_byte(f), 1, &size));
}

/* A function of a float result that makes bytes of it. */
static qn_value *function(fixture *f, qn_value *x)
{
    const qn_dtype dtype = pick_byte(f);
    qn_value *const in[] = {x, add_scales(f, 0, 0.01), add_zero(f, dtype)};
    qn_node *node = add_wide_node(f, &qn_op_qn_QFunction, 3, in);
    qn_qfunction_attrs *a = node->attrs;
    a->kind = pick(f, QN_QFUNCTION_LEAKY_RELU + 1);
    a->alpha = (float)(1 + pick(f, 100)) / 60;
    a->beta = (float)pick(f, 100) / 100;
    a->gain = (float)(1 + pick(f, 200)) / 100;
    a->offset = pick(f, 2) ? (float)pick(f, 100) / 100 : 0;
    return result_of(node);
}

static qn_value *follow(fixture *f, qn_value *x)
{
    static qn_value *(*const ways[])(fixture * f, qn_value * x) = {clip, sum, table};
    const int64_t steps = pick(f, 4);
    for (int64_t i = 0; i < steps; i++)
        x = ways[pick(f, 3)](f, x);
    return x;
}

/* ---- Cases ----------------------------------------------------------------------------------------------- */

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
    const double count = differing(&f, is_wide(c.x, c.w) ? "int16 conv" : "int8 conv");
    fixture_end(&f);
    return count;
}

/* Arithmetic behind a float result, in the layout that it has: what is added repeats along some dims. */
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

/* As networks have them: many channels and short rows, of which windows left and right see padding, and work
 * enough to be cut into pieces. */
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
        for (int side = 0; side < 2; side++)
            c.pads[d + 2 * side] = c.kernel[d] / 2 * c.dilation[d];
    }
    add_output(&f, follow(&f, add_conv(&f, conv_input(&f, &c), &c)));
    const double count = differing(&f, "int8 conv");
    fixture_end(&f);
    return count;
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
    const double count = differing(&f, is_wide(c.x, c.w) ? "int16 conv" : "int8 conv");
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
        for (int side = 0; side < 2; side++)
            c.pads[d + 2 * side] = c.kernel[d] / 2 * c.dilation[d];
    }
    add_output(&f, follow(&f, add_conv(&f, conv_input(&f, &c), &c)));
    const double count = differing(&f, "int8 conv");
    fixture_end(&f);
    return count;
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
    const double count = differing(&f, is_wide(c.x, c.w) ? "int16 deconv" : "int8 deconv");
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
    const double count = differing(&f, is_wide(c.x, c.w) ? "int16 conv" : "int8 conv");
    fixture_end(&f);
    return count;
}

/* Several of one map and joined; some of them are bytes of another type, or read by somebody else. */
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

/* ---- Products --------------------------------------------------------------------------------------------- */

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

static double gemm_case(uint32_t seed)
{
    fixture f = fixture_begin(seed);
    const product p = random_product(&f);
    const bool turned = pick(&f, 2), floats = pick(&f, 3) == 0;
    const int64_t a[] = {p.rows, p.k};
    const int64_t b[] = {turned ? p.columns : p.k, turned ? p.k : p.columns};
    qn_value *const in[] = {
        add_byte_input(&f, p.a, 2, a),
        add_scales(&f, 0, 0.02 * unit_of(p.a)),
        add_zero(&f, p.a),
        add_bytes(&f, p.b, 2, b),
        add_scales(&f, p.by_column ? p.columns : 0, 4e-3 * unit_of(p.b) / sqrt((double)p.k)),
        column_zeros(&f, &p),
        pick(&f, 3) ? biases(&f, p.columns, p.a, p.b) : NULL,
        floats ? NULL : add_scales(&f, 0, 0.01 * unit_of(p.y)),
        floats ? NULL : add_zero(&f, p.y)};
    qn_node *node = add_wide_node(&f, &qn_op_ms_QGemm, floats ? 7 : 9, in);
    qn_gemm_attrs *attrs = node->attrs;
    attrs->transB = turned;
    attrs->alpha = pick(&f, 2) ? 1.0f : 0.75f;
    qn_value *y = result_of(node);
    const bool bytes = floats && pick(&f, 2);
    add_output(&f, bytes ? follow(&f, function(&f, y)) : floats ? y : follow(&f, y));
    const double count = differing(&f, is_wide(p.a, p.b) ? "int16 gemm" : "int8 gemm");
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
    qn_value *const in[] = {
        add_byte_input(&f, p.a, rank, a + 4 - rank),
        add_scales(&f, 0, 0.02 * unit_of(p.a)),
        add_zero(&f, p.a),
        add_bytes(&f, p.b, 2, b),
        add_scales(&f, p.by_column ? p.columns : 0, 4e-3 * unit_of(p.b) / sqrt((double)p.k)),
        column_zeros(&f, &p),
        add_scales(&f, 0, 0.01 * unit_of(p.y)),
        add_zero(&f, p.y)};
    add_output(&f, follow(&f, result_of(add_wide_node(&f, &qn_op_QLinearMatMul, 8, in))));
    const double count = differing(&f, is_wide(p.a, p.b) ? "int16 gemm" : "int8 gemm");
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
    qn_value *const in[] = {
        add_byte_input(&f, p.a, rank, a + 3 - rank),
        add_scales(&f, 0, 0.02 * unit_of(p.a)),
        add_zero(&f, p.a),
        add_bytes(&f, p.b, 2, b),
        add_scales(&f, p.by_column ? p.columns : 0, 4e-3 * unit_of(p.b) / sqrt((double)p.k)),
        column_zeros(&f, &p),
        floats ? NULL : add_scales(&f, 0, 0.01 * unit_of(p.y)),
        floats ? NULL : add_zero(&f, p.y),
        has_bias ? biases(&f, p.columns, p.a, p.b) : NULL};
    qn_value *y = result_of(add_wide_node(&f, &qn_op_qn_QMatMul, has_bias ? 9 : 8, in));
    add_output(&f, floats ? y : follow(&f, y));
    const double count = differing(&f, is_wide(p.a, p.b) ? "int16 gemm" : "int8 gemm");
    fixture_end(&f);
    return count;
}

/* A scale of results for which many sums lie halfway: then every rounding of the multiplier is seen. */
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
    add_output(&f, follow(&f, result_of(add_wide_node(&f, &qn_op_QLinearMatMul, 8, in))));
    const double count = differing(&f, is_wide(p.a, p.b) ? "int16 matmul" : "int8 matmul");
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

static void test_conv(void **state)
{
    (void)state;
    run_cases(conv_case, 300, 0);
    run_cases(float_case, 50, 0);
    run_cases(layer_case, 80, 0);
    run_cases(chain_case, 60, 0);
    run_cases(join_case, 100, 0);
    run_cases(transposed_case, 100, 0);
}

/* Which form convolutions take, for a map of so many pixels. */
static bool is_winograd(int64_t size, int64_t channels, int64_t filters, int64_t largest)
{
    qn_q_conv c = qn_q_conv_of_rows(size, channels, filters);
    c.height = c.out_height = size;
    c.kernel[0] = c.kernel[1] = 3;
    c.largest = largest;
    c.kernels = &qn_mac_kernels_base;
    return qn_q_wino_wanted(&c);
}

static void test_winograd(void **state)
{
    (void)state;
    run_cases(winograd_case, 120, 0);
    assert_true(is_winograd(56, 64, 64, 10000));
    assert_true(is_winograd(32, 16, 16, 10000));
    assert_true(is_winograd(14, 256, 256, 10000));
    assert_false(is_winograd(7, 512, 512, 10000)); /* weights for a few tiles */
    assert_false(is_winograd(56, 64, 64, 131587)); /* 255 * this >= 2^25 */
    assert_true(is_winograd(56, 64, 64, 131586));
    assert_false(is_winograd(56, 3, 64, 1000));  /* the first layer */
    assert_false(is_winograd(2, 64, 64, 10000)); /* a corner of a tile */
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
                                       cmocka_unit_test(test_depthwise),
                                       cmocka_unit_test(test_products)};
    if (lacks_backend("cpu"))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
