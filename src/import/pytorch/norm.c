/* Normalizations: by running statistics, within layers, groups, instances, and by norms. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "import/pytorch/aten.h"

static qn_status filled(qn_value **out, qn_aten_call *c, int64_t count, float value)
{
    if (count < 1 || count > 1 << 24)
        return qn_aten_unsupported(c, "the number of its channels is not known");
    float *numbers = qn_arena_array(c->t->arena, (size_t)count, sizeof *numbers);
    QN_TRY_ALLOC(c->t->ctx, numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = value;
    return qn_graph_build_reals(out, c->b, numbers, (size_t)count);
}

/* The weights of that name, or as many of the value. */
static qn_status weights_or(qn_value **out, qn_aten_call *c, const char *name, int64_t count,
                            float value)
{
    if (qn_aten_has(c, name))
        return qn_aten_tensor(out, c, name);
    return filled(out, c, count, value);
}

static qn_status return_first(qn_aten_call *c, qn_value *y, bool tuple)
{
    qn_value *results[3] = {y, NULL, NULL};
    return tuple ? qn_aten_return_tuple(c, results, 3) : qn_aten_return(c, y);
}

/* ---- By channel ------------------------------------------------------------------------------ */

/* One number for each channel as [C, 1, ...], for an input of that rank. */
static qn_status by_channel(qn_value **out, qn_aten_call *c, qn_value *w, int32_t rank)
{
    int64_t shape[QN_MAX_RANK] = {-1};
    for (int32_t i = 1; i < rank - 1; i++)
        shape[i] = 1;
    *out = w;
    return rank > 2 ? qn_aten_reshape(out, c, w, shape, (size_t)rank - 1) : QN_OK;
}

static qn_status scale_channels(qn_value **out, qn_aten_call *c, qn_value *x, int32_t rank)
{
    static const struct {
        const char *name;
        const qn_op *op;
    } parts[] = {{"weight", &qn_op_Mul}, {"bias", &qn_op_Add}};
    *out = x;
    for (size_t i = 0; i < QN_COUNT_OF(parts); i++) {
        qn_value *w;
        QN_TRY(qn_aten_optional(&w, c, parts[i].name));
        if (!w)
            continue;
        QN_TRY(by_channel(&w, c, w, rank));
        QN_TRY(qn_aten_binary_node(out, c, parts[i].op, *out, w));
    }
    return QN_OK;
}

static qn_status mean_over(qn_value **out, qn_aten_call *c, qn_value *x, const int64_t *axes,
                           size_t count)
{
    qn_value *list;
    QN_TRY(qn_graph_build_ints(&list, c->b, axes, count));
    return qn_graph_build(out, c->b, &qn_op_ReduceMean, QN_INPUTS(x, list),
                          QN_WITH(QN_A_INT("keepdims", 1)));
}

/* (x - mean) / sqrt(variance + eps) over all axes but the channels'. */
static qn_status batch_statistics(qn_value **out, qn_aten_call *c, qn_value *x, int32_t rank)
{
    int64_t axes[QN_MAX_RANK] = {0};
    qn_value *mean, *y;
    double eps;
    QN_TRY(qn_aten_real(&eps, c, "eps"));
    for (int32_t i = 1; i < rank - 1; i++)
        axes[i] = i + 1;
    QN_TRY(mean_over(&mean, c, x, axes, (size_t)rank - 1));
    QN_TRY(qn_aten_binary_node(&x, c, &qn_op_Sub, x, mean));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Mul, x, x));
    QN_TRY(mean_over(&y, c, y, axes, (size_t)rank - 1));
    QN_TRY(qn_aten_with_number(&y, c, &qn_op_Add, y, eps));
    QN_TRY(qn_aten_unary_node(&y, c, &qn_op_Sqrt, y));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Div, x, y));
    return scale_channels(out, c, y, rank);
}

static qn_status running_statistics(qn_value **out, qn_aten_call *c, qn_value *x)
{
    qn_value *scale, *bias, *mean, *var;
    double eps;
    QN_TRY(qn_aten_real(&eps, c, "eps"));
    QN_TRY(qn_aten_tensor(&mean, c, "running_mean"));
    QN_TRY(qn_aten_tensor(&var, c, "running_var"));
    QN_TRY(weights_or(&scale, c, "weight", mean->type.dims[0].value, 1));
    QN_TRY(weights_or(&bias, c, "bias", mean->type.dims[0].value, 0));
    return qn_graph_build(out, c->b, &qn_op_BatchNormalization,
                          QN_INPUTS(x, scale, bias, mean, var),
                          QN_WITH(QN_A_REAL("epsilon", (float)eps)));
}

/* A model that was saved in training mode is read as one in evaluation: with running statistics
 * where it has them. */
