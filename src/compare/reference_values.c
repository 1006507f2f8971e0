/* Values of the reference, and those of other plans compared with them. */
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

static bool behind_float(const qn_reference_values *reference, const qn_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++) {
        const qn_reference_value *in =
            node->in[i] ? qn_names_get(&reference->by_name, node->in[i]->name) : NULL;
        if (in && in->behind)
            return true;
    }
    return qn_reference_is_loose(node);
}

qn_status qn_reference_values_init(qn_reference_values *reference, qn_context *ctx,
                                   const qn_graph *graph)
{
    size_t count = 0;
    *reference = (qn_reference_values){.ctx = ctx};
    qn_arena_init(&reference->arena, &ctx->allocator);
    qn_names_init(&reference->by_name, ctx);
    for (const qn_node *node = graph->first; node; node = node->next)
        count += (size_t)node->n_out;
    reference->values = qn_arena_array(&reference->arena, count + 1, sizeof *reference->values);
    QN_TRY_ALLOC(ctx, reference->values);
    for (const qn_node *node = graph->first; node; node = node->next) {
        const bool behind = behind_float(reference, node);
        for (int32_t o = 0; o < node->n_out; o++) {
            qn_reference_value *value = &reference->values[reference->count];
            if (!node->out[o])
                continue;
            *value = (qn_reference_value){
                .name = qn_arena_text(&reference->arena, node->out[o]->name,
                                      strlen(node->out[o]->name)),
                .node = qn_arena_text(&reference->arena, node->name, strlen(node->name)),
                .is_float = qn_reference_is_loose(node),
                .behind = behind};
            if (!value->name || !value->node)
                return qn_fail_nomem(ctx);
            reference->count++;
            QN_TRY(qn_names_set(&reference->by_name, value->name, value));
        }
    }
    return QN_OK;
}

void qn_reference_values_free(qn_reference_values *reference)
{
    if (!reference->ctx)
        return;
    for (size_t i = 0; i < reference->count; i++)
        qn_free(reference->ctx, reference->values[i].tensor.data);
    qn_free(reference->ctx, reference->rows);
    qn_names_free(&reference->by_name);
    qn_arena_free(&reference->arena);
}

const qn_reference_value *qn_reference_value_of(const qn_reference_values *reference,
                                                const qn_value *value)
{
    return qn_names_get(&reference->by_name, value->name);
}

/* ---- Values in rows -------------------------------------------------------------------------- */

static bool is_plain(const qn_observation *seen)
{
    return seen->tensor->dtype < QN_SEQUENCE && seen->tensor->dtype != QN_STRING;
}

static qn_status grow(qn_reference_values *reference, void **block, size_t *room, size_t size)
{
    if (size <= *room)
        return QN_OK;
    void *larger = qn_realloc(reference->ctx, *block, *room, size);
    QN_TRY_ALLOC(reference->ctx, larger);
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

qn_status qn_reference_values_keep(qn_reference_values *reference, const qn_observation *seen)
{
    qn_reference_value *value = qn_names_get(&reference->by_name, seen->value->name);
    if (!value || !is_plain(seen))
        return QN_OK;
    void *data = value->tensor.data;
    QN_TRY(grow(reference, &data, &value->room, QN_MAX(bytes_of(seen->tensor), 1)));
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

static void note_difference(qn_reference_values *reference, const qn_reference_value *value,
                            int64_t i, const char *how)
{
    const qn_tensor got = {value->tensor.dtype, 0, {0}, reference->rows};
    if (reference->differing++)
        return;
    reference->first.value = value;
    reference->first.how = how;
    reference->first.element = i;
    reference->first.got = qn_tensor_f64(&got, i);
    reference->first.reference = qn_tensor_f64(&value->tensor, i);
}

/* Float values behind arithmetic without a fixed order may differ a little. */
static void note_error(qn_reference_values *reference, const qn_reference_value *value)
{
    const qn_tensor got = {value->tensor.dtype, 0, {0}, reference->rows};
    const int64_t count = qn_tensor_count(&value->tensor);
    double error = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        const double x = qn_tensor_f64(&value->tensor, i);
        error = fmax(error, fabs(x - qn_tensor_f64(&got, i)));
        largest = fmax(largest, fabs(x));
    }
    if (largest > 0)
        reference->float_error = fmax(reference->float_error, error / largest);
}

qn_status qn_reference_values_compare(qn_reference_values *reference, const qn_observation *seen,
                                      const char *how, bool loose)
{
    qn_reference_value *value = qn_names_get(&reference->by_name, seen->value->name);
    if (!value || !value->tensor.data || !is_plain(seen))
        return QN_OK;
    if (!same_shape(&value->tensor, seen->tensor))
        return qn_fail(reference->ctx, QN_E_INVALID,
                       "tensor '%s' of node '%s', %s: the reference gives it another shape",
                       value->name, value->node, how);
    const size_t size = qn_dtype_size(value->tensor.dtype);
    QN_TRY(grow(reference, &reference->rows, &reference->rows_size,
                QN_MAX(bytes_of(seen->tensor), 1)));
    to_rows(reference->rows, seen);
    value->compared = true;
    if (memcmp(reference->rows, value->tensor.data, bytes_of(seen->tensor)) == 0)
        return QN_OK;
    if (loose) {
        note_error(reference, value);
        from_rows(seen, value->tensor.data);
        return QN_OK;
    }
    for (int64_t i = 0; i < qn_tensor_count(seen->tensor); i++) {
        const size_t at = (size_t)i * size;
        if (memcmp((char *)reference->rows + at, (char *)value->tensor.data + at, size) != 0) {
            note_difference(reference, value, i, how);
            break;
        }
    }
    return QN_OK;
}
