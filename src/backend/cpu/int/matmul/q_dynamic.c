/* DynamicQuantizeLinear, and the products of what it makes with constant weights: MatMulInteger
 * with the nodes that bring its sums back to floats, and MatMulIntegerToFloat. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/int/elementwise/q_elementwise.h"
#include "backend/cpu/int/matmul/q_product.h"
#include "backend/cpu/parallel.h"
#include "ops/nn_attrs.h"
#include "ops/quantize.h"

/* ---- DynamicQuantizeLinear ------------------------------------------------------------------- */

typedef struct quantizer {
    const qn_q_kernels *kernels;
    int64_t count;
} quantizer;

typedef struct quantize_work {
    const quantizer *s;
    const float *x;
    uint8_t *y;
    /* By chunk. */
    float (*ends)[2];
    qn_q_cast cast;
} quantize_work;

static int64_t chunks_of(const quantizer *s)
{
    return (s->count + QN_Q_CHUNK - 1) / QN_Q_CHUNK;
}

static void find_ends(const void *opaque, int64_t first, int64_t last)
{
    const quantize_work *w = opaque;
    for (int64_t i = first; i < last; i++) {
        const int64_t from = i * QN_Q_CHUNK;
        w->s->kernels->ends(w->ends[i], w->x + from, QN_MIN(QN_Q_CHUNK, w->s->count - from));
    }
}

static void quantize_range(const void *opaque, int64_t first, int64_t last)
{
    const quantize_work *w = opaque;
    const int64_t from = first * QN_Q_CHUNK, to = QN_MIN(last * QN_Q_CHUNK, w->s->count);
    w->s->kernels->quantize(w->y + from, w->x + from, to - from, &w->cast);
}

static qn_status quantize_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const quantizer *s = opaque;
    quantize_work w = {.s = s, .x = io->in[0]->data, .ends = io->scratch};
    const int64_t chunks = chunks_of(s);
    float low = 0, high = 0;
    (void)bound;
    qn_parallel(io->threads, chunks, QN_Q_ALONE, find_ends, &w);
    for (int64_t i = 0; i < chunks; i++) {
        low = QN_MIN(w.ends[i][0], low);
        high = QN_MAX(w.ends[i][1], high);
    }
    const qn_qparams q = qn_dynamic_ends(low, high);
    w.cast = (qn_q_cast){.scale = q.scale, .round = qn_q_round_of(QN_UINT8, q.zero)};
    if (io->out[0]) {
        w.y = io->out[0]->data;
        qn_parallel(io->threads, chunks, QN_Q_ALONE, quantize_range, &w);
    }
    if (io->out[1])
        *(float *)io->out[1]->data = q.scale;
    if (io->out[2])
        *(uint8_t *)io->out[2]->data = (uint8_t)q.zero;
    return QN_OK;
}

static const qn_kernel quantize_kernel = {.name = "dynamic quantize", .run = quantize_run};

qn_status qn_claim_q_dynamic(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    qn_tensor x;
    if (node->in[0]->data || !qn_build_shape(&x, claim->builder, node->in[0]) ||
        qn_tensor_count(&x) == 0)
        return QN_OK;
    quantizer *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->kernels = qn_q_kernels_get();
    s->count = qn_tensor_count(&x);
    claim->scratch = (size_t)chunks_of(s) * 2 * sizeof(float);
    qn_claim_in(claim, node->in[0], QN_ROWS);
    for (int32_t o = 0; o < 3; o++)
        qn_claim_out(claim, o < node->n_out ? node->out[o] : NULL, QN_ROWS);
    claim->state = s;
    claim->kernel = &quantize_kernel;
    *taken = true;
    return QN_OK;
}

/* ---- Products -------------------------------------------------------------------------------- */

