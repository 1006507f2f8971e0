/* LayerNormalization and Softmax that a file spells out with simple operators, as one node each. */
#include "ops/eval.h"
#include "ops/nn_attrs.h"
#include "pass/norms.h"
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

/* ---- LayerNormalization: d / sqrt(mean(d^2) + epsilon) * scale + bias with d = x - mean(x) --- */

typedef struct layer_norm {
    /* NULL: ones, zeros */
    qn_value *x, *scale, *bias;
    qn_norm_attrs attrs;
} layer_norm;

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
    return (node->op == &qn_op_Pow && node->in[0] == d && qn_match_near(node->in[1], d, 2)) ||
           (node->op == &qn_op_Mul && node->in[0] == d && node->in[1] == d);
}

/* mean(d^2) + epsilon. */
static bool match_variance(double *epsilon, const qn_value *value, const qn_value *d)
{
    qn_value *variance;
    const qn_node *add = qn_match_op(value, &qn_op_Add);
    if (!add || !qn_match_binary(add, &variance, epsilon))
        return false;
    const qn_node *mean = qn_match_op(variance, &qn_op_ReduceMean);
    return mean && is_over_last(mean) && is_square_of(mean->in[0], d);
}

static const qn_value *match_power(const qn_value *value, double exponent)
{
    const qn_node *pow = qn_match_op(value, &qn_op_Pow);
    return pow && qn_match_near(pow->in[1], pow->in[0], exponent) ? pow->in[0] : NULL;
}

/* sqrt(v): its v. */
static const qn_value *match_root(const qn_value *value)
{
    const qn_node *root = qn_match_op(value, &qn_op_Sqrt);
    return root ? root->in[0] : match_power(value, 0.5);
}

/* 1 / sqrt(v): its v. */
static const qn_value *match_inverse_root(const qn_value *value)
{
    const qn_node *inverse = qn_match_op(value, &qn_op_Reciprocal);
    const qn_node *div = qn_match_op(value, &qn_op_Div);
    if (inverse)
        return match_root(inverse->in[0]);
    if (div)
        return qn_match_near(div->in[0], div->in[1], 1) ? match_root(div->in[1]) : NULL;
    return match_power(value, -0.5);
}

bool qn_is_rms_norm(const qn_node *node)
{
    double epsilon;
    const bool div = node->op == &qn_op_Div;
    for (int32_t side = 0; node->n_in == 2 && side < (div ? 1 : 2); side++) {
        const qn_value *x = node->in[side], *factor = node->in[1 - side];
        const qn_value *variance = div                      ? match_root(factor)
                                   : node->op == &qn_op_Mul ? match_inverse_root(factor)
                                                            : NULL;
        if (variance && match_variance(&epsilon, variance, x))
            return true;
    }
    return false;
}

/* A constant of one number per element of the last axis. */
static bool is_row(const qn_value *constant, const qn_value *x)
{
    const qn_type *type = &x->type;
    return constant->data && constant->data->rank == 1 && type->rank > 0 &&
           constant->data->dims[0] == type->dims[type->rank - 1].value &&
           constant->data->dtype == type->dtype;
}

/* d, or the product of d and a scale. */
static bool match_numerator(layer_norm *out, const qn_value *value, const qn_value *variance)
{
    double epsilon;
    const qn_node *mul = qn_match_op(value, &qn_op_Mul);
    for (int side = -1; side < (mul ? 2 : 0); side++) {
        const qn_value *d = side < 0 ? value : mul->in[side];
        out->x = match_variance(&epsilon, variance, d) ? match_centred(d) : NULL;
        out->scale = side < 0 ? NULL : mul->in[1 - side];
        out->attrs.epsilon = out->x ? (float)epsilon : 0;
        if (out->x && (!out->scale || is_row(out->scale, out->x)))
            return true;
    }
    return false;
}

