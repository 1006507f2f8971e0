#ifndef QN_OPS_FINGERPRINT_H
#define QN_OPS_FINGERPRINT_H

#include "base/fingerprint.h"
#include "ops/op.h"

/* The same for the same operators, attributes, names of values and constants; path, metadata and names of
 * nodes do not count. */
qn_fingerprint qn_model_fingerprint(const qn_model *model);

#endif
