/* Tasks say what a model's outputs mean, and measure how good they are. There is one row per task.
 * Whoever runs samples needs only these calls:
 *
 *   qn_task_create, qn_task_add for every sample, qn_task_finish,
 *   qn_task_metrics or qn_task_describe, qn_task_free */
#ifndef QN_TASK_H
#define QN_TASK_H

#include "data/dataset.h"
#include "report/report.h"

typedef struct qn_task qn_task;

typedef struct qn_task_options {
    /* Labels of a task that reads its own; NULL: none. */
    const char *labels;
    /* The folder that gets what was found, as labels; NULL: nothing is written. */
    const char *label_dir;
    /* A number that is added to every label. */
    int64_t class_offset;
    /* Options of detection; NULL: the defaults. */
    const qn_detect_options *detect;
} qn_task_options;

/* One sample's part of an output. */
typedef struct qn_task_output {
    const char *name;
    /* The tensor of one sample, dims[0] 1 where that axis counts samples; its data is that of the
     * whole run. */
    qn_tensor tensor;
    /* The index of the element that the sample begins with. */
    int64_t first;
    /* The scale that its numbers are multiplied with; 0 means 1. */
    double scale;
} qn_task_output;

typedef struct qn_task_sample {
    /* [n_outputs], the model's outputs. */
    const qn_task_output *outputs;
    size_t n_outputs;
    /* [n_float_outputs], those of the float model; NULL: there is none. */
    const qn_task_output *float_outputs;
    size_t n_float_outputs;
    /* The data set of the sample, for its name, class and picture. */
    const qn_dataset *data;
    /* The index in the data set. */
    int64_t index;
    /* The position of the picture, as the data set gave it. */
    qn_picture_place place;
} qn_task_sample;

/* The name of task i; NULL past the last. */
const char *qn_task_at(size_t i);
/* Creates a task by name; NULL: the first. The options and what they point to must outlive it. */
QN_MUST_CHECK qn_status qn_task_create(qn_task **out, qn_context *ctx, const char *name,
                                       const qn_task_options *options);
void qn_task_free(qn_task *task);
const char *qn_task_name_of(const qn_task *task);
/* Whether the labels of the options are for the task itself; else they are a file of classes of the
 * data set. */
bool qn_task_own_labels(const char *name);
/* Fails where samples of this data set cannot be measured, for example without labels. `other`: a
 * float model runs too. */
QN_MUST_CHECK qn_status qn_task_check(qn_task *task, const qn_dataset *data, bool other);

/* Gives the part of sample `row` of an output with `rows` samples along axis 0 (1: the whole
 * output). out->name is set before; out->scale is left alone. */
QN_MUST_CHECK qn_status qn_task_cut(qn_task_output *out, qn_context *ctx, const qn_tensor *output,
                                    int64_t row, int64_t rows);
/* Loads the first `count` numbers of the sample's part, scaled. */
void qn_task_load(double *values, const qn_task_output *output, int64_t count);
/* Sets the input's size for samples that are no pictures, by the shape of the first input with 4
 * axes. */
void qn_task_place(qn_picture_place *place, const qn_tensor *inputs, size_t n_inputs);
/* Adds a sample; samples come in their order. */
QN_MUST_CHECK qn_status qn_task_add(qn_task *task, const qn_task_sample *sample);
/* Finishes the measures, once after the last sample. */
QN_MUST_CHECK qn_status qn_task_finish(qn_task *task);

/* The metrics of a task, the most important first. */
enum { QN_TASK_METRICS = 2 };
typedef struct qn_task_metric {
    /* "top_1" */
    const char *name;
    /* The value; NAN: not measured. */
    double value;
    /* The value of a perfect model: 100 or 1. */
    double most;
} qn_task_metric;
void qn_task_metrics(qn_task_metric out[QN_TASK_METRICS], const qn_task *task, bool of_float);
/* Describes all samples in a report, and one of the models in its row of a table. */
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
    /* The state of this kind of task. */
    void *own;
};

extern const qn_task_kind qn_task_classification, qn_task_detection;

#endif
