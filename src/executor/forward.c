/* A forward: its pieces run, and what is made of their outputs. */
#include <string.h>

#include "calib/collect.h"
#include "executor/executor.h"

/* ---- Pieces of a batch ----------------------------------------------------------------------- */

static qn_status give_piece(void *user, qn_context *ctx, int slot, int64_t piece, qn_tensor *inputs)
{
    const qn_executor *e = user;
    (void)ctx;
    (void)slot;
    qn_batch_piece(inputs, &e->batch, e->facts.n_inputs, piece);
    return QN_OK;
}

static qn_status keep_part(qn_tensor *part, size_t *room, qn_context *ctx, const qn_tensor *output)
{
    size_t bytes;
    void *memory = part->data;
    if (output->dtype == QN_STRING || output->dtype >= QN_SEQUENCE ||
        !qn_tensor_bytes(&bytes, output->dtype, output->rank, output->dims))
        return qn_fail(ctx, QN_E_UNSUPPORTED,
                       "an output that is no tensor of numbers cannot be put together from several "
                       "runs: give forward the model's own batch");
    if (*room < bytes || !memory) {
        memory = qn_realloc(ctx, memory, *room, bytes + 1);
        QN_TRY_ALLOC(ctx, memory);
        *room = bytes + 1;
    }
    *part = *output;
    part->data = memory;
    memcpy(memory, output->data, bytes);
    return QN_OK;
}

/* One piece is the whole: its outputs stay in the session. */
static qn_status take_piece(void *user, qn_context *ctx, int64_t piece, const qn_session *session)
{
    qn_executor *e = user;
    const size_t n = e->facts.n_outputs;
    for (size_t k = 0; k < n; k++) {
        const size_t at = (size_t)piece * n + k;
        if (e->batch.pieces == 1)
            e->outputs[k] = *qn_session_output(session, k);
        else
            QN_TRY(
                keep_part(&e->parts[at], &e->part_sizes[at], ctx, qn_session_output(session, k)));
    }
    return QN_OK;
}

static qn_status make_parts(qn_executor *e)
{
    const size_t count = (size_t)e->batch.pieces * e->facts.n_outputs, old = e->n_parts;
    if (e->batch.pieces == 1 || count <= old)
        return QN_OK;
    qn_tensor *parts =
        qn_realloc(e->ctx, e->parts, old * sizeof *e->parts, count * sizeof *e->parts);
    QN_TRY_ALLOC(e->ctx, parts);
    e->parts = parts;
    size_t *sizes = qn_realloc(e->ctx, e->part_sizes, old * sizeof *sizes, count * sizeof *sizes);
    QN_TRY_ALLOC(e->ctx, sizes);
    e->part_sizes = sizes;
    memset(parts + old, 0, (count - old) * sizeof *parts);
    memset(sizes + old, 0, (count - old) * sizeof *sizes);
    e->n_parts = count;
    return QN_OK;
}

/* Type, and all dims but the first. */
static bool can_join(const qn_tensor *a, const qn_tensor *b)
{
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    for (int32_t d = 1; same && d < a->rank; d++)
        same = a->dims[d] == b->dims[d];
    return same;
}

