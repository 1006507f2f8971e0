/* What can be switched off, beside the choice of ranges. */
#ifndef QN_REFINEMENT_H
#define QN_REFINEMENT_H

#include "quant/params.h"

/* Those that the report tells of come first, in the order of qn_refinement. */
enum { QN_REFINEMENT_ROWS = QN_REFINEMENTS + 1 };

typedef struct qn_refinement_row {
    const char *name;
    /* Of qn_param_options */
    size_t flag;
    /* Where the network is better without: it is a guess about data */
    bool may_be_left;
} qn_refinement_row;

extern const qn_refinement_row qn_refinement_rows[QN_REFINEMENT_ROWS];

bool *qn_refinement_flag(qn_param_options *params, size_t row);
bool qn_refinement_is_on(const qn_param_options *params, size_t row);
/* QN_REFINEMENT_ROWS: there is none of this name. */
size_t qn_refinement_find(const char *name);

#endif
