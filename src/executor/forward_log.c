/* A float pass that is not finished, in a file. The same kind of bytes as a statistics file:
 *
 *   "qnfwds 1", key, v numbers of forwards and each of them,
 *   0 or 1 and statistics for each but the last, the statistics up to now,
 *   v forwards and of each print, v outputs and each of them (v type, v rank, v dims, bytes). */
#include "executor/forward_log.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "executor/tensor_bytes.h"

static const char magic[] = "qnfwds 1";
static const size_t most_bytes = (size_t)64 << 20;
static const double every_ms = 10e3;

/* ---- In memory ------------------------------------------------------------------------------- */

void qn_forward_log_clear(qn_forward_log *log)
{
    for (size_t i = 0; i < log->count; i++) {
        for (int64_t k = 0; k < log->at[i].n_tensors; k++)
            qn_free_aligned(&log->ctx->allocator, log->at[i].tensors[k].data);
        qn_free(log->ctx, log->at[i].tensors);
    }
    for (size_t i = 0; log->stats && i < log->n_after; i++) {
        qn_stats_free(log->stats[i]);
        log->stats[i] = NULL;
    }
    qn_stats_free(log->total);
    log->total = NULL;
    log->count = log->known = log->bytes = 0;
}

void qn_forward_log_close(qn_forward_log *log)
{
    if (!log->ctx)
        return;
    qn_forward_log_clear(log);
    qn_free(log->ctx, log->at);
    qn_free(log->ctx, log->stats);
}

/* What differs from the first on, as random numbers do, begins anew without having lost
 * anything. */
void qn_forward_log_find(const qn_logged_forward **out, qn_forward_log *log, int64_t index,
                         qn_fingerprint print)
{
    *out = NULL;
    if ((size_t)index >= log->known || log->other)
        return;
    if (qn_fingerprint_same(log->at[index].print, print)) {
        *out = &log->at[index];
        return;
    }
    log->other = index > 0;
    qn_log(log->ctx, QN_LOG_NOTE,
           "%s is not used: the infer function feeds other data than before it was stopped%s",
           log->path, log->other ? ", and is called once more" : "");
    if (!log->other)
        qn_forward_log_clear(log);
}

static bool can_keep(const qn_forward_log *log, const qn_tensor *outputs, int64_t count)
{
    size_t all = log->bytes, bytes = 0;
    bool fits = true;
    for (int64_t k = 0; k < count && fits; k++) {
        const qn_tensor *t = &outputs[k];
        fits = t->dtype != QN_STRING && t->dtype < QN_SEQUENCE &&
               qn_tensor_bytes(&bytes, t->dtype, t->rank, t->dims) && bytes <= most_bytes;
        all += bytes;
    }
    return fits && all <= most_bytes;
}

static qn_status copy_tensor(qn_tensor *to, qn_context *ctx, const qn_tensor *from)
{
    const size_t bytes = (size_t)qn_tensor_count(from) * qn_dtype_size(from->dtype);
    void *data = qn_alloc_aligned(&ctx->allocator, QN_MAX(bytes, 64));
    QN_TRY_ALLOC(ctx, data);
    memcpy(data, from->data, bytes);
    *to = *from;
    to->data = data;
    return QN_OK;
}

static qn_status make_tensors(qn_logged_forward *f, qn_forward_log *log, int64_t count)
{
    f->tensors = qn_alloc_zero(log->ctx, (size_t)count + 1, sizeof *f->tensors);
    QN_TRY_ALLOC(log->ctx, f->tensors);
    f->n_tensors = count;
    return QN_OK;
}

qn_status qn_forward_log_add(qn_forward_log *log, qn_fingerprint print, const qn_tensor *outputs,
                             int64_t count)
{
    QN_TRY_GROW(log->ctx, log->at, log->capacity, log->count + 1);
    qn_logged_forward *f = &log->at[log->count++];
    *f = (qn_logged_forward){.print = print};
    if (!can_keep(log, outputs, count))
        return QN_OK;
    QN_TRY(make_tensors(f, log, count));
    for (int64_t k = 0; k < count; k++) {
        QN_TRY(copy_tensor(&f->tensors[k], log->ctx, &outputs[k]));
        log->bytes += (size_t)qn_tensor_count(&outputs[k]) * qn_dtype_size(outputs[k].dtype);
    }
    return QN_OK;
}

/* ---- Writing --------------------------------------------------------------------------------- */

bool qn_forward_log_due(const qn_forward_log *log)
{
    return qn_clock_ms() - log->written > every_ms;
}

