/* The infer functions that are built in, found by their names. */
#ifndef QN_FUNCTIONS_H
#define QN_FUNCTIONS_H

#include "executor/executor.h"

typedef struct qn_function_row {
    const char *name;
    const char *brief;
    /* NULL: the samples of qn_data_options, or random ones, are read and run side by side */
    qn_infer_fn *run;
    /* Adds what it depends on besides the model; NULL: nothing that others do not know. */
    qn_status (*print)(qn_fingerprint *print, qn_context *ctx, const qn_function *function);
    /* Data that were given are not looked at */
    bool random;
} qn_function_row;

/* Makes *function complete; *row is NULL where it was given with its code. */
QN_MUST_CHECK qn_status qn_function_find(const qn_function_row **row, qn_context *ctx,
                                         qn_function *function, bool has_data);

#endif
