/* Widths of layers within a budget of accuracy. */
#ifndef QN_ACCURACY_BUDGET_H
#define QN_ACCURACY_BUDGET_H

#include "quantize/job.h"

/* Of a calibrated job whose tables are as the rules left them: makes the model with the fewest layers above
 * the asked width whose drop the goal allows, or the one that comes nearest, and tells of every step in
 * "goal" of `root`. QN_E_GOAL where none holds; the job's model is then there all the same. */
QN_MUST_CHECK qn_status qn_accuracy_budget_search(qn_item *root, qn_quantize_job *j);

#endif
