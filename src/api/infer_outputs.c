#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "api/infer.h"

/* ---- Names -------------------------------------------------------------------------------------------- */

/* "<folder>/<name, / as _>.npy" */
static char *output_path(qn_arena *arena, const char *folder, const char *name)
{
    char *path = qn_arena_format(arena, "%s/%s.npy", folder, name);
    for (char *c = path ? path + strlen(folder) + 1 : NULL; c && *c; c++) {
        if (*c == '/')
            *c = '_';
    }
    return path;
}

static qn_status check_unique(const qn_infer_job *job, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (strcmp(job->out[k].path, job->out[i].path) == 0)
            return qn_fail(job->ctx, QN_E_INVALID,
                           "outputs '%s' and '%s' would both be written to %s",
                           qn_model_output_name(job->model, k), qn_model_output_name(job->model, i),
                           job->out[i].path);
    }
    return QN_OK;
}

qn_status qn_infer_name_outputs(qn_infer_job *job)
{
    const char *folder = job->options->output_dir;
    if (!folder)
        return QN_OK;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return qn_fail(job->ctx, QN_E_IO, "%s: cannot make the folder: %s", folder,
                       strerror(errno));
    for (size_t i = 0; i < job->n_out; i++) {
        job->out[i].path = output_path(&job->arena, folder, qn_model_output_name(job->model, i));
        QN_TRY_ALLOC(job->ctx, job->out[i].path);
        QN_TRY(check_unique(job, i));
    }
    return QN_OK;
}

/* ---- Contents ------------------------------------------------------------------------------------------- */

/* Samples that an output of the run holds: all of them along dim 0, or one that is the whole. */
static bool is_stacked(const qn_infer_job *job)
{
    for (size_t i = 0; i < job->n_in; i++) {
        if (job->in[i].stacked)
            return true;
    }
    return false;
}

/* The shape of all runs' outputs together. */
static qn_status whole_shape(qn_tensor *out, const qn_infer_job *job, const qn_tensor *tensor,
                             const char *name, int64_t count)
{
    *out = *tensor;
    out->data = NULL;
    if (job->samples < 0)
        return QN_OK;
    if (is_stacked(job)) {
        if (tensor->rank == QN_MAX_RANK)
            return qn_fail(job->ctx, QN_E_UNSUPPORTED, "output '%s' has too many dimensions", name);
        memmove(out->dims + 1, tensor->dims, (size_t)out->rank++ * sizeof *out->dims);
    } else if (tensor->rank < 1 || (tensor->dims[0] != count && tensor->dims[0] != job->batch)) {
        return qn_fail(job->ctx, QN_E_INVALID,
                       "output '%s' has no first axis that counts the samples", name);
    }
    out->dims[0] = job->samples;
    return QN_OK;
}

static bool same_shape(const qn_tensor *a, const qn_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           (a->rank <= 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

static void take_range(qn_infer_output *out, const qn_tensor *tensor, int64_t count)
{
    enum { PIECE = 1024 };
    const qn_dtype_kind kind = qn_dtype_get(tensor->dtype)->kind;
    double numbers[PIECE];
    if (kind == QN_KIND_NONE || kind == QN_KIND_STRING || kind == QN_KIND_COMPLEX)
        return;
    for (int64_t at = 0; at < count; at += PIECE) {
        const int64_t n = QN_MIN(count - at, PIECE);
        qn_load_f64(numbers, tensor->dtype, tensor->data, at, n);
        for (int64_t i = 0; i < n; i++) {
            out->least = out->count + i == 0 || numbers[i] < out->least ? numbers[i] : out->least;
            out->most = out->count + i == 0 || numbers[i] > out->most ? numbers[i] : out->most;
            out->sum += numbers[i];
        }
        out->count += n;
    }
}

static qn_status take_output(qn_infer_job *job, size_t o, int64_t count)
{
    qn_infer_output *out = &job->out[o];
    const qn_tensor *tensor = qn_session_output(job->session, o);
    const char *name = qn_model_output_name(job->model, o);
    qn_tensor whole;
    QN_TRY(whole_shape(&whole, job, tensor, name, count));
    if (out->shape.dtype == QN_UNDEFINED) {
        out->shape = whole;
        if (out->path)
            QN_TRY(qn_npy_open(&out->writer, job->ctx, out->path, &whole));
    } else if (!same_shape(&whole, &out->shape)) {
        return qn_fail(job->ctx, QN_E_INVALID, "output '%s' changes its shape between samples",
                       name);
    }
    int64_t numbers = tensor->rank < 0 ? 0 : qn_tensor_count(tensor);
    if (job->samples >= 0 && !is_stacked(job) && tensor->dims[0] > count)
        numbers = numbers / tensor->dims[0] * count;
    take_range(out, tensor, numbers);
    return out->path ? qn_npy_write(&out->writer, tensor->data, numbers) : QN_OK;
}

qn_status qn_infer_take_outputs(qn_infer_job *job, int64_t count)
{
    for (size_t o = 0; o < job->n_out; o++)
        QN_TRY(take_output(job, o, count));
    return QN_OK;
}

qn_status qn_infer_commit_outputs(qn_infer_job *job)
{
    for (size_t o = 0; o < job->n_out; o++) {
        if (job->out[o].writer.file)
            QN_TRY(qn_npy_commit(&job->out[o].writer));
    }
    return QN_OK;
}

void qn_infer_discard_outputs(qn_infer_job *job)
{
    for (size_t o = 0; job->out && o < job->n_out; o++)
        qn_npy_discard(&job->out[o].writer);
}

void qn_infer_report_outputs(qn_item *parent, const qn_infer_job *job)
{
    qn_item *table = qn_item_table(parent, "outputs");
    for (size_t o = 0; o < job->n_out; o++) {
        const qn_infer_output *out = &job->out[o];
        const qn_type type = qn_type_of(&out->shape);
        char text[256];
        qn_type_format(text, sizeof text, &type);
        qn_item *row = qn_item_row(table);
        qn_item_text(row, "output", qn_model_output_name(job->model, o));
        qn_item_text(row, "type", text);
        qn_item_real(row, "min", out->least, 6);
        qn_item_real(row, "max", out->most, 6);
        qn_item_real(row, "mean", out->count ? out->sum / (double)out->count : 0, 6);
        if (job->options->output_dir)
            qn_item_text(row, "file", out->path);
    }
}
