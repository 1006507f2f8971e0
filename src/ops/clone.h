/* Copies of models: structure is copied, tensors and attribute lists are shared. */
#ifndef QN_CLONE_H
#define QN_CLONE_H

#include "ops/op.h"

/* A model that can be changed without touching `model`, which it keeps alive and never writes to.
 * The copy belongs to `ctx`. Values that nothing refers to are left behind. */
QN_MUST_CHECK qn_status qn_model_clone(qn_model **out, qn_context *ctx, qn_model *model);

#endif
