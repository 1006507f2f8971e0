/* What a model is fed with: files, samples along their first axis, random numbers. */
#ifndef QN_FEED_H
#define QN_FEED_H

#include "data/input_files.h"
#include "data/loader.h"
#include "ir/graph.h"

typedef struct qn_feed_options {
    /* The inputs as qn_infer_options has them */
    const char *const *inputs;
    size_t n_inputs;
    /* NULL: none */
    const qn_data_options *data;
    uint64_t seed;
    const qn_graph_options *graph;
} qn_feed_options;

/* Where one input comes from: a file, samples, or random numbers. */
typedef struct qn_feed_input {
    bool sampled;
    /* A sample is a whole input; else the samples of a run stand along dim 0 */
    bool stacked;
    /* Samples of a run that the model or a given shape fixes; 0: any number */
    int64_t batch;
} qn_feed_input;

typedef struct qn_feed {
    qn_context *ctx;
    qn_model *model;
    const qn_feed_options *options;
    qn_arena arena;
    size_t n_in;
    /* The model's inputs, with the shapes of the options */
    qn_value_info *infos;
    /* [n_in] */
    qn_feed_input *in;
    /* [n_in]; NULL: not from a file */
    qn_tensor **files;
    /* NULL: nothing is sampled */
    qn_dataset *dataset;
    /* The loader is there from the first batch on */
    qn_loader *loader;
    /* Inputs of the run at hand */
    qn_tensor *tensors;
    /* The places of its samples' pictures; NULL: nothing is sampled */
    const qn_picture_place *places;
    /* Sample of the data set that is run first */
    int64_t first;
    /* The samples to run in all; -1: nothing is sampled */
    int64_t samples;
    /* Samples of a run; 1 where nothing is sampled */
    int64_t batch;
    /* Some input is */
    bool stacked;
    /* Samples have different shapes: they run one by one */
    bool varies;
    bool all_sampled;
} qn_feed;

/* Opens the files. qn_feed_close in any case. */
QN_MUST_CHECK qn_status qn_feed_open(qn_feed *feed, qn_context *ctx, qn_model *model,
                                     const qn_feed_options *options);
/* The options' shapes and those that the data give the inputs; they live as long as the feed. */
QN_MUST_CHECK qn_status qn_feed_shapes(qn_input_shape **out, size_t *count, qn_feed *feed);
/* The caller has the plan for these shapes. Makes random numbers for what no file feeds (floats
 * from [-1, 1), integers and bools 0 or 1, small enough for an index; strings empty). Starts to
 * read samples. */
QN_MUST_CHECK qn_status qn_feed_fill(qn_feed *feed, const qn_plan *plan);
/* Such numbers for any tensor. */
void qn_feed_random(qn_tensor *tensor, uint64_t seed);
/* Makes feed->tensors the inputs of the next run; *count gets its samples, 0 past the last run.
 * Without samples there is one run, of 1. */
QN_MUST_CHECK qn_status qn_feed_next(int64_t *count, qn_feed *feed);
/* For callers with threads of their own, each with its own context: tensors[k] become the inputs of
 * sample i alone (counted from feed->first on), those that are sampled with their data in to[k];
 * place (may be NULL) as qn_dataset_read tells it. */
QN_MUST_CHECK qn_status qn_feed_read(qn_tensor *tensors, qn_picture_place *place, void *const *to,
                                     const qn_feed *feed, qn_context *ctx, int64_t i);
/* Samples of run i, and those that its inputs have: a last run may be smaller, or filled up. */
int64_t qn_feed_count(const qn_feed *feed, int64_t run);
int64_t qn_feed_filled(const qn_feed *feed, int64_t run);
void qn_feed_close(qn_feed *feed);

#endif
