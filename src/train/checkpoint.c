/* Checkpoints. A file is: the mark, the fingerprint of the training, steps done, sums of the epoch
 * and of those before it, the contents of every parameter that changes, in the order of the plan,
 * and the fingerprint of all that; integers and doubles of 8 bytes as this machine has them. */
#include "train/checkpoint.h"

#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "run/session.h"

static const char mark[16] = "quench train 01";

/* ---- Writing --------------------------------------------------------------------------------- */

typedef struct writer {
    qn_output_file *file;
    qn_fingerprint print;
} writer;

static qn_status write_bytes(writer *w, const void *data, size_t size)
{
    qn_fingerprint_bytes(&w->print, data, size);
    return qn_output_write(w->file, data, size);
}

static qn_status write_sums(writer *w, const qn_train_sums *sums, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        QN_TRY(write_bytes(w, &sums[i].loss, sizeof sums[i].loss));
        QN_TRY(write_bytes(w, &sums[i].correct, sizeof sums[i].correct));
        QN_TRY(write_bytes(w, &sums[i].steps, sizeof sums[i].steps));
    }
    return QN_OK;
}

static size_t bytes_of(const qn_tensor *t)
{
    return (size_t)qn_tensor_count(t) * qn_dtype_size(t->dtype);
}

static qn_status write_all(writer *w, qn_training *t, qn_fingerprint of, const qn_train_progress *p)
{
    QN_TRY(write_bytes(w, mark, sizeof mark));
    QN_TRY(write_bytes(w, &of, sizeof of));
    QN_TRY(write_bytes(w, &p->step, sizeof p->step));
    QN_TRY(write_bytes(w, &p->n_epochs, sizeof p->n_epochs));
    QN_TRY(write_sums(w, &p->now, 1));
    QN_TRY(write_sums(w, p->epochs, p->n_epochs));
    for (size_t i = 0; i < t->n_names; i++) {
        const qn_tensor *now;
        QN_TRY(qn_session_parameter_get(&now, t->session, t->names[i]));
        QN_TRY(write_bytes(w, now->data, bytes_of(now)));
    }
    const qn_fingerprint print = w->print;
    return qn_output_write(w->file, &print, sizeof print);
}

qn_status qn_checkpoint_save(qn_training *t, const char *path, qn_fingerprint of,
                             const qn_train_progress *progress)
{
    writer w = {.file = NULL};
    QN_TRY(qn_output_open(&w.file, t->ctx, path));
    const qn_status status = write_all(&w, t, of, progress);
    if (status == QN_OK)
        return qn_output_commit(w.file);
    qn_output_discard(w.file);
    return status;
}

/* ---- Reading --------------------------------------------------------------------------------- */

typedef struct reader {
    qn_context *ctx;
    const char *path;
    const uint8_t *at;
    size_t left;
    qn_fingerprint print;
} reader;

static qn_status fail(const reader *r, const char *why)
{
    return qn_fail(r->ctx, QN_E_FORMAT, "%s: %s; remove it to train from the beginning", r->path,
                   why);
}

static qn_status read_bytes(void *to, reader *r, size_t size)
{
    if (size > r->left)
        return fail(r, "the checkpoint is cut off");
    if (size) {
        memcpy(to, r->at, size);
        qn_fingerprint_bytes(&r->print, r->at, size);
    }
    r->at += size;
    r->left -= size;
    return QN_OK;
}

static qn_status read_sums(qn_train_sums *sums, reader *r, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        QN_TRY(read_bytes(&sums[i].loss, r, sizeof sums[i].loss));
        QN_TRY(read_bytes(&sums[i].correct, r, sizeof sums[i].correct));
        QN_TRY(read_bytes(&sums[i].steps, r, sizeof sums[i].steps));
    }
    return QN_OK;
}

/* The parameters follow, and are checked before any of them is set. */
static qn_status read_head(reader *r, qn_fingerprint of, qn_train_progress *p, int64_t most)
{
    char start[sizeof mark] = {0};
    qn_fingerprint print;
    QN_TRY(read_bytes(start, r, sizeof start));
    if (memcmp(start, mark, sizeof mark) != 0)
        return fail(r, "this is no checkpoint");
    QN_TRY(read_bytes(&print, r, sizeof print));
    if (!qn_fingerprint_same(print, of))
        return fail(r, "the checkpoint is of another model, other data or other settings");
    QN_TRY(read_bytes(&p->step, r, sizeof p->step));
    QN_TRY(read_bytes(&p->n_epochs, r, sizeof p->n_epochs));
    if (p->step < 0 || p->n_epochs < 0 || p->n_epochs > most)
        return fail(r, "the checkpoint is damaged");
    QN_TRY(read_sums(&p->now, r, 1));
    return read_sums(p->epochs, r, p->n_epochs);
}

static qn_status check_rest(reader r, qn_training *t)
{
    qn_fingerprint print;
    for (size_t i = 0; i < t->n_names; i++) {
        const qn_tensor *now;
        QN_TRY(qn_session_parameter_get(&now, t->session, t->names[i]));
        if (bytes_of(now) > r.left)
            return fail(&r, "the checkpoint is cut off");
        qn_fingerprint_bytes(&r.print, r.at, bytes_of(now));
        r.at += bytes_of(now);
        r.left -= bytes_of(now);
    }
    if (r.left != sizeof print)
        return fail(&r, "the checkpoint is cut off");
    memcpy(&print, r.at, sizeof print);
    return qn_fingerprint_same(print, r.print) ? QN_OK : fail(&r, "the checkpoint is damaged");
}

static qn_status read_all(reader *r, qn_training *t, qn_fingerprint of, qn_train_progress *p,
                          int64_t most)
{
    QN_TRY(read_head(r, of, p, most));
    QN_TRY(check_rest(*r, t));
    for (size_t i = 0; i < t->n_names; i++) {
        const qn_tensor *now;
        QN_TRY(qn_session_parameter_get(&now, t->session, t->names[i]));
        qn_tensor kept = *now;
        kept.data = (void *)(uintptr_t)r->at;
        QN_TRY(qn_session_parameter_set(t->session, t->names[i], &kept));
        r->at += bytes_of(now);
    }
    return QN_OK;
}

qn_status qn_checkpoint_load(bool *found, qn_training *t, const char *path, qn_fingerprint of,
                             qn_train_progress *progress, int64_t most)
{
    qn_map map;
    *found = access(path, F_OK) == 0;
    if (!*found)
        return QN_OK;
    QN_TRY(qn_map_open(&map, t->ctx, path));
    reader r = {.ctx = t->ctx, .path = path, .at = map.data, .left = map.size};
    const qn_status status = read_all(&r, t, of, progress, most);
    qn_map_close(&map);
    return status;
}