/* Statistics of double precision have no place in most runtimes. */
static bool is_normalizable(const qn_value *x)
{
    return qn_dtype_is_float(x->type.dtype) && x->type.dtype != QN_FLOAT64 && x->type.rank > 0 &&
           x->type.dims[x->type.rank - 1].value > 0;
}

/* d divided by the root, or multiplied by its inverse. */
static bool match_normalized(layer_norm *out, const qn_node *node)
{
    const qn_value *variance;
    out->bias = NULL;
    if (node->op == &qn_op_Div)
        return (variance = match_root(node->in[1])) != NULL &&
               match_numerator(out, node->in[0], variance) && is_normalizable(out->x);
    for (int side = 0; node->op == &qn_op_Mul && side < 2; side++) {
        if ((variance = match_inverse_root(node->in[1 - side])) != NULL &&
            match_numerator(out, node->in[side], variance))
            return is_normalizable(out->x);
    }
    return false;
}

static bool is_ones(const qn_value *row)
{
    bool ones = row->data != NULL;
    for (int64_t i = 0; ones && i < qn_tensor_count(row->data); i++)
        ones = qn_tensor_f64(row->data, i) == 1;
    return ones;
}

/* A normalization whose scale of ones, or whose missing bias, this node brings. */
static bool match_affine(layer_norm *out, const qn_node *node)
{
    for (int side = 0; (node->op == &qn_op_Mul || node->op == &qn_op_Add) && side < 2; side++) {
        const qn_node *norm = qn_match_only(node->in[side], &qn_op_LayerNormalization);
        if (!norm || (norm->n_in > 2 && norm->in[2]) || !is_row(node->in[1 - side], norm->in[0]))
            continue;
        *out = (layer_norm){norm->in[0], norm->in[1], NULL, *(const qn_norm_attrs *)norm->attrs};
        if (!is_row(out->scale, out->x))
            continue;
        const bool scales = node->op == &qn_op_Mul;
        *(scales ? &out->scale : &out->bias) = node->in[1 - side];
        return !scales || is_ones(norm->in[1]);
    }
    return false;
}

static qn_status make_ones(qn_value **out, qn_graph *graph, const qn_value *x)
{
    const double one = 1;
    const int64_t count = x->type.dims[x->type.rank - 1].value;
    const qn_type type = qn_type_tensor(x->type.dtype, 1, &count);
    qn_tensor *tensor;
    QN_TRY(qn_tensor_create(&tensor, graph->ctx, graph->arena, &type));
    for (int64_t i = 0; i < count; i++)
        qn_store_f64(tensor->data, type.dtype, i, &one, 1);
    return qn_value_constant(out, graph, "ones", tensor);
}

/* Node by node: what normalizes first, then each of scale and bias that follows it. */
static qn_status fuse_layer_norm(bool *done, qn_pass_context *self, qn_node *node)
{
    layer_norm found = {.attrs = {.axis = -1, .stash_type = QN_FLOAT32}};
    qn_node *fresh;
    *done = match_normalized(&found, node) || match_affine(&found, node);
    if (!*done)
        return QN_OK;
    if (!found.scale)
        QN_TRY(make_ones(&found.scale, self->graph, found.x));
    qn_value *const in[] = {found.x, found.scale, found.bias};
    QN_TRY(qn_rewrite_begin(&fresh, node, &qn_op_LayerNormalization, in, found.bias ? 3 : 2));
    *(qn_norm_attrs *)fresh->attrs = found.attrs;
    self->changes++;
    return qn_rewrite_finish(fresh, node);
}

/* ---- Softmax: e / sum(e) with e = exp(x), or exp(x - max(x)) --------------------------------- */

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
        bool done = false;
        QN_TRY(fuse_layer_norm(&done, self, node));
        if (!done && node->op == &qn_op_Div)
            QN_TRY(fuse_softmax(self, node));
    }
    return QN_OK;
}

const qn_pass qn_pass_fuse_norms = {"fuse-norms", "recognizes LayerNormalization and Softmax",
                                    fuse_norms};
