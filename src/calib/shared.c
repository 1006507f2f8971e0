/* One collection in many processes: each runs a share of the samples, and rank 0 puts them
 * together. Statistics do not depend on the order of samples, so they are those of one process, to
 * the byte.
 *
 * Rank r > 0 keeps its checkpoint in "<checkpoint>.rank<r>". Whoever continues, with however many
 * ranks, merges all of them into rank 0's first. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "calib/collect.h"
#include "dist/ranks.h"

enum { MOST_RANKS = 4096, PATH_SIZE = 4096 };

static void rank_path(char path[PATH_SIZE], const qn_collection *c, int rank)
{
    snprintf(path, PATH_SIZE, "%s.rank%d", c->options->checkpoint, rank);
}

/* ---- Before: which samples ------------------------------------------------------------------- */

/* The file is in rank 0's checkpoint, which is written, before it goes. */
static qn_status take_file(qn_collection *c, const char *path, size_t n_inputs)
{
    QN_TRY(qn_checkpoint_merge_file(c, path, n_inputs));
    QN_TRY(qn_checkpoint_write(c));
    remove(path);
    return QN_OK;
}

static qn_status resume(qn_collection *c, size_t n_inputs)
{
    char path[PATH_SIZE];
    QN_TRY(qn_checkpoint_resume(c, n_inputs));
    for (int rank = 1; rank < MOST_RANKS; rank++) {
        rank_path(path, c, rank);
        if (access(path, F_OK) == 0)
            QN_TRY(take_file(c, path, n_inputs));
    }
    if (c->n_done)
        qn_log(c->ctx, QN_LOG_NOTE, "%s: going on after %lld of %lld samples", c->checkpoint,
               (long long)c->n_done, (long long)c->source->count);
    return QN_OK;
}

/* Every rank gets every count-th sample of those that are not done. */
static void choose_share(qn_collection *c, const uint8_t *done)
{
    const int own = qn_ranks_own(c->options->ranks), count = qn_ranks_count(c->options->ranks);
    int next = 0;
    c->n_share = c->n_done;
    for (int64_t i = 0; i < c->source->count; i++) {
        const bool is_own = !done[i] && next == own;
        c->elsewhere[i] = !is_own && !c->done[i];
        c->n_share += is_own;
        next = done[i] ? next : (next + 1) % count;
    }
}

qn_status qn_collection_share(qn_collection *c, size_t n_inputs)
{
    qn_ranks *ranks = c->options->ranks;
    const size_t samples = (size_t)c->source->count;
    void *done = NULL;
    size_t size = samples;
    c->checkpoint = c->options->checkpoint;
    if (c->checkpoint && qn_ranks_own(ranks) == 0)
        QN_TRY(resume(c, n_inputs));
    if (!ranks) {
        choose_share(c, c->done);
        return QN_OK;
    }
    if (c->checkpoint && qn_ranks_own(ranks) > 0) {
        c->checkpoint = qn_arena_format(&c->arena, "%s.rank%d", c->checkpoint, qn_ranks_own(ranks));
        QN_TRY_ALLOC(c->ctx, c->checkpoint);
    }
    QN_TRY(qn_ranks_broadcast(&done, &size, ranks, c->done, samples));
    if (size == samples)
        choose_share(c, done);
    qn_free(c->ctx, done);
    return size == samples ? QN_OK
                           : qn_fail(c->ctx, QN_E_INVALID,
                                     "rank 0 has %zu samples and rank %d has %zu: all ranks need "
                                     "the same data",
                                     size, qn_ranks_own(ranks), samples);
}

/* ---- After: all together --------------------------------------------------------------------- */

static qn_status send_share(qn_collection *c)
{
    qn_text text;
    char *bytes;
    qn_text_init(&text, c->ctx);
    qn_checkpoint_put(&text, c);
    const size_t size = text.length;
    QN_TRY(qn_text_take(&bytes, &text));
    const qn_status status = qn_ranks_send(c->options->ranks, 0, bytes, size);
    qn_text_free(c->ctx, bytes);
    return status;
}

static qn_status take_share(qn_collection *c, int from)
{
    void *bytes;
    size_t size;
    QN_TRY(qn_ranks_receive(&bytes, &size, c->options->ranks, from));
    const qn_status status = qn_checkpoint_merge(c, bytes, size);
    qn_free(c->ctx, bytes);
    return status == QN_OK || status == QN_E_NOMEM
               ? status
               : qn_fail_within(c->ctx, status, "the statistics of rank %d", from);
}

static qn_status take_shares(qn_collection *c)
{
    for (int from = 1; from < qn_ranks_count(c->options->ranks); from++)
        QN_TRY(take_share(c, from));
    if (c->n_done != c->source->count)
        return qn_fail(c->ctx, QN_E_INVALID,
                       "the ranks have collected %lld of %lld samples: all need the same data",
                       (long long)c->n_done, (long long)c->source->count);
    qn_stats_sort(c->total);
    return c->checkpoint ? qn_checkpoint_write(c) : QN_OK;
}

static qn_status take_total(qn_collection *c, const void *data, size_t size)
{
    qn_byte_reader in = {data, (const uint8_t *)data + size, false};
    qn_stats_free(c->total);
    c->total = NULL;
    QN_TRY(qn_get_stats(&c->total, c->ctx, &in));
    if (in.wrong || in.at != in.end || !c->total)
        return qn_fail(c->ctx, QN_E_FORMAT, "the statistics of rank 0 contradict themselves");
    return QN_OK;
}

static qn_status share_total(qn_collection *c)
{
    qn_text text;
    char *bytes = NULL;
    void *total = NULL;
    size_t size = 0;
    const bool is_first = qn_ranks_own(c->options->ranks) == 0;
    qn_text_init(&text, c->ctx);
    if (is_first)
        qn_put_stats(&text, c->total);
    const size_t length = text.length;
    QN_TRY(qn_text_take(&bytes, &text));
    qn_status status = qn_ranks_broadcast(&total, &size, c->options->ranks, bytes, length);
    qn_text_free(c->ctx, bytes);
    if (status == QN_OK && !is_first)
        status = take_total(c, total, size);
    qn_free(c->ctx, total);
    if (status == QN_OK && !is_first && c->checkpoint)
        remove(c->checkpoint);
    return status;
}

/* Every share is in a file before its rank waits for others, any of which may die. */
qn_status qn_collection_unite(qn_collection *c)
{
    const qn_ranks *ranks = c->options->ranks;
    if (!ranks)
        return QN_OK;
    if (c->checkpoint)
        QN_TRY(qn_checkpoint_write(c));
    QN_TRY(qn_ranks_own(ranks) > 0 ? send_share(c) : take_shares(c));
    return share_total(c);
}
