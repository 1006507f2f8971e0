/* Patterns of names: '*' any text, '?' any character. A pattern fits a node by its name, by the
 * name of a value it writes, or by its operator. */
#ifndef QN_PATTERN_H
#define QN_PATTERN_H

#include "quant/quant.h"

/* The name that comes nearest to what was wanted. */
typedef struct qn_near {
    const char *wanted, *best;
    /* SIZE_MAX in the beginning */
    size_t distance;
} qn_near;
void qn_near_try(qn_near *near, const char *name);

bool qn_pattern_fits(const char *pattern, const char *text);
/* Makes nodes float or of another width as the settings say. Fails where a pattern fits nothing,
 * with the name that comes nearest. */
QN_MUST_CHECK qn_status qn_patterns_apply(qn_quantizer *q);

#endif
