/* Networks for which 8 bits are too few. */
#ifndef QN_MIXED_PRECISION_H
#define QN_MIXED_PRECISION_H

#include "quantize/job.h"

/* Makes the job's model. Where nobody asked for widths and the outputs have too much noise on the first samples, the
 * layers that do most harm for their work stay float, as few as it takes. */
QN_MUST_CHECK qn_status qn_mixed_precision_search(qn_quantize_job *j);

#endif
