/* Widths of layers within a budget of accuracy. */
#ifndef QN_ACCURACY_BUDGET_H
#define QN_ACCURACY_BUDGET_H

#include "quantize/layers.h"

/* Makes the model with the fewest layers above the asked width whose drop the budget allows, or the
 * one that comes nearest, and reports every step in "goal". QN_E_GOAL where none holds; the result
 * is then there all the same. */
QN_MUST_CHECK qn_status qn_accuracy_budget_search(qn_quantize_result *out, qn_search *s,
                                                  qn_layers *layers);

#endif
