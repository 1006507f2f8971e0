/* What a search for accuracy asks of an evaluation. */
#ifndef QN_EVAL_RUN_H
#define QN_EVAL_RUN_H

#include "base/base.h"

/* What the task counts first (top-1, mAP50-95), in percent; 0 where there are no labels. */
QN_MUST_CHECK qn_status qn_eval_score(double *points, qn_context *ctx, qn_model *model,
                                      const qn_eval_options *options);

#endif