/* What is multiplied, by which values. */
typedef struct operands {
    /* w_zero NULL: 0 */
    const qn_tensor *w, *w_zero;
    /* x_zero NULL: 0 */
    qn_value *x, *x_zero;
    /* NULL: `scale` has all. */
    qn_value *x_scale;
    /* Goes with x_scale. */
    const qn_tensor *w_scale;
    /* The scale of both, for all columns or each. */
    qn_value *scale;
    /* Float, for all columns or each; NULL: none. */
    const qn_tensor *bias;
} operands;

typedef struct state {
    operands of;
    qn_q_product product;
    /* Inputs of the claim; -1: none. */
    int32_t zero_in, scale_in;
    /* By parameter; NULL: the scale has all. */
    const float *w_scale;
    /* The bytes of scratch memory. */
    size_t scale_bytes;
} state;

static int32_t zero_of(const state *s, const qn_step_io *io)
{
    if (s->zero_in < 0)
        return 0;
    const qn_tensor *zero = io->in[s->zero_in];
    return zero->dtype == QN_INT8 ? *(const int8_t *)zero->data : *(const uint8_t *)zero->data;
}

/* sx * sw[c], or what is given for both. */
static void make_scales(float *to, const state *s, const qn_tensor *given)
{
    const float *values = given->data;
    const int64_t count = qn_q_conv_params(&s->product.conv);
    const bool single = qn_tensor_count(given) == 1;
    for (int64_t i = 0; i < count && s->w_scale; i++)
        to[i] = values[0] * s->w_scale[i];
    for (int64_t i = 0; i < count && !s->w_scale; i++)
        to[i] = values[single || i >= s->product.columns ? 0 : i];
}

static qn_status product_run(const void *opaque, void *bound, const qn_step_io *io)
{
    const state *s = opaque;
    float *scale = io->scratch;
    const qn_q_conv_data data = {.x = io->in[0]->data,
                                 .y = io->out[0]->data,
                                 .scratch = (uint8_t *)io->scratch + s->scale_bytes};
    (void)bound;
    make_scales(scale, s, io->in[s->scale_in]);
    qn_q_product_run(&s->product, &data, zero_of(s, io), scale, io->threads);
    return QN_OK;
}

static qn_status weights_of(qn_q_weights *out, const operands *o, qn_builder *builder)
{
    const int64_t columns = o->w->dims[1];
    int32_t *zeros = qn_build_alloc(builder, (size_t)columns * sizeof *zeros);
    QN_TRY_ALLOC(qn_build_context(builder), zeros);
    for (int64_t i = 0; o->w_zero && i < columns; i++)
        zeros[i] = (int32_t)qn_q_element(o->w_zero, i);
    *out = (qn_q_weights){
        .data = o->w->data, .is_signed = o->w->dtype == QN_INT8, .by_column = true, .zeros = zeros};
    return QN_OK;
}

static qn_status product_prepare(qn_claim *claim)
{
    state *s = claim->state;
    float *added = NULL, *w_scale = NULL;
    qn_q_weights w;
    QN_TRY(weights_of(&w, &s->of, claim->builder));
    QN_TRY(qn_q_product_pack(&s->product, claim->builder, &w));
    if (s->of.bias)
        QN_TRY(qn_q_product_list(&added, &s->product, claim->builder, s->of.bias, 0));
    if (s->of.w_scale)
        QN_TRY(qn_q_product_list(&w_scale, &s->product, claim->builder, s->of.w_scale, 0));
    s->product.conv.mac.epilogue.added = added;
    s->w_scale = w_scale;
    s->scale_bytes = ((size_t)qn_q_conv_params(&s->product.conv) * sizeof(float) + 63) / 64 * 64;
    claim->scratch = s->scale_bytes + qn_q_product_scratch(&s->product);
    return QN_OK;
}

static const qn_kernel product_kernel = {
    .name = "dynamic int8 matmul", .prepare = product_prepare, .run = product_run};

/* ---- Claiming -------------------------------------------------------------------------------- */

static const qn_tensor *constant(const qn_value *value)
{
    return value ? value->data : NULL;
}

