/* What a quantization leaves behind for those who want to look into it: models of its steps, and what every layer gives. */
#ifndef QN_TRACES_H
#define QN_TRACES_H

#include "quantize/job.h"

/* "<folder>/steps/": the model as read, after the passes, quantized (as `file` was written), and quantized with every
 * layer as output. */
struct qn_quantized_file;
QN_MUST_CHECK qn_status qn_trace_steps(qn_quantize_job *j, qn_model *model, const char *folder,
                                       const struct qn_quantized_file *file);
/* "<folder>/dump/": of the first sample every layer's output of both models as .npy, and index.json. */
QN_MUST_CHECK qn_status qn_trace_dump(qn_quantize_job *j, const char *folder);

#endif
