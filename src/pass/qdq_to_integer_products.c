/* Multiply-accumulate: y = requantize(sum of (x - zx) * (w - zw) + bias). */
#include <float.h>
#include <math.h>
#include <string.h>

#include "ops/eval.h"
#include "ops/nn_attrs.h"
#include "ops/quantize.h"
#include "pass/qdq_to_integer.h"

typedef struct product_node {
    qn_node *node;
    qn_quantized x, w, y;
    /* A Q stands behind */
    bool has_y;
    /* Results that differ in scale and bias */
    int64_t filters;
    /* Integers of scale sx * sw; NULL: none */
    qn_value *bias;
} product_node;

/* The inputs are integers and their scales stand along `axis` of w, where `filters` are counted. */
static qn_status read_product_node(bool *found, product_node *m, int64_t axis)
{
    const qn_node *node = m->node;
    QN_TRY(qn_qdq_input(found, &m->x, node->in[0]));
    if (!*found || m->x.params.axis >= 0)
        goto no;
    QN_TRY(qn_qdq_input(found, &m->w, node->in[1]));
    if (!*found || !m->w.value->data || (m->w.params.axis >= 0 && m->w.params.axis != axis))
        goto no;
    m->filters = m->w.value->data->dims[axis];
    if (m->w.params.axis >= 0 && qn_tensor_count(m->w.scale->data) != m->filters)
        goto no;
    return qn_qdq_output(&m->has_y, &m->y, node->out[0]);
no:
    *found = false;
    return QN_OK;
}

/* ---- Bias ------------------------------------------------------------------------------------ */

typedef struct numbers {
    /* One, or one per filter */
    const qn_tensor *data;
    /* What they mean, where they are integers */
    qn_quantized q;
    bool is_quantized;
    /* A factor for all of them. */
    float factor;
} numbers;

static double bias_scale(const numbers *b, int64_t i)
{
    return (b->is_quantized ? (double)qn_quantized_scale(&b->q, i) : 1) * (double)b->factor;
}

static double bias_of(const numbers *b, int64_t c)
{
    const int64_t i = qn_tensor_count(b->data) == 1 ? 0 : c;
    const double stored = qn_tensor_f64(b->data, i);
    return b->is_quantized ? stored - (double)b->q.params.zero : stored;
}

/* Bias c in units of sx * sw[c]: the stored integer where that is its scale. */
static double bias_units(const product_node *m, const numbers *b, int64_t c)
{
    const double unit = (double)m->x.params.scale * (double)qn_quantized_scale(&m->w, c);
    const double scale = bias_scale(b, c), bias = bias_of(b, c);
    if (b->is_quantized && fabs(scale - unit) <= 1e-6 * unit)
        return bias;
    return nearbyint(bias * scale / unit);
}

/* Weights of filter c are all 0, so that its scale is free. */
static bool has_zero_weights(const product_node *m, int64_t c)
{
    const qn_tensor *w = m->w.value->data;
    int64_t inner = 1;
    if (m->w.params.axis < 0 || m->filters != w->dims[m->w.params.axis])
        return false;
    for (int32_t d = (int32_t)m->w.params.axis + 1; d < w->rank; d++)
        inner *= w->dims[d];
    const int64_t count = qn_tensor_count(w);
    const int64_t zero = qn_tensor_i64(m->w.zero->data, c % qn_tensor_count(m->w.zero->data));
    for (int64_t first = c * inner; first < count; first += m->filters * inner) {
        for (int64_t i = first; i < first + inner; i++) {
            if (qn_tensor_i64(w, i) != zero)
                return false;
        }
    }
    return true;
}

/* Scales of weights that are all 0, chosen so that the biases of their filters fit. */
static qn_status scales_for_biases(product_node *m, const numbers *b, double most)
{
    qn_graph *graph = m->node->graph;
    const double x_scale = (double)m->x.params.scale;
    const qn_type type = qn_type_tensor(QN_FLOAT32, 1, &m->filters);
    qn_tensor *scales;
    QN_TRY(qn_tensor_create(&scales, graph->ctx, graph->arena, &type));
    for (int64_t c = 0; c < m->filters; c++) {
        const double bias = fabs(bias_of(b, c) * bias_scale(b, c));
        float *scale = (float *)scales->data + c;
        *scale = qn_quantized_scale(&m->w, c);
        if (!(fabs(bias_units(m, b, c)) <= most))
            *scale = fmaxf((float)(2 * bias / (x_scale * most)), FLT_MIN);
    }
    m->w.params.scales = scales->data;
    return qn_value_constant(&m->w.scale, graph, m->node->name, scales);
}

