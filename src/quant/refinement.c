/* The table of refinements that can be switched off. */
#include "quant/refinement.h"

#include <stddef.h>
#include <string.h>

const qn_refinement_row qn_refinement_rows[QN_REFINEMENT_ROWS] = {
    {"equalization", offsetof(qn_param_options, equalize), true},
    {"balancing", offsetof(qn_param_options, smooth_channels), true},
    {"weight clipping", offsetof(qn_param_options, clip_weights), false},
    {"bias correction", offsetof(qn_param_options, correct_bias), false},
    {"look-through", offsetof(qn_param_options, function_ranges), false},
};

bool *qn_refinement_flag(qn_param_options *params, size_t row)
{
    return (bool *)((char *)params + qn_refinement_rows[row].flag);
}

bool qn_refinement_is_on(const qn_param_options *params, size_t row)
{
    return *(const bool *)((const char *)params + qn_refinement_rows[row].flag);
}

size_t qn_refinement_find(const char *name)
{
    size_t row = 0;
    while (row < QN_REFINEMENT_ROWS && strcmp(qn_refinement_rows[row].name, name) != 0)
        row++;
    return row;
}
