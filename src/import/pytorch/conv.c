/* Convolutions and pools. Inputs without a batch get one of 1 for the operator. */
#include <string.h>

#include "import/pytorch/aten.h"

/* ---- Batches --------------------------------------------------------------------------------- */

/* An input of `spatial` axes, with the batch that it may lack; *lacks says so. */
static qn_status with_batch(qn_value **out, bool *lacks, qn_aten_call *c, size_t spatial)
{
    qn_value *x;
    int32_t rank;
    QN_TRY(qn_aten_tensor(&x, c, c->parameters[0].names.length == 4 ? "self" : "input"));
    QN_TRY(qn_torch_rank(&rank, c->t, x));
    *out = x;
    *lacks = (size_t)rank == spatial + 1;
    if (*lacks)
        return qn_aten_unsqueeze(out, c, x, 0);
    if ((size_t)rank != spatial + 2)
        return qn_graph_builder_fail(c->b, QN_E_FORMAT, "its input has %d axes, %zu are wanted",
                                     rank, spatial + 2);
    return QN_OK;
}

static qn_status return_batch(qn_aten_call *c, qn_value *y, bool lacked)
{
    if (lacked)
        QN_TRY(qn_aten_squeeze(&y, c, y, 0));
    return qn_aten_return(c, y);
}

/* ---- Convolutions ---------------------------------------------------------------------------- */

typedef struct conv_sizes {
    size_t spatial;
    int64_t stride[QN_MAX_RANK], pads[2 * QN_MAX_RANK], dilation[QN_MAX_RANK];
    int64_t extra[QN_MAX_RANK], kernel[QN_MAX_RANK];
} conv_sizes;

/* "same": as many outputs as inputs; of an odd padding the end gets more. */
static qn_status read_padding(conv_sizes *s, qn_aten_call *c)
{
    const qn_torch_value *padding = qn_aten_value(c, "padding");
    const bool same = padding->kind == QN_TORCH_TEXT && strcmp(padding->text, "same") == 0;
    int64_t pads[QN_MAX_RANK] = {0};
    if (padding->kind != QN_TORCH_TEXT)
        QN_TRY(qn_aten_each(pads, s->spatial, c, "padding"));
    for (size_t i = 0; i < s->spatial; i++) {
        int64_t total = 0;
        if (same && !qn_mul_int64(&total, s->dilation[i], s->kernel[i] - 1))
            return qn_graph_builder_fail(c->b, QN_E_FORMAT, "its window is too large");
        s->pads[i] = same ? total / 2 : pads[i];
        s->pads[s->spatial + i] = same ? total - total / 2 : pads[i];
    }
    return QN_OK;
}

static qn_status read_sizes(conv_sizes *s, qn_aten_call *c, const qn_value *weight)
{
    if (weight->type.rank < 3)
        return qn_aten_unsupported(c, "its weights have %d axes", weight->type.rank);
    s->spatial = (size_t)weight->type.rank - 2;
    for (size_t i = 0; i < s->spatial; i++)
        s->kernel[i] = weight->type.dims[i + 2].value;
    QN_TRY(qn_aten_each(s->stride, s->spatial, c, "stride"));
    QN_TRY(qn_aten_each(s->dilation, s->spatial, c, "dilation"));
    if (qn_aten_has(c, "output_padding"))
        QN_TRY(qn_aten_each(s->extra, s->spatial, c, "output_padding"));
    return read_padding(s, c);
}

/* What the weights say of an input whose shape nobody knows. */
static void hint_input(qn_aten_call *c, const qn_value *weight, int64_t groups, bool transposed)
{
    const int64_t per_group = weight->type.dims[1].value, all = weight->type.dims[0].value;
    int64_t channels = all;
    qn_type hint = {.kind = QN_TYPE_TENSOR, .dtype = QN_FLOAT32, .rank = weight->type.rank};
    if (!transposed && !qn_mul_int64(&channels, per_group, groups))
        return;
    for (int32_t i = 0; i < hint.rank; i++)
        hint.dims[i] = qn_dim_unknown();
    hint.dims[1] = qn_dim_of(channels);
    c->t->hint = hint;
}

