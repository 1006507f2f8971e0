/* A model on its way to a plan, a report or a file: input shapes bound, passes done. */
#ifndef QN_PREPARE_H
#define QN_PREPARE_H

#include "ops/op.h"

/* A clone of the model with its inputs shaped as the options say. With `close` the dimensions that stay
 * open become 1. Types are not inferred yet. */
QN_MUST_CHECK qn_status qn_prepare_shapes(qn_model **out, qn_context *ctx, qn_model *model,
                                          const qn_graph_options *options, bool close);
/* The same with the passes done, as files want it: open dimensions stay open, and a quantized model
 * stays one. `changes` as of qn_passes_run. */
QN_MUST_CHECK qn_status qn_prepare_optimized(qn_model **out, qn_context *ctx, qn_model *model,
                                             const qn_graph_options *options, int64_t *changes);

#endif
