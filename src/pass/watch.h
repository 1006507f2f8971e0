/* Tells which nodes a pass touched. */
#ifndef QN_PASS_WATCH_H
#define QN_PASS_WATCH_H

#include "pass/pass.h"

/* The nodes of a graph as they were. */
typedef struct qn_pass_snapshot {
    qn_names by_name;
    struct qn_seen_node *nodes;
    size_t count;
} qn_pass_snapshot;

/* qn_watch_free in any case. */
QN_MUST_CHECK qn_status qn_watch_begin(qn_pass_snapshot *snapshot, const qn_graph *graph);
/* Tells of every node that is there now and was not, or reads, writes or computes something else, or is gone. */
void qn_watch_end(qn_pass_snapshot *snapshot, const qn_graph *graph, const qn_pass_watch *watch,
                  const qn_pass *pass);
void qn_watch_free(qn_pass_snapshot *snapshot, const qn_graph *graph);

#endif
