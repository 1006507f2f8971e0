/* Checkpoints: a collection in a file, so that a killed one can continue. The encoding is that of
 * statistics files:
 *
 *   "qnpart 3", fingerprint of the model, v samples, v segments and the end of each,
 *   a bit for every sample done, v segments merged, the total,
 *   0 or 1 and statistics for each open segment,
 *   extremes of samples, snapshots of the points reached,
 *   0 or 1 and statistics of each result so far, 0 or 1 and the caller's state */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "calib/collect.h"

static const char magic[] = "qnpart 3";

/* ---- Writing --------------------------------------------------------------------------------- */

static void put_maybe(qn_text *out, qn_stats *stats)
{
    qn_put_varint(out, stats != NULL);
    if (!stats)
        return;
    qn_stats_sort(stats);
    qn_put_stats(out, stats);
}

static void put_done(qn_text *out, const qn_collection *c)
{
    for (int64_t i = 0; i < c->source->count; i += 8) {
        char byte = 0;
        for (int64_t b = i; b < i + 8 && b < c->source->count; b++)
            byte = (char)(byte | (c->done[b] != 0) << (b - i));
        qn_text_add(out, &byte, 1);
    }
}

static void put_snapshot(qn_text *out, const qn_range_snapshot *s)
{
    qn_put_varint(out, s->entries != NULL);
    if (!s->entries)
        return;
    qn_put_varint(out, s->n_entries);
    for (size_t i = 0; i < s->n_entries; i++) {
        qn_put_name(out, s->entries[i].name);
        for (int m = 0; m < QN_CONVERGENCE_METHODS; m++) {
            qn_put_f32(out, s->entries[i].range[m].min);
            qn_put_f32(out, s->entries[i].range[m].max);
        }
    }
}

void qn_checkpoint_put(qn_text *out, qn_collection *c)
{
    qn_put_fingerprint(out, c->options->model);
    qn_put_varint(out, (uint64_t)c->source->count);
    qn_put_varint(out, c->n_segments);
    for (size_t i = 0; i < c->n_segments; i++)
        qn_put_varint(out, (uint64_t)c->segments[i].end);
    put_done(out, c);
    qn_put_varint(out, c->folded);
    put_maybe(out, c->total);
    for (size_t i = c->folded; i < c->n_segments; i++)
        put_maybe(out, c->segments[i].stats);
    qn_put_extremes(out, &c->extremes);
    for (size_t i = 0; i < c->n_points; i++)
        put_snapshot(out, &c->snapshots[i]);
    for (size_t i = 0; i < c->options->n_after; i++)
        put_maybe(out, c->out[i]);
    qn_put_varint(out, c->options->save_state != NULL);
    if (c->options->save_state)
        c->options->save_state(c->options->on_sample_user, out);
}