qn_status qn_aten_batch_norm(qn_aten_call *c)
{
    const bool tuple = strstr(c->op->name, "native") != NULL;
    qn_value *x;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "input"));
    if (qn_aten_has(c, "running_mean"))
        QN_TRY(running_statistics(&x, c, x));
    else
        QN_TRY(batch_statistics(&x, c, x, rank));
    return return_first(c, x, tuple);
}

qn_status qn_aten_instance_norm(qn_aten_call *c)
{
    qn_value *x, *scale, *bias;
    int32_t rank;
    double eps;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "input"));
    if (!qn_aten_flag(c, "use_input_stats")) {
        QN_TRY(running_statistics(&x, c, x));
        return qn_aten_return(c, x);
    }
    QN_TRY(qn_aten_real(&eps, c, "eps"));
    const int64_t channels = rank > 1 ? x->type.dims[1].value : -1;
    QN_TRY(weights_or(&scale, c, "weight", channels, 1));
    QN_TRY(weights_or(&bias, c, "bias", channels, 0));
    QN_TRY(qn_graph_build(&x, c->b, &qn_op_InstanceNormalization, QN_INPUTS(x, scale, bias),
                          QN_WITH(QN_A_REAL("epsilon", (float)eps))));
    return qn_aten_return(c, x);
}

/* Groups as instances: [N, G, rest] normalized, and back. */
qn_status qn_aten_group_norm(qn_aten_call *c)
{
    qn_value *x, *y, *ones, *zeros, *shape;
    int64_t groups;
    int32_t rank;
    double eps;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "input"));
    QN_TRY(qn_aten_int(&groups, c, "num_groups"));
    QN_TRY(qn_aten_real(&eps, c, "eps"));
    QN_TRY(filled(&ones, c, groups, 1));
    QN_TRY(filled(&zeros, c, groups, 0));
    QN_TRY(qn_aten_reshape(&y, c, x, (const int64_t[]){0, groups, -1}, 3));
    QN_TRY(qn_graph_build(&y, c->b, &qn_op_InstanceNormalization, QN_INPUTS(y, ones, zeros),
                          QN_WITH(QN_A_REAL("epsilon", (float)eps))));
    QN_TRY(qn_aten_unary_node(&shape, c, &qn_op_Shape, x));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Reshape, y, shape));
    QN_TRY(scale_channels(&y, c, y, rank));
    return return_first(c, y, strstr(c->op->name, "native") != NULL);
}

/* ---- Within the last axes -------------------------------------------------------------------- */

/* Scales have the shape of the normalized axes. */
static qn_status ones_of(qn_value **out, qn_aten_call *c, const int64_t *shape, size_t count)
{
    int64_t elements;
    if (!qn_dims_count(&elements, (int32_t)count, shape))
        return qn_graph_builder_fail(c->b, QN_E_FORMAT, "its normalized_shape is impossible");
    QN_TRY(filled(out, c, elements, 1));
    return count == 1 ? QN_OK : qn_aten_reshape(out, c, *out, shape, count);
}

qn_status qn_aten_layer_norm(qn_aten_call *c)
{
    int64_t shape[QN_MAX_RANK];
    qn_value *x, *scale, *bias, *y;
    int32_t rank;
    size_t count;
    double eps;
    QN_TRY(qn_aten_ints(shape, &count, c, "normalized_shape"));
    c->t->hint = (qn_type){.kind = QN_TYPE_TENSOR, .dtype = QN_FLOAT32, .rank = 3};
    for (int32_t i = 0; i < 3; i++)
        c->t->hint.dims[i] = i == 2 && count ? qn_dim_of(shape[count - 1]) : qn_dim_unknown();
    QN_TRY(qn_aten_ranked(&x, &rank, c, "input"));
    QN_TRY(qn_aten_real(&eps, c, "eps"));
    QN_TRY(qn_aten_optional(&scale, c, "weight"));
    QN_TRY(qn_aten_optional(&bias, c, "bias"));
    if (!scale)
        QN_TRY(ones_of(&scale, c, shape, count));
    QN_TRY(qn_graph_build(
        &y, c->b, &qn_op_LayerNormalization, QN_INPUTS(x, scale, bias),
        QN_WITH(QN_A_REAL("epsilon", (float)eps), QN_A_INT("axis", -(int64_t)count))));
    return return_first(c, y, strstr(c->op->name, "native") != NULL);
}

/* x / sqrt(mean(x^2) + eps) * weight */
qn_status qn_aten_rms_norm(qn_aten_call *c)
{
    int64_t shape[QN_MAX_RANK];
    qn_value *x, *y, *weight;
    size_t count;
    double eps = FLT_EPSILON;
    QN_TRY(qn_aten_tensor(&x, c, "input"));
    QN_TRY(qn_aten_ints(shape, &count, c, "normalized_shape"));
    if (qn_aten_has(c, "eps"))
        QN_TRY(qn_aten_real(&eps, c, "eps"));
    for (size_t i = 0; i < count; i++)
        shape[i] = (int64_t)i - (int64_t)count;
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Mul, x, x));
    QN_TRY(mean_over(&y, c, y, shape, count));
    QN_TRY(qn_aten_with_number(&y, c, &qn_op_Add, y, eps));
    QN_TRY(qn_aten_unary_node(&y, c, &qn_op_Sqrt, y));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Div, x, y));
    QN_TRY(qn_aten_optional(&weight, c, "weight"));
    if (weight)
        QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Mul, y, weight));
    return return_first(c, y, c->op->name[0] == '_');
}

