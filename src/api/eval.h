/* What a search for accuracy asks of an evaluation. */
#ifndef QN_EVAL_RUN_H
#define QN_EVAL_RUN_H

#include "base/base.h"

/* Share of the labelled samples, in percent, whose best score is that of their class. */
QN_MUST_CHECK qn_status qn_eval_top1(double *percent, qn_context *ctx, qn_model *model,
                                     const qn_eval_options *options);

#endif
