/* The parts of qn_infer_files: where inputs come from (infer_inputs.c), where outputs go
 * (infer_outputs.c), and the runs between them (infer.c). */
#ifndef QN_INFER_JOB_H
#define QN_INFER_JOB_H

#include "data/array.h"
#include "report/report.h"
#include "run/session.h"

/* What a graph input is fed from. */
typedef struct qn_infer_input {
    qn_tensor *file; /* NULL: random numbers */
    bool sampled;    /* the file's first axis counts samples */
    bool stacked;    /* a sample is a whole input; else the samples of a run stand along dim 0 */
    int64_t batch;   /* samples of a run that the model fixes; 0: any number */
    void *padded;    /* a last batch that was filled up; aligned */
} qn_infer_input;

typedef struct qn_infer_output {
    char *path;           /* NULL: not written */
    qn_npy_writer writer; /* open from the first run on */
    qn_tensor shape;      /* of all runs together */
    double least, most, sum;
    int64_t count; /* of numbers seen */
} qn_infer_output;

typedef struct qn_infer_job {
    qn_context *ctx;
    qn_model *model;
    const qn_infer_options *options;
    qn_arena arena;
    qn_plan *plan;
    qn_session *session;
    qn_infer_input *in;   /* one per input of the model */
    qn_infer_output *out; /* one per output */
    size_t n_in, n_out;
    qn_tensor *tensors; /* of the run at hand */
    int64_t samples;    /* in all; -1: nothing is sampled */
    int64_t batch;      /* samples of a run */
    double run_ms;
} qn_infer_job;

/* Opens the files of the options. */
QN_MUST_CHECK qn_status qn_infer_open_inputs(qn_infer_job *job);
/* The shapes that the files give the inputs, in the job's arena. */
QN_MUST_CHECK qn_status qn_infer_shapes(qn_input_shape **out, size_t *count, qn_infer_job *job);
/* Random numbers for what no file feeds. */
QN_MUST_CHECK qn_status qn_infer_fill_inputs(qn_infer_job *job);
/* Makes job->tensors the inputs of samples [first, first + count). */
QN_MUST_CHECK qn_status qn_infer_select(qn_infer_job *job, int64_t first, int64_t count);
void qn_infer_close_inputs(qn_infer_job *job);

/* File names of the outputs. */
QN_MUST_CHECK qn_status qn_infer_name_outputs(qn_infer_job *job);
/* Takes the outputs of a run of `count` samples. */
QN_MUST_CHECK qn_status qn_infer_take_outputs(qn_infer_job *job, int64_t count);
QN_MUST_CHECK qn_status qn_infer_commit_outputs(qn_infer_job *job);
void qn_infer_discard_outputs(qn_infer_job *job);
void qn_infer_report_outputs(qn_item *parent, const qn_infer_job *job);

#endif
