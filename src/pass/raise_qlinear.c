/* The way back from operators of integers (QOperator files) to pairs:
 *
 *   QLinearConv(x, ..., y)     D(x), D(w), D(bias) -> Conv -> Q = y, with the same scales
 *   MaxPool(x) of integers     D(x) -> MaxPool -> Q, with the scale that the Q before has
 *
 * What says more than its float operator could (channels last, scales of rows) stays as it is. */
#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/qlinear.h"
#include "ops/versions.h"
#include "pass/lower.h"
#include "pass/rewrite.h"

/* ---- Q and D ------------------------------------------------------------------------------------------------- */

/* Integers and what they mean, constant or not; axis -1: one scale. */
typedef struct meaning {
    qn_value *integers, *scale, *zero;
    int64_t axis;
} meaning;

/* Files have one number in one dimension too, which a D would take for one of an axis. */
static qn_status as_scalar(qn_value **value)
{
    const qn_tensor *data = *value ? (*value)->data : NULL;
    qn_tensor *scalar;
    if (!data || data->rank == 0 || qn_tensor_count(data) != 1)
        return QN_OK;
    const qn_type type = qn_type_tensor(data->dtype, 0, NULL);
    QN_TRY(qn_tensor_create(&scalar, (*value)->graph->ctx, (*value)->graph->arena, &type));
    memcpy(scalar->data, data->data, qn_dtype_size(data->dtype));
    return qn_value_constant(value, (*value)->graph, (*value)->name, scalar);
}

/* One zero point for all scales of an axis, as often as there are scales. */
static qn_status as_many(qn_value **zero, const qn_value *scale)
{
    const qn_tensor *data = *zero ? (*zero)->data : NULL;
    const int64_t count = scale->type.dims[0].value;
    qn_tensor *all;
    if (!data || count < 1 || qn_tensor_count(data) != 1)
        return QN_OK;
    const qn_type type = qn_type_tensor(data->dtype, 1, &count);
    const int64_t number = qn_tensor_i64(data, 0);
    QN_TRY(qn_tensor_create(&all, (*zero)->graph->ctx, (*zero)->graph->arena, &type));
    for (int64_t i = 0; i < count; i++)
        qn_store_i64(all->data, data->dtype, i, &number, 1);
    return qn_value_constant(zero, (*zero)->graph, (*zero)->name, all);
}

static qn_status add_node(qn_node **out, const qn_op *op, qn_value *x, const meaning *m,
                          qn_node *before)
{
    qn_value *scale = m->scale, *zero = m->zero;
    char *name;
    QN_TRY(as_scalar(&scale));
    QN_TRY(m->axis < 0 ? as_scalar(&zero) : as_many(&zero, scale));
    QN_TRY(qn_rewrite_name(&name, x->graph, x->name,
                           op == &qn_op_QuantizeLinear ? "_QuantizeLinear" : "_DequantizeLinear"));
    const qn_node_spec spec = {
        .op = op, .name = name, .before = before, .in = {x, scale, zero}, .n_in = zero ? 3 : 2};
    QN_TRY(qn_node_build(out, x->graph, &spec));
    if (m->axis >= 0)
        ((qn_quantize_attrs *)(*out)->attrs)->axis = m->axis;
    return qn_node_infer(*out);
}

/* A D that makes the same of the integers already, put right behind them. */
static qn_status find_real(qn_value **out, const meaning *m)
{
    const qn_quantized wanted = {
        .value = m->integers, .scale = m->scale, .zero = m->zero, .axis = -1};
    const bool known = m->axis < 0 && m->scale->data && m->zero && m->zero->data;
    *out = NULL;
    for (size_t u = 0; known && !*out && u < m->integers->n_users; u++) {
        qn_node *node = m->integers->users[u];
        qn_quantized d = {.value = m->integers};
        bool found = false;
        if (!qn_is_dequantize(node) || node->out[0]->is_output)
            continue;
        QN_TRY(qn_lower_parameters(&found, &d, node));
        if (!found || !qn_quantized_alike(&d, &wanted))
            continue;
        *out = node->out[0];
        if (m->integers->producer && m->integers->producer->next != node)
            qn_node_move(node, m->integers->producer->next);
    }
    return QN_OK;
}