/* ---- Norms ----------------------------------------------------------------------------------- */

static qn_status norm_over(qn_value **out, qn_aten_call *c, qn_value *x, qn_value *axes,
                           bool keepdim)
{
    const qn_torch_value *p = qn_aten_value(c, "ord");
    const qn_op *op = &qn_op_ReduceL2;
    double order = 2;
    if (p->kind != QN_TORCH_NONE && p->kind != QN_TORCH_TEXT)
        QN_TRY(qn_aten_real(&order, c, "ord"));
    if (isinf(order)) {
        op = order > 0 ? &qn_op_ReduceMax : &qn_op_ReduceMin;
        QN_TRY(qn_aten_unary_node(&x, c, &qn_op_Abs, x));
    } else if (order == 1)
        op = &qn_op_ReduceL1;
    else if (order != 2)
        return qn_aten_unsupported(c, "a norm of order %g", order);
    return qn_graph_build(out, c->b, op, QN_INPUTS(x, axes),
                          QN_WITH(QN_A_INT("keepdims", keepdim)));
}

qn_status qn_aten_norm(qn_aten_call *c)
{
    int64_t axes[QN_MAX_RANK];
    qn_value *x, *list;
    size_t count;
    int32_t rank;
    QN_TRY(qn_aten_ranked(&x, &rank, c, "self"));
    QN_TRY(qn_aten_axes(axes, &count, c, "dim", rank));
    QN_TRY(qn_graph_build_ints(&list, c->b, axes, count));
    QN_TRY(norm_over(&x, c, x, list, qn_aten_flag(c, "keepdim")));
    return qn_aten_return(c, x);
}

/* g v / |v|, the norm over all axes but one. */
qn_status qn_aten_weight_norm(qn_aten_call *c)
{
    int64_t axes[QN_MAX_RANK], axis;
    qn_value *v, *g, *norm, *list;
    int32_t rank;
    size_t count = 0;
    QN_TRY(qn_aten_ranked(&v, &rank, c, "v"));
    QN_TRY(qn_aten_tensor(&g, c, "g"));
    QN_TRY(qn_aten_int(&axis, c, "dim"));
    for (int32_t i = 0; i < rank; i++) {
        if (i != axis)
            axes[count++] = i;
    }
    QN_TRY(qn_graph_build_ints(&list, c->b, axes, count));
    QN_TRY(norm_over(&norm, c, v, list, true));
    QN_TRY(qn_aten_binary_node(&g, c, &qn_op_Div, g, norm));
    QN_TRY(qn_aten_binary_node(&v, c, &qn_op_Mul, v, g));
    return return_first(c, v, strstr(c->op->name, "interface") != NULL);
}

static qn_status sum_of_products(qn_value **out, qn_aten_call *c, qn_value *a, qn_value *b,
                                 qn_value *axes)
{
    QN_TRY(qn_aten_binary_node(out, c, &qn_op_Mul, a, b));
    return qn_graph_build(out, c->b, &qn_op_ReduceSum, QN_INPUTS(*out, axes),
                          QN_WITH(QN_A_INT("keepdims", 0)));
}

/* sum(a b) / (max(|a|, eps) max(|b|, eps)) */
qn_status qn_aten_cosine_similarity(qn_aten_call *c)
{
    qn_value *a, *b, *axes, *norm[2], *y;
    int64_t axis;
    int32_t rank;
    double eps;
    QN_TRY(qn_aten_ranked(&a, &rank, c, "x1"));
    QN_TRY(qn_aten_tensor(&b, c, "x2"));
    QN_TRY(qn_aten_axis(&axis, c, "dim", rank));
    QN_TRY(qn_aten_real(&eps, c, "eps"));
    QN_TRY(qn_graph_build_ints(&axes, c->b, &axis, 1));
    QN_TRY(sum_of_products(&y, c, a, b, axes));
    for (int i = 0; i < 2; i++) {
        QN_TRY(norm_over(&norm[i], c, i ? b : a, axes, false));
        QN_TRY(qn_aten_with_number(&norm[i], c, &qn_op_Max, norm[i], eps));
    }
    QN_TRY(qn_aten_binary_node(&norm[0], c, &qn_op_Mul, norm[0], norm[1]));
    QN_TRY(qn_aten_binary_node(&y, c, &qn_op_Div, y, norm[0]));
    return qn_aten_return(c, y);
}
