/* Tasks: what a model's outputs mean, and how good they are. A row per task; whoever runs samples
 * gives each one's outputs to it and asks at the end, and knows nothing else of it:
 *
 *     qn_task_create, qn_task_add for every sample, qn_task_finish, qn_task_metrics or qn_task_describe,
 *     qn_task_free. */
#ifndef QN_TASK_H
#define QN_TASK_H

#include "data/dataset.h"
#include "report/report.h"

typedef struct qn_task qn_task;

typedef struct qn_task_options {
    /* Of tasks that have labels of their own; NULL: none */
    const char *labels;
    /* Gets what was found, as labels; NULL: not written */
    const char *label_dir;
    /* Added to every label */
    int64_t class_offset;
    /* Of detection; NULL: the standard */
    const qn_detect_options *detect;
} qn_task_options;

/* One sample's part of an output. */
typedef struct qn_task_output {
    const char *name;
    /* dims[0] 1 where it counts samples; data is that of the whole run */
    qn_tensor tensor;
    /* Element of the data that the sample begins with */
    int64_t first;
    /* That its numbers are to be multiplied with; 0: 1 */
    double scale;
} qn_task_output;

typedef struct qn_task_sample {
    /* [n_outputs] of the model */
    const qn_task_output *outputs;
    size_t n_outputs;
    /* [n_float_outputs] of its float original; NULL: none */
    const qn_task_output *float_outputs;
    size_t n_float_outputs;
    /* That it is from: its name, class and picture are asked for there */
    const qn_dataset *data;
    /* In the data set */
    int64_t index;
    /* As the data set told when it was read */
    qn_picture_place place;
} qn_task_sample;

/* The i-th task; NULL past the last. */
const char *qn_task_at(size_t i);
/* By name; NULL is the first one's. The options and what they point to must outlive the task. */
QN_MUST_CHECK qn_status qn_task_create(qn_task **out, qn_context *ctx, const char *name,
                                       const qn_task_options *options);
void qn_task_free(qn_task *task);
const char *qn_task_name_of(const qn_task *task);
/* Whether --labels is for the task itself; else it is a file of classes of the data set. */
bool qn_task_own_labels(const char *name);
/* Fails where these samples cannot be measured: no labels, say. `other`: a float original is
 * there. */
QN_MUST_CHECK qn_status qn_task_check(qn_task *task, const qn_dataset *data, bool other);

/* The part of sample `row` of an output that has `rows` samples along axis 0 (1: it is the whole
 * output); out->name is set before; its scale is left out. */
QN_MUST_CHECK qn_status qn_task_cut(qn_task_output *out, qn_context *ctx, const qn_tensor *output,
                                    int64_t row, int64_t rows);
/* The first `count` numbers of the sample's part, scaled. */
void qn_task_load(double *values, const qn_task_output *output, int64_t count);
/* Of samples that are no pictures: the input's size, by the shape of the first one with 4 axes. */
void qn_task_place(qn_picture_place *place, const qn_tensor *inputs, size_t n_inputs);
/* Samples come in their order. */
QN_MUST_CHECK qn_status qn_task_add(qn_task *task, const qn_task_sample *sample);
/* Once, behind the last sample. */
QN_MUST_CHECK qn_status qn_task_finish(qn_task *task);

/* What the task measures, the one that counts first. */
enum { QN_TASK_METRICS = 2 };
typedef struct qn_task_metric {
    /* "top_1" */
    const char *name;
    /* NAN: not measured */
    double value;
    /* What a perfect model has: 100 or 1 */
    double most;
} qn_task_metric;
void qn_task_metrics(qn_task_metric out[QN_TASK_METRICS], const qn_task *task, bool of_float);
/* What is to say of all samples, and of one of the models in its row of a table. */
void qn_task_describe(qn_item *root, const qn_task *task);
void qn_task_describe_model(qn_item *row, const qn_task *task, bool of_float);

/* ---- For the tasks --------------------------------------------------------------------------- */

typedef struct qn_task_kind {
    const char *name;
    bool own_labels;
    qn_status (*create)(qn_task *task);
    qn_status (*check)(qn_task *task, const qn_dataset *data, bool other);
    qn_status (*add)(qn_task *task, const qn_task_sample *sample);
    qn_status (*finish)(qn_task *task);
    void (*metrics)(qn_task_metric *out, const qn_task *task, bool of_float);
    void (*describe)(qn_item *root, const qn_task *task);
    void (*describe_model)(qn_item *row, const qn_task *task, bool of_float);
    void (*free)(qn_task *task);
} qn_task_kind;

struct qn_task {
    const qn_task_kind *kind;
    qn_context *ctx;
    qn_task_options options;
    /* Of the kind */
    void *own;
};

extern const qn_task_kind qn_task_classification, qn_task_detection;

#endif