/* What people call the float number: tools put one of these behind its name for the integers'. */
static qn_status real_name(char **out, const qn_value *integers)
{
    static const char *const tails[] = {"_quantized", "_QuantizeLinear_Output"};
    const size_t length = strlen(integers->name);
    for (size_t i = 0; i < QN_COUNT_OF(tails); i++) {
        const size_t end = strlen(tails[i]);
        if (length <= end || strcmp(integers->name + length - end, tails[i]) != 0)
            continue;
        QN_TRY(qn_rewrite_name(out, integers->graph, integers->name, ""));
        (*out)[length - end] = '\0';
        return QN_OK;
    }
    return qn_rewrite_name(out, integers->graph, integers->name, "_float");
}

static qn_status make_real(qn_value **out, const meaning *m, qn_node *before)
{
    qn_node *fresh;
    char *name = NULL;
    QN_TRY(find_real(out, m));
    if (*out)
        return QN_OK;
    const qn_node *producer = m->integers->producer;
    const bool is_fixed = m->scale->data && (!m->zero || m->zero->data);
    QN_TRY(add_node(&fresh, &qn_op_DequantizeLinear, m->integers, m,
                    producer && is_fixed ? producer->next : before));
    *out = fresh->out[0];
    if (!m->integers->data)
        return QN_OK;
    QN_TRY(real_name(&name, m->integers));
    return qn_value_rename(*out, name);
}

/* Output `slot` of the node is a float number from here on; the integers that it wrote before lack a producer. */
static qn_status make_output_real(qn_node *node, int32_t slot, qn_value *integers)
{
    qn_value *real;
    char *name = NULL;
    QN_TRY(real_name(&name, integers));
    QN_TRY(qn_value_create(&real, node->graph, name));
    node->out[slot] = NULL;
    integers->producer = NULL;
    qn_node_set_output(node, slot, real);
    return QN_OK;
}

/* A Q makes these integers of the float number. */
static qn_status round_behind(qn_value *real, const meaning *y)
{
    qn_node *quantize;
    QN_TRY(add_node(&quantize, &qn_op_QuantizeLinear, real, y, real->producer->next));
    quantize->out[0]->producer = NULL;
    quantize->out[0] = NULL;
    qn_node_set_output(quantize, 0, y->integers);
    return qn_node_infer(quantize);
}

/* ---- Operators with scales of their own ------------------------------------------------------------------------ */

/* Attributes of the float operator, and what it reads besides; *done false: it cannot say that. */
typedef qn_status attrs_fn(bool *done, qn_node *fresh, const qn_node *node);

typedef struct raised {
    const qn_op *from, *to;
    int32_t first,
        parts; /* slot of the first (integers, scale, zero point), and how many; 0: all that there are */
    int32_t y, bias; /* slots of the result's scale and of the bias; -1: none */
    attrs_fn *attrs;
} raised;

static qn_status same_attrs(bool *done, qn_node *fresh, const qn_node *node)
{
    (void)done;
    if (fresh->op->attrs_size)
        memcpy(fresh->attrs, node->attrs, fresh->op->attrs_size);
    return QN_OK;
}

static qn_status no_attrs(bool *done, qn_node *fresh, const qn_node *node)
{
    (void)done;
    (void)fresh;
    (void)node;
    return QN_OK;
}

static qn_status gemm_attrs(bool *done, qn_node *fresh, const qn_node *node)
{
    const qn_gemm_attrs *from = node->attrs;
    qn_gemm_attrs *to = fresh->attrs;
    (void)done;
    to->alpha = from->alpha;
    to->transA = from->transA;
    to->transB = from->transB;
    return QN_OK;
}

static qn_status pool_attrs(bool *done, qn_node *fresh, const qn_node *node)
{
    const qn_qpool_attrs *attrs = node->attrs;
    *done = !attrs->channels_last;
    if (fresh->op->attrs_size)
        memcpy(fresh->attrs, &attrs->window, sizeof attrs->window);
    return QN_OK;
}

