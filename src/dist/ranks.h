/* Processes that share a job: who they are, messages between them, and how one that fails tells the
 * others.
 *
 * A context joins its group once (qn_context_join of quench/jobs.h). All waiting ends where the
 * context is cancelled or another rank has failed; it parks the thread and does not spin. */
#ifndef QN_DIST_RANKS_H
#define QN_DIST_RANKS_H

#include "base/text.h"

typedef struct qn_ranks qn_ranks;

/* The group that the context joined; NULL: it is alone. */
qn_ranks *qn_ranks_of(const qn_context *ctx);
/* 0 to the count less 1; of NULL 0 and 1. */
int qn_ranks_own(const qn_ranks *ranks);
int qn_ranks_count(const qn_ranks *ranks);

/* Messages of any size, in order between two ranks. */
QN_MUST_CHECK qn_status qn_ranks_send(qn_ranks *ranks, int to, const void *data, size_t size);
/* *out, to be freed with qn_free, gets the next message from that rank. */
QN_MUST_CHECK qn_status qn_ranks_receive(void **out, size_t *size, qn_ranks *ranks, int from);
/* Rank 0 has the bytes, all get them: *out is to be freed with qn_free, on rank 0 too. */
QN_MUST_CHECK qn_status qn_ranks_broadcast(void **out, size_t *out_size, qn_ranks *ranks,
                                           const void *data, size_t size);

/* Fails with the message of a rank that failed, if there is one. For long loops. */
QN_MUST_CHECK qn_status qn_ranks_check(qn_ranks *ranks);
/* Tells all others that this one failed, with the message of its context; returns `status`. Nothing
 * is told where it was another rank that failed, or where the job was cancelled. */
qn_status qn_ranks_fail(qn_ranks *ranks, qn_status status);
/* A job was done together: who fails from now on does not end it. */
void qn_ranks_finish_job(qn_ranks *ranks);

#endif
