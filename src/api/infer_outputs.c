/* Outputs of all runs put together and written. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/infer.h"
#include "base/folder.h"

/* ---- Names ----------------------------------------------------------------------------------- */

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

/* Names the output's file; none of the first `others` outputs may have the same. */
static qn_status name_file(qn_infer_outputs *out, qn_infer_output *output, size_t others)
{
    qn_context *ctx = out->feed->ctx;
    output->path = output_path(&out->feed->arena, out->folder, output->name);
    QN_TRY_ALLOC(ctx, output->path);
    for (size_t k = 0; k < others; k++) {
        if (strcmp(out->at[k].path, output->path) == 0)
            return qn_fail(ctx, QN_E_INVALID, "outputs '%s' and '%s' would both be written to %s",
                           out->at[k].name, output->name, output->path);
    }
    return QN_OK;
}

/* Makes the folder, and those above it that are not there: these begin at out->made. */
static qn_status make_folder(qn_infer_outputs *out, const char *folder)
{
    qn_context *ctx = out->feed->ctx;
    const size_t length = strlen(folder);
    char *path = qn_arena_text(&out->feed->arena, folder, length);
    QN_TRY_ALLOC(ctx, path);
    out->folder = path;
    for (size_t end = QN_MIN(length, 1); end <= length && !out->made; end++) {
        if (path[end] && path[end] != '/')
            continue;
        path[end] = 0;
        out->made = qn_folder_is(path) ? 0 : end;
        if (end < length)
            path[end] = '/';
    }
    return qn_folder_create(ctx, folder, NULL);
}

/* The folders that were made, where nothing came to lie in them. */
static void remove_folders(qn_infer_outputs *out)
{
    for (size_t end = out->made ? strlen(out->folder) : 0; end && end >= out->made; end--) {
        if (out->folder[end] && out->folder[end] != '/')
            continue;
        out->folder[end] = 0;
        (void)rmdir(out->folder);
    }
}

static qn_status name_files(qn_infer_outputs *out, const char *folder)
{
    QN_TRY(make_folder(out, folder));
    for (size_t i = 0; i < out->count; i++)
        QN_TRY(name_file(out, &out->at[i], i));
    return QN_OK;
}

qn_status qn_infer_outputs_init(qn_infer_outputs *out, qn_feed *feed, const char *folder)
{
    out->feed = feed;
    out->count = qn_model_output_count(feed->model);
    out->at = qn_arena_array(&feed->arena, out->count + 1, sizeof *out->at);
    QN_TRY_ALLOC(feed->ctx, out->at);
    for (size_t i = 0; i < out->count; i++)
        out->at[i].name = qn_model_output_name(feed->model, i);
    return folder ? name_files(out, folder) : QN_OK;
}

/* ---- Contents -------------------------------------------------------------------------------- */

/* Whether the first axis of what a run of `count` samples gave counts these. */
static bool has_samples(const qn_feed *feed, const qn_tensor *tensor, int64_t count)
{
    return feed->samples >= 0 && !feed->stacked && tensor->rank > 0 &&
           (tensor->dims[0] == count || tensor->dims[0] == feed->batch);
}