static qn_value *input(const qn_node *node, int32_t i)
{
    return i < node->n_in ? node->in[i] : NULL;
}

/* One number, or one for each column along the last dim. */
static bool is_by_column(const qn_tensor *t, int64_t columns)
{
    const int64_t count = qn_tensor_count(t);
    return count == 1 || (count == columns && t->rank > 0 && t->dims[t->rank - 1] == columns);
}

static bool is_constant(const qn_value *value, int64_t columns)
{
    return value && value->data && is_by_column(value->data, columns);
}

/* A float32 value that is ready, of that many numbers at most. */
static bool is_scale(const qn_claim *claim, const qn_value *value, int64_t columns)
{
    qn_tensor shape;
    return value && value->type.dtype == QN_FLOAT32 && qn_build_ready(claim->builder, value) &&
           qn_build_shape(&shape, claim->builder, value) && is_by_column(&shape, columns);
}

/* The node that multiplies both scales, where it can be done here: single number by constant. */
static bool take_scales(operands *o, qn_claim *claim, qn_value *scale, int64_t columns)
{
    qn_node *node = scale->producer;
    if (!node || node->op != &qn_op_Mul || qn_build_taken(claim->builder, node) ||
        !qn_build_fusible(claim->builder, scale))
        return false;
    const int32_t at = constant(node->in[0]) ? 1 : 0;
    if (!is_scale(claim, node->in[at], 1) || !is_constant(node->in[1 - at], columns) ||
        node->in[at]->data || node->in[1 - at]->type.dtype != QN_FLOAT32)
        return false;
    o->x_scale = node->in[at];
    o->w_scale = node->in[1 - at]->data;
    qn_claim_add(claim, node);
    return true;
}

/* Cast and Mul behind the sums. */
static bool take_float(qn_value **out, operands *o, qn_claim *claim, int64_t columns)
{
    qn_node *cast = qn_build_fusible(claim->builder, claim->node->out[0]);
    if (!cast || cast->op != &qn_op_Cast || cast->out[0]->type.dtype != QN_FLOAT32)
        return false;
    qn_node *mul = qn_build_fusible(claim->builder, cast->out[0]);
    if (!mul || mul->op != &qn_op_Mul || mul->in[0] == mul->in[1])
        return false;
    qn_value *scale = mul->in[mul->in[0] == cast->out[0] ? 1 : 0];
    qn_claim_add(claim, cast);
    if (is_scale(claim, scale, columns))
        o->scale = scale;
    else if (!take_scales(o, claim, scale, columns))
        return false;
    qn_claim_add(claim, mul);
    *out = mul->out[0];
    return true;
}

/* A constant row that is added to the result. */
static void take_bias(qn_value **out, operands *o, qn_claim *claim, int64_t columns)
{
    qn_node *add = qn_build_fusible(claim->builder, *out);
    if (o->bias || !add || add->op != &qn_op_Add || add->in[0] == add->in[1])
        return;
    qn_value *bias = add->in[add->in[0] == *out ? 1 : 0];
    if (!is_constant(bias, columns) || bias->data->rank > (*out)->type.rank)
        return;
    o->bias = bias->data;
    qn_claim_add(claim, add);
    *out = add->out[0];
}

static void take_relu(qn_value **out, qn_q_epilogue *epilogue, qn_claim *claim)
{
    qn_node *relu = qn_build_fusible(claim->builder, *out);
    if (!relu || relu->op != &qn_op_Relu)
        return;
    epilogue->relu = true;
    qn_claim_add(claim, relu);
    *out = relu->out[0];
}

/* Bytes of known shape by a constant matrix. */
static bool is_product(const qn_claim *claim, const operands *o, qn_tensor *x)
{
    return o->x && !o->x->data && o->w && o->w->rank == 2 && qn_tensor_count(o->w) > 0 &&
           qn_q_is_byte(o->x) && (o->w->dtype == QN_INT8 || o->w->dtype == QN_UINT8) &&
           qn_build_shape(x, claim->builder, o->x) && x->rank >= 2 && qn_tensor_count(x) > 0 &&
           (!o->w_zero || is_by_column(o->w_zero, o->w->dims[1]));
}

