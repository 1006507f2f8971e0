/* What the float pass leaves behind: samples for later measurements, and outputs that quantized
 * ones are compared with. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "executor/baseline.h"
#include "ops/eval.h"

/* Bytes; one sample, and the outputs of one piece, are kept whatever they take. */
static const size_t most_sample_bytes = (size_t)256 << 20, most_output_bytes = (size_t)64 << 20;

void qn_baseline_init(qn_baseline *baseline, qn_context *ctx, size_t n_inputs, size_t n_outputs)
{
    *baseline = (qn_baseline){.ctx = ctx,
                              .n_inputs = n_inputs,
                              .n_outputs = n_outputs,
                              .most_samples = QN_BASELINE_SAMPLES,
                              .metric = NAN};
}

/* ---- Outputs --------------------------------------------------------------------------------- */

qn_status qn_baseline_reserve(qn_baseline *baseline, int64_t count, size_t bytes)
{
    const size_t fit = QN_MAX(most_output_bytes / QN_MAX(bytes, 1024), 1);
    baseline->most_pieces = count > 0 ? QN_MIN((int64_t)fit, count) : (int64_t)fit;
    baseline->pieces =
        qn_alloc_zero(baseline->ctx, (size_t)baseline->most_pieces, sizeof *baseline->pieces);
    QN_TRY_ALLOC(baseline->ctx, baseline->pieces);
    return QN_OK;
}

static bool counts_as_number(const qn_tensor *t)
{
    const qn_dtype_kind kind = qn_dtype_get(t->dtype)->kind;
    return kind != QN_KIND_NONE && kind != QN_KIND_COMPLEX && kind != QN_KIND_STRING;
}

