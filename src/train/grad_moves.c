/* Gradients of operators that move elements: they move back, and are added up where an element was
 * used more than once. */
#include <string.h>

#include "ops/grad_attrs.h"
#include "ops/nn_attrs.h"
#include "ops/pad.h"
#include "ops/resize.h"
#include "ops/tensor_attrs.h"
#include "ops/versions.h"
#include "train/gradient.h"

#define X (job->node->in[0])
#define Y (job->node->out[0])
#define DY (job->dy[0])

/* Reshape, Flatten, Squeeze, Unsqueeze. */
void qn_grad_reshape_of(qn_grad_job *job)
{
    if (job->wants[0])
        job->dx[0] = qn_grad_reshape_like(job, DY, X);
}

void qn_grad_expand(qn_grad_job *job)
{
    if (job->wants[0])
        job->dx[0] = qn_grad_sum_like(job, DY, X);
}

void qn_grad_transpose_of(qn_grad_job *job)
{
    const qn_transpose_attrs *a = job->node->attrs;
    const int32_t rank = X->type.rank;
    int64_t back[QN_MAX_RANK];
    for (int32_t d = 0; d < rank; d++)
        back[a->perm.at ? a->perm.at[d] : rank - 1 - d] = d;
    qn_value *dy = DY;
    qn_node *node = qn_grad_node(job, &qn_op_Transpose, &dy, 1, 1);
    if (job->status == QN_OK)
        job->status = qn_ints_copy(&((qn_transpose_attrs *)node->attrs)->perm, job->graph, back,
                                   (size_t)rank);
    job->dx[0] = qn_grad_infer(job, node);
}

/* ---- Concat and Split ------------------------------------------------------------------------ */

/* Sizes along the axis of all of these. */
static bool sizes_of(qn_grad_job *job, int64_t *sizes, int64_t axis, qn_value *const *values,
                     int32_t count)
{
    int64_t dims[QN_MAX_RANK];
    for (int32_t i = 0; i < count; i++) {
        if (!qn_grad_dims(job, dims, values[i]))
            return false;
        sizes[i] = dims[axis < 0 ? axis + values[i]->type.rank : axis];
    }
    return true;
}

static void split_back(qn_grad_job *job, int64_t *sizes)
{
    const int64_t axis = ((const qn_concat_attrs *)job->node->attrs)->axis;
    const int32_t count = job->node->n_in;
    if (!sizes_of(job, sizes, axis, job->node->in, count))
        return;
    qn_value *const in[] = {DY, qn_grad_ints(job, sizes, (size_t)count)};
    qn_node *node = qn_grad_node(job, &qn_op_Split, in, 2, count);
    qn_grad_set_int(job, node, "axis", axis);
    qn_grad_infer(job, node);
    for (int32_t i = 0; job->status == QN_OK && i < count; i++)
        job->dx[i] = node->out[i];
}

void qn_grad_concat(qn_grad_job *job)
{
    int64_t *sizes = qn_arena_array(job->graph->arena, (size_t)job->node->n_in, sizeof *sizes);
    if (job->status != QN_OK)
        return;
    if (sizes)
        split_back(job, sizes);
    else
        job->status = qn_fail_nomem(job->graph->ctx);
}

void qn_grad_split(qn_grad_job *job)
{
    const qn_node *split = job->node;
    const int32_t count = split->n_out;
    qn_value **parts = qn_arena_array(job->graph->arena, (size_t)count, sizeof *parts);
    if (!job->wants[0] || job->status != QN_OK)
        return;
    if (!parts) {
        job->status = qn_fail_nomem(job->graph->ctx);
        return;
    }
    for (int32_t i = 0; i < count; i++) {
        if (!job->dy[i] && !split->out[i])
            qn_grad_fail(job, "every output must be wanted");
        parts[i] = job->dy[i] ? job->dy[i] : qn_grad_zeros(job, split->out[i]);
    }
    qn_node *node = qn_grad_node(job, &qn_op_Concat, parts, count, 1);
    qn_grad_set_int(job, node, "axis", ((const qn_split_attrs *)split->attrs)->axis);
    job->dx[0] = qn_grad_infer(job, node);
}

/* ---- By the index of each element ---------------------------------------------------------------
 * The node applied to the indices of X's elements tells where each element of Y came from. Added to
 * zeros at these places, the gradient of Y is that of X. */

