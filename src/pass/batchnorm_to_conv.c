/* BatchNormalization that no weights take becomes a convolution of one pixel, each channel for
 * itself: that is what quantization has integers for. */
#include "ops/nn_attrs.h"
#include "pass/affine.h"
#include "pass/rewrite.h"

/* Weights [C, 1, 1, ...] and bias [C]. */
static qn_status make_weights(qn_value *out[2], qn_graph *graph, const qn_affine *affine,
                              int32_t rank)
{
    int64_t dims[QN_MAX_RANK] = {affine->channels};
    qn_tensor *w, *bias;
    for (int32_t d = 1; d < rank; d++)
        dims[d] = 1;
    const qn_type types[2] = {qn_type_tensor(QN_FLOAT32, rank, dims),
                              qn_type_tensor(QN_FLOAT32, 1, dims)};
    QN_TRY(qn_model_tensor(&w, graph->model, &types[0]));
    QN_TRY(qn_model_tensor(&bias, graph->model, &types[1]));
    for (int64_t c = 0; c < affine->channels; c++) {
        ((float *)w->data)[c] = (float)affine->scale[c];
        ((float *)bias->data)[c] = (float)affine->shift[c];
    }
    QN_TRY(qn_value_constant(&out[0], graph, NULL, w));
    return qn_value_constant(&out[1], graph, NULL, bias);
}

static qn_status replace_by_conv(qn_pass_context *self, qn_node *node, qn_arena *arena)
{
    qn_affine affine;
    qn_value *weights[2];
    qn_node *fresh;
    bool found = false;
    const qn_type *type = &node->in[0]->type;
    if (type->rank < 3 || type->dtype != QN_FLOAT32)
        return QN_OK;
    QN_TRY(qn_affine_of_batchnorm(&found, &affine, arena, node));
    if (!found)
        return QN_OK;
    QN_TRY(make_weights(weights, node->graph, &affine, type->rank));
    QN_TRY(qn_rewrite_begin(&fresh, node, &qn_op_Conv,
                            (qn_value *const[]){affine.x, weights[0], weights[1]}, 3));
    ((qn_window_attrs *)fresh->attrs)->group = affine.channels;
    self->changes++;
    return qn_rewrite_finish(fresh, node);
}

static qn_status batchnorm_to_conv(qn_pass_context *self)
{
    qn_status status = QN_OK;
    qn_arena arena;
    qn_arena_init(&arena, &self->ctx->allocator);
    for (qn_node *node = self->graph->first, *next; node && status == QN_OK; node = next) {
        next = node->next;
        if (node->op == &qn_op_BatchNormalization)
            status = replace_by_conv(self, node, &arena);
        qn_arena_reset(&arena);
    }
    qn_arena_free(&arena);
    return status;
}

const qn_pass qn_pass_batchnorm_to_conv = {
    "batchnorm-to-conv", "makes a normalization that no weights take a convolution of one pixel",
    batchnorm_to_conv};