static void put_forward(qn_text *out, const qn_logged_forward *f)
{
    qn_put_fingerprint(out, f->print);
    qn_put_varint(out, (uint64_t)f->n_tensors);
    for (int64_t k = 0; k < f->n_tensors; k++)
        qn_put_tensor(out, &f->tensors[k]);
}

qn_status qn_forward_log_write(qn_forward_log *log, const qn_stats *total, qn_stats *const *stats)
{
    qn_text text;
    qn_text_init(&text, log->ctx);
    qn_text_add(&text, magic, QN_MAGIC);
    qn_put_fingerprint(&text, log->key);
    qn_put_varint(&text, log->n_after);
    for (size_t i = 0; i < log->n_after; i++)
        qn_put_varint(&text, (uint64_t)log->after[i]);
    for (size_t i = 0; i + 1 < log->n_after; i++) {
        qn_put_varint(&text, stats[i] != NULL);
        if (stats[i])
            qn_put_stats(&text, stats[i]);
    }
    qn_put_stats(&text, total);
    qn_put_varint(&text, log->count);
    for (size_t i = 0; i < log->count; i++)
        put_forward(&text, &log->at[i]);
    log->written = qn_clock_ms();
    return qn_write_checked(log->ctx, &text, log->path);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool get_job(const qn_forward_log *log, qn_byte_reader *in)
{
    bool same =
        qn_fingerprint_same(qn_get_fingerprint(in), log->key) && qn_get_varint(in) == log->n_after;
    for (size_t i = 0; i < log->n_after && same; i++)
        same = qn_get_varint(in) == (uint64_t)log->after[i];
    return same && !in->wrong;
}

static qn_status get_forward(qn_forward_log *log, qn_byte_reader *in)
{
    QN_TRY_GROW(log->ctx, log->at, log->capacity, log->count + 1);
    qn_logged_forward *f = &log->at[log->count++];
    *f = (qn_logged_forward){.print = qn_get_fingerprint(in)};
    const int64_t count = (int64_t)qn_get_count(in, (uint64_t)(in->end - in->at));
    if (in->wrong || count == 0)
        return QN_OK;
    QN_TRY(make_tensors(f, log, count));
    for (int64_t k = 0; k < count && !in->wrong; k++) {
        QN_TRY(qn_get_tensor(&f->tensors[k], log->ctx, in));
        if (!in->wrong)
            log->bytes +=
                (size_t)qn_tensor_count(&f->tensors[k]) * qn_dtype_size(f->tensors[k].dtype);
    }
    return QN_OK;
}

static qn_status get_all(qn_forward_log *log, qn_byte_reader *in)
{
    if (!get_job(log, in))
        return qn_fail(log->ctx, QN_E_INVALID,
                       "it is of another model, function or data, or of other options");
    for (size_t i = 0; i + 1 < log->n_after && !in->wrong; i++) {
        if (qn_get_count(in, 1))
            QN_TRY(qn_get_stats(&log->stats[i], log->ctx, in));
    }
    if (!in->wrong)
        QN_TRY(qn_get_stats(&log->total, log->ctx, in));
    const uint64_t count = qn_get_count(in, (uint64_t)(in->end - in->at));
    for (uint64_t i = 0; i < count && !in->wrong; i++)
        QN_TRY(get_forward(log, in));
    if (in->wrong || in->at != in->end || !log->total)
        return qn_fail(log->ctx, QN_E_FORMAT, "it contradicts itself");
    log->known = log->count;
    return QN_OK;
}

qn_status qn_forward_log_open(qn_forward_log *log)
{
    qn_map map;
    qn_byte_reader in = {NULL, NULL, false};
    log->written = qn_clock_ms();
    log->stats = qn_alloc_zero(log->ctx, log->n_after + 1, sizeof *log->stats);
    QN_TRY_ALLOC(log->ctx, log->stats);
    if (access(log->path, F_OK) != 0)
        return QN_OK;
    qn_status status = qn_map_open(&map, log->ctx, log->path);
    if (status == QN_OK) {
        status = qn_get_checked(&in, log->ctx, map.data, map.size, magic);
        if (status == QN_OK)
            status = get_all(log, &in);
        qn_map_close(&map);
    }
    if (status == QN_OK) {
        qn_log(log->ctx, QN_LOG_NOTE, "%s: going on after %zu forwards", log->path, log->known);
        return QN_OK;
    }
    if (status == QN_E_NOMEM)
        return status;
    qn_log(log->ctx, QN_LOG_WARN, "%s is not used, the float pass begins anew: %s", log->path,
           qn_context_error(log->ctx));
    qn_forward_log_clear(log);
    return QN_OK;
}