/* One number for the whole of x. */
static bool is_zero(const qn_claim *claim, const qn_value *zero)
{
    qn_tensor shape;
    return !zero || (qn_build_shape(&shape, claim->builder, zero) && qn_tensor_count(&shape) == 1);
}

static void take_inputs(state *s, qn_claim *claim, qn_value *out)
{
    qn_claim_in(claim, s->of.x, QN_ROWS);
    s->scale_in = claim->n_in;
    qn_claim_in(claim, s->of.x_scale ? s->of.x_scale : s->of.scale, QN_ROWS);
    s->zero_in = s->of.x_zero ? claim->n_in : -1;
    if (s->of.x_zero)
        qn_claim_in(claim, s->of.x_zero, QN_ROWS);
    qn_claim_out(claim, out, QN_ROWS);
}

/* Opens a state for a product; *out NULL where the node is none that serves. */
static qn_status open_product(state **out, qn_claim *claim, const operands *of)
{
    qn_tensor x;
    *out = NULL;
    if (!is_product(claim, of, &x) || !is_zero(claim, of->x_zero))
        return QN_OK;
    state *s = qn_build_alloc(claim->builder, sizeof *s);
    QN_TRY_ALLOC(qn_build_context(claim->builder), s);
    s->of = *of;
    qn_q_product_open(&s->product, qn_tensor_count(&x) / of->w->dims[0], of->w->dims[0],
                      of->w->dims[1], x.dtype == QN_INT8);
    qn_q_weights w;
    QN_TRY(weights_of(&w, of, claim->builder));
    if (qn_q_product_fits(&s->product, &w))
        *out = s;
    return QN_OK;
}

static void close_product(bool *taken, qn_claim *claim, state *s, qn_value *out)
{
    take_bias(&out, &s->of, claim, s->product.columns);
    take_relu(&out, &s->product.conv.mac.epilogue, claim);
    take_inputs(s, claim, out);
    claim->state = s;
    claim->kernel = &product_kernel;
    *taken = true;
}

qn_status qn_claim_q_product(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    const qn_claim before = *claim;
    const operands of = {.x = node->in[0],
                         .w = constant(node->in[1]),
                         .x_zero = input(node, 2),
                         .w_zero = constant(input(node, 3))};
    qn_value *out = NULL;
    state *s = NULL;
    if (input(node, 3) && !of.w_zero)
        return QN_OK;
    QN_TRY(open_product(&s, claim, &of));
    if (!s)
        return QN_OK;
    if (take_float(&out, &s->of, claim, s->product.columns))
        close_product(taken, claim, s, out);
    else
        *claim = before;
    return QN_OK;
}

qn_status qn_claim_q_product_float(bool *taken, qn_claim *claim)
{
    const qn_node *node = claim->node;
    const operands of = {.x = node->in[0],
                         .w = constant(node->in[1]),
                         .x_zero = input(node, 4),
                         .w_zero = constant(input(node, 5)),
                         .x_scale = node->in[2],
                         .w_scale = constant(node->in[3]),
                         .bias = constant(input(node, 6))};
    const int64_t columns = of.w && of.w->rank == 2 ? of.w->dims[1] : 1;
    state *s = NULL;
    if ((input(node, 5) && !of.w_zero) || (input(node, 6) && !of.bias) ||
        !is_scale(claim, of.x_scale, 1) || !is_constant(node->in[3], columns) ||
        (of.bias && !is_by_column(of.bias, columns)))
        return QN_OK;
    QN_TRY(open_product(&s, claim, &of));
    if (s)
        close_product(taken, claim, s, node->out[0]);
    return QN_OK;
}
