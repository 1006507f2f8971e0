/* Graphs written as ONNX messages. */
#include <string.h>

#include "export/onnx.h"

/* ---- Names --------------------------------------------------------------------------------------
 * A name means one thing in a graph and all of its subgraphs. In the model a subgraph has names of
 * its own; those that are taken outside get a number here. */

static bool is_taken(const qn_onnx_names *names, const char *name)
{
    for (; names; names = names->outer) {
        if (qn_names_get(&names->names, name))
            return true;
    }
    return false;
}

static qn_status take_name(const char **out, qn_onnx_export *export, qn_onnx_names *names,
                           const char *wanted)
{
    *out = wanted;
    for (unsigned long i = 1; is_taken(names, *out); i++) {
        *out = qn_arena_format(&export->tree.arena, "%s_%lu", wanted, i);
        QN_TRY_ALLOC(export->ctx, *out);
    }
    return qn_names_set(&names->names, *out, export);
}

/* Gives every value of the graph its name; captured ones have that of the value they stand for. */
static qn_status name_values(qn_onnx_export *export, const qn_graph *graph, qn_onnx_names *names)
{
    for (size_t i = 0; i < graph->n_captures; i++) {
        const qn_capture *capture = &graph->captures[i];
        capture->inner->mark = graph->owner->in[capture->slot]->mark;
    }
    for (size_t i = 0; i < graph->n_values; i++) {
        qn_value *value = graph->values[i];
        if (value->is_capture)
            continue;
        QN_TRY_GROW(export->ctx, export->names, export->names_capacity, export->n_names + 1);
        QN_TRY(take_name(&export->names[export->n_names], export, names, value->name));
        value->mark = (uint32_t) export->n_names++;
    }
    return QN_OK;
}

/* ---- Values ---------------------------------------------------------------------------------- */

qn_status qn_onnx_write_metadata(qn_onnx_export *export, qn_proto_message *to, uint32_t field,
                                 const qn_metadata *metadata)
{
    qn_proto_tree *tree = &export->tree;
    for (size_t i = 0; i < metadata->count; i++) {
        qn_proto_message *entry;
        QN_TRY(qn_proto_add_message(&entry, tree, to, field));
        QN_TRY(qn_proto_add_text(tree, entry, QN_ONNX_ENTRY_KEY, metadata->at[i].key));
        QN_TRY(qn_proto_add_text(tree, entry, QN_ONNX_ENTRY_VALUE, metadata->at[i].value));
    }
    return QN_OK;
}

qn_status qn_onnx_write_metadata_of(qn_onnx_export *export, qn_proto_message *to, uint32_t field,
                                    const qn_metadata *metadata)
{
    return export->ir_version < 10 ? QN_OK : qn_onnx_write_metadata(export, to, field, metadata);
}

/* What is known of it now, with the words that the file had for it. */
static qn_type written_type(const qn_value *value)
{
    qn_type type = value->type;
    const qn_type *declared = value->declared;
    const bool fits = declared && declared->kind == type.kind;
    type.denotation = fits ? declared->denotation : NULL;
    type.dim_denotations = fits && declared->rank == type.rank ? declared->dim_denotations : NULL;
    return type;
}

static qn_status write_info(qn_onnx_export *export, qn_proto_message *to, uint32_t field,
                            const qn_value *value, const char *name)
{
    qn_proto_tree *tree = &export->tree;
    qn_proto_message *info, *type;
    QN_TRY(qn_proto_add_message(&info, tree, to, field));
    QN_TRY(qn_proto_add_text(tree, info, QN_ONNX_VALUE_INFO_NAME, name));
    if (value->doc)
        QN_TRY(qn_proto_add_text(tree, info, QN_ONNX_VALUE_INFO_DOC_STRING, value->doc));
    QN_TRY(qn_onnx_write_metadata_of(export, info, QN_ONNX_VALUE_INFO_METADATA_PROPS,
                                     &value->metadata));
    if (value->type.kind == QN_TYPE_UNKNOWN)
        return QN_OK;
    const qn_type known = written_type(value);
    QN_TRY(qn_proto_add_message(&type, tree, info, QN_ONNX_VALUE_INFO_TYPE));
    return qn_onnx_write_type(export, type, &known);
}

static bool is_constant(const qn_value *value)
{
    return value->data && !value->producer && !value->is_capture && !value->is_input &&
           (value->n_users || value->is_output);
}

