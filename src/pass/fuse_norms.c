/* LayerNormalization and Softmax that a file spells out with simple operators, as one node each. */
#include "ops/eval.h"
#include "ops/nn_attrs.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* The axis that a reduction of exactly one axis runs over, kept as 1; false otherwise. */
static bool match_reduction(const qn_node *node, int64_t *axis)
{
    if (!node || !((const qn_reduce_attrs *)node->attrs)->keepdims || node->n_in < 2 ||
        !node->in[1] || !node->in[1]->data || qn_tensor_count(node->in[1]->data) != 1)
        return false;
    const int32_t rank = node->in[0]->type.rank;
    *axis = qn_tensor_i64(node->in[1]->data, 0);
    *axis += *axis < 0 ? rank : 0;
    return rank > 0 && *axis >= 0 && *axis < rank;
}

/* Over the last axis. */
static bool is_over_last(const qn_node *node)
{
    int64_t axis;
    return match_reduction(node, &axis) && axis == node->in[0]->type.rank - 1;
}

/* ---- LayerNormalization: (d / sqrt(mean(d^2) + epsilon)) * scale + bias with d = x - mean(x) ------------------ */

/* x - mean(x) over the last axis: its x. */
static qn_value *match_centred(const qn_value *d)
{
    const qn_node *sub = qn_match_op(d, &qn_op_Sub);
    const qn_node *mean = sub ? qn_match_op(sub->in[1], &qn_op_ReduceMean) : NULL;
    return mean && mean->in[0] == sub->in[0] && is_over_last(mean) ? sub->in[0] : NULL;
}

static bool is_square_of(const qn_value *square, const qn_value *d)
{
    const qn_node *node = square->producer;
    if (!node)
        return false;
    return (node->op == &qn_op_Pow && node->in[0] == d && qn_match_is(node->in[1], 2)) ||
           (node->op == &qn_op_Mul && node->in[0] == d && node->in[1] == d);
}

/* d / sqrt(mean(d^2) + epsilon): its d. */
static qn_value *match_normalized(const qn_node *div, double *epsilon)
{
    qn_value *variance;
    const qn_node *root = div ? qn_match_op(div->in[1], &qn_op_Sqrt) : NULL;
    const qn_node *add = root ? qn_match_op(root->in[0], &qn_op_Add) : NULL;
    if (!add || !qn_match_binary(add, &variance, epsilon))
        return NULL;
    const qn_node *mean = qn_match_op(variance, &qn_op_ReduceMean);
    return mean && is_over_last(mean) && is_square_of(mean->in[0], div->in[0]) ? div->in[0] : NULL;
}

/* A constant of one number per element of the last axis. */
static bool is_row(const qn_value *constant, const qn_value *x)
{
    const qn_type *type = &x->type;
    return constant->data && constant->data->rank == 1 && type->rank > 0 &&
           constant->data->dims[0] == type->dims[type->rank - 1].value &&
           constant->data->dtype == type->dtype;
}

typedef struct layer_norm {
    qn_value *x, *scale, *bias;
    double epsilon;
} layer_norm;

/* Normalized times scale; the product may be read by others when it is the last node itself. */
static bool match_scaled(layer_norm *out, const qn_node *mul)
{
    for (int side = 0; mul && mul->op == &qn_op_Mul && side < 2; side++) {
        const qn_node *div = qn_match_op(mul->in[side], &qn_op_Div);
        const qn_value *d = match_normalized(div, &out->epsilon);
        out->x = d ? match_centred(d) : NULL;
        out->scale = mul->in[1 - side];
        if (out->x && is_row(out->scale, out->x))
            return true;
    }
    return false;
}

static bool match_layer_norm(layer_norm *out, const qn_node *node)
{
    for (int side = 0; node->op == &qn_op_Add && side < 2; side++) {
        out->bias = node->in[1 - side];
        if (match_scaled(out, qn_match_only(node->in[side], &qn_op_Mul)) &&
            is_row(out->bias, out->x))
            return true;
    }
    return false;
}

static qn_status fuse_layer_norm(qn_pass_context *self, qn_node *node)
{
    layer_norm found;
    qn_node *fresh;
    if (!match_layer_norm(&found, node))
        return QN_OK;
    qn_value *const in[] = {found.x, found.scale, found.bias};
    QN_TRY(qn_rewrite_begin(&fresh, node, &qn_op_LayerNormalization, in, 3));
    ((qn_norm_attrs *)fresh->attrs)->axis = -1;
    ((qn_norm_attrs *)fresh->attrs)->epsilon = (float)found.epsilon;
    self->changes++;
    return qn_rewrite_finish(fresh, node);
}

/* ---- Softmax: e / sum(e) with e = exp(x), or exp(x - max(x)) ---------------------------------------------------- */

static qn_value *match_softmax(const qn_node *div, int64_t *axis)
{
    const qn_node *sum = qn_match_op(div->in[1], &qn_op_ReduceSum);
    const qn_node *e = qn_match_op(div->in[0], &qn_op_Exp);
    int64_t largest;
    if (!sum || !e || sum->in[0] != div->in[0] || !match_reduction(sum, axis))
        return NULL;
    const qn_node *sub = qn_match_op(e->in[0], &qn_op_Sub);
    const qn_node *max = sub ? qn_match_op(sub->in[1], &qn_op_ReduceMax) : NULL;
    const bool shifted =
        max && max->in[0] == sub->in[0] && match_reduction(max, &largest) && largest == *axis;
    return shifted ? sub->in[0] : e->in[0];
}

static qn_status fuse_softmax(qn_pass_context *self, qn_node *node)
{
    int64_t axis;
    qn_node *fresh;
    qn_value *const in[] = {match_softmax(node, &axis)};
    if (!in[0] || !qn_dtype_is_float(in[0]->type.dtype))
        return QN_OK;
    QN_TRY(qn_rewrite_begin(&fresh, node, &qn_op_Softmax, in, 1));
    ((qn_softmax_attrs *)fresh->attrs)->axis = axis;
    self->changes++;
    return qn_rewrite_finish(fresh, node);
}

static qn_status fuse_norms(qn_pass_context *self)
{
    for (qn_node *node = self->graph->first, *next; node; node = next) {
        next = node->next;
        if (node->op == &qn_op_Add)
            QN_TRY(fuse_layer_norm(self, node));
        else if (node->op == &qn_op_Div)
            QN_TRY(fuse_softmax(self, node));
    }
    return QN_OK;
}

const qn_pass qn_pass_fuse_norms = {"fuse-norms", "recognizes LayerNormalization and Softmax",
                                    fuse_norms};
