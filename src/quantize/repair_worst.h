/* Remedies for the layers that err most. */
#ifndef QN_REPAIR_WORST_H
#define QN_REPAIR_WORST_H

#include "quantize/layers.h"

/* The result is there already. Each of the `count` layers with the largest errors of their own gets
 * what lowers the error of the outputs on the first samples: the range of min_max, 16 bits where
 * the target computes with them, or else float. Reported in "fixed_layers". */
QN_MUST_CHECK qn_status qn_repair_worst(qn_quantize_result *result, qn_search *s, qn_layers *layers,
                                        int64_t count);

#endif
