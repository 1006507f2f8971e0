#ifndef QN_OPS_FINGERPRINT_H
#define QN_OPS_FINGERPRINT_H

#include "base/fingerprint.h"
#include "ops/op.h"

/* The same for the same operators, attributes, names of values and constants; path, metadata and
 * names of nodes do not count. */
qn_fingerprint qn_model_fingerprint(const qn_model *model);
/* Takes in shape and contents; NULL is something too. */
void qn_fingerprint_tensor(qn_fingerprint *print, const qn_tensor *tensor);
/* Takes in those attributes that are not the default. */
void qn_fingerprint_attrs(qn_fingerprint *print, const qn_node *node);

#endif
