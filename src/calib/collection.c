/* Segments, stages and what is known of a collection as a whole. */
#include "calib/collect.h"

#include "dist/ranks.h"

static qn_status copy_stats(qn_stats **out, qn_context *ctx, const qn_stats *stats)
{
    return qn_stats_merge(out, ctx, &stats, 1);
}

/* `end` samples are in the total: those who waited for that get what they want. */
static qn_status reach(qn_collection *c, int64_t end)
{
    for (size_t i = 0; i < c->n_points; i++) {
        if (c->points[i].samples == end && !c->snapshots[i].entries)
            QN_TRY(qn_range_snapshot_take(&c->snapshots[i], c->ctx, c->total));
    }
    for (size_t i = 0; i < c->options->n_after; i++) {
        if (c->options->after[i] == end && !c->out[i])
            QN_TRY(copy_stats(&c->out[i], c->ctx, c->total));
    }
    return QN_OK;
}

static bool is_complete(const qn_collection *c, size_t segment)
{
    const int64_t begin = segment ? c->segments[segment - 1].end : 0;
    const qn_stats *stats = c->segments[segment].stats;
    return stats && (int64_t)stats->samples == c->segments[segment].end - begin;
}

/* Only rank 0 sees segments whole: the others keep parts of them. */
static qn_status fold(qn_collection *c)
{
    if (qn_ranks_own(c->options->ranks) > 0)
        return QN_OK;
    for (; c->folded < c->n_segments && is_complete(c, c->folded); c->folded++) {
        qn_segment *segment = &c->segments[c->folded];
        QN_TRY(qn_stats_add(c->total, segment->stats));
        qn_stats_free(segment->stats);
        segment->stats = NULL;
        QN_TRY(reach(c, segment->end));
    }
    return QN_OK;
}

qn_status qn_collection_add(qn_collection *c, size_t segment, const qn_stats *part)
{
    qn_stats **to = &c->segments[segment].stats;
    if (part) {
        if (!*to) {
            QN_TRY(qn_stats_create(to, c->ctx));
            (*to)->model = c->options->model;
        }
        QN_TRY(qn_stats_add(*to, part));
    }
    return fold(c);
}

void qn_collection_clear(qn_collection *c)
{
    for (size_t i = 0; i < c->n_segments; i++) {
        qn_stats_free(c->segments[i].stats);
        c->segments[i].stats = NULL;
    }
    for (size_t i = 0; i < c->n_points; i++)
        qn_range_snapshot_free(&c->snapshots[i], c->ctx);
    qn_stats_free(c->total);
    c->total = NULL;
    qn_extremes_free(&c->extremes);
    qn_extremes_init(&c->extremes, c->ctx);
    c->folded = 0;
    c->n_done = 0;
}

static void take_text(qn_fingerprint *print, const qn_tensor *tensor)
{
    const qn_string *strings = tensor->data;
    for (int64_t i = 0; i < qn_tensor_count(tensor); i++)
        qn_fingerprint_bytes(print, strings[i].text, strings[i].length);
}

qn_fingerprint qn_sample_fingerprint(const qn_tensor *inputs, size_t count)
{
    qn_fingerprint print = {{0, 0}};
    for (size_t i = 0; i < count; i++) {
        const qn_tensor *t = &inputs[i];
        size_t bytes;
        qn_fingerprint_int(&print, t->dtype);
        qn_fingerprint_int(&print, t->rank);
        for (int32_t d = 0; d < t->rank; d++)
            qn_fingerprint_int(&print, t->dims[d]);
        if (t->dtype == QN_STRING)
            take_text(&print, t);
        else if (t->dtype < QN_SEQUENCE && qn_tensor_bytes(&bytes, t->dtype, t->rank, t->dims))
            qn_fingerprint_bytes(&print, t->data, bytes);
    }
    return print;
}