/* *found false: they do not fit into `most`, and the node stays float. */
static qn_status fit_bias(bool *found, product_node *m, const numbers *b, double most)
{
    bool any_dead = false;
    for (int64_t c = 0; c < m->filters && *found; c++) {
        if (fabs(bias_units(m, b, c)) <= most)
            continue;
        any_dead = *found = isfinite(bias_of(b, c) * bias_scale(b, c)) && has_zero_weights(m, c);
    }
    return *found && any_dead ? scales_for_biases(m, b, most) : QN_OK;
}

static qn_status make_bias(bool *found, product_node *m, const numbers *b)
{
    const bool wide = !qn_quantized_is_byte(&m->x) || !qn_quantized_is_byte(&m->w);
    const qn_dtype dtype = wide ? QN_INT64 : QN_INT32;
    const qn_type type = qn_type_tensor(dtype, 1, &m->filters);
    qn_graph *graph = m->node->graph;
    qn_tensor *out;
    QN_TRY(fit_bias(found, m, b, wide ? 0x1p62 : (double)INT32_MAX));
    if (!*found)
        return QN_OK;
    QN_TRY(qn_tensor_create(&out, graph->ctx, graph->arena, &type));
    for (int64_t c = 0; c < m->filters; c++) {
        const int64_t q = (int64_t)bias_units(m, b, c);
        qn_store_i64(out->data, dtype, c, &q, 1);
    }
    return qn_value_constant(&m->bias, graph, m->node->name, out);
}

/* Reads factor * value; *found is false where the value is not constant, has another shape or does
 * not fit the bias's type. */
static qn_status read_bias(bool *found, product_node *m, const qn_value *value, float factor)
{
    numbers b = {.data = value ? value->data : NULL, .factor = factor};
    if (!value)
        return QN_OK;
    if (!b.data) {
        QN_TRY(qn_qdq_input(&b.is_quantized, &b.q, value));
        b.data = b.is_quantized ? b.q.value->data : NULL;
    }
    const int64_t count = b.data ? qn_tensor_count(b.data) : 0;
    *found = b.data &&
             (count == 1 || (count == m->filters && b.data->dims[b.data->rank - 1] == m->filters));
    return *found ? make_bias(found, m, &b) : QN_OK;
}

/* ---- Operators ------------------------------------------------------------------------------- */

/* `op` with a Q behind, `to_float` without. */
static qn_status replace_conv(const product_node *m, const qn_op *op, const qn_op *to_float)
{
    qn_value *const with[9] = {m->x.value, m->x.scale, m->x.zero, m->w.value, m->w.scale,
                               m->w.zero,  m->y.scale, m->y.zero, m->bias};
    qn_value *const real[7] = {m->x.value, m->x.scale, m->x.zero, m->w.value,
                               m->w.scale, m->w.zero,  m->bias};
    const int32_t more = m->bias ? 1 : 0;
    const qn_integer_node integer = {op, with, 8 + more, m->node->attrs, sizeof(qn_window_attrs)},
                          real_valued = {to_float, real, 6 + more, integer.attrs,
                                         integer.attrs_size};
    return m->has_y ? qn_qdq_replace(m->node, &m->y, &integer)
                    : qn_qdq_replace(m->node, NULL, &real_valued);
}

qn_status qn_qdq_conv(bool *done, qn_node *node)
{
    product_node m = {.node = node};
    QN_TRY(read_product_node(done, &m, 0));
    if (*done)
        QN_TRY(read_bias(done, &m, node->n_in > 2 ? node->in[2] : NULL, 1));
    return *done ? replace_conv(&m, &qn_op_QLinearConv, &qn_op_qn_ConvIntegerToFloat) : QN_OK;
}

/* A list for one group becomes one for all `count` filters. */
static qn_status spread(qn_value **list, const product_node *m)
{
    const qn_tensor *from = (*list)->data;
    const size_t size = qn_dtype_size(from->dtype);
    const int64_t count = qn_tensor_count(from);
    const qn_type type = qn_type_tensor(from->dtype, 1, &m->filters);
    qn_graph *graph = m->node->graph;
    qn_tensor *all;
    if (count == 1 || count == m->filters)
        return QN_OK;
    QN_TRY(qn_tensor_create(&all, graph->ctx, graph->arena, &type));
    for (int64_t c = 0; c < m->filters; c++)
        memcpy((char *)all->data + (size_t)c * size,
               (const char *)from->data + (size_t)(c % count) * size, size);
    return qn_value_constant(list, graph, m->node->name, all);
}

