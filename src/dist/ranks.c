/* The group of a context: the plug-in that connects it, and messages. */
#include "dist/ranks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/plugin_files.h"
#include "quench/jobs.h"
#include "quench/ranks.h"

enum { TAG_DATA = 1, TAG_FAILED = 2, PARK_NS = 500000 };

struct qn_ranks {
    qn_context *ctx;
    void *object;
    const qn_ranks_plugin *entry;
    int rank, count;
    /* The others can be reached; some of them will not answer any more. */
    bool open, broken;
    /* This rank, or another, has failed: nobody is told again. */
    bool failed;
    /* The jobs that were done together. */
    int32_t jobs;
};

/* What a failing rank sends. */
typedef struct failure {
    int32_t status;
    /* What it had done before: those who are not as far do not mind. */
    int32_t jobs;
    char message[QN_ERROR_SIZE];
} failure;

qn_ranks *qn_ranks_of(const qn_context *ctx)
{
    return ctx->ranks;
}

int qn_ranks_own(const qn_ranks *ranks)
{
    return ranks ? ranks->rank : 0;
}

int qn_ranks_count(const qn_ranks *ranks)
{
    return ranks ? ranks->count : 1;
}

/* ---- Failures -------------------------------------------------------------------------------- */

qn_status qn_ranks_check(qn_ranks *r)
{
    failure told = {.status = QN_OK};
    int from = -1;
    if (!r || r->entry->size_of_next(&from, TAG_FAILED) != sizeof told)
        return QN_OK;
    if (r->entry->receive(from, TAG_FAILED, &told, sizeof told) != 0)
        return qn_fail(r->ctx, QN_E_IO, "rank %d: its message of failure cannot be received", from);
    if (told.jobs > r->jobs)
        return QN_OK;
    r->failed = true;
    told.message[QN_ERROR_SIZE - 1] = '\0';
    return qn_fail(r->ctx, (qn_status)told.status, "rank %d: %s", from, told.message);
}

static void park(void)
{
    const struct timespec pause = {.tv_nsec = PARK_NS};
    nanosleep(&pause, NULL);
}

/* Between two looks at what is awaited. */
static qn_status wait_on(qn_ranks *r)
{
    qn_status status = qn_check_cancel(r->ctx);
    if (status == QN_OK)
        status = qn_ranks_check(r);
    if (status == QN_OK)
        park();
    return status;
}

/* A message this short leaves at once, whoever waits for it. */
static void tell_failure(qn_ranks *r, int to, const failure *told)
{
    void *request = r->entry->send(to, TAG_FAILED, told, sizeof *told);
    for (int tries = 0; request && !r->entry->sent(request); tries++) {
        if (tries == 1000) {
            r->entry->give_up(request);
            r->broken = true;
            return;
        }
        park();
    }
}

qn_status qn_ranks_fail(qn_ranks *r, qn_status status)
{
    failure told = {.status = (int32_t)status, .jobs = r ? r->jobs : 0};
    if (!r || status == QN_OK || r->failed)
        return status;
    r->failed = true;
    if (status == QN_E_CANCELLED) {
        r->broken = true;
        return status;
    }
    snprintf(told.message, sizeof told.message, "%s", qn_context_error(r->ctx));
    for (int to = 0; to < r->count; to++) {
        if (to != r->rank)
            tell_failure(r, to, &told);
    }
    return status;
}

void qn_ranks_finish_job(qn_ranks *r)
{
    if (r)
        r->jobs++;
}

/* ---- Messages -------------------------------------------------------------------------------- */

static qn_status send_piece(qn_ranks *r, int to, const void *data, uint64_t size)
{
    qn_status status = QN_OK;
    void *request = r->entry->send(to, TAG_DATA, data, size);
    if (!request)
        return qn_fail(r->ctx, QN_E_IO, "%llu bytes cannot be sent to rank %d",
                       (unsigned long long)size, to);
    while (!r->entry->sent(request)) {
        status = wait_on(r);
        if (status != QN_OK) {
            r->entry->give_up(request);
            return status;
        }
    }
    return QN_OK;
}

qn_status qn_ranks_send(qn_ranks *r, int to, const void *data, size_t size)
{
    const uint64_t header = size;
    QN_TRY(send_piece(r, to, &header, sizeof header));
    for (uint64_t at = 0; at < size; at += QN_RANKS_MESSAGE_MAX)
        QN_TRY(send_piece(r, to, (const char *)data + at, QN_MIN(size - at, QN_RANKS_MESSAGE_MAX)));
    return QN_OK;
}

static qn_status receive_piece(qn_ranks *r, int from, void *data, uint64_t size)
{
    int64_t next;
    while ((next = r->entry->size_of_next(&from, TAG_DATA)) < 0)
        QN_TRY(wait_on(r));
    if (next != (int64_t)size || r->entry->receive(from, TAG_DATA, data, size) != 0)
        return qn_fail(r->ctx, QN_E_IO,
                       "a message from rank %d cannot be received: do all ranks run the same "
                       "release of the library?",
                       from);
    return QN_OK;
}

