/* What a quantization leaves behind for those who want to look into it: models of its steps, and
 * what every layer gives. */
#ifndef QN_TRACES_H
#define QN_TRACES_H

#include "quantize/job.h"
#include "quantize/quantized_file.h"

/* "<folder>/steps/": the model as read, after the passes, quantized (as `file` was written), and
 * quantized with every layer as output. */
QN_MUST_CHECK qn_status qn_trace_steps(const qn_quantize_input *input,
                                       const qn_quantized_model *quantized, qn_model *model,
                                       const char *folder, const qn_quantized_file *file);
/* "<folder>/dump/": of the first sample every layer's output of both models as .npy, and
 * index.json. */
QN_MUST_CHECK qn_status qn_trace_dump(const qn_quantize_input *input,
                                      const qn_quantized_model *quantized, const char *folder);

#endif
