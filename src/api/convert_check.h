/* A converted file beside the model that it was made of: the same random inputs, the outputs of
 * both, and those of the framework's own runtime where somebody runs it. */
#ifndef QN_CONVERT_CHECK_H
#define QN_CONVERT_CHECK_H

#include "ir/graph.h"
#include "report/report.h"

/* Compares what `written` gives with what the framework's runtime gives of the model's file, or,
 * where there is none, with what the importer's graph gives before the passes. The report tells
 * the largest difference; one above what is allowed is a failure, with the file in place. What
 * cannot be run is said in a note. Nothing is done for a model that was ONNX. */
QN_MUST_CHECK qn_status qn_convert_check(qn_item *root, qn_model *model, qn_model *written,
                                         const qn_convert_options *options);

#endif