static void flatten(float *to, const qn_tensor *t)
{
    const int64_t count = qn_tensor_count(t);
    if (t->dtype == QN_FLOAT32) {
        memcpy(to, t->data, (size_t)count * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)qn_tensor_f64(t, i);
}

qn_status qn_baseline_keep_outputs(qn_baseline *baseline, qn_context *ctx, int64_t i,
                                   const qn_tensor *inputs, const qn_tensor *const *outputs)
{
    if (i >= baseline->most_pieces)
        return QN_OK;
    qn_baseline_piece *piece = &baseline->pieces[i];
    int64_t all = 0;
    if (inputs)
        piece->print = qn_batch_print(inputs, baseline->n_inputs);
    piece->rows = inputs && baseline->n_inputs && inputs[0].rank > 0 ? inputs[0].dims[0] : 1;
    piece->counts = qn_alloc_zero(ctx, baseline->n_outputs + 1, sizeof *piece->counts);
    QN_TRY_ALLOC(ctx, piece->counts);
    for (size_t k = 0; k < baseline->n_outputs; k++) {
        piece->counts[k] = counts_as_number(outputs[k]) ? qn_tensor_count(outputs[k]) : 0;
        all += piece->counts[k];
    }
    piece->values = qn_alloc(ctx, ((size_t)all + 1) * sizeof *piece->values);
    QN_TRY_ALLOC(ctx, piece->values);
    float *to = piece->values;
    for (size_t k = 0; k < baseline->n_outputs; k++) {
        if (piece->counts[k])
            flatten(to, outputs[k]);
        to += piece->counts[k];
    }
    return QN_OK;
}

qn_status qn_baseline_extend(qn_baseline *baseline, int64_t count)
{
    if (count <= baseline->most_pieces)
        return QN_OK;
    const size_t before = (size_t)baseline->most_pieces * sizeof *baseline->pieces;
    const size_t after = (size_t)count * sizeof *baseline->pieces;
    qn_baseline_piece *pieces = qn_realloc(baseline->ctx, baseline->pieces, before, after);
    QN_TRY_ALLOC(baseline->ctx, pieces);
    memset((char *)pieces + before, 0, after - before);
    baseline->pieces = pieces;
    baseline->most_pieces = count;
    return QN_OK;
}

qn_tensor qn_baseline_output(const qn_baseline *baseline, int64_t piece, size_t k)
{
    const qn_baseline_piece *p = &baseline->pieces[piece];
    float *values = p->values;
    for (size_t before = 0; before < k; before++)
        values += p->counts[before];
    return (qn_tensor){.dtype = QN_FLOAT32,
                       .rank = 1,
                       .dims = {p->counts[k]},
                       .data = p->counts[k] ? values : NULL};
}

/* ---- Samples --------------------------------------------------------------------------------- */

qn_status qn_baseline_keep_inputs(qn_baseline *baseline, const qn_tensor *inputs)
{
    qn_context *ctx = baseline->ctx;
    if (baseline->n_samples == baseline->most_samples)
        return QN_OK;
    if (!baseline->samples) {
        baseline->samples =
            qn_alloc_zero(ctx, (size_t)baseline->most_samples * baseline->n_inputs + 1,
                          sizeof *baseline->samples);
        QN_TRY_ALLOC(ctx, baseline->samples);
        baseline->room = baseline->most_samples;
    }
    qn_tensor *to = baseline->samples + (size_t)baseline->n_samples * baseline->n_inputs;
    size_t all = 0, bytes = 0;
    for (size_t i = 0; i < baseline->n_inputs; i++) {
        if (inputs[i].dtype == QN_STRING || inputs[i].dtype >= QN_SEQUENCE ||
            !qn_tensor_bytes(&bytes, inputs[i].dtype, inputs[i].rank, inputs[i].dims)) {
            baseline->most_samples = baseline->n_samples; /* what cannot be kept is not missed */
            return QN_OK;
        }
        all += bytes;
    }
    if (baseline->n_samples && baseline->sample_bytes + all > most_sample_bytes) {
        baseline->most_samples = baseline->n_samples;
        return QN_OK;
    }
    for (size_t i = 0; i < baseline->n_inputs; i++) {
        to[i] = inputs[i];
        (void)qn_tensor_bytes(&bytes, to[i].dtype, to[i].rank, to[i].dims);
        to[i].data = qn_alloc_aligned(&ctx->allocator, QN_MAX(bytes, 64));
        QN_TRY_ALLOC(ctx, to[i].data);
        memcpy(to[i].data, inputs[i].data, bytes);
    }
    baseline->sample_bytes += all;
    baseline->n_samples++;
    return QN_OK;
}

static qn_status read_sample(void *user, qn_context *ctx, int slot, int64_t index,
                             const qn_tensor **inputs)
{
    const qn_baseline *baseline = user;
    (void)ctx;
    (void)slot;
    *inputs = baseline->samples + (size_t)index * baseline->n_inputs;
    return QN_OK;
}

static void name_sample(void *user, int64_t index, char *out, size_t size)
{
    (void)user;
    snprintf(out, size, "sample %lld", (long long)index);
}

void qn_baseline_finish(qn_baseline *baseline)
{
    baseline->source = (qn_sample_source){
        .user = baseline, .count = baseline->n_samples, .read = read_sample, .name = name_sample};
    while (baseline->n_pieces < baseline->most_pieces &&
           baseline->pieces[baseline->n_pieces].values)
        baseline->n_pieces++;
    baseline->n_known = baseline->n_pieces;
}

void qn_baseline_free(qn_baseline *baseline)
{
    if (!baseline->ctx)
        return;
    for (int64_t i = 0; baseline->pieces && i < baseline->most_pieces; i++) {
        qn_free(baseline->ctx, baseline->pieces[i].values);
        qn_free(baseline->ctx, baseline->pieces[i].counts);
    }
    /* A sample that could not be kept to its end has memory too. */
    const size_t begun =
        (size_t)QN_MIN(baseline->n_samples + 1, baseline->room) * baseline->n_inputs;
    for (size_t i = 0; baseline->samples && i < begun; i++)
        qn_free_aligned(&baseline->ctx->allocator, baseline->samples[i].data);
    qn_free(baseline->ctx, baseline->pieces);
    qn_free(baseline->ctx, baseline->samples);
}

/* ---- Error ----------------------------------------------------------------------------------- */

qn_status qn_baseline_error_init(qn_baseline_error *e, qn_context *ctx, const qn_baseline *baseline,
                                 const qn_model *model)
{
    *e = (qn_baseline_error){.ctx = ctx, .baseline = baseline, .model = model};
    e->sums = qn_alloc_zero(ctx, baseline->n_outputs + 1, sizeof *e->sums);
    QN_TRY_ALLOC(ctx, e->sums);
    return QN_OK;
}

/* The pieces that make `rows` samples from e->place on; 0: they were not all kept. */
static int64_t pieces_of(const qn_baseline_error *e, int64_t rows)
{
    const qn_baseline *baseline = e->baseline;
    int64_t sum = 0, end = e->place;
    while (sum < rows && end < baseline->n_pieces)
        sum += baseline->pieces[end++].rows;
    return sum == rows ? end - e->place : 0;
}

/* The output's elements from `first` on, as a row as long as `like`. */
static qn_tensor part_of(const qn_tensor *output, int64_t first, const qn_tensor *like)
{
    qn_tensor part = {.dtype = output->dtype, .rank = 1, .dims = {like->dims[0]}};
    part.data = (char *)output->data + (size_t)first * qn_dtype_size(output->dtype);
    return part;
}

void qn_baseline_measure(qn_relative_error *sums, const qn_baseline_error *e, int64_t i,
                         const qn_tensor *const *outputs)
{
    if (i >= e->baseline->n_pieces)
        return;
    for (size_t k = 0; k < e->baseline->n_outputs; k++) {
        const qn_tensor real = qn_baseline_output(e->baseline, i, k);
        if (real.data && qn_tensor_count(outputs[k]) == real.dims[0])
            qn_relative_error_add(&sums[k], &real, outputs[k], qn_model_output_scale(e->model, k));
    }
}

static qn_status note_error(qn_baseline_error *e)
{
    QN_TRY_GROW(e->ctx, e->running, e->capacity, e->n_running + 1);
    e->running[e->n_running] = qn_baseline_error_value(e);
    e->n_running++;
    return QN_OK;
}

qn_status qn_baseline_error_add(qn_baseline_error *e, const qn_relative_error *sums)
{
    for (size_t k = 0; k < e->baseline->n_outputs; k++)
        qn_relative_error_merge(&e->sums[k], sums[k]);
    return note_error(e);
}

/* The outputs of the pieces, one behind the other, are that of the forward. */
static void compare_output(qn_baseline_error *e, size_t k, int64_t count, const qn_tensor *output)
{
    const qn_baseline_piece *first = e->baseline->pieces + e->place;
    const double scale = qn_model_output_scale(e->model, k);
    int64_t all = 0, at = 0;
    for (int64_t p = 0; p < count; p++)
        all += first[p].counts[k];
    if (!counts_as_number(output) || all != qn_tensor_count(output))
        return;
    for (int64_t p = 0; p < count; p++) {
        const qn_tensor real = qn_baseline_output(e->baseline, e->place + p, k);
        const qn_tensor part = part_of(output, at, &real);
        if (real.data)
            qn_relative_error_add(&e->sums[k], &real, &part, scale);
        at += real.dims[0];
    }
}

qn_status qn_baseline_compare(qn_baseline_error *e, const qn_batch_inputs *batch,
                              const qn_tensor *outputs)
{
    const qn_baseline *baseline = e->baseline;
    const int64_t count = e->other ? 0 : pieces_of(e, batch->rows);
    if (count == 0)
        return QN_OK;
    const qn_fingerprint print = qn_batch_print(batch->tensors, baseline->n_inputs);
    e->other = !qn_fingerprint_same(print, baseline->pieces[e->place].print);
    if (e->other)
        return QN_OK;
    for (size_t k = 0; k < baseline->n_outputs; k++)
        compare_output(e, k, count, &outputs[k]);
    e->place += count;
    return note_error(e);
}

double qn_baseline_error_value(const qn_baseline_error *e)
{
    double worst = NAN;
    for (size_t k = 0; e->baseline && k < e->baseline->n_outputs; k++)
        worst = fmax(worst, qn_relative_error_value(e->sums[k])); /* fmax takes the number */
    return worst;
}

bool qn_baseline_error_settled(const qn_baseline_error *e, int64_t iteration)
{
    enum { LEAST = 3 };
    const size_t window = (size_t)QN_MAX(LEAST, (iteration + 9) / 10);
    if (e->n_running < 2 * window)
        return false;
    const double now = e->running[e->n_running - 1];
    for (size_t i = e->n_running - 1 - window; i < e->n_running; i++) {
        if (!(fabs(e->running[i] - now) <= 0.01 * now))
            return false;
    }
    return true;
}

void qn_baseline_error_free(qn_baseline_error *e)
{
    if (!e->baseline)
        return;
    qn_free(e->ctx, e->sums);
    qn_free(e->ctx, e->running);
}
