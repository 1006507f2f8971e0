/* Remedies for the layers that err most. */
#ifndef QN_REPAIR_WORST_H
#define QN_REPAIR_WORST_H

#include "quantize/layers.h"

/* Of a job whose model is made; `layers` were found before. Each of the `count` layers with the largest errors of their
 * own gets what lowers the error of the outputs on the first samples: the range of min_max, 16 bits where the target
 * computes with them, or else float. Told in "fixed_layers" of `root`. */
QN_MUST_CHECK qn_status qn_repair_worst(qn_item *root, qn_layers *layers, int64_t count);

#endif
