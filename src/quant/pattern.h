/* Patterns that select nodes: '*' stands for any text, '?' for one character. A pattern fits a node
 * by the node's name, the name of a value it writes, or its operator. */
#ifndef QN_PATTERN_H
#define QN_PATTERN_H

#include "quant/quant.h"

/* The name that is most like the wanted one, for "did you mean". */
typedef struct qn_near {
    const char *wanted, *best;
    /* The edit distance of `best`; SIZE_MAX before the first try. */
    size_t distance;
} qn_near;
void qn_near_try(qn_near *near, const char *name);

bool qn_pattern_fits(const char *pattern, const char *text);
/* Applies the settings' patterns: nodes stay float or get another width. Fails where a pattern fits
 * nothing, with the most similar name. */
QN_MUST_CHECK qn_status qn_patterns_apply(qn_quantizer *q);
/* Norms of rows, which read the sum of all layers before them, and functions of angles, which span
 * more turns than 8 bits tell apart: nodes that are as fast in float and more exact. */
bool qn_quant_wants_float(const qn_node *node);

#endif