/* Along dim 0; scalars become a row. */
static qn_status join_output(qn_executor *e, size_t k)
{
    const size_t n = e->facts.n_outputs;
    const qn_tensor *first = &e->parts[k];
    qn_tensor *out = &e->outputs[k];
    int64_t rows = 0;
    size_t bytes = 0;
    for (int64_t p = 0; p < e->batch.pieces; p++) {
        const qn_tensor *part = &e->parts[(size_t)p * n + k];
        if (!can_join(first, part))
            return qn_fail(e->ctx, QN_E_INVALID,
                           "output '%s' has another shape from sample to sample: call forward with "
                           "one at a time",
                           qn_executor_output_name(e, k));
        rows += part->rank ? part->dims[0] : 1;
    }
    *out = *first;
    out->rank = QN_MAX(out->rank, 1);
    out->dims[0] = rows;
    if (!qn_tensor_bytes(&bytes, out->dtype, out->rank, out->dims))
        return qn_fail_nomem(e->ctx);
    if (e->sizes[k] < bytes || !e->buffers[k]) {
        qn_free(e->ctx, e->buffers[k]);
        e->sizes[k] = 0;
        e->buffers[k] = qn_alloc(e->ctx, bytes + 1);
        QN_TRY_ALLOC(e->ctx, e->buffers[k]);
        e->sizes[k] = bytes;
    }
    char *to = out->data = e->buffers[k];
    for (int64_t p = 0; p < e->batch.pieces; p++) {
        const qn_tensor *part = &e->parts[(size_t)p * n + k];
        const size_t size = (size_t)qn_tensor_count(part) * qn_dtype_size(part->dtype);
        memcpy(to, part->data, size);
        to += size;
    }
    return QN_OK;
}

/* ---- After a forward ------------------------------------------------------------------------- */

static size_t output_bytes(const qn_executor *e)
{
    size_t all = 0;
    for (size_t k = 0; k < e->facts.n_outputs; k++) {
        const qn_tensor *part = e->batch.pieces > 1 ? &e->parts[k] : &e->outputs[k];
        all += (size_t)qn_tensor_count(part) * sizeof(float);
    }
    return all;
}

static qn_status keep_piece(qn_executor *e, int64_t piece, qn_tensor *inputs,
                            const qn_tensor **outputs)
{
    qn_baseline *baseline = e->options->baseline;
    const size_t n = e->facts.n_outputs;
    qn_batch_piece(inputs, &e->batch, e->facts.n_inputs, piece);
    for (size_t k = 0; k < n; k++)
        outputs[k] = e->batch.pieces > 1 ? &e->parts[(size_t)piece * n + k] : &e->outputs[k];
    QN_TRY(qn_baseline_keep_inputs(baseline, inputs));
    return qn_baseline_keep_outputs(baseline, e->ctx, e->n_kept++, inputs, outputs);
}

static qn_status keep(qn_executor *e)
{
    qn_baseline *baseline = e->options->baseline;
    qn_tensor *inputs = qn_alloc_zero(e->ctx, e->facts.n_inputs + 1, sizeof *inputs);
    const qn_tensor **outputs = qn_alloc_zero(e->ctx, e->facts.n_outputs + 1, sizeof *outputs);
    qn_status status = inputs && outputs ? QN_OK : qn_fail_nomem(e->ctx);
    if (status == QN_OK && !baseline->pieces)
        status = qn_baseline_reserve(baseline, 0, output_bytes(e));
    for (int64_t p = 0; p < e->batch.pieces && status == QN_OK; p++)
        status = keep_piece(e, p, inputs, outputs);
    qn_free(e->ctx, inputs);
    qn_free(e->ctx, outputs);
    return status;
}

/* The last of the numbers asked for gets the statistics of all forwards, when the function has
 * ended. */
static qn_status note_statistics(qn_executor *e)
{
    const qn_executor_options *o = e->options;
    for (size_t i = 0; i + 1 < o->n_after; i++) {
        if (o->after[i] == e->forwards && !o->stats[i])
            QN_TRY(qn_batch_runner_stats(&o->stats[i], e->runner));
    }
    return QN_OK;
}

/* The outputs of a forward that was made before: they stay in the log. */
static qn_status take_known(qn_executor *e, const qn_logged_forward *known)
{
    for (size_t i = 0; i < (size_t)known->n_tensors; i++) {
        if (e->batch.pieces == 1)
            e->outputs[i] = known->tensors[i];
        else
            QN_TRY(keep_part(&e->parts[i], &e->part_sizes[i], e->ctx, &known->tensors[i]));
    }
    return QN_OK;
}

