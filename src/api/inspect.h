/* The parts of a report about a model, for all who show one. */
#ifndef QN_INSPECT_H
#define QN_INSPECT_H

#include "ir/graph.h"
#include "report/report.h"
#include "run/backend.h"

/* File, producer, opset. */
void qn_inspect_head(qn_item *root, const qn_model *file);
/* Adds that, and sizes, inputs, outputs, operators. */
QN_MUST_CHECK qn_status qn_inspect_model(qn_item *root, qn_model *model);
/* Into a row: what the pass is for. */
void qn_inspect_purposes(qn_item *row, size_t pass);
/* A table of the plug-ins among the backends, ended with NULL, where there are any. */
void qn_inspect_plugins(qn_item *root, const qn_backend *const *backends);
/* What each pass did. */
void qn_inspect_passes(qn_item *root, const qn_graph_options *options, const int64_t *changes);

#endif
