/* Where the outputs of qn_infer_files go. */
#ifndef QN_INFER_JOB_H
#define QN_INFER_JOB_H

#include "executor/feed.h"
#include "report/report.h"

typedef struct qn_infer_output {
    const char *name;
    /* NULL: not written */
    char *path;
    /* Open from the first run on, of strings at the end */
    qn_npy_writer writer;
    /* The shape of all runs together */
    qn_tensor shape;
    /* The strings of all runs: the longest one of them counts. NULL: none */
    qn_string *strings;
    /* Taken */
    int64_t n_strings;
    /* The tensors of a sequence, in place of itself; NULL: it is none */
    struct qn_infer_output *parts;
    size_t n_parts;
    /* Cannot be put together */
    bool left_out;
    double least, most, sum;
    /* The number of numbers seen */
    int64_t count;
} qn_infer_output;

typedef struct qn_infer_outputs {
    qn_feed *feed;
    qn_infer_output *at;
    size_t count, n_left_out;
    char *folder;
    /* Letters of `folder` up to the first part of it that was not there before and has nothing in
     * it for good; 0: none */
    size_t made;
} qn_infer_outputs;

/* Makes the folder (NULL: nothing is written) and the names of the files. */
QN_MUST_CHECK qn_status qn_infer_outputs_init(qn_infer_outputs *out, qn_feed *feed,
                                              const char *folder);
/* Takes what the session's run of `count` samples gave. An output that does not fit together with
 * those of other runs is left out with a warning; fails where none is left. */
QN_MUST_CHECK qn_status qn_infer_outputs_take(qn_infer_outputs *out, const qn_session *session,
                                              int64_t count);
/* Gives the files their names. */
QN_MUST_CHECK qn_status qn_infer_outputs_commit(qn_infer_outputs *out);
/* Removes what is not committed, and the folders that were made for that. */
void qn_infer_outputs_discard(qn_infer_outputs *out);
void qn_infer_outputs_report(qn_item *parent, const qn_infer_outputs *out);

#endif