/* Before opset 13 it goes over all dimensions from its axis on. */
static qn_status softmax_attrs(bool *done, qn_node *fresh, const qn_node *node)
{
    const qn_qsoftmax_attrs *attrs = node->attrs;
    const int32_t rank = node->in[0]->type.rank;
    *done = attrs->opset >= 13 || attrs->axis == -1 || (rank > 0 && attrs->axis == rank - 1);
    ((qn_softmax_attrs *)fresh->attrs)->axis = attrs->axis;
    return QN_OK;
}

static qn_status reduce_attrs(bool *done, qn_node *fresh, const qn_node *node)
{
    const qn_reduce_attrs *attrs = node->attrs;
    qn_value *axes;
    (void)done;
    ((qn_reduce_attrs *)fresh->attrs)->keepdims = attrs->keepdims;
    if (!attrs->axes.count)
        return QN_OK;
    QN_TRY(qn_value_ints(&axes, node->graph, attrs->axes.at, attrs->axes.count));
    return qn_node_add_input(fresh, axes);
}

static const raised rows[] = {
    {&qn_op_QLinearConv, &qn_op_Conv, 0, 2, 6, 8, same_attrs},
    {&qn_op_QLinearMatMul, &qn_op_MatMul, 0, 2, 6, -1, no_attrs},
    {&qn_op_ms_QGemm, &qn_op_Gemm, 0, 2, 7, 6, gemm_attrs},
    {&qn_op_ms_QLinearAdd, &qn_op_Add, 0, 2, 6, -1, no_attrs},
    {&qn_op_ms_QLinearMul, &qn_op_Mul, 0, 2, 6, -1, no_attrs},
    {&qn_op_ms_QLinearConcat, &qn_op_Concat, 2, 0, 0, -1, same_attrs},
    {&qn_op_ms_QLinearAveragePool, &qn_op_AveragePool, 0, 1, 3, -1, pool_attrs},
    {&qn_op_ms_QLinearGlobalAveragePool, &qn_op_GlobalAveragePool, 0, 1, 3, -1, pool_attrs},
    {&qn_op_ms_QLinearLeakyRelu, &qn_op_LeakyRelu, 0, 1, 3, -1, same_attrs},
    {&qn_op_ms_QLinearReduceMean, &qn_op_ReduceMean, 0, 1, 3, -1, reduce_attrs},
    {&qn_op_ms_QLinearSigmoid, &qn_op_Sigmoid, 0, 1, 3, -1, no_attrs},
    {&qn_op_ms_QLinearSoftmax, &qn_op_Softmax, 0, 1, 3, -1, softmax_attrs},
};

static qn_value *input_of(const qn_node *node, int32_t slot)
{
    return slot >= 0 && slot < node->n_in ? node->in[slot] : NULL;
}

/* Along which axis several scales of a part stand; -1: none can. */
static int64_t axis_of(const qn_node *node, const qn_value *integers, int32_t part)
{
    if (part != 1)
        return -1;
    if (node->op == &qn_op_QLinearConv)
        return 0;
    if (node->op == &qn_op_ms_QGemm)
        return ((const qn_gemm_attrs *)node->attrs)->transB ? 0 : 1;
    return node->op == &qn_op_QLinearMatMul ? (int64_t)integers->type.rank - 1 : -1;
}

/* The scale is one number, or one for each index of the part's axis. */
static bool read_part(meaning *out, const qn_node *node, int32_t slot, int32_t part)
{
    out->integers = input_of(node, slot);
    out->scale = input_of(node, slot + 1);
    out->zero = input_of(node, slot + 2);
    out->axis = -1;
    const qn_type *scale = out->scale ? &out->scale->type : NULL;
    if (!out->integers || !scale || scale->rank < 0 || scale->rank > 1)
        return false;
    if (scale->rank == 0 || scale->dims[0].value == 1)
        return true;
    out->axis = axis_of(node, out->integers, part);
    return out->axis >= 0;
}

