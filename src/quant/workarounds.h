/* What an engine computes wrong, written in another way that it computes right. */
#ifndef QN_WORKAROUNDS_H
#define QN_WORKAROUNDS_H

#include "quant/quant.h"

/* Of a graph whose Q and D are inserted, and whose types are not inferred since. The results stay
 * the same, bit for bit. */
QN_MUST_CHECK qn_status qn_workarounds_apply(qn_quantizer *q);

#endif