/* 0, 1, 2, ... in the shape of X. */
static qn_status indices_of(qn_value **out, qn_graph *graph, const qn_value *x)
{
    qn_type type = {.kind = QN_TYPE_TENSOR, .dtype = QN_INT64, .rank = x->type.rank};
    qn_tensor *tensor;
    memcpy(type.dims, x->type.dims, sizeof type.dims);
    QN_TRY(qn_model_tensor(&tensor, graph->model, &type));
    for (int64_t i = 0; i < qn_tensor_count(tensor); i++)
        ((int64_t *)tensor->data)[i] = i;
    return qn_value_constant(out, graph, "indices", tensor);
}

void qn_grad_by_index(qn_grad_job *job)
{
    const qn_node *node = job->node;
    const int64_t flat = -1;
    int64_t dims[QN_MAX_RANK], count = 1;
    qn_value *indices = NULL, *in[8] = {NULL};
    if (!job->wants[0] || !qn_grad_dims(job, dims, X))
        return;
    for (int32_t d = 0; d < X->type.rank; d++)
        count *= dims[d];
    job->status = indices_of(&indices, job->graph, X);
    in[0] = indices;
    for (int32_t i = 1; i < node->n_in && i < 8; i++)
        in[i] = node->in[i];
    qn_node *same = qn_grad_node(job, node->op, in, node->n_in, 1);
    qn_grad_copy_attrs(job, same, node, node->op->attrs_size);
    qn_value *places = qn_grad_infer(job, same);
    qn_value *shape = qn_grad_ints(job, &flat, 1);
    qn_value *const scatter_in[] = {qn_grad_binary(job, &qn_op_Expand, qn_grad_number(job, DY, 0),
                                                   qn_grad_ints(job, &count, 1)),
                                    qn_grad_binary(job, &qn_op_Reshape, places, shape),
                                    qn_grad_binary(job, &qn_op_Reshape, DY, shape)};
    qn_node *scatter = qn_grad_node(job, &qn_op_ScatterElements, scatter_in, 3, 1);
    qn_grad_set_int(job, scatter, "axis", 0);
    qn_grad_set_int(job, scatter, "reduction", 1); /* add */
    job->dx[0] = qn_grad_reshape_like(job, qn_grad_infer(job, scatter), X);
}

/* Nearest only: there an element of Y is an element of X. */
void qn_grad_resize(qn_grad_job *job)
{
    const qn_resize_attrs *a = job->node->attrs;
    if (a->mode != QN_RESIZE_NEAREST ||
        a->coordinate_transformation_mode == QN_COORD_TF_CROP_AND_RESIZE)
        qn_grad_fail(job, "only the nearest mode has a gradient");
    else
        qn_grad_by_index(job);
}

/* ---- Slice and Pad --------------------------------------------------------------------------- */

void qn_grad_slice(qn_grad_job *job)
{
    const qn_node *slice = job->node;
    qn_value *in[5] = {DY};
    if (!job->wants[0])
        return;
    for (int32_t i = 1; i < slice->n_in && i < 5; i++)
        in[i] = slice->in[i];
    qn_node *node = qn_grad_node(job, &qn_op_qn_SliceGrad, in, slice->n_in, 1);
    if (job->status == QN_OK)
        qn_grad_set_dims(job, &((qn_shape_attrs *)node->attrs)->shape, X);
    job->dx[0] = qn_grad_infer(job, node);
}

/* What was added is cut off again, and what was cut off gets zeros. */
void qn_grad_pad(qn_grad_job *job)
{
    const qn_pad_attrs *a = job->node->attrs;
    const int32_t rank = X->type.rank;
    qn_pad_amounts amounts;
    int64_t back[2 * QN_MAX_RANK];
    if (!job->wants[0])
        return;
    if (a->mode != QN_PAD_CONSTANT) {
        qn_grad_by_index(job);
        return;
    }
    if (!qn_pad_read_node(&amounts, job->node)) {
        qn_grad_fail(job, "pads must be constant");
        return;
    }
    for (int32_t d = 0; d < rank; d++) {
        back[d] = -amounts.before[d];
        back[rank + d] = -amounts.after[d];
    }
    job->dx[0] = qn_grad_binary(job, &qn_op_Pad, DY, qn_grad_ints(job, back, 2 * (size_t)rank));
}
