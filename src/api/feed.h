/* What a model is fed with: files, samples along their first axis, random numbers. */
#ifndef QN_FEED_H
#define QN_FEED_H

#include "data/array.h"
#include "ir/graph.h"

typedef struct qn_feed_options {
    const char *const *inputs; /* as qn_infer_options has them */
    size_t n_inputs;
    const char *const *data;
    size_t n_data;
    int64_t batch;
    uint64_t seed;
    const qn_graph_options *graph;
} qn_feed_options;

/* Where one input comes from. */
typedef struct qn_feed_input {
    qn_tensor *file; /* NULL: random numbers */
    bool sampled;    /* the file's first axis counts samples */
    bool stacked;    /* a sample is a whole input; else the samples of a run stand along dim 0 */
    int64_t batch;   /* samples of a run that the model or a given shape fixes; 0: any number */
    void *padded;    /* a last batch that was filled up; aligned */
} qn_feed_input;

typedef struct qn_feed {
    qn_context *ctx;
    qn_model *model;
    const qn_feed_options *options;
    qn_arena arena;
    qn_feed_input *in; /* one per input of the model */
    size_t n_in;
    qn_tensor *tensors; /* inputs of the run at hand */
    int64_t samples;    /* in all; -1: nothing is sampled */
    int64_t batch;      /* samples of a run; 1 where nothing is sampled */
    bool stacked;       /* some input is */
    bool all_sampled;
} qn_feed;

/* Opens the files. qn_feed_close in any case. */
QN_MUST_CHECK qn_status qn_feed_open(qn_feed *feed, qn_context *ctx, qn_model *model,
                                     const qn_feed_options *options);
/* The options' shapes and those that the files give the inputs; they live as long as the feed. */
QN_MUST_CHECK qn_status qn_feed_shapes(qn_input_shape **out, size_t *count, qn_feed *feed);
/* With the plan for these shapes: makes random numbers for what no file feeds (floats from [-1, 1),
 * integers and bools 0 or 1, small enough for an index; strings empty). */
QN_MUST_CHECK qn_status qn_feed_fill(qn_feed *feed, const qn_plan *plan);
/* Makes feed->tensors the inputs of samples [first, first + count). */
QN_MUST_CHECK qn_status qn_feed_select(qn_feed *feed, int64_t first, int64_t count);
void qn_feed_close(qn_feed *feed);

#endif
