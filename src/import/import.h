/* Model files into graphs. */
#ifndef QN_IMPORT_H
#define QN_IMPORT_H

#include "ir/graph.h"

/* Reads an ONNX file and the external data it names. The graph comes out as graph.h wants it: sorted,
 * every operator in its latest form, model-local functions inlined, Constant nodes and sparse
 * initializers turned into plain constants, types inferred as far as the file tells. An initializer
 * that is also listed as an input is a constant. Messages begin with the path. */
QN_MUST_CHECK qn_status qn_import_onnx(qn_model **out, qn_context *ctx, const char *path);
/* The same from memory, which must outlive the model. External data is refused. */
QN_MUST_CHECK qn_status qn_import_onnx_memory(qn_model **out, qn_context *ctx, const void *data,
                                              size_t size);
/* One value in the form of ONNX's test folders: a TensorProto, SequenceProto or OptionalProto, as
 * `kind` says. It may point into `data` and into `arena`. */
QN_MUST_CHECK qn_status qn_import_onnx_value(qn_tensor *out, qn_context *ctx, qn_arena *arena,
                                             qn_type_kind kind, const void *data, size_t size);

#endif
