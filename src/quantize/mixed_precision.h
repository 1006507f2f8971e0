/* Automatic mixed precision: networks for which 8 bits are too few. */
#ifndef QN_MIXED_PRECISION_H
#define QN_MIXED_PRECISION_H

#include "quantize/layers.h"

/* Takes the model as asked for (qn_search_make_first). Where nobody asked for widths and its
 * outputs have too much noise on the first samples, the layers that the outputs are most sensitive
 * to for their work stay float, or get 16 bits on a chip, as few as it takes. */
QN_MUST_CHECK qn_status qn_mixed_precision_search(qn_quantize_result *out, qn_search *s,
                                                  qn_layers *layers);

#endif
