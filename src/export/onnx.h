/* The parts of the ONNX exporter, for each other. */
#ifndef QN_EXPORT_ONNX_H
#define QN_EXPORT_ONNX_H

#include "export/export.h"
#include "ops/op.h"
#include "proto/onnx_schema.h"

/* A tensor that goes to the data file. */
typedef struct qn_onnx_external {
    qn_string bytes;
    uint64_t offset;
} qn_onnx_external_data;

typedef struct qn_onnx_export {
    qn_context *ctx;
    /* The clone, downgraded to `opset`. */
    qn_model *model;
    int opset;
    qn_proto_tree tree;
    /* The names of values, by their marks. */
    const char **names;
    size_t n_names, names_capacity;
    int64_t ir_version;
    /* External data: everything from external_from bytes on, SIZE_MAX: nothing. */
    size_t external_from;
    /* The name of the data file, relative to the model's folder. */
    const char *data_name;
    qn_onnx_external_data *external;
    size_t n_external, external_capacity;
    uint64_t data_size;
} qn_onnx_export;

/* Names that are taken in a graph and in those around it. */
typedef struct qn_onnx_names {
    const struct qn_onnx_names *outer;
    qn_names names;
} qn_onnx_names;

/* Takes all nodes to their form of `opset`. (onnx_downgrade.c) */
QN_MUST_CHECK qn_status qn_onnx_downgrade(qn_model *model, int opset);
/* The version under which a domain is written. */
int64_t qn_onnx_domain_version(const qn_model *model, const char *domain, int opset);

/* onnx_write_graph.c */
QN_MUST_CHECK qn_status qn_onnx_write_graph(qn_onnx_export *export, qn_proto_message *to,
                                            const qn_graph *graph, const qn_onnx_names *outer);
static inline const char *qn_onnx_written_name(const qn_onnx_export *export, const qn_value *value)
{
    return value ? export->names[value->mark] : "";
}

/* Writes the metadata of anything but the model itself; IR versions before 10 have no place for
 * it. */
QN_MUST_CHECK qn_status qn_onnx_write_metadata_of(qn_onnx_export *export, qn_proto_message *to,
                                                  uint32_t field, const qn_metadata *metadata);
QN_MUST_CHECK qn_status qn_onnx_write_metadata(qn_onnx_export *export, qn_proto_message *to,
                                               uint32_t field, const qn_metadata *metadata);

/* onnx_write_node.c */
QN_MUST_CHECK qn_status qn_onnx_write_node(qn_onnx_export *export, qn_proto_message *to,
                                           const qn_node *node, const qn_onnx_names *names);

/* onnx_write_tensor.c */
/* The file's IR version must know the element type. */
void qn_onnx_note_type(qn_onnx_export *export, qn_dtype dtype);
QN_MUST_CHECK qn_status qn_onnx_write_tensor(qn_onnx_export *export, qn_proto_message *to,
                                             const qn_tensor *tensor);
QN_MUST_CHECK qn_status qn_onnx_write_type(qn_onnx_export *export, qn_proto_message *to,
                                           const qn_type *type);

#endif
