/* Networks for which 8 bits are too few. */
#ifndef QN_MEND_H
#define QN_MEND_H

#include "api/quantize.h"

/* Makes the job's model. Where nobody asked for widths and the outputs have too much noise on the first samples, the
 * layers that do most harm for their work stay float, as few as it takes. */
QN_MUST_CHECK qn_status qn_mend(qn_quantize_job *j);

#endif
