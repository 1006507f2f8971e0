/* A snapshot of a graph's nodes, from which the changes of a pass are reported. */
#ifndef QN_PASS_SNAPSHOT_H
#define QN_PASS_SNAPSHOT_H

#include "pass/pass.h"

/* The nodes of a graph before a pass. */
typedef struct qn_pass_snapshot {
    qn_names by_name;
    struct qn_seen_node *nodes;
    size_t count;
} qn_pass_snapshot;

/* Takes the snapshot; call qn_pass_snapshot_free also after a failure. */
QN_MUST_CHECK qn_status qn_pass_snapshot_take(qn_pass_snapshot *snapshot, const qn_graph *graph);
/* Reports every node that is new, that reads, writes or computes something else, or that is
 * gone. */
void qn_pass_snapshot_report(qn_pass_snapshot *snapshot, const qn_graph *graph,
                             const qn_pass_observer *observer, const qn_pass *pass);
void qn_pass_snapshot_free(qn_pass_snapshot *snapshot, const qn_graph *graph);

#endif
