/* Tells which nodes a pass touched. */
#ifndef QN_PASS_SNAPSHOT_H
#define QN_PASS_SNAPSHOT_H

#include "pass/pass.h"

/* The nodes of a graph as they were. */
typedef struct qn_pass_snapshot {
    qn_names by_name;
    struct qn_seen_node *nodes;
    size_t count;
} qn_pass_snapshot;

/* qn_pass_snapshot_free in any case. */
QN_MUST_CHECK qn_status qn_pass_snapshot_take(qn_pass_snapshot *snapshot, const qn_graph *graph);
/* Tells of every node that is there now and was not, or reads, writes or computes something else,
 * or is gone. */
void qn_pass_snapshot_report(qn_pass_snapshot *snapshot, const qn_graph *graph,
                             const qn_pass_observer *observer, const qn_pass *pass);
void qn_pass_snapshot_free(qn_pass_snapshot *snapshot, const qn_graph *graph);

#endif