qn_status qn_ranks_receive(void **out, size_t *size, qn_ranks *r, int from)
{
    uint64_t header = 0;
    QN_TRY(receive_piece(r, from, &header, sizeof header));
    char *data = header < SIZE_MAX ? qn_alloc(r->ctx, (size_t)header + 1) : NULL;
    QN_TRY_ALLOC(r->ctx, data);
    for (uint64_t at = 0; at < header; at += QN_RANKS_MESSAGE_MAX) {
        const qn_status status =
            receive_piece(r, from, data + at, QN_MIN(header - at, QN_RANKS_MESSAGE_MAX));
        if (status != QN_OK) {
            qn_free(r->ctx, data);
            return status;
        }
    }
    *out = data;
    *size = (size_t)header;
    return QN_OK;
}

qn_status qn_ranks_broadcast(void **out, size_t *out_size, qn_ranks *r, const void *data,
                             size_t size)
{
    if (r->rank > 0)
        return qn_ranks_receive(out, out_size, r, 0);
    for (int to = 1; to < r->count; to++)
        QN_TRY(qn_ranks_send(r, to, data, size));
    *out = qn_alloc(r->ctx, size + 1);
    QN_TRY_ALLOC(r->ctx, *out);
    memcpy(*out, data, size);
    *out_size = size;
    return QN_OK;
}

/* ---- Joining --------------------------------------------------------------------------------- */

/* What the launcher says of this process; 0: there was no launcher. */
static int launched(const char *open_mpi, const char *others)
{
    const char *text = getenv(open_mpi);
    text = text ? text : getenv(others);
    return text ? atoi(text) : 0;
}

/* The others may wait for a rank that fails before or behind a job: with what its context says. */
static void close_group(qn_context *ctx)
{
    qn_ranks *r = ctx->ranks;
    if (r->open && *qn_context_error(ctx))
        (void)qn_ranks_fail(r, QN_E_IO);
    if (r->open)
        r->entry->close(!r->broken);
    /* MPI libraries cannot be unloaded: the object stays. */
    qn_free(ctx, r);
    ctx->ranks = NULL;
}

static bool is_plugin(const char *name, bool is_named)
{
    (void)is_named;
    return strcmp(name, "libquench-mpi.so") == 0;
}

static qn_status load(void *user, const char *path)
{
    qn_ranks *r = user;
    char why[256] = "";
    if (r->entry)
        return QN_OK;
    r->object = dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    if (!r->object)
        return qn_fail(r->ctx, QN_E_UNSUPPORTED, "plug-in '%s' cannot be loaded: %s", path,
                       dlerror());
    const qn_ranks_plugin *entry = dlsym(r->object, QN_RANKS_SYMBOL);
    if (!entry || entry->version != QN_RANKS_VERSION || entry->size != sizeof *entry)
        return qn_fail(r->ctx, QN_E_UNSUPPORTED,
                       "plug-in '%s' is of another release of the library: build both together",
                       path);
    if (entry->open(&r->rank, &r->count, why, sizeof why) != 0)
        return qn_fail(r->ctx, QN_E_IO, "plug-in '%s' cannot join the other ranks: %s", path, why);
    r->entry = entry;
    r->open = true;
    return QN_OK;
}

static qn_status join(qn_context *ctx, int expected)
{
    qn_ranks *r = ctx->ranks;
    QN_TRY(qn_plugin_files(is_plugin, load, r));
    if (!r->entry)
        return qn_fail(ctx, QN_E_UNSUPPORTED,
                       "%d ranks were started, but libquench-mpi.so, which connects them, is "
                       "neither where QUENCH_PLUGINS says nor beside the library: build it (Open "
                       "MPI's headers must be there), or start one process",
                       expected);
    if (r->rank == 0)
        qn_log(ctx, QN_LOG_NOTE, "MPI: %d ranks", r->count);
    return QN_OK;
}

qn_status qn_context_join(qn_context *ctx, int *rank, int *count)
{
    const int expected = launched("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
    *rank = launched("OMPI_COMM_WORLD_RANK", "PMI_RANK");
    *count = QN_MAX(expected, 1);
    if (!ctx->ranks && expected > 1) {
        qn_ranks *r = qn_alloc_zero(ctx, 1, sizeof *r);
        QN_TRY_ALLOC(ctx, r);
        r->ctx = ctx;
        ctx->ranks = r;
        ctx->close_ranks = close_group;
        const qn_status status = join(ctx, expected);
        if (status != QN_OK) {
            close_group(ctx);
            return status;
        }
    }
    *rank = qn_ranks_own(ctx->ranks);
    *count = qn_ranks_count(ctx->ranks);
    return QN_OK;
}