/* Biases are in units of alpha * sx * sw. */
static qn_status read_bias(bool *done, meaning *out, const qn_node *node, const meaning *parts)
{
    const qn_tensor *x = parts[0].scale->data, *w = parts[1].scale->data;
    const double alpha =
        node->op == &qn_op_ms_QGemm ? (double)((const qn_gemm_attrs *)node->attrs)->alpha : 1;
    qn_tensor *units;
    *done = x && w && out->integers->data && out->integers->type.dtype == QN_INT32 &&
            out->integers->type.rank == 1;
    if (!*done)
        return QN_OK;
    const int64_t count = qn_tensor_count(w);
    const qn_type type = qn_type_tensor(QN_FLOAT32, count > 1 ? 1 : 0, &count);
    QN_TRY(qn_tensor_create(&units, node->graph->ctx, node->graph->arena, &type));
    for (int64_t i = 0; i < count; i++)
        ((float *)units->data)[i] = (float)(alpha * qn_tensor_f64(x, 0) * qn_tensor_f64(w, i));
    out->axis = count > 1 ? 0 : -1;
    out->zero = NULL;
    return qn_value_constant(&out->scale, node->graph, out->integers->name, units);
}

/* All that the float operator reads; *count 0: it cannot be said in floats. */
static qn_status read_parts(meaning **out, int32_t *count, const qn_node *node, const raised *row)
{
    const int32_t n = row->parts ? row->parts : (node->n_in - row->first) / 3;
    meaning *parts = qn_arena_array(node->graph->arena, (size_t)n + 1, sizeof *parts);
    bool done = true;
    QN_TRY_ALLOC(node->graph->ctx, parts);
    *out = parts;
    for (int32_t i = 0; i < n && done; i++)
        done = read_part(&parts[i], node, row->first + 3 * i, i);
    parts[n].integers = input_of(node, row->bias);
    *count = parts[n].integers ? n + 1 : n;
    if (done && parts[n].integers)
        QN_TRY(read_bias(&done, &parts[n], node, parts));
    *count = done ? *count : 0;
    return QN_OK;
}

/* The float node in the place of the other, and a Q behind it where that one had a scale for its result. */
static qn_status take_place(qn_node *fresh, qn_node *node, const raised *row)
{
    meaning y = {node->out[0], input_of(node, row->y), input_of(node, row->y + 1), -1};
    const char *name = node->name;
    if (!y.scale)
        return qn_rewrite_finish(fresh, node);
    if (!y.zero) /* it also says which integers there are */
        QN_TRY(qn_value_number(&y.zero, node->graph, y.integers->type.dtype, 0));
    node->out[0] = NULL;
    qn_node_remove(node);
    QN_TRY(qn_node_rename(fresh, name));
    QN_TRY(make_output_real(fresh, 0, y.integers));
    QN_TRY(qn_node_infer(fresh));
    return round_behind(fresh->out[0], &y);
}

static qn_status raise_row(bool *done, qn_node *node, const raised *row)
{
    meaning *parts;
    qn_node *fresh;
    int32_t count = 0;
    QN_TRY(read_parts(&parts, &count, node, row));
    if (!count)
        return QN_OK;
    QN_TRY(qn_node_add(&fresh, node->graph, row->to, node->name, count, 1));
    qn_node_move(fresh, node);
    *done = true;
    QN_TRY(row->attrs(done, fresh, node));
    if (!*done) {
        qn_node_remove(fresh);
        return QN_OK;
    }
    for (int32_t i = 0; i < count; i++) {
        qn_value *real = NULL;
        QN_TRY(make_real(&real, &parts[i], fresh));
        QN_TRY(qn_node_set_input(fresh, i, real));
    }
    return take_place(fresh, node, row);
}

/* ---- Operators that move integers ------------------------------------------------------------------------------- */

/* What a Q before the value says of it. */
static qn_status written_by(bool *found, qn_quantized *out, qn_value *value)
{
    *found = false;
    *out = (qn_quantized){.value = value};
    if (!value || !qn_is_quantize(value->producer))
        return QN_OK;
    QN_TRY(qn_lower_parameters(found, out, value->producer));
    *found = *found && out->axis < 0;
    return QN_OK;
}

