#include "compare/reference_values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/eval.h"
#include "ops/op.h"

/* ---- What can be compared bit for bit -------------------------------------------------------- */

bool qn_reference_is_loose(const qn_node *node)
{
    const qn_quant_rule rule = node->op->quant;
    if (qn_moves_numbers(node) || rule == QN_QUANT_SHAPE || rule == QN_QUANT_ALREADY)
        return false;
    for (int32_t o = 0; o < node->n_out; o++) {
        if (node->out[o] && qn_dtype_is_float(node->out[o]->type.dtype))
            return true;
    }
    return false;
}

static bool behind_float(const qn_reference_values *truth, const qn_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        const qn_reference_value *in =
            node->in[i] ? qn_names_get(&truth->by_name, node->in[i]->name) : NULL;
        if (in && in->behind)
            return true;
    }
    return qn_reference_is_loose(node);
}

qn_status qn_reference_values_init(qn_reference_values *truth, qn_context *ctx,
                                   const qn_graph *graph)
{
    size_t count = 0;
    *truth = (qn_reference_values){.ctx = ctx};
    qn_arena_init(&truth->arena, &ctx->allocator);
    qn_names_init(&truth->by_name, ctx);
    for (const qn_node *node = graph->first; node; node = node->next)
        count += (size_t)node->n_out;
    truth->values = qn_arena_array(&truth->arena, count + 1, sizeof *truth->values);
    QN_TRY_ALLOC(ctx, truth->values);
    for (const qn_node *node = graph->first; node; node = node->next) {
        const bool behind = behind_float(truth, node);
        for (int32_t o = 0; o < node->n_out; o++) {
            qn_reference_value *value = &truth->values[truth->count];
            if (!node->out[o])
                continue;
            *value = (qn_reference_value){
                .name =
                    qn_arena_text(&truth->arena, node->out[o]->name, strlen(node->out[o]->name)),
                .node = qn_arena_text(&truth->arena, node->name, strlen(node->name)),
                .is_float = qn_reference_is_loose(node),
                .behind = behind};
            if (!value->name || !value->node)
                return qn_fail_nomem(ctx);
            truth->count++;
            QN_TRY(qn_names_set(&truth->by_name, value->name, value));
        }
    }
    return QN_OK;
}

void qn_reference_values_free(qn_reference_values *truth)
{
    if (!truth->ctx)
        return;
    for (size_t i = 0; i < truth->count; i++)
        qn_free(truth->ctx, truth->values[i].tensor.data);
    qn_free(truth->ctx, truth->rows);
    qn_names_free(&truth->by_name);
    qn_arena_free(&truth->arena);
}

const qn_reference_value *qn_reference_value_of(const qn_reference_values *truth,
                                                const qn_value *value)
{
    return qn_names_get(&truth->by_name, value->name);
}

/* ---- Values in rows -------------------------------------------------------------------------- */

static bool is_plain(const qn_observation *seen)
{
    return seen->tensor->dtype < QN_SEQUENCE && seen->tensor->dtype != QN_STRING;
}

static qn_status grow(qn_reference_values *truth, void **block, size_t *room, size_t size)
{
    if (size <= *room)
        return QN_OK;
    void *larger = qn_realloc(truth->ctx, *block, *room, size);
    QN_TRY_ALLOC(truth->ctx, larger);
    *block = larger;
    *room = size;
    return QN_OK;
}

static size_t bytes_of(const qn_tensor *tensor)
{
    return (size_t)qn_tensor_count(tensor) * qn_dtype_size(tensor->dtype);
}

/* The elements of `seen` one after the other at `rows`. */
static void to_rows(void *rows, const qn_observation *seen)
{
    const int64_t samples = seen->tensor->rank > 0 ? QN_MAX(seen->tensor->dims[0], 1) : 1;
    const qn_laid_out from = {seen->tensor->data, seen->layout, seen->stride},
                      to = {rows, QN_ROWS, bytes_of(seen->tensor) / (size_t)samples};
    if (bytes_of(seen->tensor))
        qn_layout_convert(&to, &from, seen->tensor);
}

/* The other way round. */
static void from_rows(const qn_observation *seen, void *rows)
{
    const int64_t samples = seen->tensor->rank > 0 ? QN_MAX(seen->tensor->dims[0], 1) : 1;
    const qn_laid_out to = {seen->tensor->data, seen->layout, seen->stride},
                      from = {rows, QN_ROWS, bytes_of(seen->tensor) / (size_t)samples};
    if (bytes_of(seen->tensor))
        qn_layout_convert(&to, &from, seen->tensor);
}

qn_status qn_reference_values_keep(qn_reference_values *truth, const qn_observation *seen)
{
    qn_reference_value *value = qn_names_get(&truth->by_name, seen->value->name);
    if (!value || !is_plain(seen))
        return QN_OK;
    void *data = value->tensor.data;
    QN_TRY(grow(truth, &data, &value->room, QN_MAX(bytes_of(seen->tensor), 1)));
    value->tensor = *seen->tensor;
    value->tensor.data = data;
    to_rows(data, seen);
    return QN_OK;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static bool same_shape(const qn_tensor *a, const qn_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)QN_MAX(a->rank, 0) * sizeof *a->dims) == 0;
}

static void tell(qn_reference_values *truth, const qn_reference_value *value, int64_t i,
                 const char *how)
{
    const qn_tensor got = {value->tensor.dtype, 0, {0}, truth->rows};
    if (truth->differing++)
        return;
    truth->first.value = value;
    truth->first.how = how;
    truth->first.element = i;
    truth->first.got = qn_tensor_f64(&got, i);
    truth->first.reference = qn_tensor_f64(&value->tensor, i);
}

/* Float values behind arithmetic without a fixed order may differ a little. */
static void note_error(qn_reference_values *truth, const qn_reference_value *value)
{
    const qn_tensor got = {value->tensor.dtype, 0, {0}, truth->rows};
    const int64_t count = qn_tensor_count(&value->tensor);
    double error = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        const double x = qn_tensor_f64(&value->tensor, i);
        error = fmax(error, fabs(x - qn_tensor_f64(&got, i)));
        largest = fmax(largest, fabs(x));
    }
    if (largest > 0)
        truth->float_error = fmax(truth->float_error, error / largest);
}

qn_status qn_reference_values_compare(qn_reference_values *truth, const qn_observation *seen,
                                      const char *how, bool loose)
{
    qn_reference_value *value = qn_names_get(&truth->by_name, seen->value->name);
    if (!value || !value->tensor.data || !is_plain(seen))
        return QN_OK;
    if (!same_shape(&value->tensor, seen->tensor))
        return qn_fail(truth->ctx, QN_E_INVALID,
                       "tensor '%s' of node '%s', %s: the reference gives it another shape",
                       value->name, value->node, how);
    const size_t size = qn_dtype_size(value->tensor.dtype);
    QN_TRY(grow(truth, &truth->rows, &truth->rows_size, QN_MAX(bytes_of(seen->tensor), 1)));
    to_rows(truth->rows, seen);
    value->compared = true;
    if (memcmp(truth->rows, value->tensor.data, bytes_of(seen->tensor)) == 0)
        return QN_OK;
    if (loose) {
        note_error(truth, value);
        from_rows(seen, value->tensor.data);
        return QN_OK;
    }
    for (int64_t i = 0; i < qn_tensor_count(seen->tensor); i++) {
        const size_t at = (size_t)i * size;
        if (memcmp((char *)truth->rows + at, (char *)value->tensor.data + at, size) != 0) {
            tell(truth, value, i, how);
            break;
        }
    }
    return QN_OK;
}