/* The shape of all runs' outputs together. Returns NULL, or why there is none. */
static const char *whole_shape(qn_tensor *out, const qn_feed *feed, const qn_tensor *tensor,
                               int64_t count)
{
    *out = *tensor;
    out->data = NULL;
    if (tensor->dtype == QN_NONE)
        return "has no value";
    if (feed->samples < 0)
        return NULL;
    if (!has_samples(feed, tensor, count)) {
        if (feed->batch > 1)
            return "has no first axis that counts the samples; with a batch of 1 it gets one";
        if (tensor->rank == QN_MAX_RANK)
            return "has too many dimensions to be stacked";
        memmove(out->dims + 1, tensor->dims, (size_t)out->rank++ * sizeof *out->dims);
    }
    out->dims[0] = feed->samples;
    return NULL;
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

/* Dimensions in which samples differ are told as open; a file needs them all alike. */
static bool loosen(qn_infer_output *out, const qn_tensor *whole)
{
    if (same_shape(whole, &out->shape))
        return true;
    if (out->path || whole->dtype != out->shape.dtype || whole->rank != out->shape.rank)
        return false;
    for (int32_t d = 0; d < whole->rank; d++) {
        if (whole->dims[d] != out->shape.dims[d])
            out->shape.dims[d] = -1;
    }
    return true;
}

static qn_status begin_output(qn_infer_output *out, qn_feed *feed)
{
    if (!out->path)
        return QN_OK;
    if (out->shape.dtype != QN_STRING)
        return qn_npy_open(&out->writer, feed->ctx, out->path, &out->shape);
    const size_t count = (size_t)qn_tensor_count(&out->shape);
    out->strings = qn_arena_array(&feed->arena, count + 1, sizeof *out->strings);
    QN_TRY_ALLOC(feed->ctx, out->strings);
    return QN_OK;
}

/* The first run opens the file. Returns why there can be none, as whole_shape does. */
static qn_status fit_output(const char **why, qn_infer_output *out, qn_feed *feed,
                            const qn_tensor *tensor, int64_t count)
{
    qn_tensor whole;
    *why = whole_shape(&whole, feed, tensor, count);
    if (*why)
        return QN_OK;
    if (out->shape.dtype != QN_UNDEFINED) {
        *why = loosen(out, &whole) ? NULL
                                   : "changes its shape between samples (`first` N `samples` 1 "
                                     "writes it for one)";
        return QN_OK;
    }
    out->shape = whole;
    return begin_output(out, feed);
}

/* The others are still worth having. */
static qn_status leave_out(qn_infer_outputs *out, qn_infer_output *output, const char *why)
{
    qn_context *ctx = out->feed->ctx;
    output->left_out = true;
    qn_npy_discard(&output->writer);
    if (++out->n_left_out == out->count)
        return qn_fail(ctx, QN_E_INVALID, "output '%s' %s", output->name, why);
    qn_log(ctx, QN_LOG_WARN, "output '%s' %s: it is left out", output->name, why);
    return QN_OK;
}

static qn_status take_output(qn_infer_outputs *out, qn_infer_output *output,
                             const qn_tensor *tensor, int64_t count);

/* Each tensor of a sequence is an output of its own, "name.0" and so on. */
static qn_status take_sequence(qn_infer_outputs *out, qn_infer_output *output,
                               const qn_sequence *sequence)
{
    qn_arena *arena = &out->feed->arena;
    if (out->feed->samples >= 0)
        return leave_out(out, output, "is a sequence, which can be written of one run only");
    output->parts = qn_arena_array(arena, (size_t)sequence->count + 1, sizeof *output->parts);
    QN_TRY_ALLOC(out->feed->ctx, output->parts);
    for (int64_t i = 0; i < sequence->count; i++) {
        qn_infer_output *part = &output->parts[output->n_parts++];
        part->name = qn_arena_format(arena, "%s.%lld", output->name, (long long)i);
        QN_TRY_ALLOC(out->feed->ctx, part->name);
        if (output->path)
            QN_TRY(name_file(out, part, out->count));
        QN_TRY(take_output(out, part, &sequence->items[i], 1));
    }
    return QN_OK;
}

/* The next run overwrites them. */
static qn_status keep_strings(qn_infer_output *output, qn_feed *feed, const qn_string *strings,
                              int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const char *text = qn_arena_text(&feed->arena, strings[i].text, strings[i].length);
        QN_TRY_ALLOC(feed->ctx, text);
        output->strings[output->n_strings++] = (qn_string){text, strings[i].length};
    }
    return QN_OK;
}

