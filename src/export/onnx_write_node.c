/* Nodes and their attributes written as ONNX messages. */
#include <string.h>

#include "export/onnx.h"

/* ---- Attributes ------------------------------------------------------------------------------ */

static qn_status write_list(qn_onnx_export *export, qn_proto_message *to, qn_attr_kind kind,
                            const void *field)
{
    qn_proto_tree *tree = &export->tree;
    const qn_ints *ints = field;
    const qn_floats *floats = field;
    const qn_strings *strings = field;
    if (kind == QN_ATTR_INTS) {
        for (size_t i = 0; i < ints->count; i++)
            QN_TRY(qn_proto_add_int(tree, to, QN_ONNX_ATTRIBUTE_INTS, ints->at[i]));
    } else if (kind == QN_ATTR_FLOATS) {
        for (size_t i = 0; i < floats->count; i++)
            QN_TRY(qn_proto_add_real(tree, to, QN_ONNX_ATTRIBUTE_FLOATS, (double)floats->at[i]));
    } else {
        for (size_t i = 0; i < strings->count; i++)
            QN_TRY(qn_proto_add_string(tree, to, QN_ONNX_ATTRIBUTE_STRINGS, strings->at[i]));
    }
    return QN_OK;
}

static qn_status write_part(qn_onnx_export *export, qn_proto_message *to, qn_attr_kind kind,
                            const void *field, const qn_onnx_names *names)
{
    qn_proto_message *part;
    if (kind == QN_ATTR_TENSOR) {
        QN_TRY(qn_proto_add_message(&part, &export->tree, to, QN_ONNX_ATTRIBUTE_T));
        return qn_onnx_write_tensor(export, part, *(const qn_tensor *const *)field);
    }
    if (kind == QN_ATTR_GRAPH) {
        QN_TRY(qn_proto_add_message(&part, &export->tree, to, QN_ONNX_ATTRIBUTE_G));
        return qn_onnx_write_graph(export, part, *(qn_graph *const *)field, names);
    }
    QN_TRY(qn_proto_add_message(&part, &export->tree, to, QN_ONNX_ATTRIBUTE_TP));
    return qn_onnx_write_type(export, part, *(const qn_type *const *)field);
}

static qn_status write_value(qn_onnx_export *export, qn_proto_message *to, const qn_attr_spec *spec,
                             const void *field, const qn_onnx_names *names)
{
    qn_proto_tree *tree = &export->tree;
    switch (spec->kind) {
    case QN_ATTR_INT:
        return qn_proto_add_int(tree, to, QN_ONNX_ATTRIBUTE_I, *(const int64_t *)field);
    case QN_ATTR_FLOAT:
        return qn_proto_add_real(tree, to, QN_ONNX_ATTRIBUTE_F, (double)*(const float *)field);
    case QN_ATTR_STRING:
        return qn_proto_add_text(tree, to, QN_ONNX_ATTRIBUTE_S, *(const char *const *)field);
    case QN_ATTR_ENUM:
        return qn_proto_add_text(tree, to, QN_ONNX_ATTRIBUTE_S,
                                 spec->words[*(const int64_t *)field]);
    case QN_ATTR_INTS:
    case QN_ATTR_FLOATS:
    case QN_ATTR_STRINGS: return write_list(export, to, spec->kind, field);
    default: return write_part(export, to, spec->kind, field, names);
    }
}

static qn_status write_attribute(qn_onnx_export *export, qn_proto_message *to, const qn_node *node,
                                 const qn_attr_spec *spec, const qn_onnx_names *names)
{
    static const int types[] = {
        [QN_ATTR_INT] = QN_ONNX_TYPE_INT,         [QN_ATTR_FLOAT] = QN_ONNX_TYPE_FLOAT,
        [QN_ATTR_STRING] = QN_ONNX_TYPE_STRING,   [QN_ATTR_ENUM] = QN_ONNX_TYPE_STRING,
        [QN_ATTR_INTS] = QN_ONNX_TYPE_INTS,       [QN_ATTR_FLOATS] = QN_ONNX_TYPE_FLOATS,
        [QN_ATTR_STRINGS] = QN_ONNX_TYPE_STRINGS, [QN_ATTR_TENSOR] = QN_ONNX_TYPE_TENSOR,
        [QN_ATTR_GRAPH] = QN_ONNX_TYPE_GRAPH,     [QN_ATTR_TYPE] = QN_ONNX_TYPE_TYPE_PROTO,
    };
    qn_proto_message *attribute;
    QN_TRY(qn_proto_add_message(&attribute, &export->tree, to, QN_ONNX_NODE_ATTRIBUTE));
    QN_TRY(qn_proto_add_text(&export->tree, attribute, QN_ONNX_ATTRIBUTE_NAME, spec->name));
    QN_TRY(qn_proto_add_int(&export->tree, attribute, QN_ONNX_ATTRIBUTE_TYPE, types[spec->kind]));
    return write_value(export, attribute, spec, qn_attr_field(node, spec), names);
}

/* A required attribute is written whatever it is, where it can be. */
static bool is_written(const qn_node *node, const qn_attr_spec *spec, int64_t version)
{
    if (!qn_attr_is_default(node->attrs, spec))
        return true;
    const bool number =
        spec->kind == QN_ATTR_INT || spec->kind == QN_ATTR_FLOAT || spec->kind == QN_ATTR_ENUM;
    const bool absent = spec->kind == QN_ATTR_INT && spec->int_default == QN_ABSENT;
    const bool current = version >= spec->required && (!spec->until || version < spec->until);
    return spec->required && current && number && !absent;
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static qn_status write_slots(qn_onnx_export *export, qn_proto_message *to, uint32_t field,
                             qn_value *const *values, int32_t count)
{
    while (count > 0 && !values[count - 1])
        count--;
    for (int32_t i = 0; i < count; i++)
        QN_TRY(
            qn_proto_add_text(&export->tree, to, field, qn_onnx_written_name(export, values[i])));
    return QN_OK;
}

qn_status qn_onnx_write_node(qn_onnx_export *export, qn_proto_message *to, const qn_node *node,
                             const qn_onnx_names *names)
{
    qn_proto_tree *tree = &export->tree;
    const int64_t version = qn_onnx_domain_version(export->model, node->op->domain, export->opset);
    QN_TRY(write_slots(export, to, QN_ONNX_NODE_INPUT, node->in, node->n_explicit));
    QN_TRY(write_slots(export, to, QN_ONNX_NODE_OUTPUT, node->out, node->n_out));
    QN_TRY(qn_proto_add_text(tree, to, QN_ONNX_NODE_NAME, node->name));
    QN_TRY(qn_proto_add_text(tree, to, QN_ONNX_NODE_OP_TYPE, node->op->name));
    if (*node->op->domain)
        QN_TRY(qn_proto_add_text(tree, to, QN_ONNX_NODE_DOMAIN, node->op->domain));
    if (node->doc)
        QN_TRY(qn_proto_add_text(tree, to, QN_ONNX_NODE_DOC_STRING, node->doc));
    QN_TRY(qn_onnx_write_metadata_of(export, to, QN_ONNX_NODE_METADATA_PROPS, &node->metadata));
    for (size_t i = 0; i < node->op->n_attrs; i++) {
        if (is_written(node, &node->op->attrs[i], version))
            QN_TRY(write_attribute(export, to, node, &node->op->attrs[i], names));
    }
    return QN_OK;
}