static qn_status build_conv(qn_aten_call *c, const conv_sizes *s, qn_graph_build_inputs inputs,
                            int64_t groups, bool transposed)
{
    const size_t n = s->spatial;
    qn_value *y;
    bool lacks;
    QN_TRY(with_batch(&((qn_value **)(uintptr_t)inputs.at)[0], &lacks, c, n));
    const qn_graph_build_attr attrs[] = {
        QN_A_INT_LIST("kernel_shape", s->kernel, n),
        QN_A_INT_LIST("strides", s->stride, n),
        QN_A_INT_LIST("pads", s->pads, 2 * n),
        QN_A_INT_LIST("dilations", s->dilation, n),
        QN_A_INT("group", groups),
        QN_A_INT_LIST("output_padding", s->extra, n),
    };
    const qn_graph_build_attrs given = {attrs, QN_COUNT_OF(attrs) - !transposed};
    if (transposed)
        QN_TRY(qn_graph_build(&y, c->b, &qn_op_ConvTranspose, inputs, given));
    else
        QN_TRY(qn_graph_build(&y, c->b, &qn_op_Conv, inputs, given));
    return return_batch(c, y, lacks);
}

qn_status qn_aten_conv(qn_aten_call *c)
{
    const bool transposed =
        strncmp(c->op->name, "conv_transpose", 14) == 0 || qn_aten_flag(c, "transposed");
    qn_value *inputs[3] = {NULL};
    conv_sizes s = {0};
    int64_t groups;
    QN_TRY(qn_aten_tensor(&inputs[1], c, "weight"));
    QN_TRY(qn_aten_optional(&inputs[2], c, "bias"));
    QN_TRY(qn_aten_int(&groups, c, "groups"));
    QN_TRY(read_sizes(&s, c, inputs[1]));
    hint_input(c, inputs[1], groups, transposed);
    return build_conv(c, &s, (qn_graph_build_inputs){inputs, inputs[2] ? 3 : 2}, groups,
                      transposed);
}

/* ---- Pools ----------------------------------------------------------------------------------- */

typedef struct pool_sizes {
    size_t spatial;
    int64_t kernel[QN_MAX_RANK], stride[QN_MAX_RANK], dilation[QN_MAX_RANK];
    int64_t pads[2 * QN_MAX_RANK];
    /* Sizes are rounded up where the input's is not known. */
    bool ceil;
    /* The end has more padding, so that rounding down gives as many as rounding up. */
    bool widened;
} pool_sizes;

static size_t spatial_of(const qn_aten_op *op)
{
    const char *digit = strpbrk(op->name, "123");
    return digit ? (size_t)(*digit - '0') : 0;
}

static qn_status read_pool(pool_sizes *p, qn_aten_call *c)
{
    int64_t pads[QN_MAX_RANK], given[QN_MAX_RANK];
    size_t strides;
    p->spatial = spatial_of(c->op);
    QN_TRY(qn_aten_each(p->kernel, p->spatial, c, "kernel_size"));
    QN_TRY(qn_aten_ints(given, &strides, c, "stride"));
    memcpy(p->stride, p->kernel, sizeof p->stride);
    if (strides)
        QN_TRY(qn_aten_each(p->stride, p->spatial, c, "stride"));
    QN_TRY(qn_aten_each(pads, p->spatial, c, "padding"));
    for (size_t i = 0; i < p->spatial; i++) {
        p->dilation[i] = 1;
        p->pads[i] = p->pads[p->spatial + i] = pads[i];
    }
    if (qn_aten_has(c, "dilation"))
        QN_TRY(qn_aten_each(p->dilation, p->spatial, c, "dilation"));
    return QN_OK;
}

/* The padding at the end with which rounding down gives as many windows as rounding up; a window
 * that would begin behind the input and its padding is none. */
static bool padding_rounded_up(int64_t *end, const pool_sizes *p, size_t axis, int64_t size)
{
    const int64_t begin = p->pads[axis], stride = p->stride[axis];
    int64_t span;
    if (stride < 1 || p->kernel[axis] < 1 || p->dilation[axis] < 1 || begin < 0 ||
        begin > INT32_MAX || size > INT32_MAX || stride > INT32_MAX ||
        !qn_mul_int64(&span, p->kernel[axis] - 1, p->dilation[axis]) || span++ > INT32_MAX)
        return false;
    const int64_t room = size + 2 * begin - span;
    int64_t outputs = room < 0 ? 1 : (room + stride - 1) / stride + 1;
    if ((outputs - 1) * stride >= size + begin)
        outputs--;
    *end = QN_MAX((outputs - 1) * stride + span - size - begin, begin);
    return true;
}