static qn_status take_output(qn_infer_outputs *out, qn_infer_output *output,
                             const qn_tensor *tensor, int64_t count)
{
    qn_feed *feed = out->feed;
    const char *why = NULL;
    if (tensor->dtype == QN_SEQUENCE)
        return take_sequence(out, output, tensor->data);
    QN_TRY(fit_output(&why, output, feed, tensor, count));
    if (why)
        return leave_out(out, output, why);
    int64_t numbers = qn_tensor_count(tensor);
    if (has_samples(feed, tensor, count) && tensor->dims[0] > count)
        numbers = numbers / tensor->dims[0] * count;
    take_range(output, tensor, numbers);
    if (output->strings)
        return keep_strings(output, feed, tensor->data, numbers);
    return output->path ? qn_npy_write(&output->writer, tensor->data, numbers) : QN_OK;
}

qn_status qn_infer_outputs_take(qn_infer_outputs *out, const qn_session *session, int64_t count)
{
    for (size_t o = 0; o < out->count; o++) {
        if (!out->at[o].left_out)
            QN_TRY(take_output(out, &out->at[o], qn_session_output(session, o), count));
    }
    return QN_OK;
}

static qn_status write_strings(qn_infer_output *at, size_t count, qn_context *ctx)
{
    for (size_t o = 0; o < count; o++) {
        QN_TRY(write_strings(at[o].parts, at[o].n_parts, ctx));
        if (!at[o].strings || at[o].left_out)
            continue;
        qn_tensor whole = at[o].shape;
        whole.data = at[o].strings;
        QN_TRY(qn_npy_open(&at[o].writer, ctx, at[o].path, &whole));
        QN_TRY(qn_npy_write(&at[o].writer, whole.data, at[o].n_strings));
    }
    return QN_OK;
}

static qn_status commit(qn_infer_output *at, size_t count)
{
    for (size_t o = 0; o < count; o++) {
        QN_TRY(commit(at[o].parts, at[o].n_parts));
        if (at[o].writer.file)
            QN_TRY(qn_npy_commit(&at[o].writer));
    }
    return QN_OK;
}

qn_status qn_infer_outputs_commit(qn_infer_outputs *out)
{
    QN_TRY(write_strings(out->at, out->count, out->feed->ctx));
    out->made = 0;
    return commit(out->at, out->count);
}

static void discard(qn_infer_output *at, size_t count)
{
    for (size_t o = 0; at && o < count; o++) {
        discard(at[o].parts, at[o].n_parts);
        qn_npy_discard(&at[o].writer);
    }
}

void qn_infer_outputs_discard(qn_infer_outputs *out)
{
    discard(out->at, out->count);
    remove_folders(out);
}

/* Strings, and an output without elements, have none. */
static void report_range(qn_item *row, const qn_infer_output *output)
{
    const int decimals = qn_dtype_is_float(output->shape.dtype) ? 6 : 0;
    if (output->count) {
        qn_item_real(row, "min", output->least, decimals);
        qn_item_real(row, "max", output->most, decimals);
        qn_item_real(row, "mean", output->sum / (double)output->count, 6);
    } else {
        qn_item_none(row, "min");
        qn_item_none(row, "max");
        qn_item_none(row, "mean");
    }
}

static void report_output(qn_item *table, const qn_infer_output *output)
{
    const qn_type type = qn_type_of(&output->shape);
    char text[256];
    qn_type_format(text, sizeof text, &type);
    qn_item *row = qn_item_row(table);
    qn_item_text(row, "output", output->name);
    qn_item_text(row, "type", text);
    report_range(row, output);
    if (output->path)
        qn_item_text(row, "file", output->path);
}

static void report(qn_item *table, const qn_infer_output *at, size_t count)
{
    for (size_t o = 0; o < count; o++) {
        if (!at[o].left_out && !at[o].parts)
            report_output(table, &at[o]);
        report(table, at[o].parts, at[o].n_parts);
    }
}

void qn_infer_outputs_report(qn_item *parent, const qn_infer_outputs *out)
{
    report(qn_item_table(parent, "outputs"), out->at, out->count);
}
