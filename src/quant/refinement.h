/* The refinements: improvements beside the choice of ranges that can be switched off. */
#ifndef QN_REFINEMENT_H
#define QN_REFINEMENT_H

#include "quant/params.h"

/* The refinements that reports count come first, in the order of qn_refinement. */
enum { QN_REFINEMENT_ROWS = QN_REFINEMENTS + 1 };

typedef struct qn_refinement_row {
    const char *name;
    /* The offset of its switch in qn_param_options. */
    size_t flag;
    /* Whether it may be left out where the network is more accurate without it: it relies on
     * assumptions about the data. */
    bool may_be_left;
} qn_refinement_row;

extern const qn_refinement_row qn_refinement_rows[QN_REFINEMENT_ROWS];

bool *qn_refinement_flag(qn_param_options *params, size_t row);
bool qn_refinement_is_on(const qn_param_options *params, size_t row);
/* The row of this name; QN_REFINEMENT_ROWS: there is none. */
size_t qn_refinement_find(const char *name);

#endif
