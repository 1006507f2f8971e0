/* The scale of outputs that are integers, as the model's metadata have it. */
#ifndef QN_OUTPUT_SCALE_H
#define QN_OUTPUT_SCALE_H

#include "ir/graph.h"

QN_MUST_CHECK qn_status qn_output_set_scale(qn_model *model, const char *output, float scale);
/* The scale of an output; 1 where the metadata have none, or nothing that can be a scale. */
double qn_output_scale(const qn_model *model, const char *output);
/* The same as text; returns `out`. */
enum { QN_OUTPUT_SCALE_TEXT = 32 };
const char *qn_output_scale_format(char out[QN_OUTPUT_SCALE_TEXT], const qn_model *model,
                                   const char *output);

#endif
