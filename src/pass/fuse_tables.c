/* Functions of one 8-bit number become tables, and a table behind a table is one: the operator's
 * own kernel is asked for each of the 256 numbers, so that no rounding is lost. */
#include "ops/eval.h"
#include "ops/quantize.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

enum { ENTRIES = 256 };

/* Where the numbers come in; `alone`: worth a table even if there is none before it. */
static const struct {
    const qn_op *op;
    int32_t sides[2];
    bool alone;
} functions[] = {
    {&qn_op_ms_QLinearAdd, {0, 3}, true},       {&qn_op_ms_QLinearMul, {0, 3}, true},
    {&qn_op_ms_QLinearLeakyRelu, {0, 0}, true}, {&qn_op_ms_QLinearSigmoid, {0, 0}, true},
    {&qn_op_qn_QTable, {0, 0}, false},          {&qn_op_qn_Requantize, {0, 0}, false},
};

/* Input x is of 8 bits, all others are constants of one number (or a table), and x has the result's
 * shape. */
static bool is_function_of(const qn_node *node, int32_t x)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        const qn_tensor *data = node->in[i] ? node->in[i]->data : NULL;
        if (i != x && node->in[i] &&
            (!data || (qn_tensor_count(data) != 1 && node->op != &qn_op_qn_QTable)))
            return false;
    }
    const qn_value *from = node->in[x], *to = node->out[0];
    return from && !from->data && to && qn_dtype_size(from->type.dtype) == 1 &&
           qn_dtype_size(to->type.dtype) == 1 && from->type.rank >= 0 &&
           from->type.rank == to->type.rank;
}

/* The table whose result is x, where nothing else reads it. */
static qn_node *table_before(const qn_value *x)
{
    qn_node *table = qn_match_only(x, &qn_op_qn_QTable);
    const qn_tensor *data = table && table->in[1] ? table->in[1]->data : NULL;
    return data && data->rank == 1 && data->dims[0] == ENTRIES ? table : NULL;
}

/* All numbers of the type, in their order. */
static qn_status all_numbers(qn_tensor **out, const qn_graph *graph, qn_dtype dtype)
{
    static const int64_t dims[1] = {ENTRIES};
    const qn_type type = qn_type_tensor(dtype, 1, dims);
    QN_TRY(qn_tensor_create(out, graph->ctx, graph->arena, &type));
    for (int64_t i = 0; i < ENTRIES; i++) {
        const int64_t q = qn_limits_of(dtype).min + i;
        qn_store_i64((*out)->data, dtype, i, &q, 1);
    }
    return QN_OK;
}

static qn_status replace(qn_pass_context *self, qn_node *node, int32_t x)
{
    const qn_tensor *in[8] = {NULL};
    qn_node *before = table_before(node->in[x]), *fresh;
    qn_tensor *numbers = NULL, *result = NULL;
    qn_value *with[2] = {before ? before->in[0] : node->in[x], NULL};
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = node->in[i] ? node->in[i]->data : NULL;
    if (!before)
        QN_TRY(all_numbers(&numbers, self->graph, node->in[x]->type.dtype));
    in[x] = before ? before->in[1]->data : numbers;
    QN_TRY(qn_node_eval(&result, self->ctx, self->graph->arena, node, in));
    result->rank = 1;
    result->dims[0] = ENTRIES;
    QN_TRY(qn_value_constant(&with[1], self->graph, node->name, result));
    QN_TRY(qn_rewrite_begin(&fresh, node, &qn_op_qn_QTable, with, 2));
    self->changes++;
    return qn_rewrite_finish(fresh, node);
}

static qn_status fuse_node(qn_pass_context *self, qn_node *node)
{
    for (size_t f = 0; f < QN_COUNT_OF(functions); f++) {
        if (functions[f].op != node->op || node->n_in > 8)
            continue;
        for (int side = 0; side < 2; side++) {
            const int32_t x = functions[f].sides[side];
            if (is_function_of(node, x) && (functions[f].alone || table_before(node->in[x])))
                return replace(self, node, x);
        }
    }
    return QN_OK;
}

static qn_status fuse_tables(qn_pass_context *self)
{
    if (self->keep_quantization)
        return QN_OK;
    for (qn_node *node = self->graph->first, *next; node; node = next) {
        next = node->next;
        QN_TRY(fuse_node(self, node));
    }
    return QN_OK;
}

const qn_pass qn_pass_fuse_tables = {
    "fuse-tables", "functions of one 8-bit number that follow each other become one table",
    fuse_tables};
