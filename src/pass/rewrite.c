/* Patterns of nodes and common edits for passes. */
#include "pass/rewrite.h"

#include <math.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/kinds.h"
#include "ops/versions.h"

/* Inputs of a node to be folded. */
enum { MOST_FOLDED = 3 };

qn_node *qn_match_op(const qn_value *value, const qn_op *op)
{
    return value && value->producer && value->producer->op == op ? value->producer : NULL;
}

qn_node *qn_match_only(const qn_value *value, const qn_op *op)
{
    qn_node *node = qn_match_op(value, op);
    return node && qn_value_only_user(value) ? node : NULL;
}

bool qn_match_number(const qn_value *value, double *number)
{
    enum { MOST = 4096 }; /* larger constants are weights, not numbers */
    const qn_tensor *data = value ? value->data : NULL;
    if (!data || (!qn_dtype_is_float(data->dtype) && !qn_dtype_is_integer(data->dtype)))
        return false;
    const int64_t count = qn_tensor_count(data);
    if (count < 1 || count > MOST)
        return false;
    *number = qn_tensor_f64(data, 0);
    for (int64_t i = 1; i < count; i++) {
        if (qn_tensor_f64(data, i) != *number)
            return false;
    }
    return true;
}

bool qn_match_is(const qn_value *value, double number)
{
    double found;
    return qn_match_number(value, &found) && found == number;
}

bool qn_match_fits(const qn_tensor *constant, const qn_value *x)
{
    const qn_type *type = &x->type;
    const int32_t ahead = type->rank - constant->rank;
    bool fits = type->kind == QN_TYPE_TENSOR && (constant->rank == 0 || ahead >= 0);
    for (int32_t d = 0; fits && d < constant->rank; d++)
        fits = constant->dims[d] == 1 || constant->dims[d] == type->dims[ahead + d].value;
    return fits;
}

/* A constant number that fits x. */
static bool match_number_for(double *number, const qn_value *value, const qn_value *x)
{
    return qn_match_number(value, number) && qn_match_fits(value->data, x);
}

bool qn_match_near(const qn_value *value, const qn_value *x, double number)
{
    double found;
    return match_number_for(&found, value, x) && fabs(found - number) <= 1e-6 * fabs(number);
}

bool qn_match_binary(const qn_node *node, qn_value **other, double *number)
{
    if (!node || node->n_in != 2 || !node->in[0] || !node->in[1])
        return false;
    if (match_number_for(number, node->in[1], node->in[0])) {
        *other = node->in[0];
        return true;
    }
    *other = node->in[1];
    return (node->op->flags & QN_OP_COMMUTES) && match_number_for(number, node->in[0], *other);
}

bool qn_match_limits(double limits[2], const qn_node *node)
{
    limits[0] = node->op == &qn_op_Relu ? 0 : -(double)INFINITY;
    limits[1] = (double)INFINITY;
    for (int32_t i = 1; i < node->n_in && node->op == &qn_op_Clip; i++) {
        if (node->in[i] && !qn_match_number(node->in[i], &limits[i - 1]))
            return false;
    }
    return qn_op_is_limit(node->op);
}

qn_status qn_rewrite_bypass(bool *done, qn_node *node, qn_value *fresh)
{
    QN_TRY(qn_value_replace(done, node->out[0], fresh));
    if (*done)
        qn_node_remove(node);
    return QN_OK;
}

qn_status qn_rewrite_begin(qn_node **fresh, qn_node *node, const qn_op *op, qn_value *const *in,
                           int32_t n_in)
{
    QN_TRY(qn_node_create(fresh, node->graph, op, node));
    QN_TRY(qn_node_resize_inputs(*fresh, n_in));
    for (int32_t i = 0; i < n_in; i++)
        QN_TRY(qn_node_set_input(*fresh, i, in[i]));
    return QN_OK;
}

/* The output value itself goes over, so that its name and its place among the graph's outputs stay.
 * The node's name is what people know it by. */
qn_status qn_rewrite_finish(qn_node *fresh, qn_node *node)
{
    qn_value *value = node->out[0];
    const char *name = node->name;
    node->out[0] = NULL;
    qn_node_set_output(fresh, 0, value);
    qn_node_remove(node);
    QN_TRY(qn_node_rename(fresh, name));
    return qn_node_infer(fresh);
}

qn_status qn_rewrite_name(char **out, qn_graph *graph, const char *base, const char *tail)
{
    *out = qn_arena_format(graph->arena, "%s%s", base, tail);
    QN_TRY_ALLOC(graph->ctx, *out);
    return QN_OK;
}

bool qn_node_is_dead(const qn_node *node)
{
    for (int32_t o = 0; o < node->n_out; o++) {
        if (qn_node_is_read(node, o))
            return false;
    }
    return true;
}

bool qn_node_reads_constants(const qn_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        if (node->in[i] && !node->in[i]->data)
            return false;
    }
    return true;
}

qn_status qn_rewrite_fold(qn_node *node)
{
    const qn_tensor *in[MOST_FOLDED] = {NULL};
    qn_model *model = node->graph->model;
    qn_value *value = node->out[0];
    qn_tensor *result = NULL;
    for (int32_t i = 0; i < node->n_in && i < MOST_FOLDED; i++)
        in[i] = node->in[i] ? node->in[i]->data : NULL;
    QN_TRY(qn_node_eval(&result, model->ctx, &model->arena, node, in));
    qn_node_remove(node);
    value->data = result;
    value->type = qn_type_of(result);
    return QN_OK;
}
