/* What a model's metadata say of outputs that are integers: the scale of each. */
#ifndef QN_OUTPUT_SCALE_H
#define QN_OUTPUT_SCALE_H

#include "ir/graph.h"

QN_MUST_CHECK qn_status qn_output_set_scale(qn_model *model, const char *output, float scale);
/* 1 where the model says nothing, or nothing that is a scale. */
double qn_output_scale(const qn_model *model, const char *output);
/* The same as text; returns `out`. */
enum { QN_OUTPUT_SCALE_TEXT = 32 };
const char *qn_output_scale_format(char out[QN_OUTPUT_SCALE_TEXT], const qn_model *model,
                                   const char *output);

#endif