/* Rounding up as padding at the end. */
static qn_status round_up(pool_sizes *p, qn_aten_call *c, const qn_value *x)
{
    if (!qn_aten_flag(c, "ceil_mode"))
        return QN_OK;
    for (size_t i = 0; i < p->spatial; i++)
        p->ceil = p->ceil || x->type.dims[i + 2].value < 0;
    for (size_t i = 0; !p->ceil && i < p->spatial; i++) {
        int64_t end;
        if (!padding_rounded_up(&end, p, i, x->type.dims[i + 2].value))
            return qn_graph_builder_fail(c->b, QN_E_FORMAT, "its window is impossible");
        p->widened = p->widened || end > p->pads[p->spatial + i];
        p->pads[p->spatial + i] = end;
    }
    return QN_OK;
}

static qn_status build_pool(qn_value **out, qn_aten_call *c, const qn_op *op, qn_value *x,
                            const pool_sizes *p, int64_t include)
{
    const size_t n = p->spatial;
    const qn_graph_build_attr attrs[] = {
        QN_A_INT_LIST("kernel_shape", p->kernel, n),
        QN_A_INT_LIST("strides", p->stride, n),
        QN_A_INT_LIST("pads", p->pads, 2 * n),
        QN_A_INT_LIST("dilations", p->dilation, n),
        QN_A_INT("ceil_mode", p->ceil),
        QN_A_INT("count_include_pad", include),
    };
    return qn_graph_build(out, c->b, op, QN_INPUTS(x),
                          (qn_graph_build_attrs){attrs, QN_COUNT_OF(attrs) - (include < 0)});
}

/* The places of the largest numbers, which some forms give too, are not read: their value is
 * None. */
qn_status qn_aten_max_pool(qn_aten_call *c)
{
    const bool pair = strstr(c->op->name, "with_indices") != NULL;
    pool_sizes p = {0};
    qn_value *x, *results[2] = {NULL, NULL};
    bool lacks;
    QN_TRY(read_pool(&p, c));
    QN_TRY(with_batch(&x, &lacks, c, p.spatial));
    QN_TRY(round_up(&p, c, x));
    QN_TRY(build_pool(&results[0], c, &qn_op_MaxPool, x, &p, -1));
    if (!pair)
        return return_batch(c, results[0], lacks);
    if (lacks)
        QN_TRY(qn_aten_squeeze(&results[0], c, results[0], 0));
    return qn_aten_return_tuple(c, results, 2);
}

/* Zeros around the picture as numbers of their own, which count. */
static qn_status pad_first(qn_value **out, qn_aten_call *c, qn_value *x, pool_sizes *p)
{
    int64_t pads[2 * QN_MAX_RANK] = {0}, own[QN_MAX_RANK];
    const size_t n = p->spatial;
    qn_value *list;
    QN_TRY(qn_aten_each(own, n, c, "padding"));
    for (size_t i = 0; i < n; i++) {
        pads[2 + i] = pads[n + 4 + i] = own[i];
        p->pads[i] = 0;
        p->pads[n + i] -= own[i];
    }
    QN_TRY(qn_graph_build_ints(&list, c->b, pads, 2 * (n + 2)));
    return qn_aten_binary_node(out, c, &qn_op_Pad, x, list);
}

/* PyTorch counts the padding that was asked for, and never what rounding up added. */
qn_status qn_aten_avg_pool(qn_aten_call *c)
{
    bool include = qn_aten_flag(c, "count_include_pad"), lacks, any = false;
    pool_sizes p = {0};
    qn_value *x;
    double divisor = 0, elements = 1;
    QN_TRY(read_pool(&p, c));
    QN_TRY(with_batch(&x, &lacks, c, p.spatial));
    for (size_t i = 0; i < p.spatial; i++) {
        any = any || p.pads[i] > 0;
        elements *= (double)p.kernel[i];
    }
    QN_TRY(round_up(&p, c, x));
    if (qn_aten_has(c, "divisor_override"))
        QN_TRY(qn_aten_real(&divisor, c, "divisor_override"));
    if (divisor == 0 && include && any && p.widened)
        QN_TRY(pad_first(&x, c, x, &p));
    if (divisor == 0 && (!any || p.widened))
        include = false;
    QN_TRY(build_pool(&x, c, &qn_op_AveragePool, x, &p, include || divisor != 0));
    if (divisor != 0)
        QN_TRY(qn_aten_with_number(&x, c, &qn_op_Mul, x, elements / divisor));
    return return_batch(c, x, lacks);
}

/* ---- Pools to a given size ------------------------------------------------------------------- */

