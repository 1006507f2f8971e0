/* Operators that work on single numbers or on windows of them. */
#include <stdlib.h>

#include "ops/eval.h"
#include "ops/nn_attrs.h"
#include "ops/quantize.h"
#include "pass/qdq_to_integer.h"
#include "pass/unary_function.h"

/* ---- Sum and product of two ------------------------------------------------------------------ */

typedef struct pair {
    qn_quantized a, b, y;
} pair;

static qn_status read_pair(bool *found, pair *p, const qn_node *node)
{
    QN_TRY(qn_qdq_input(found, &p->a, node->in[0]));
    if (*found)
        QN_TRY(qn_qdq_input(found, &p->b, node->in[1]));
    if (*found)
        QN_TRY(qn_qdq_output(found, &p->y, node->out[0]));
    *found = *found && p->a.params.axis < 0 && p->b.params.axis < 0;
    return QN_OK;
}

static qn_status replace_pair(qn_node *node, const pair *p, const qn_op *op)
{
    qn_value *const in[8] = {p->a.value, p->a.scale, p->a.zero,  p->b.value,
                             p->b.scale, p->b.zero,  p->y.scale, p->y.zero};
    return qn_qdq_replace(node, &p->y, &(qn_integer_node){op, in, 8, NULL, 0});
}

qn_status qn_qdq_add(bool *done, qn_node *node)
{
    pair p;
    if (node->n_in != 2) /* a Sum */
        return QN_OK;
    QN_TRY(read_pair(done, &p, node));
    return *done ? replace_pair(node, &p, &qn_op_ms_QLinearAdd) : QN_OK;
}

qn_status qn_qdq_mul(bool *done, qn_node *node)
{
    pair p;
    QN_TRY(read_pair(done, &p, node));
    return *done ? replace_pair(node, &p, &qn_op_ms_QLinearMul) : QN_OK;
}

/* ---- Concat ---------------------------------------------------------------------------------- */

qn_status qn_qdq_concat(bool *done, qn_node *node)
{
    qn_quantized y, x;
    qn_value **in = qn_arena_array(node->graph->arena, 2 + 3 * (size_t)node->n_in, sizeof *in);
    QN_TRY_ALLOC(node->graph->ctx, in);
    QN_TRY(qn_qdq_output(done, &y, node->out[0]));
    for (int32_t i = 0; i < node->n_in && *done; i++) {
        QN_TRY(qn_qdq_input(done, &x, node->in[i]));
        if (!*done || x.params.axis >= 0) {
            *done = false;
            return QN_OK;
        }
        in[2 + 3 * i] = x.value;
        in[3 + 3 * i] = x.scale;
        in[4 + 3 * i] = x.zero;
    }
    if (!*done)
        return QN_OK;
    in[0] = y.scale;
    in[1] = y.zero;
    return qn_qdq_replace(node, &y,
                          &(qn_integer_node){&qn_op_ms_QLinearConcat, in, 2 + 3 * node->n_in,
                                             node->attrs, node->op->attrs_size});
}

/* ---- One input, one output ------------------------------------------------------------------- */

qn_status qn_qdq_average_pool(bool *done, qn_node *node)
{
    const qn_window_attrs *attrs = node->attrs;
    qn_qdq_unary s;
    for (size_t d = 0; d < attrs->dilations.count; d++) {
        if (attrs->dilations.at[d] != 1)
            return QN_OK;
    }
    QN_TRY(qn_qdq_find_unary(done, &s, node));
    return *done
               ? qn_qdq_replace_unary(node, &s, &qn_op_ms_QLinearAveragePool, attrs, sizeof *attrs)
               : QN_OK;
}

qn_status qn_qdq_global_pool(bool *done, qn_node *node)
{
    qn_qdq_unary s;
    QN_TRY(qn_qdq_find_unary(done, &s, node));
    return *done ? qn_qdq_replace_unary(node, &s, &qn_op_ms_QLinearGlobalAveragePool, NULL, 0)
                 : QN_OK;
}

/* ---- PRelu with several slopes --------------------------------------------------------------- */

qn_status qn_qdq_prelu(bool *done, qn_node *node)
{
    const qn_tensor *slope = node->in[1] ? node->in[1]->data : NULL;
    qn_qdq_unary s;
    if (!slope || slope->dtype != QN_FLOAT32)
        return QN_OK;
    QN_TRY(qn_qdq_find_unary(done, &s, node));
    *done = *done && qn_quantized_is_short(&s.x) && qn_quantized_is_short(&s.y);
    if (!*done)
        return QN_OK;
    qn_value *const in[6] = {s.x.value, s.x.scale, s.x.zero, node->in[1], s.y.scale, s.y.zero};
    return qn_qdq_replace(node, &s.y, &(qn_integer_node){&qn_op_qn_QPRelu, in, 6, NULL, 0});
}

