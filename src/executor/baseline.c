/* What the float pass leaves behind: samples for later measurements, and outputs that quantized ones are compared with. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "executor/executor.h"
#include "ops/eval.h"

/* Bytes; one sample, and the outputs of one piece, are kept whatever they take. */
static const size_t most_sample_bytes = (size_t)256 << 20, most_output_bytes = (size_t)64 << 20;

void qn_baseline_init(qn_baseline *kept, qn_context *ctx, size_t n_inputs, size_t n_outputs)
{
    *kept = (qn_baseline){.ctx = ctx,
                          .n_inputs = n_inputs,
                          .n_outputs = n_outputs,
                          .most_samples = QN_BASELINE_SAMPLES,
                          .metric = NAN};
}

/* ---- Outputs ------------------------------------------------------------------------------------------------------ */

qn_status qn_baseline_reserve(qn_baseline *kept, int64_t count, size_t bytes)
{
    const size_t fit = QN_MAX(most_output_bytes / QN_MAX(bytes, 1024), 1);
    kept->most_pieces = count > 0 ? QN_MIN((int64_t)fit, count) : (int64_t)fit;
    kept->pieces = qn_alloc_zero(kept->ctx, (size_t)kept->most_pieces, sizeof *kept->pieces);
    QN_TRY_ALLOC(kept->ctx, kept->pieces);
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

qn_status qn_baseline_keep_outputs(qn_baseline *kept, qn_context *ctx, int64_t i,
                                   const qn_tensor *inputs, const qn_tensor *const *outputs)
{
    if (i >= kept->most_pieces)
        return QN_OK;
    qn_baseline_piece *piece = &kept->pieces[i];
    int64_t all = 0;
    if (inputs)
        piece->print = qn_batch_print(inputs, kept->n_inputs);
    piece->rows = inputs && kept->n_inputs && inputs[0].rank > 0 ? inputs[0].dims[0] : 1;
    piece->counts = qn_alloc_zero(ctx, kept->n_outputs + 1, sizeof *piece->counts);
    QN_TRY_ALLOC(ctx, piece->counts);
    for (size_t k = 0; k < kept->n_outputs; k++) {
        piece->counts[k] = counts_as_number(outputs[k]) ? qn_tensor_count(outputs[k]) : 0;
        all += piece->counts[k];
    }
    piece->values = qn_alloc(ctx, ((size_t)all + 1) * sizeof *piece->values);
    QN_TRY_ALLOC(ctx, piece->values);
    float *to = piece->values;
    for (size_t k = 0; k < kept->n_outputs; k++) {
        if (piece->counts[k])
            flatten(to, outputs[k]);
        to += piece->counts[k];
    }
    return QN_OK;
}

/* ---- Samples ------------------------------------------------------------------------------------------------------ */

qn_status qn_baseline_keep_inputs(qn_baseline *kept, const qn_tensor *inputs)
{
    qn_context *ctx = kept->ctx;
    if (kept->n_samples == kept->most_samples)
        return QN_OK;
    if (!kept->samples) {
        kept->samples = qn_alloc_zero(ctx, (size_t)kept->most_samples * kept->n_inputs + 1,
                                      sizeof *kept->samples);
        QN_TRY_ALLOC(ctx, kept->samples);
        kept->room = kept->most_samples;
    }
    qn_tensor *to = kept->samples + (size_t)kept->n_samples * kept->n_inputs;
    size_t all = 0, bytes = 0;
    for (size_t i = 0; i < kept->n_inputs; i++) {
        if (inputs[i].dtype == QN_STRING || inputs[i].dtype >= QN_SEQUENCE ||
            !qn_tensor_bytes(&bytes, inputs[i].dtype, inputs[i].rank, inputs[i].dims)) {
            kept->most_samples = kept->n_samples; /* what cannot be kept is not missed */
            return QN_OK;
        }
        all += bytes;
    }
    if (kept->n_samples && kept->sample_bytes + all > most_sample_bytes) {
        kept->most_samples = kept->n_samples;
        return QN_OK;
    }
    for (size_t i = 0; i < kept->n_inputs; i++) {
        to[i] = inputs[i];
        (void)qn_tensor_bytes(&bytes, to[i].dtype, to[i].rank, to[i].dims);
        to[i].data = qn_alloc_aligned(&ctx->allocator, QN_MAX(bytes, 64));
        QN_TRY_ALLOC(ctx, to[i].data);
        memcpy(to[i].data, inputs[i].data, bytes);
    }
    kept->sample_bytes += all;
    kept->n_samples++;
    return QN_OK;
}

static qn_status read_sample(void *user, qn_context *ctx, int slot, int64_t index,
                             const qn_tensor **inputs)
{
    const qn_baseline *kept = user;
    (void)ctx;
    (void)slot;
    *inputs = kept->samples + (size_t)index * kept->n_inputs;
    return QN_OK;
}

static void name_sample(void *user, int64_t index, char *out, size_t size)
{
    (void)user;
    snprintf(out, size, "sample %lld", (long long)index);
}

void qn_baseline_finish(qn_baseline *kept)
{
    kept->source = (qn_source){
        .user = kept, .count = kept->n_samples, .read = read_sample, .name = name_sample};
    while (kept->n_pieces < kept->most_pieces && kept->pieces[kept->n_pieces].values)
        kept->n_pieces++;
}

void qn_baseline_free(qn_baseline *kept)
{
    if (!kept->ctx)
        return;
    for (int64_t i = 0; kept->pieces && i < kept->most_pieces; i++) {
        qn_free(kept->ctx, kept->pieces[i].values);
        qn_free(kept->ctx, kept->pieces[i].counts);
    }
    /* A sample that could not be kept to its end has memory too. */
    const size_t begun = (size_t)QN_MIN(kept->n_samples + 1, kept->room) * kept->n_inputs;
    for (size_t i = 0; kept->samples && i < begun; i++)
        qn_free_aligned(&kept->ctx->allocator, kept->samples[i].data);
    qn_free(kept->ctx, kept->pieces);
    qn_free(kept->ctx, kept->samples);
}

/* ---- Error ---------------------------------------------------------------------------------------------------------- */

qn_status qn_baseline_error_init(qn_baseline_error *e, const qn_baseline *kept,
                                 const qn_model *model)
{
    *e = (qn_baseline_error){.kept = kept, .model = model};
    e->error = qn_alloc_zero(kept->ctx, 2 * kept->n_outputs + 1, sizeof *e->error);
    QN_TRY_ALLOC(kept->ctx, e->error);
    e->signal = e->error + kept->n_outputs;
    return QN_OK;
}

/* The pieces that make `rows` samples from e->place on; 0: they were not all kept. */
static int64_t pieces_of(const qn_baseline_error *e, int64_t rows)
{
    const qn_baseline *kept = e->kept;
    int64_t sum = 0, end = e->place;
    while (sum < rows && end < kept->n_pieces)
        sum += kept->pieces[end++].rows;
    return sum == rows ? end - e->place : 0;
}

/* Output `place` of the model. */
typedef struct fixed_output {
    const qn_tensor *tensor;
    size_t place;
    double scale; /* of its numbers */
} fixed_output;

static fixed_output output_of(const qn_baseline_error *e, size_t k, const qn_tensor *tensor)
{
    return (fixed_output){tensor, k, qn_model_output_scale(e->model, k)};
}

/* The piece's values of the output begin at its element `at`. */
static void compare_piece(double *error, double *signal, const qn_baseline_piece *piece,
                          const fixed_output *out, int64_t at)
{
    const float *values = piece->values;
    const qn_tensor *output = out->tensor;
    const size_t k = out->place;
    double e = 0, s = 0;
    for (size_t before = 0; before < k; before++)
        values += piece->counts[before];
    if (output->dtype == QN_FLOAT32) {
        const float *fixed = (const float *)output->data + at;
        for (int64_t i = 0; i < piece->counts[k]; i++) {
            s += fabs((double)values[i]);
            e += fabs((double)fixed[i] * out->scale - (double)values[i]);
        }
    } else {
        for (int64_t i = 0; i < piece->counts[k]; i++) {
            s += fabs((double)values[i]);
            e += fabs(qn_tensor_f64(output, at + i) * out->scale - (double)values[i]);
        }
    }
    error[k] += e;
    signal[k] += s;
}

void qn_baseline_measure(double *error, double *signal, const qn_baseline_error *e, int64_t i,
                         const qn_tensor *const *outputs)
{
    if (i >= e->kept->n_pieces)
        return;
    const qn_baseline_piece *piece = &e->kept->pieces[i];
    for (size_t k = 0; k < e->kept->n_outputs; k++) {
        const fixed_output out = output_of(e, k, outputs[k]);
        if (piece->counts[k] && qn_tensor_count(outputs[k]) == piece->counts[k])
            compare_piece(error, signal, piece, &out, 0);
    }
}

qn_status qn_baseline_error_add(qn_baseline_error *e, const double *error, const double *signal)
{
    for (size_t k = 0; k < e->kept->n_outputs; k++) {
        e->error[k] += error[k];
        e->signal[k] += signal[k];
    }
    QN_TRY_GROW(e->kept->ctx, e->running, e->capacity, e->n_running + 1);
    e->running[e->n_running] = qn_baseline_error_value(e);
    e->n_running++;
    return QN_OK;
}

/* The outputs of the pieces, one behind the other, are that of the forward. */
static void compare_output(qn_baseline_error *e, size_t k, int64_t count, const qn_tensor *output)
{
    const qn_baseline_piece *first = e->kept->pieces + e->place;
    const fixed_output out = output_of(e, k, output);
    int64_t all = 0, at = 0;
    for (int64_t p = 0; p < count; p++)
        all += first[p].counts[k];
    if (!counts_as_number(output) || all != qn_tensor_count(output))
        return;
    for (int64_t p = 0; p < count; p++) {
        compare_piece(e->error, e->signal, &first[p], &out, at);
        at += first[p].counts[k];
    }
}

qn_status qn_baseline_compare(qn_baseline_error *e, const qn_batch_inputs *batch,
                              const qn_tensor *outputs)
{
    const qn_baseline *kept = e->kept;
    const int64_t count = e->other ? 0 : pieces_of(e, batch->rows);
    if (count == 0)
        return QN_OK;
    const qn_fingerprint print = qn_batch_print(batch->tensors, kept->n_inputs);
    e->other = !qn_fingerprint_same(print, kept->pieces[e->place].print);
    if (e->other)
        return QN_OK;
    for (size_t k = 0; k < kept->n_outputs; k++)
        compare_output(e, k, count, &outputs[k]);
    e->place += count;
    QN_TRY_GROW(kept->ctx, e->running, e->capacity, e->n_running + 1);
    e->running[e->n_running] = qn_baseline_error_value(e);
    e->n_running++;
    return QN_OK;
}

double qn_baseline_error_value(const qn_baseline_error *e)
{
    double worst = NAN;
    for (size_t k = 0; e->kept && k < e->kept->n_outputs; k++) {
        if (e->signal[k] > 0)
            worst = fmax(worst, e->error[k] / e->signal[k]); /* fmax takes the number */
    }
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
    if (!e->kept)
        return;
    qn_free(e->kept->ctx, e->error);
    qn_free(e->kept->ctx, e->running);
}