/* out x in: row i has the weights of window i, [floor(i in / out), ceil((i + 1) in / out)). */
static qn_status average_matrix(qn_value **out, qn_aten_call *c, int64_t outputs, int64_t inputs)
{
    const qn_type type = qn_type_tensor(QN_FLOAT32, 2, (const int64_t[]){outputs, inputs});
    int64_t count;
    if (outputs < 1 || !qn_dims_count(&count, 2, (const int64_t[]){outputs, inputs}) ||
        count > 1 << 24)
        return qn_aten_unsupported(c, "%lld windows over %lld", (long long)outputs,
                                   (long long)inputs);
    float *weights = qn_arena_array(c->t->arena, (size_t)count, sizeof *weights);
    QN_TRY_ALLOC(c->t->ctx, weights);
    for (int64_t i = 0; i < outputs; i++) {
        const int64_t from = i * inputs / outputs, to = ((i + 1) * inputs + outputs - 1) / outputs;
        for (int64_t k = from; k < to; k++)
            weights[i * inputs + k] = 1.0f / (float)(to - from);
    }
    return qn_graph_build_constant(
        out, c->b, NULL, &type,
        (qn_string){(const char *)weights, (size_t)count * sizeof *weights});
}

/* Windows of different sizes as products with a matrix along each of the last two axes. */
static qn_status average_by_matrices(qn_value **out, qn_aten_call *c, qn_value *x,
                                     const int64_t *sizes, size_t spatial)
{
    qn_value *matrix, *y = x;
    const int32_t rank = x->type.rank;
    QN_TRY(average_matrix(&matrix, c, sizes[spatial - 1], x->type.dims[rank - 1].value));
    QN_TRY(qn_aten_transpose(&matrix, c, matrix, 0, 1));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_MatMul, y, matrix));
    if (spatial == 2) {
        QN_TRY(average_matrix(&matrix, c, sizes[0], x->type.dims[rank - 2].value));
        QN_TRY(qn_aten_binary_node(&y, c, &qn_op_MatMul, matrix, y));
    }
    *out = y;
    return QN_OK;
}

/* The wanted sizes, None for those that stay; *even where every window is as large. */
static qn_status adaptive_sizes(int64_t *sizes, bool *even, pool_sizes *p, qn_aten_call *c,
                                const qn_value *x)
{
    const qn_torch_value *items;
    size_t count;
    qn_aten_items(&items, &count, c, "output_size");
    *even = true;
    for (size_t i = 0; i < p->spatial; i++) {
        const qn_torch_value *item = &items[count == 1 ? 0 : i];
        const int64_t size = x->type.dims[i + 2].value;
        if (count != 1 && count != p->spatial)
            return qn_aten_unsupported(c, "%zu sizes", count);
        sizes[i] = qn_torch_is_none(item) ? size : item->kind == QN_TORCH_INT ? item->number : -1;
        if (sizes[i] < 1 || size < 1)
            return qn_aten_unsupported(c, "its sizes are not known");
        *even = *even && size % sizes[i] == 0;
        p->kernel[i] = p->stride[i] = *even ? size / sizes[i] : 1;
        p->dilation[i] = 1;
    }
    return QN_OK;
}

static bool wants_one(const qn_aten_call *c)
{
    const qn_torch_value *items;
    size_t count;
    qn_aten_items(&items, &count, c, "output_size");
    bool one = count > 0;
    for (size_t i = 0; i < count; i++)
        one = one && items[i].kind == QN_TORCH_INT && items[i].number == 1;
    return one;
}

qn_status qn_aten_adaptive_pool(qn_aten_call *c)
{
    const bool average = strstr(c->op->name, "avg") != NULL;
    pool_sizes p = {.spatial = spatial_of(c->op)};
    qn_value *x, *results[2] = {NULL, NULL};
    int64_t sizes[QN_MAX_RANK];
    bool lacks, even;
    QN_TRY(with_batch(&x, &lacks, c, p.spatial));
    if (wants_one(c)) {
        const qn_op *op = average ? &qn_op_GlobalAveragePool : &qn_op_GlobalMaxPool;
        QN_TRY(qn_aten_unary_node(&x, c, op, x));
    } else {
        QN_TRY(adaptive_sizes(sizes, &even, &p, c, x));
        if (even)
            QN_TRY(build_pool(&x, c, average ? &qn_op_AveragePool : &qn_op_MaxPool, x, &p,
                              average ? 0 : -1));
        else if (average && p.spatial < 3)
            QN_TRY(average_by_matrices(&x, c, x, sizes, p.spatial));
        else
            return qn_aten_unsupported(c, "windows of different sizes");
    }
    if (average)
        return return_batch(c, x, lacks);
    if (lacks)
        QN_TRY(qn_aten_squeeze(&x, c, x, 0));
    results[0] = x;
    return qn_aten_return_tuple(c, results, 2);
}
