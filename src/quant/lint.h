/* Findings about what keeps a quantized model, whoever made it, from running in integers on a
 * target. */
#ifndef QN_LINT_H
#define QN_LINT_H

#include "quant/quant.h"

typedef struct qn_lint_finding {
    const char *rule;
    const qn_node *node;
    /* The reason in words, valid during the call of `report`. */
    const char *why;
} qn_lint_finding;

typedef struct qn_lint_sink {
    void (*report)(void *user, const qn_lint_finding *finding);
    void *user;
} qn_lint_sink;

/* One row per rule, in the order of docs/quantization.md. */
typedef struct qn_lint_rule qn_lint_rule;
const char *qn_lint_rule_name(size_t i, const char **brief); /* NULL past the last */

/* Checks every node of the model's main graph, whose types are inferred. */
QN_MUST_CHECK qn_status qn_lint(qn_model *model, const qn_profile *profile,
                                const qn_lint_sink *sink);

#endif
