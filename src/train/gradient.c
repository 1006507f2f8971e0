/* The table of gradients, and the parts that their formulas are made of. */
#include "train/gradient.h"

#include <stdarg.h>
#include <string.h>

#include "ops/eval.h"
#include "ops/infer.h"
#include "ops/tensor_attrs.h"
#include "ops/versions.h"

#define QN_GRADIENT(id, name) {&qn_op_##id, qn_grad_##name},
#define QN_ZERO_GRADIENT(id) {&qn_op_##id, NULL},
const qn_gradient qn_gradients[] = {
#include "train/gradients.def"
};
#undef QN_GRADIENT
#undef QN_ZERO_GRADIENT
const size_t qn_gradients_count = QN_COUNT_OF(qn_gradients);

const qn_gradient *qn_gradient_find(const qn_op *op)
{
    for (size_t i = 0; i < qn_gradients_count; i++) {
        if (qn_gradients[i].op == op)
            return &qn_gradients[i];
    }
    return NULL;
}

void qn_grad_fail(qn_grad_job *job, const char *format, ...)
{
    va_list args;
    if (job->status != QN_OK)
        return;
    va_start(args, format);
    job->status = qn_node_vfail(job->graph->ctx, job->node, QN_E_UNSUPPORTED, format, args);
    va_end(args);
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static qn_status make_node(qn_node **out, qn_grad_job *job, const qn_op *op, qn_value *const *in,
                           const int32_t counts[2])
{
    QN_TRY(qn_node_add(out, job->graph, op, op->name, counts[0], counts[1]));
    for (int32_t i = 0; i < counts[0]; i++)
        QN_TRY(qn_node_set_input(*out, i, in[i]));
    for (int32_t o = 0; o < counts[1]; o++) {
        qn_value *value;
        QN_TRY(qn_value_create(&value, job->graph, (*out)->name));
        qn_node_set_output(*out, o, value);
    }
    return QN_OK;
}

qn_node *qn_grad_node(qn_grad_job *job, const qn_op *op, qn_value *const *in, int32_t n_in,
                      int32_t n_out)
{
    qn_node *node = NULL;
    if (job->status == QN_OK)
        job->status = make_node(&node, job, op, in, (const int32_t[2]){n_in, n_out});
    return job->status == QN_OK ? node : NULL;
}

qn_value *qn_grad_infer(qn_grad_job *job, qn_node *node)
{
    if (job->status == QN_OK)
        job->status = qn_node_infer(node);
    return job->status == QN_OK ? node->out[0] : NULL;
}

qn_value *qn_grad_apply(qn_grad_job *job, const qn_op *op, qn_value *const *in, int32_t n_in)
{
    return qn_grad_infer(job, qn_grad_node(job, op, in, n_in, 1));
}

qn_value *qn_grad_unary(qn_grad_job *job, const qn_op *op, qn_value *x)
{
    return qn_grad_apply(job, op, &x, 1);
}

qn_value *qn_grad_binary(qn_grad_job *job, const qn_op *op, qn_value *a, qn_value *b)
{
    return qn_grad_apply(job, op, (qn_value *const[]){a, b}, 2);
}

void qn_grad_copy_attrs(const qn_grad_job *job, qn_node *to, const qn_node *from, size_t size)
{
    if (job->status == QN_OK)
        memcpy(to->attrs, from->attrs, size);
}

void qn_grad_set_int(qn_grad_job *job, qn_node *node, const char *attribute, int64_t value)
{
    if (job->status == QN_OK)
        *(int64_t *)qn_attr_field(node, qn_op_attr(node->op, attribute, QN_LATEST_OPSET)) = value;
}

void qn_grad_set_dims(qn_grad_job *job, qn_ints *attribute, const qn_value *of)
{
    int64_t dims[QN_MAX_RANK];
    if (qn_grad_dims(job, dims, of))
        job->status = qn_ints_copy(attribute, job->graph, dims, (size_t)of->type.rank);
}

/* ---- Constants ------------------------------------------------------------------------------- */

qn_value *qn_grad_number(qn_grad_job *job, const qn_value *like, double number)
{
    qn_value *value = NULL;
    if (job->status == QN_OK)
        job->status = qn_value_number(&value, job->graph, like->type.dtype, number);
    return job->status == QN_OK ? value : NULL;
}

qn_value *qn_grad_ints(qn_grad_job *job, const int64_t *list, size_t count)
{
    qn_value *value = NULL;
    if (job->status == QN_OK)
        job->status = qn_value_ints(&value, job->graph, list, count);
    return job->status == QN_OK ? value : NULL;
}

qn_value *qn_grad_zeros(qn_grad_job *job, const qn_value *like)
{
    return qn_grad_expand_like(job, qn_grad_number(job, like, 0), like);
}

/* ---- Arithmetic ------------------------------------------------------------------------------ */

qn_value *qn_grad_add(qn_grad_job *job, qn_value *a, qn_value *b)
{
    return qn_grad_binary(job, &qn_op_Add, a, b);
}

qn_value *qn_grad_sub(qn_grad_job *job, qn_value *a, qn_value *b)
{
    return qn_grad_binary(job, &qn_op_Sub, a, b);
}

qn_value *qn_grad_mul(qn_grad_job *job, qn_value *a, qn_value *b)
{
    return qn_grad_binary(job, &qn_op_Mul, a, b);
}

qn_value *qn_grad_div(qn_grad_job *job, qn_value *a, qn_value *b)
{
    return qn_grad_binary(job, &qn_op_Div, a, b);
}

qn_value *qn_grad_scale(qn_grad_job *job, qn_value *a, double factor)
{
    if (job->status != QN_OK || factor == 1)
        return a;
    return qn_grad_mul(job, a, qn_grad_number(job, a, factor));
}

qn_value *qn_grad_shift(qn_grad_job *job, qn_value *a, double number)
{
    return job->status == QN_OK ? qn_grad_add(job, a, qn_grad_number(job, a, number)) : NULL;
}

qn_value *qn_grad_where(qn_grad_job *job, qn_value *condition, qn_value *value)
{
    if (job->status != QN_OK)
        return NULL;
    qn_value *const in[] = {condition, value, qn_grad_number(job, value, 0)};
    return qn_grad_apply(job, &qn_op_Where, in, 3);
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

bool qn_grad_dims(qn_grad_job *job, int64_t *dims, const qn_value *value)
{
    if (job->status != QN_OK)
        return false;
    if (!qn_type_is_static(&value->type, dims))
        qn_grad_fail(job, "the shape of '%s' must be known", value->name);
    return job->status == QN_OK;
}

bool qn_grad_list(qn_grad_job *job, int64_t *list, size_t *count, const qn_value *value)
{
    if (job->status != QN_OK)
        return false;
    const qn_tensor *data = value->data;
    const int64_t n = data ? qn_tensor_count(data) : 0;
    if (!data || n > QN_MAX_RANK) {
        qn_grad_fail(job, "'%s' must be a constant list", value->name);
        return false;
    }
    for (int64_t i = 0; i < n; i++)
        list[i] = qn_tensor_i64(data, i);
    *count = (size_t)n;
    return true;
}

qn_value *qn_grad_reshape(qn_grad_job *job, qn_value *x, const int64_t *dims, int32_t rank)
{
    int64_t now[QN_MAX_RANK];
    if (!qn_grad_dims(job, now, x))
        return NULL;
    const size_t size = (size_t)rank * sizeof *dims;
    if (x->type.rank == rank && (size == 0 || memcmp(now, dims, size) == 0))
        return x;
    qn_value *const in[] = {x, qn_grad_ints(job, dims, (size_t)rank)};
    qn_node *node = qn_grad_node(job, &qn_op_Reshape, in, 2, 1);
    qn_grad_set_int(job, node, "allowzero", 1);
    return qn_grad_infer(job, node);
}

qn_value *qn_grad_reshape_like(qn_grad_job *job, qn_value *x, const qn_value *like)
{
    int64_t dims[QN_MAX_RANK];
    return qn_grad_dims(job, dims, like) ? qn_grad_reshape(job, x, dims, like->type.rank) : NULL;
}

qn_value *qn_grad_expand_like(qn_grad_job *job, qn_value *x, const qn_value *like)
{
    int64_t dims[QN_MAX_RANK], now[QN_MAX_RANK];
    if (!qn_grad_dims(job, dims, like) || !qn_grad_dims(job, now, x))
        return NULL;
    if (x->type.rank == like->type.rank &&
        memcmp(dims, now, (size_t)like->type.rank * sizeof *dims) == 0)
        return x;
    return qn_grad_binary(job, &qn_op_Expand, x, qn_grad_ints(job, dims, (size_t)like->type.rank));
}

qn_value *qn_grad_reduce(qn_grad_job *job, const qn_op *op, qn_value *x, const int64_t *axes,
                         size_t count)
{
    return qn_grad_binary(job, op, x, qn_grad_ints(job, axes, count));
}

qn_value *qn_grad_sum_like(qn_grad_job *job, qn_value *x, const qn_value *like)
{
    int64_t from[QN_MAX_RANK], to[QN_MAX_RANK], axes[QN_MAX_RANK];
    size_t count = 0;
    if (!qn_grad_dims(job, from, x) || !qn_grad_dims(job, to, like))
        return NULL;
    const int32_t more = x->type.rank - like->type.rank;
    for (int32_t d = 0; d < x->type.rank; d++) {
        if (d < more || (to[d - more] == 1 && from[d] != 1))
            axes[count++] = d;
    }
    if (count > 0)
        x = qn_grad_reduce(job, &qn_op_ReduceSum, x, axes, count);
    return qn_grad_reshape_like(job, x, like);
}

qn_value *qn_grad_transpose(qn_grad_job *job, qn_value *x)
{
    int64_t perm[QN_MAX_RANK], dims[QN_MAX_RANK];
    if (!qn_grad_dims(job, dims, x))
        return NULL;
    const int32_t rank = x->type.rank;
    for (int32_t d = 0; d < rank; d++)
        perm[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
    qn_node *node = qn_grad_node(job, &qn_op_Transpose, &x, 1, 1);
    if (job->status == QN_OK)
        job->status = qn_ints_copy(&((qn_transpose_attrs *)node->attrs)->perm, job->graph, perm,
                                   (size_t)rank);
    return qn_grad_infer(job, node);
}