qn_status qn_checkpoint_write(qn_collection *c)
{
    qn_text text;
    qn_text_init(&text, c->ctx);
    qn_text_add(&text, magic, QN_MAGIC);
    qn_checkpoint_put(&text, c);
    return qn_write_checked(c->ctx, &text, c->checkpoint);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static qn_status get_maybe(qn_stats **out, qn_context *ctx, qn_byte_reader *in)
{
    *out = NULL;
    return qn_get_count(in, 1) ? qn_get_stats(out, ctx, in) : QN_OK;
}

static void get_done(qn_collection *c, qn_byte_reader *in)
{
    const size_t bytes = (size_t)(c->source->count + 7) / 8;
    if (in->wrong || (size_t)(in->end - in->at) < bytes) {
        in->wrong = true;
        return;
    }
    for (int64_t i = 0; i < c->source->count; i++) {
        c->done[i] = in->at[i / 8] >> (i % 8) & 1;
        c->n_done += c->done[i];
    }
    in->at += bytes;
}

static qn_status get_snapshot(qn_range_snapshot *s, qn_collection *c, qn_byte_reader *in)
{
    if (!qn_get_count(in, 1))
        return QN_OK;
    const size_t count = (size_t)qn_get_count(in, (uint64_t)(in->end - in->at));
    s->entries = qn_alloc_zero(c->ctx, count + 1, sizeof *s->entries);
    QN_TRY_ALLOC(c->ctx, s->entries);
    for (; s->n_entries < count && !in->wrong; s->n_entries++) {
        qn_range_snapshot_entry *e = &s->entries[s->n_entries];
        e->name = qn_get_name(in, &c->arena);
        if (!e->name)
            return in->wrong ? QN_OK : qn_fail_nomem(c->ctx);
        for (int m = 0; m < QN_CONVERGENCE_METHODS; m++) {
            e->range[m].min = qn_get_f32(in);
            e->range[m].max = qn_get_f32(in);
            in->wrong = in->wrong || !isfinite(e->range[m].min) || !isfinite(e->range[m].max);
        }
    }
    return QN_OK;
}

/* The same job: model, samples, segments. */
static bool get_job(const qn_collection *c, qn_byte_reader *in)
{
    bool same = qn_fingerprint_same(qn_get_fingerprint(in), c->options->model) &&
                qn_get_varint(in) == (uint64_t)c->source->count &&
                qn_get_varint(in) == c->n_segments;
    for (size_t i = 0; i < c->n_segments && same; i++)
        same = qn_get_varint(in) == (uint64_t)c->segments[i].end;
    return same && !in->wrong;
}

static qn_status get_all(qn_collection *c, qn_byte_reader *in)
{
    if (!get_job(c, in))
        return qn_fail(c->ctx, QN_E_INVALID, "it is of another model or other samples");
    get_done(c, in);
    c->folded = (size_t)qn_get_count(in, c->n_segments);
    qn_stats_free(c->total);
    QN_TRY(get_maybe(&c->total, c->ctx, in));
    for (size_t i = c->folded; i < c->n_segments && !in->wrong; i++)
        QN_TRY(get_maybe(&c->segments[i].stats, c->ctx, in));
    if (!in->wrong)
        QN_TRY(qn_get_extremes(&c->extremes, in, c->source->count));
    for (size_t i = 0; i < c->n_points && !in->wrong; i++)
        QN_TRY(get_snapshot(&c->snapshots[i], c, in));
    for (size_t i = 0; i < c->options->n_after && !in->wrong; i++)
        QN_TRY(get_maybe(&c->out[i], c->ctx, in));
    if (!in->wrong && (qn_get_count(in, 1) != 0) != (c->options->load_state != NULL))
        return qn_fail(c->ctx, QN_E_INVALID, "it is of another command");
    if (!in->wrong && c->options->load_state)
        QN_TRY(c->options->load_state(c->options->on_sample_user, c->ctx, in));
    if (in->wrong || in->at != in->end || !c->total)
        return qn_fail(c->ctx, QN_E_FORMAT, "it contradicts itself");
    return QN_OK;
}

/* ---- Going on -------------------------------------------------------------------------------- */

static uint64_t samples_in(const qn_collection *c, qn_fingerprint *data)
{
    uint64_t samples = c->total->samples;
    *data = c->total->data;
    for (size_t i = c->folded; i < c->n_segments; i++) {
        if (!c->segments[i].stats)
            continue;
        samples += c->segments[i].stats->samples;
        qn_fingerprint_add(data, c->segments[i].stats->data);
    }
    return samples;
}

/* The samples that are done must still be what they were: they are read again, but not run. */
static qn_status check_samples(const qn_collection *c, size_t n_inputs)
{
    qn_fingerprint then, now = {{0, 0}};
    if (samples_in(c, &then) != (uint64_t)c->n_done)
        return qn_fail(c->ctx, QN_E_FORMAT, "it contradicts itself");
    for (int64_t i = 0; i < c->source->count; i++) {
        const qn_tensor *inputs;
        if (!c->done[i])
            continue;
        QN_TRY(qn_check_cancel(c->ctx));
        QN_TRY(c->source->read(c->source->user, c->ctx, 0, i, &inputs));
        qn_fingerprint_add(&now, qn_sample_fingerprint(inputs, n_inputs));
    }
    if (!qn_fingerprint_same(then, now))
        return qn_fail(c->ctx, QN_E_INVALID, "it is of other data");
    return QN_OK;
}

/* Resets the collection to what it was before the file was read. */
static qn_status start_over(qn_collection *c)
{
    qn_collection_clear(c);
    for (size_t i = 0; i < c->options->n_after; i++) {
        qn_stats_free(c->out[i]);
        c->out[i] = NULL;
    }
    if (c->options->load_state)
        QN_TRY(c->options->load_state(c->options->on_sample_user, c->ctx, NULL));
    memset(c->done, 0, (size_t)c->source->count);
    QN_TRY(qn_stats_create(&c->total, c->ctx));
    c->total->model = c->options->model;
    return QN_OK;
}

static qn_status resume_from(qn_collection *c, const qn_map *map, size_t n_inputs)
{
    qn_byte_reader in = {NULL, NULL, false};
    QN_TRY(qn_get_checked(&in, c->ctx, map->data, map->size, magic));
    QN_TRY(get_all(c, &in));
    return check_samples(c, n_inputs);
}

/* ---- Another process's collection ------------------------------------------------------------ */

static bool overlaps(const qn_collection *a, const qn_collection *b)
{
    for (int64_t i = 0; i < a->source->count; i++) {
        if (a->done[i] && b->done[i])
            return true;
    }
    return false;
}

static qn_status add_all(qn_collection *c, const qn_collection *part)
{
    if (part->folded || part->total->samples)
        return qn_fail(c->ctx, QN_E_FORMAT, "it contradicts itself");
    if (overlaps(c, part))
        return qn_fail(c->ctx, QN_E_INVALID, "it has samples that are there already");
    for (int64_t i = 0; i < c->source->count; i++)
        c->done[i] |= part->done[i];
    c->n_done += part->n_done;
    QN_TRY(qn_extremes_merge(&c->extremes, &part->extremes));
    for (size_t i = 0; i < c->n_segments; i++) {
        if (part->segments[i].stats)
            QN_TRY(qn_collection_add(c, i, part->segments[i].stats));
    }
    return QN_OK;
}

/* An empty collection of the same job. */
static qn_status open_part(qn_collection *part, const qn_collection *c)
{
    *part = (qn_collection){.ctx = c->ctx, .source = c->source, .options = c->options};
    qn_arena_init(&part->arena, &c->ctx->allocator);
    qn_extremes_init(&part->extremes, c->ctx);
    part->n_points = c->n_points;
    part->segments = qn_arena_copy(&part->arena, c->segments, c->n_segments * sizeof *c->segments);
    part->done = qn_arena_array(&part->arena, (size_t)c->source->count, sizeof *part->done);
    if (!part->segments || !part->done)
        return qn_fail_nomem(c->ctx);
    part->n_segments = c->n_segments;
    for (size_t i = 0; i < part->n_segments; i++)
        part->segments[i].stats = NULL;
    return QN_OK;
}

/* `n_inputs` 0: the samples are known to be those that were done. */
static qn_status merge(qn_collection *c, qn_byte_reader *in, size_t n_inputs)
{
    qn_collection part;
    qn_status status = open_part(&part, c);
    if (status == QN_OK)
        status = get_all(&part, in);
    if (status == QN_OK && n_inputs)
        status = check_samples(&part, n_inputs);
    if (status == QN_OK)
        status = add_all(c, &part);
    qn_collection_clear(&part);
    qn_extremes_free(&part.extremes);
    qn_arena_free(&part.arena);
    return status;
}

qn_status qn_checkpoint_merge(qn_collection *c, const void *data, size_t size)
{
    qn_byte_reader in = {data, (const uint8_t *)data + size, false};
    return merge(c, &in, 0);
}

static qn_status merge_map(qn_collection *c, const qn_map *map, size_t n_inputs)
{
    qn_byte_reader in = {NULL, NULL, false};
    QN_TRY(qn_get_checked(&in, c->ctx, map->data, map->size, magic));
    return merge(c, &in, n_inputs);
}

qn_status qn_checkpoint_merge_file(qn_collection *c, const char *path, size_t n_inputs)
{
    qn_map map;
    QN_TRY(qn_map_open(&map, c->ctx, path));
    const qn_status status = merge_map(c, &map, n_inputs);
    qn_map_close(&map);
    if (status == QN_OK || status == QN_E_NOMEM || status == QN_E_CANCELLED)
        return status;
    qn_log(c->ctx, QN_LOG_WARN, "checkpoint %s is not used: %s", path, qn_context_error(c->ctx));
    return QN_OK;
}

/* ---- Resuming -------------------------------------------------------------------------------- */

/* Fails early, instead of after hours: where no checkpoint can be written, the result cannot be
 * either. */
static qn_status check_writable(qn_context *ctx, const char *path)
{
    qn_output_file *file;
    QN_TRY(qn_output_open(&file, ctx, path));
    qn_output_discard(file);
    return QN_OK;
}

qn_status qn_checkpoint_resume(qn_collection *c, size_t n_inputs)
{
    const char *path = c->checkpoint;
    qn_map map;
    QN_TRY(check_writable(c->ctx, path));
    if (access(path, F_OK) != 0)
        return QN_OK;
    qn_status status = qn_map_open(&map, c->ctx, path);
    if (status == QN_OK) {
        status = resume_from(c, &map, n_inputs);
        qn_map_close(&map);
    }
    if (status == QN_OK)
        return QN_OK;
    if (status == QN_E_NOMEM || status == QN_E_CANCELLED)
        return status;
    qn_log(c->ctx, QN_LOG_WARN, "checkpoint %s is not used, calibration begins anew: %s", path,
           qn_context_error(c->ctx));
    return start_over(c);
}