/* ---- Tables ---------------------------------------------------------------------------------- */

/* The last of the functions of one number that follow each other from `node` on, each read by the
 * next alone: nothing is rounded between them. */
static qn_node *last_function(qn_node *node)
{
    for (;;) {
        qn_node *user = qn_value_only_user(node->out[0]);
        if (!user || qn_unary_function_slot(user) < 0)
            return node;
        node = user;
    }
}

/* The 256 or 65,536 numbers that x can be, as the operators' own kernels map them in doubles. */
static qn_status map_all(qn_tensor **out, qn_arena *arena, const qn_node *first,
                         const qn_node *last, const qn_quantized *x)
{
    const qn_limits range = qn_limits_of(x->value->type.dtype);
    const int64_t entries = range.max - range.min + 1;
    const qn_type type = qn_type_tensor(QN_FLOAT64, 1, &entries);
    QN_TRY(qn_tensor_create(out, first->graph->ctx, arena, &type));
    for (int64_t i = 0; i < entries; i++)
        ((double *)(*out)->data)[i] = (double)qn_dequantize(range.min + i, &x->params);
    for (const qn_node *node = first;; node = node->out[0]->users[0]) {
        QN_TRY(qn_unary_function_eval(out, arena, node, *out));
        if (node == last)
            return QN_OK;
    }
}

/* Keeps the first entry of each of the 2^bits steps, and the very last entry; linear interpolation
 * gives the others. */
static void interpolate(qn_tensor *table, int bits)
{
    const int64_t step = table->dims[0] >> bits, last = table->dims[0] - 1;
    for (int64_t at = 0; at < last; at += step) {
        int64_t ends[2];
        qn_load_i64(&ends[0], table->dtype, table->data, at, 1);
        qn_load_i64(&ends[1], table->dtype, table->data, QN_MIN(at + step, last), 1);
        for (int64_t r = 1; r < step; r++) {
            const int64_t sum = ends[0] * (step - r) + ends[1] * r + step / 2;
            const int64_t q = sum >= 0 ? sum / step : -((step - 1 - sum) / step);
            qn_store_i64(table->data, table->dtype, at + r, &q, 1);
        }
    }
}

static qn_status make_table(qn_value **out, const qn_node *first, const qn_node *last,
                            const qn_qdq_unary *s, qn_arena *arena)
{
    const qn_dtype dtype = s->y.value->type.dtype;
    qn_graph *graph = first->graph;
    qn_tensor *table, *mapped = NULL;
    QN_TRY(map_all(&mapped, arena, first, last, &s->x));
    const qn_type type = qn_type_tensor(dtype, 1, mapped->dims);
    QN_TRY(qn_tensor_create(&table, graph->ctx, graph->arena, &type));
    for (int64_t i = 0; i < mapped->dims[0]; i++) {
        const int64_t q =
            qn_quantize((float)qn_tensor_f64(mapped, i), &s->y.params, qn_limits_of(dtype));
        qn_store_i64(table->data, dtype, i, &q, 1);
    }
    const int bits = (int)qn_model_numerics(graph->model, QN_NUMERICS_TABLE_BITS);
    if (bits && mapped->dims[0] > 1 << QN_TABLE_BITS_MAX)
        interpolate(table, bits);
    return qn_value_constant(out, graph, first->name, table);
}

qn_status qn_qdq_table(bool *done, qn_node *node)
{
    qn_arena arena;
    qn_value *table = NULL;
    qn_qdq_unary s;
    const int32_t slot = qn_unary_function_slot(node);
    if (slot < 0)
        return QN_OK;
    QN_TRY(qn_qdq_input(done, &s.x, node->in[slot]));
    if (!*done)
        return QN_OK;
    qn_node *last = last_function(node), *before = NULL;
    if (last != node)
        before = last->in[qn_unary_function_slot(last)]->producer;
    QN_TRY(qn_qdq_output(done, &s.y, last->out[0]));
    *done =
        *done && s.x.params.axis < 0 && qn_quantized_is_short(&s.x) && qn_quantized_is_short(&s.y);
    if (!*done)
        return QN_OK;
    qn_arena_init(&arena, &node->graph->ctx->allocator);
    const qn_status status = make_table(&table, node, last, &s, &arena);
    qn_arena_free(&arena);
    QN_TRY(status);
    qn_value *const in[2] = {s.x.value, table};
    QN_TRY(qn_qdq_replace(last, &s.y, &(qn_integer_node){&qn_op_qn_QTable, in, 2, NULL, 0}));
    if (before)
        qn_unary_function_remove(before, node);
    return QN_OK;
}