/* Filters stand along axis 1 of the weights, those of one group. */
qn_status qn_qdq_conv_transpose(bool *done, qn_node *node)
{
    const qn_window_attrs *attrs = node->attrs;
    product_node m = {.node = node};
    QN_TRY(read_product_node(done, &m, 1));
    m.filters *= attrs->group;
    if (*done)
        QN_TRY(spread(&m.w.scale, &m));
    if (*done)
        QN_TRY(spread(&m.w.zero, &m));
    if (*done)
        QN_TRY(read_bias(done, &m, node->n_in > 2 ? node->in[2] : NULL, 1));
    return *done ? replace_conv(&m, &qn_op_qn_QLinearConvTranspose,
                                &qn_op_qn_ConvTransposeIntegerToFloat)
                 : QN_OK;
}

qn_status qn_qdq_gemm(bool *done, qn_node *node)
{
    const qn_gemm_attrs *attrs = node->attrs;
    product_node m = {.node = node};
    if (attrs->alpha != 1.0f)
        return QN_OK;
    QN_TRY(read_product_node(done, &m, attrs->transB ? 0 : 1));
    if (*done)
        QN_TRY(read_bias(done, &m, node->n_in > 2 ? node->in[2] : NULL, attrs->beta));
    if (!*done)
        return QN_OK;
    qn_value *const in[9] = {m.x.value,
                             m.x.scale,
                             m.x.zero,
                             m.w.value,
                             m.w.scale,
                             m.w.zero,
                             m.bias,
                             m.has_y ? m.y.scale : NULL,
                             m.has_y ? m.y.zero : NULL};
    return qn_qdq_replace(node, m.has_y ? &m.y : NULL,
                          &(qn_integer_node){&qn_op_ms_QGemm, in,
                                             m.has_y  ? 9
                                             : m.bias ? 7
                                                      : 6,
                                             attrs, sizeof *attrs});
}

/* ---- MatMul ---------------------------------------------------------------------------------- */

/* Both sides are activations, each with one scale. */
static qn_status read_product(bool *found, product_node *m)
{
    QN_TRY(qn_qdq_input(found, &m->x, m->node->in[0]));
    if (*found && m->x.params.axis < 0)
        QN_TRY(qn_qdq_input(found, &m->w, m->node->in[1]));
    *found = *found && m->x.params.axis < 0 && m->w.params.axis < 0;
    return *found ? qn_qdq_output(&m->has_y, &m->y, m->node->out[0]) : QN_OK;
}

/* A constant added behind the product of a matrix is its bias. */
static qn_status take_bias(product_node *m, qn_node **last)
{
    qn_node *add = qn_value_only_user(m->node->out[0]);
    bool found = true;
    if (m->has_y || !add || add->op != &qn_op_Add)
        return QN_OK;
    const int other = add->in[0] == m->node->out[0];
    if (add->in[other]->type.rank > m->node->out[0]->type.rank)
        return QN_OK; /* it makes the result larger */
    QN_TRY(read_bias(&found, m, add->in[other], 1));
    if (!found || !m->bias)
        return QN_OK;
    *last = add;
    return qn_qdq_output(&m->has_y, &m->y, add->out[0]);
}

static qn_status replace_matmul(const product_node *m, qn_node *last)
{
    const qn_quantized *y = m->has_y ? &m->y : NULL;
    qn_value *const in[9] = {m->x.value,          m->x.scale,         m->x.zero,
                             m->w.value,          m->w.scale,         m->w.zero,
                             y ? y->scale : NULL, y ? y->zero : NULL, m->bias};
    const bool is_plain = y && !m->bias;
    const qn_integer_node lowered = {is_plain ? &qn_op_QLinearMatMul : &qn_op_qn_QMatMul, in,
                                     m->bias ? 9
                                     : y     ? 8
                                             : 6,
                                     NULL, 0};
    QN_TRY(qn_qdq_replace(last, y, &lowered));
    if (last != m->node)
        qn_node_remove(m->node);
    return QN_OK;
}

qn_status qn_qdq_matmul(bool *done, qn_node *node)
{
    const qn_tensor *w = NULL;
    qn_node *last = node;
    product_node m = {.node = node};
    QN_TRY(read_product(done, &m));
    if (!*done) {
        const qn_type *type = &node->in[1]->type;
        if (type->rank == 2)
            QN_TRY(read_product_node(done, &m, 1));
    }
    if (!*done)
        return QN_OK;
    w = m.w.value->data;
    if (w && w->rank == 2) {
        m.filters = w->dims[1];
        QN_TRY(take_bias(&m, &last));
    }
    return replace_matmul(&m, last);
}