/* All parts of a Concat come from the same scale; of others the first input is what is moved. */
static qn_status read_moved(bool *found, qn_quantized *out, const qn_node *node)
{
    QN_TRY(written_by(found, out, input_of(node, 0)));
    for (int32_t i = 1; i < node->n_in && *found && node->op == &qn_op_Concat; i++) {
        qn_quantized part;
        QN_TRY(written_by(found, &part, node->in[i]));
        *found = *found && qn_quantized_alike(out, &part);
    }
    return QN_OK;
}

/* Slots of constants that are integers like those which are moved: the value of a Pad, limits of a Clip. */
static bool is_beside(const qn_node *node, int32_t slot)
{
    return (node->op == &qn_op_Pad && slot == 2) ||
           (node->op == &qn_op_Clip && (slot == 1 || slot == 2));
}

static bool only_moves(const qn_node *node)
{
    const bool indices = node->n_out > 1 && node->op == &qn_op_MaxPool && node->out[1];
    if (indices || (!qn_moves_numbers(node) && node->op != &qn_op_Clip))
        return false;
    for (int32_t i = 0; i < node->n_in; i++) {
        if (is_beside(node, i) && node->in[i] && !node->in[i]->data)
            return false;
    }
    return true;
}

static qn_status raise_inputs(qn_node *node, const meaning *x)
{
    const int32_t moved = node->op == &qn_op_Concat ? node->n_in : 1;
    for (int32_t i = 0; i < node->n_in; i++) {
        meaning part = *x;
        qn_value *real = NULL;
        part.integers = node->in[i];
        if (!part.integers || (i >= moved && !is_beside(node, i)))
            continue;
        QN_TRY(make_real(&real, &part, node));
        if (part.integers->data)
            QN_TRY(qn_rewrite_fold(real->producer));
        QN_TRY(qn_node_set_input(node, i, real));
    }
    if (node->op == &qn_op_Pad && !input_of(node, 2)) {
        /* An integer 0 stands there, whatever it means. */
        qn_value *integer, *real;
        QN_TRY(qn_value_number(&integer, node->graph, x->integers->type.dtype, 0));
        QN_TRY(make_real(&real, &(meaning){integer, x->scale, x->zero, -1}, node));
        QN_TRY(qn_rewrite_fold(real->producer));
        if (node->n_in < 3)
            QN_TRY(qn_node_resize_inputs(node, 3));
        QN_TRY(qn_node_set_input(node, 2, real));
    }
    return QN_OK;
}

static qn_status raise_outputs(qn_node *node, const meaning *x)
{
    qn_value **integers = qn_arena_array(node->graph->arena, (size_t)node->n_out, sizeof *integers);
    meaning y = *x;
    QN_TRY_ALLOC(node->graph->ctx, integers);
    for (int32_t o = 0; o < node->n_out; o++) {
        integers[o] = node->out[o];
        if (integers[o])
            QN_TRY(make_output_real(node, o, integers[o]));
    }
    QN_TRY(qn_node_infer(node));
    for (int32_t o = 0; o < node->n_out; o++) {
        y.integers = integers[o];
        if (y.integers)
            QN_TRY(round_behind(node->out[o], &y));
    }
    return QN_OK;
}

static qn_status raise_move(bool *done, qn_node *node)
{
    qn_quantized x;
    if (!only_moves(node))
        return QN_OK;
    QN_TRY(read_moved(done, &x, node));
    if (!*done)
        return QN_OK;
    const meaning m = {x.value, x.scale, x.zero, -1};
    QN_TRY(raise_inputs(node, &m));
    return raise_outputs(node, &m);
}

/* ---- The walk ---------------------------------------------------------------------------------------------------- */

static qn_status raise_node(bool *done, qn_node *node)
{
    for (size_t i = 0; i < QN_COUNT_OF(rows); i++) {
        if (rows[i].from == node->op)
            return raise_row(done, node, &rows[i]);
    }
    return raise_move(done, node);
}

static qn_status raise_graph(qn_pass_context *self)
{
    for (qn_node *node = self->graph->first, *next; node; node = next) {
        bool done = false;
        next = node->next;
        QN_TRY(raise_node(&done, node));
        self->changes += done;
    }
    return QN_OK;
}

const qn_pass qn_pass_raise_qlinear = {
    "raise-qlinear",
    "operators of integers become float ones between DequantizeLinear and QuantizeLinear",
    raise_graph};
