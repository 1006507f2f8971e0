/* Models run on all samples of data, side by side. */
#include "quantize/data_pass.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "calib/byte_stream.h"
#include "model/prepare.h"
#include "ops/eval.h"
#include "quant/observe.h"
#include "task/classify.h"

typedef struct data_pass {
    qn_context *ctx;
    const qn_data_pass_options *options;
    qn_model *model;
    /* Samples */
    atomic_llong hits, labelled;
    qn_baseline_error error;
    /* Piece of the data that the batch at hand begins with */
    int64_t first;
    /* [pieces of a batch][n_outputs] */
    qn_relative_error *sums;
} data_pass;

/* ---- Hits ------------------------------------------------------------------------------------ */

/* Output [rows, classes] of a run; whatever else it is has no best class. */
static qn_status count_hits(data_pass *p, qn_context *ctx, int64_t run, const qn_tensor *output)
{
    const qn_feed *feed = &p->options->calibration->feed;
    const int64_t rows = qn_feed_count(feed, run), stored = qn_feed_filled(feed, run);
    const int64_t count = qn_tensor_count(output), classes = stored ? count / stored : 0;
    if (classes < 1 || classes * stored != count)
        return QN_OK;
    double *scores = qn_alloc(ctx, (size_t)classes * sizeof *scores);
    QN_TRY_ALLOC(ctx, scores);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t label = qn_dataset_label(feed->dataset, feed->first + run * feed->batch + r);
        if (label < 0)
            continue;
        for (int64_t c = 0; c < classes; c++)
            scores[c] = qn_tensor_f64(output, r * classes + c);
        const int64_t hit = qn_best_class(scores, classes) == label + p->options->class_offset;
        atomic_fetch_add(&p->hits, hit);
        atomic_fetch_add(&p->labelled, 1);
    }
    qn_free(ctx, scores);
    return QN_OK;
}

static double hit_rate(data_pass *p)
{
    const long long labelled = atomic_load(&p->labelled);
    return labelled ? 100.0 * (double)atomic_load(&p->hits) / (double)labelled : NAN;
}

/* ---- The float model ------------------------------------------------------------------------- */

static const qn_tensor **outputs_of(qn_context *ctx, const qn_session *session, size_t count)
{
    const qn_tensor **outputs = qn_alloc_zero(ctx, count + 1, sizeof *outputs);
    for (size_t k = 0; outputs && k < count; k++)
        outputs[k] = qn_session_output(session, k);
    return outputs;
}

static qn_status take_float(void *user, qn_context *ctx, int64_t sample, const qn_session *session)
{
    data_pass *p = user;
    qn_baseline *baseline = p->options->baseline;
    const qn_tensor **outputs = outputs_of(ctx, session, baseline->n_outputs);
    QN_TRY_ALLOC(ctx, outputs);
    qn_status status = qn_baseline_keep_outputs(baseline, ctx, sample, NULL, outputs);
    if (status == QN_OK && p->options->labelled)
        status = count_hits(p, ctx, sample, outputs[0]);
    qn_free(ctx, outputs);
    return status;
}

/* ---- Its checkpoint -------------------------------------------------------------------------- */

static size_t numbers_of(const qn_baseline *baseline, const qn_baseline_piece *piece)
{
    size_t all = 0;
    for (size_t k = 0; k < baseline->n_outputs; k++)
        all += (size_t)piece->counts[k];
    return all;
}

static void put_pieces(void *user, qn_text *out)
{
    data_pass *p = user;
    const qn_baseline *baseline = p->options->baseline;
    qn_put_varint(out, (uint64_t)atomic_load(&p->hits));
    qn_put_varint(out, (uint64_t)atomic_load(&p->labelled));
    for (int64_t i = 0; i < baseline->most_pieces; i++) {
        const qn_baseline_piece *piece = &baseline->pieces[i];
        qn_put_varint(out, piece->values != NULL);
        if (!piece->values)
            continue;
        qn_put_varint(out, (uint64_t)piece->rows);
        for (size_t k = 0; k < baseline->n_outputs; k++)
            qn_put_varint(out, (uint64_t)piece->counts[k]);
        const size_t all = numbers_of(baseline, piece);
        for (size_t v = 0; v < all; v++)
            qn_put_f32(out, piece->values[v]);
    }
}

