/* Graphs into model files. */
#ifndef QN_EXPORT_H
#define QN_EXPORT_H

#include "ir/graph.h"

typedef struct qn_export_options {
    /* The opset of ONNX's own domain; 0: the model's own, or the next that has a form for every
     * node */
    int opset;
    /* Tensors of at least this many bytes go to "<path>.data"; 0: only those of a model that a
     * single file cannot hold (2 GB) */
    size_t external_from;
} qn_export_options;

/* Writes the model as ONNX. The same model gives the same bytes. Fails with QN_E_UNSUPPORTED,
 * naming the node, where the opset cannot say what the graph does. */
QN_MUST_CHECK qn_status qn_export_onnx(qn_context *ctx, qn_model *model, const char *path,
                                       const qn_export_options *options);

/* A file in memory; qn_free(ctx, data) gives it back. */
typedef struct qn_onnx_bytes {
    char *data;
    size_t size;
} qn_onnx_bytes;
/* The same into memory, where nothing can be put outside. */
QN_MUST_CHECK qn_status qn_export_onnx_memory(qn_onnx_bytes *out, qn_context *ctx, qn_model *model,
                                              const qn_export_options *options);

#endif