static qn_status write_initializers(qn_onnx_export *export, qn_proto_message *to,
                                    const qn_graph *graph)
{
    qn_proto_tree *tree = &export->tree;
    for (size_t i = 0; i < graph->n_values; i++) {
        const qn_value *value = graph->values[i];
        qn_proto_message *tensor;
        if (!is_constant(value))
            continue;
        if (value->data->dtype >= QN_SEQUENCE)
            return qn_fail(export->ctx, QN_E_UNSUPPORTED,
                           "the constant '%s' is no tensor, which ONNX cannot say", value->name);
        QN_TRY(qn_proto_add_message(&tensor, tree, to, QN_ONNX_GRAPH_INITIALIZER));
        QN_TRY(qn_proto_add_text(tree, tensor, QN_ONNX_TENSOR_NAME,
                                 qn_onnx_written_name(export, value)));
        if (value->doc)
            QN_TRY(qn_proto_add_text(tree, tensor, QN_ONNX_TENSOR_DOC_STRING, value->doc));
        QN_TRY(qn_onnx_write_metadata_of(export, tensor, QN_ONNX_TENSOR_METADATA_PROPS,
                                         &value->metadata));
        QN_TRY(qn_onnx_write_tensor(export, tensor, value->data));
    }
    return QN_OK;
}

/* A subgraph may not hand out a value of the enclosing graph, but a copy of it. */
static qn_status write_copy(const char **name, qn_onnx_export *export, qn_proto_message *to,
                            const qn_value *value, qn_onnx_names *names)
{
    qn_proto_tree *tree = &export->tree;
    qn_proto_message *node;
    const char *input = qn_onnx_written_name(export, value);
    QN_TRY(take_name(name, export, names, value->name));
    QN_TRY(qn_proto_add_message(&node, tree, to, QN_ONNX_GRAPH_NODE));
    QN_TRY(qn_proto_add_text(tree, node, QN_ONNX_NODE_INPUT, input));
    QN_TRY(qn_proto_add_text(tree, node, QN_ONNX_NODE_OUTPUT, *name));
    QN_TRY(qn_proto_add_text(tree, node, QN_ONNX_NODE_NAME, *name));
    return qn_proto_add_text(tree, node, QN_ONNX_NODE_OP_TYPE, "Identity");
}

static qn_status write_outputs(qn_onnx_export *export, qn_proto_message *to, const qn_graph *graph,
                               qn_onnx_names *names)
{
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const qn_value *value = graph->outputs[i];
        const char *name = qn_onnx_written_name(export, value);
        if (value->is_capture)
            QN_TRY(write_copy(&name, export, to, value, names));
        QN_TRY(write_info(export, to, QN_ONNX_GRAPH_OUTPUT, value, name));
    }
    return QN_OK;
}

/* What is known of values between nodes. */
static qn_status write_infos(qn_onnx_export *export, qn_proto_message *to, const qn_graph *graph)
{
    for (const qn_node *node = graph->first; node; node = node->next) {
        for (int32_t o = 0; o < node->n_out; o++) {
            const qn_value *value = node->out[o];
            if (!value || value->is_output || value->type.kind == QN_TYPE_UNKNOWN ||
                (value->type.kind == QN_TYPE_TENSOR && value->type.dtype == QN_UNDEFINED))
                continue;
            QN_TRY(write_info(export, to, QN_ONNX_GRAPH_VALUE_INFO, value,
                              qn_onnx_written_name(export, value)));
        }
    }
    return QN_OK;
}

/* ---- Graphs ---------------------------------------------------------------------------------- */

static qn_status write_parts(qn_onnx_export *export, qn_proto_message *to, const qn_graph *graph,
                             qn_onnx_names *names)
{
    qn_proto_tree *tree = &export->tree;
    QN_TRY(name_values(export, graph, names));
    QN_TRY(qn_proto_add_text(tree, to, QN_ONNX_GRAPH_NAME, graph->name));
    if (graph->doc)
        QN_TRY(qn_proto_add_text(tree, to, QN_ONNX_GRAPH_DOC_STRING, graph->doc));
    QN_TRY(qn_onnx_write_metadata_of(export, to, QN_ONNX_GRAPH_METADATA_PROPS, &graph->metadata));
    QN_TRY(write_initializers(export, to, graph));
    for (size_t i = 0; i < graph->n_inputs; i++)
        QN_TRY(write_info(export, to, QN_ONNX_GRAPH_INPUT, graph->inputs[i],
                          qn_onnx_written_name(export, graph->inputs[i])));
    for (const qn_node *node = graph->first; node; node = node->next) {
        qn_proto_message *message;
        QN_TRY(qn_check_cancel(export->ctx));
        QN_TRY(qn_proto_add_message(&message, tree, to, QN_ONNX_GRAPH_NODE));
        QN_TRY(qn_onnx_write_node(export, message, node, names));
    }
    QN_TRY(write_infos(export, to, graph));
    return write_outputs(export, to, graph, names);
}

qn_status qn_onnx_write_graph(qn_onnx_export *export, qn_proto_message *to, const qn_graph *graph,
                              const qn_onnx_names *outer)
{
    qn_onnx_names names = {.outer = outer};
    qn_names_init(&names.names, export->ctx);
    const qn_status status = write_parts(export, to, graph, &names);
    qn_names_free(&names.names);
    return status;
}
