/* Nodes whose result is known become constants: all inputs constant, or a shape that inference
 * knows. */
#include <string.h>

#include "ops/eval.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* A result much larger than its inputs (a filled tensor, an expanded one) is cheaper to compute,
 * unless arithmetic makes it, such as the masks that exporters compute from shapes. */
enum { ALWAYS_SMALL = 64 * 1024, COMPUTED_SMALL = 1024 * 1024, MOST_GROWTH = 4 };

static size_t bytes_of(const qn_tensor *tensor)
{
    size_t bytes;
    return tensor->dtype < QN_SEQUENCE &&
                   qn_tensor_bytes(&bytes, tensor->dtype, tensor->rank, tensor->dims)
               ? bytes
               : 0;
}

/* Whether the result is small enough, known before it is computed, so that no file can make folding
 * exhaust memory. */
static bool worth_it(const qn_node *node)
{
    size_t in = 0;
    for (int32_t i = 0; i < node->n_in; i++)
        in += node->in[i] ? bytes_of(node->in[i]->data) : 0;
    const bool computed = (node->op->flags & QN_OP_ELEMENTWISE) && node->n_in > 1;
    const size_t most = QN_MAX(computed ? COMPUTED_SMALL : ALWAYS_SMALL, in * MOST_GROWTH);
    for (int32_t o = 0; o < node->n_out; o++) {
        qn_tensor shape = {.dtype = QN_UNDEFINED};
        if (!node->out[o])
            continue;
        if (!qn_type_is_static(&node->out[o]->type, shape.dims)) {
            if (in > ALWAYS_SMALL)
                return false;
            continue;
        }
        shape.dtype = node->out[o]->type.dtype;
        shape.rank = node->out[o]->type.rank;
        size_t bytes;
        if (!qn_tensor_bytes(&bytes, shape.dtype, shape.rank, shape.dims) || bytes > most)
            return false;
    }
    return true;
}

static bool can_fold(const qn_pass_context *self, const qn_node *node)
{
    if ((node->op->flags & QN_OP_RANDOM) || qn_node_subgraph(node, 0) ||
        !qn_node_reads_constants(node))
        return false;
    /* Such as the DequantizeLinear of weights that an integer operator has taken: four times their
     * memory. */
    if (qn_node_is_dead(node))
        return false;
    if (self->keep_quantization && node->op->quant == QN_QUANT_ALREADY)
        return false;
    for (int32_t o = 0; o < node->n_out; o++) {
        if (node->out[o] && node->out[o]->type.kind != QN_TYPE_TENSOR)
            return false;
    }
    return worth_it(node);
}

/* The value keeps its name and its readers, and loses its producer. */
static void become_constant(qn_node *node, qn_tensor *const *results)
{
    for (int32_t o = 0; o < node->n_out; o++) {
        qn_value *value = node->out[o];
        if (!value)
            continue;
        value->data = results[o];
        value->type = qn_type_of(results[o]);
    }
    qn_node_remove(node);
}

/* Large results get memory that a backend can give back once it has packed them. */
static qn_status settle(qn_model *model, qn_tensor **result)
{
    if (!*result)
        return QN_OK;
    const qn_type type = qn_type_of(*result);
    const size_t bytes = bytes_of(*result);
    if (bytes < ALWAYS_SMALL || (*result)->dtype == QN_STRING) {
        qn_tensor *copy = qn_arena_alloc(&model->arena, sizeof *copy);
        QN_TRY_ALLOC(model->ctx, copy);
        QN_TRY(qn_tensor_copy(copy, model->ctx, &model->arena, *result));
        *result = copy;
        return QN_OK;
    }
    qn_tensor *own;
    QN_TRY(qn_model_tensor(&own, model, &type));
    memcpy(own->data, (*result)->data, bytes);
    *result = own;
    return QN_OK;
}

/* What a folded node was the last to read leaves memory, so that weights and what is made of them
 * never stand side by side as a whole. Pages of files come back when somebody does read them. */
static void let_go(qn_model *model, qn_value *const *in, int32_t n_in)
{
    for (int32_t i = 0; i < n_in; i++) {
        if (in[i] && in[i]->data && in[i]->n_users == 0 && !in[i]->is_output && !in[i]->is_capture)
            qn_model_release(model, in[i]->data);
    }
}

static qn_status fold(qn_pass_context *self, qn_node *node, qn_arena *arena)
{
    qn_model *model = self->graph->model;
    const int32_t n_in = node->n_in;
    const qn_tensor **in = qn_arena_array(arena, (size_t)node->n_in + 1, sizeof *in);
    qn_value **read = qn_arena_copy(arena, node->in, (size_t)n_in * sizeof *read);
    qn_tensor **out = qn_arena_array(arena, (size_t)node->n_out + 1, sizeof *out);
    if (!in || !out || !read)
        return qn_fail_nomem(self->ctx);
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = node->in[i] ? node->in[i]->data : NULL;
    const qn_status status = qn_node_eval(out, self->ctx, arena, node, in);
    /* A node that cannot be computed may stand in a branch that is never taken: it fails when it
     * runs, not here. */
    if (status == QN_E_INVALID || status == QN_E_UNSUPPORTED)
        return QN_OK;
    QN_TRY(status);
    for (int32_t o = 0; o < node->n_out; o++)
        QN_TRY(settle(model, &out[o]));
    become_constant(node, out);
    let_go(model, read, n_in);
    self->changes++;
    return QN_OK;
}

/* ---- Shapes that inference knows ------------------------------------------------------------- */

static bool elements_known(const qn_value *value, int64_t *count)
{
    const qn_type *type = &value->type;
    if (!type->elements || type->kind != QN_TYPE_TENSOR || type->rank < 0 || type->rank > 1)
        return false;
    *count = type->rank ? type->dims[0].value : 1;
    for (int64_t i = 0; i < *count; i++) {
        if (!qn_element_known(type->elements[i]))
            return false;
    }
    return *count >= 0;
}

static qn_status fold_elements(qn_pass_context *self, qn_node *node)
{
    qn_value *value = node->n_out == 1 ? node->out[0] : NULL;
    int64_t count;
    qn_tensor *tensor;
    if (!value || !elements_known(value, &count))
        return QN_OK;
    QN_TRY(qn_tensor_create(&tensor, self->ctx, self->graph->arena, &value->type));
    for (int64_t i = 0; i < count; i++)
        qn_store_i64(tensor->data, tensor->dtype, i, &value->type.elements[i].value, 1);
    become_constant(node, &tensor);
    self->changes++;
    return QN_OK;
}

static qn_status fold_constants(qn_pass_context *self)
{
    qn_status status = QN_OK;
    qn_arena arena;
    qn_arena_init(&arena, &self->ctx->allocator);
    for (qn_node *node = self->graph->first, *next; node && status == QN_OK; node = next) {
        next = node->next;
        if (can_fold(self, node))
            status = fold(self, node, &arena);
        else
            status = fold_elements(self, node);
        /* Not reset: it would keep room for the largest result. */
        qn_arena_free(&arena);
    }
    return status;
}

const qn_pass qn_pass_fold_constants = {
    "fold-constants", "computes what depends on constants and known shapes only", fold_constants};