static qn_status compute(qn_executor *e, bool blind)
{
    const qn_batch_pieces pieces = {.user = e,
                                    .count = e->batch.pieces,
                                    .outputs_only = blind,
                                    .read_inputs = give_piece,
                                    .on_outputs = take_piece};
    QN_TRY(qn_check_cancel(e->ctx));
    const qn_status status = qn_batch_runner_run(e->runner, &pieces);
    e->broken = e->broken || status != QN_OK;
    return status;
}

/* In a pass that goes on nothing is counted twice, nor is what will be counted by another call. */
static qn_status compute_logged(qn_executor *e)
{
    const qn_fingerprint print = qn_sample_fingerprint(e->batch.tensors, e->facts.n_inputs);
    const int64_t count = e->batch.pieces * (int64_t)e->facts.n_outputs;
    const qn_logged_forward *known;
    qn_forward_log_find(&known, e->log, e->forwards, print);
    if (known && known->n_tensors == count)
        return take_known(e, known);
    QN_TRY(compute(e, known || e->log->other));
    if (known || e->log->other)
        return QN_OK;
    return qn_forward_log_add(e->log, print, e->batch.pieces > 1 ? e->parts : e->outputs, count);
}

/* What was known when the pass was stopped is all seen again. */
static void go_on(qn_executor *e)
{
    qn_forward_log *log = e->log;
    qn_batch_runner_restore(e->runner, log->total);
    log->total = NULL;
    for (size_t i = 0; i + 1 < log->n_after; i++) {
        e->options->stats[i] = log->stats[i];
        log->stats[i] = NULL;
    }
}

qn_status qn_executor_write_log(qn_executor *e)
{
    qn_stats *total = NULL;
    QN_TRY(qn_batch_runner_stats(&total, e->runner));
    const qn_status status = qn_forward_log_write(e->log, total, e->options->stats);
    qn_stats_free(total);
    return status;
}

static qn_status after_observed(qn_executor *e)
{
    const qn_forward_log *log = e->log;
    const size_t known = log && !log->other ? log->known : 0;
    QN_TRY(keep(e));
    if ((size_t)e->forwards == known)
        go_on(e);
    if ((size_t)e->forwards <= known || (log && log->other))
        return QN_OK;
    QN_TRY(note_statistics(e));
    return log && qn_forward_log_due(log) ? qn_executor_write_log(e) : QN_OK;
}

static qn_status after_forward(qn_executor *e)
{
    const qn_executor_stage *stage = qn_executor_stage_of(e);
    e->forwards++;
    if (stage->observes)
        return after_observed(e);
    if (e->error.baseline)
        QN_TRY(qn_baseline_compare(&e->error, &e->batch, e->outputs));
    if (stage->may_stop)
        e->stopped = e->options->stop_after
                         ? e->forwards >= e->options->stop_after
                         : qn_baseline_error_settled(&e->error, e->facts.iteration);
    return QN_OK;
}

static qn_status forward(qn_executor *e, const qn_tensor *inputs, size_t n_inputs)
{
    if (n_inputs != e->facts.n_inputs)
        return qn_fail(e->ctx, QN_E_INVALID, "forward takes %zu inputs, not %zu", e->facts.n_inputs,
                       n_inputs);
    QN_TRY(qn_batch_take(&e->batch, e->ctx, e->inputs, inputs, n_inputs));
    QN_TRY(make_parts(e));
    QN_TRY(e->log ? compute_logged(e) : compute(e, false));
    for (size_t k = 0; e->batch.pieces > 1 && k < e->facts.n_outputs; k++)
        QN_TRY(join_output(e, k));
    QN_TRY(after_forward(e));
    qn_progress(e->ctx, "forwards", e->forwards, QN_MAX(e->facts.iteration, e->forwards));
    return QN_OK;
}

qn_status qn_executor_forward(qn_executor *e, const qn_tensor *inputs, size_t n_inputs)
{
    const qn_status status = e->starved ? qn_fail_nomem(e->ctx) : forward(e, inputs, n_inputs);
    e->failed = e->failed || status != QN_OK;
    e->starved = status == QN_E_NOMEM;
    return status;
}
