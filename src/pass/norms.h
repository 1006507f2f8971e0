/* Norms of rows as files spell them. */
#ifndef QN_NORMS_H
#define QN_NORMS_H

#include "ir/graph.h"

/* Whether the node divides its input by the root of its mean square over the last axis: an RMS norm
 * that no operator stands for, before its scale. */
bool qn_is_rms_norm(const qn_node *node);

#endif
