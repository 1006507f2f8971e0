/* The table of tasks, and the calls that lead to the chosen one. */
#include "task/task.h"

#include <string.h>

static const qn_task_kind *const kinds[] = {&qn_task_classification, &qn_task_detection};

const char *qn_task_at(size_t i)
{
    return i < QN_COUNT_OF(kinds) ? kinds[i]->name : NULL;
}

static const qn_task_kind *find_kind(const char *name)
{
    for (size_t i = 0; i < QN_COUNT_OF(kinds); i++) {
        if (!name || strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    }
    return NULL;
}

bool qn_task_own_labels(const char *name)
{
    const qn_task_kind *kind = find_kind(name);
    return kind && kind->own_labels;
}

qn_status qn_task_create(qn_task **out, qn_context *ctx, const char *name,
                         const qn_task_options *options)
{
    const qn_task_kind *kind = find_kind(name);
    *out = NULL;
    if (!kind)
        return qn_fail(ctx, QN_E_UNSUPPORTED, "no task '%s': there are classification, detection",
                       name);
    qn_task *task = qn_alloc_zero(ctx, 1, sizeof *task);
    QN_TRY_ALLOC(ctx, task);
    *task = (qn_task){.kind = kind, .ctx = ctx, .options = *options};
    const qn_status status = kind->create(task);
    if (status == QN_OK)
        *out = task;
    else
        qn_task_free(task);
    return status;
}

void qn_task_free(qn_task *task)
{
    if (!task)
        return;
    if (task->own)
        task->kind->free(task);
    qn_free(task->ctx, task->own);
    qn_free(task->ctx, task);
}

const char *qn_task_name_of(const qn_task *task)
{
    return task->kind->name;
}

qn_status qn_task_check(qn_task *task, const qn_dataset *data, bool other)
{
    return task->kind->check(task, data, other);
}

void qn_task_load(double *values, const qn_task_output *output, int64_t count)
{
    qn_load_f64(values, output->tensor.dtype, output->tensor.data, output->first, count);
    for (int64_t i = 0; i < count && output->scale > 0; i++)
        values[i] *= output->scale;
}

qn_status qn_task_cut(qn_task_output *out, qn_context *ctx, const qn_tensor *output, int64_t row,
                      int64_t rows)
{
    const qn_dtype_kind kind = qn_dtype_get(output->dtype)->kind;
    if (kind == QN_KIND_NONE || kind == QN_KIND_STRING || kind == QN_KIND_COMPLEX)
        return qn_fail(ctx, QN_E_INVALID, "output '%s' holds no numbers", out->name);
    if (row >= rows)
        return qn_fail(ctx, QN_E_INVALID, "output '%s' has no first axis that counts the samples",
                       out->name);
    out->tensor = *output;
    out->first = qn_tensor_count(output) / rows * row;
    out->scale = 0;
    if (rows > 1)
        out->tensor.dims[0] = 1;
    return QN_OK;
}

void qn_task_place(qn_picture_place *place, const qn_tensor *inputs, size_t n_inputs)
{
    for (size_t i = 0; !place->width && i < n_inputs; i++) {
        const int64_t *dims = inputs[i].dims;
        if (inputs[i].rank != 4)
            continue;
        const int nhwc = dims[1] > 4 && dims[3] <= 4;
        place->height = place->input_height = (int32_t)QN_MIN(dims[2 - nhwc], INT32_MAX);
        place->width = place->input_width = (int32_t)QN_MIN(dims[3 - nhwc], INT32_MAX);
        place->scale_x = place->scale_y = 1;
    }
}

qn_status qn_task_add(qn_task *task, const qn_task_sample *sample)
{
    return task->kind->add(task, sample);
}

qn_status qn_task_finish(qn_task *task)
{
    return task->kind->finish(task);
}

void qn_task_metrics(qn_task_metric out[QN_TASK_METRICS], const qn_task *task, bool of_float)
{
    task->kind->metrics(out, task, of_float);
}

void qn_task_describe(qn_item *root, const qn_task *task)
{
    task->kind->describe(root, task);
}

void qn_task_describe_model(qn_item *row, const qn_task *task, bool of_float)
{
    task->kind->describe_model(row, task, of_float);
}