static qn_status get_piece(qn_baseline_piece *piece, const qn_baseline *baseline, qn_context *ctx,
                           qn_byte_reader *in)
{
    const uint64_t most = (uint64_t)(in->end - in->at) / sizeof(float);
    piece->rows = (int64_t)qn_get_count(in, INT32_MAX);
    piece->counts = qn_alloc_zero(ctx, baseline->n_outputs + 1, sizeof *piece->counts);
    QN_TRY_ALLOC(ctx, piece->counts);
    size_t all = 0;
    for (size_t k = 0; k < baseline->n_outputs; k++) {
        piece->counts[k] = (int64_t)qn_get_count(in, most);
        all += (size_t)piece->counts[k];
    }
    in->wrong = in->wrong || all > most;
    if (in->wrong)
        return QN_OK;
    piece->values = qn_alloc(ctx, (all + 1) * sizeof *piece->values);
    QN_TRY_ALLOC(ctx, piece->values);
    for (size_t v = 0; v < all; v++)
        piece->values[v] = qn_get_f32(in);
    return QN_OK;
}

static void forget_pieces(data_pass *p)
{
    qn_baseline *baseline = p->options->baseline;
    for (int64_t i = 0; i < baseline->most_pieces; i++) {
        qn_free(baseline->ctx, baseline->pieces[i].counts);
        qn_free(baseline->ctx, baseline->pieces[i].values);
        baseline->pieces[i] = (qn_baseline_piece){.values = NULL};
    }
    atomic_store(&p->hits, 0);
    atomic_store(&p->labelled, 0);
}

static qn_status get_pieces(void *user, qn_context *ctx, qn_byte_reader *in)
{
    data_pass *p = user;
    const qn_baseline *baseline = p->options->baseline;
    forget_pieces(p);
    if (!in)
        return QN_OK;
    atomic_store(&p->hits, (long long)qn_get_count(in, INT64_MAX));
    atomic_store(&p->labelled, (long long)qn_get_count(in, INT64_MAX));
    for (int64_t i = 0; i < baseline->most_pieces && !in->wrong; i++) {
        if (qn_get_count(in, 1))
            QN_TRY(get_piece(&baseline->pieces[i], baseline, ctx, in));
    }
    return QN_OK;
}

/* The bytes of a piece's outputs; those that only a run can tell count as many. */
static size_t output_bytes(const qn_plan *plan, size_t n_outputs)
{
    size_t all = 0;
    for (size_t k = 0; k < n_outputs; k++) {
        qn_tensor output;
        qn_plan_output(&output, plan, k);
        all += output.rank < 0 ? (size_t)1 << 20 : (size_t)qn_tensor_count(&output) * sizeof(float);
    }
    return all;
}

qn_status qn_data_pass_float(qn_stats **out, const qn_data_pass_options *options,
                             const int64_t *after, size_t n_after)
{
    const qn_calibration *c = options->calibration;
    qn_baseline *baseline = options->baseline;
    data_pass p = {.ctx = options->ctx, .options = options};
    QN_TRY(qn_baseline_reserve(baseline, QN_MIN(c->source->count, options->most_pieces),
                               output_bytes(c->plan, baseline->n_outputs)));
    const qn_collect_options collect = {.after = after,
                                        .n_after = n_after - 1,
                                        .checkpoint = options->checkpoint,
                                        .on_sample = take_float,
                                        .on_sample_user = &p,
                                        .save_state = put_pieces,
                                        .load_state = get_pieces};
    QN_TRY(qn_calibration_collect(out, NULL, c, &collect));
    baseline->forwards = c->source->count;
    baseline->metric = hit_rate(&p);
    qn_baseline_finish(baseline);
    return QN_OK;
}

/* ---- Another model --------------------------------------------------------------------------- */

