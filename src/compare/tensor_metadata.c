/* What the metadata of a quantized file say of its tensors: see QN_TENSORS_KEY. */
#include <string.h>

#include "base/json.h"
#include "compare/layer_comparison.h"

static qn_status take_factors(qn_layer_comparison *s, qn_compared_tensor *tensor,
                              const qn_json_place *row)
{
    qn_json_place list, axis;
    size_t count = 0;
    int64_t where = 0;
    QN_TRY(qn_json_member(&list, row, "factor"));
    QN_TRY(qn_json_length(&count, &list));
    if (count == 0)
        return QN_OK;
    QN_TRY(qn_json_member(&axis, row, "axis"));
    QN_TRY(qn_json_get_int(&where, &axis, 0, QN_MAX_RANK - 1));
    float *factor = qn_arena_array(&s->arena, count, sizeof *factor);
    QN_TRY_ALLOC(s->ctx, factor);
    for (size_t i = 0; i < count; i++) {
        const qn_json_place item = qn_json_element(&list, i);
        QN_TRY(qn_json_get_float(&factor[i], &item));
    }
    tensor->factor = factor;
    tensor->n_factors = (int64_t)count;
    tensor->factor_axis = (int32_t)where;
    return QN_OK;
}

static qn_status take_all(qn_layer_comparison *s, const qn_json_document *document)
{
    const qn_json_place root = qn_json_root(document);
    qn_json_place row, through;
    void *iterator = NULL;
    while (qn_json_next(&row, &root, &iterator)) {
        qn_compared_tensor *tensor = qn_names_get(&s->by_name[0], row.key);
        if (!tensor)
            continue;
        QN_TRY(take_factors(s, tensor, &row));
        if (qn_json_find(&through, &row, "through"))
            QN_TRY(qn_json_get_bool(&tensor->through, &through));
    }
    return QN_OK;
}

/* Models for chips give integers in float tensors. */
static qn_status take_outputs(qn_layer_comparison *s, const qn_model *quantized)
{
    const qn_graph *graph = quantized->graph;
    for (size_t i = 0; i < graph->n_outputs; i++) {
        qn_compared_tensor *tensor = qn_names_get(&s->by_name[0], graph->outputs[i]->name);
        const double scale = qn_model_output_scale(quantized, i);
        if (!tensor || tensor->dtype != QN_UNDEFINED || scale == 1)
            continue;
        float *factor = qn_arena_alloc(&s->arena, sizeof *factor);
        QN_TRY_ALLOC(s->ctx, factor);
        *factor = (float)scale;
        tensor->factor = factor;
        tensor->n_factors = 1;
    }
    return QN_OK;
}

static qn_status read_metadata(qn_layer_comparison *s, const char *text)
{
    qn_json_document *document = NULL;
    QN_TRY(qn_json_read(&document, s->ctx, text, strlen(text), QN_TENSORS_KEY));
    const qn_status status = take_all(s, document);
    qn_json_document_free(document);
    return status;
}

qn_status qn_layer_comparison_read_metadata(qn_layer_comparison *s, const qn_model *quantized)
{
    qn_status status = take_outputs(s, quantized);
    for (size_t i = 0; i < quantized->metadata.count && status == QN_OK; i++) {
        if (strcmp(quantized->metadata.at[i].key, QN_TENSORS_KEY) == 0)
            status = read_metadata(s, quantized->metadata.at[i].value);
    }
    if (status == QN_OK || !quantized->path)
        return status;
    return qn_fail_within(s->ctx, status, "%s: metadata", quantized->path);
}
