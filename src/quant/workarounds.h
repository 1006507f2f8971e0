/* Rewrites of what an engine computes wrong into what it computes right. */
#ifndef QN_WORKAROUNDS_H
#define QN_WORKAROUNDS_H

#include "quant/quant.h"

/* Rewrites the graph after Q and D are inserted, before its types are inferred again. The results
 * stay the same, bit for bit. */
QN_MUST_CHECK qn_status qn_workarounds_apply(qn_quantizer *q);

#endif