static qn_status make_plan(void *user, qn_plan **out, int threads)
{
    const data_pass *p = user;
    const qn_plan_options options = {QN_OPTIONS_VERSION, .threads = threads,
                                     .graph = p->options->calibration->graph};
    const qn_observe_options watch = {
        .purpose = QN_PURPOSE_RUN, .direct = true, .observe = qn_observe_none};
    return qn_plan_create_observed(out, p->ctx, p->model, &options, &watch);
}

static qn_status read_inputs(void *user, qn_context *ctx, int slot, int64_t piece,
                             qn_tensor *inputs)
{
    const data_pass *p = user;
    const qn_calibration *c = p->options->calibration;
    const qn_tensor *read = NULL;
    QN_TRY(c->source->read(c->source->user, ctx, p->options->slot + slot, p->first + piece, &read));
    memcpy(inputs, read, c->n_inputs * sizeof *inputs);
    return QN_OK;
}

static qn_status measure_outputs(void *user, qn_context *ctx, int64_t piece,
                                 const qn_session *session)
{
    data_pass *p = user;
    const size_t n = p->options->baseline->n_outputs;
    qn_relative_error *sums = p->sums + (size_t)piece * n;
    const qn_tensor **outputs = outputs_of(ctx, session, n);
    QN_TRY_ALLOC(ctx, outputs);
    memset(sums, 0, n * sizeof *sums);
    qn_baseline_measure(sums, &p->error, p->first + piece, outputs);
    const qn_status status =
        p->options->labelled ? count_hits(p, ctx, p->first + piece, outputs[0]) : QN_OK;
    qn_free(ctx, outputs);
    return status;
}

static qn_status run_batch(data_pass *p, qn_batch_runner *runner, int64_t count)
{
    const qn_batch_pieces pieces = {
        .user = p, .count = count, .read_inputs = read_inputs, .on_outputs = measure_outputs};
    const size_t n = p->options->baseline->n_outputs;
    QN_TRY(qn_batch_runner_run(runner, &pieces));
    for (int64_t i = 0; i < count; i++) {
        if (p->first + i < p->options->baseline->n_pieces)
            QN_TRY(qn_baseline_error_add(&p->error, p->sums + (size_t)i * n));
    }
    p->first += count;
    return QN_OK;
}

static qn_status run_all(data_pass *p, qn_batch_runner *runner, int64_t batch)
{
    const int64_t all = p->options->calibration->source->count;
    while (p->first < all) {
        QN_TRY(run_batch(p, runner, QN_MIN(batch, all - p->first)));
        qn_progress(p->ctx, "samples", p->first, all);
        if (qn_baseline_error_settled(&p->error, all))
            return QN_OK;
    }
    return QN_OK;
}

static qn_status run_model(double *metric, double *error, data_pass *p)
{
    enum { PER_LANE = 8 };
    const qn_calibration *c = p->options->calibration;
    const int threads = p->options->threads;
    const int64_t batch = (int64_t)threads * PER_LANE;
    const qn_batch_runner_options options = {
        .threads = threads, .plan = make_plan, .user = p, .n_inputs = c->n_inputs};
    qn_batch_runner *runner = NULL;
    p->sums =
        qn_alloc_zero(p->ctx, (size_t)batch * p->options->baseline->n_outputs + 1, sizeof *p->sums);
    QN_TRY_ALLOC(p->ctx, p->sums);
    QN_TRY(qn_baseline_error_init(&p->error, p->ctx, p->options->baseline, p->model));
    QN_TRY(qn_batch_runner_create(&runner, p->ctx, &options));
    const qn_status status = run_all(p, runner, batch);
    qn_batch_runner_free(runner);
    *metric = hit_rate(p);
    *error = qn_baseline_error_value(&p->error);
    return status;
}

qn_status qn_data_pass_model(double *metric, double *error, qn_model *model,
                             const qn_data_pass_options *options)
{
    data_pass p = {.ctx = options->ctx, .options = options, .model = model};
    const qn_status status = run_model(metric, error, &p);
    qn_baseline_error_free(&p.error);
    qn_free(p.ctx, p.sums);
    return status;
}
