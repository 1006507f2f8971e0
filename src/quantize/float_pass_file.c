/* What a float pass gave, in a file. The same kind of bytes as a statistics file:
 *
 *   "qncache1", prints of what it depends on, v numbers of forwards and each of them,
 *   statistics for each, v forwards, metric, v inputs, v outputs,
 *   v samples and their inputs (v type, v rank, v dims, bytes),
 *   v pieces and of each print, v rows, v count of every output, numbers. */
#include <string.h>
#include <unistd.h>

#include "executor/tensor_bytes.h"
#include "quantize/float_pass.h"

static const char magic[] = "qncache1";
static const char *const part_names[QN_PASS_PARTS] = {"another model", "another infer function",
                                                      "other data", "other options"};

/* ---- Writing --------------------------------------------------------------------------------- */

static void put_f64(qn_text *out, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    qn_put_u64(out, bits);
}

static void put_piece(qn_text *out, const qn_baseline *baseline, const qn_baseline_piece *piece)
{
    size_t all = 0;
    qn_put_fingerprint(out, piece->print);
    qn_put_varint(out, (uint64_t)piece->rows);
    for (size_t k = 0; k < baseline->n_outputs; k++) {
        qn_put_varint(out, (uint64_t)piece->counts[k]);
        all += (size_t)piece->counts[k];
    }
    for (size_t i = 0; i < all; i++)
        qn_put_f32(out, piece->values[i]);
}

static void put_baseline(qn_text *out, const qn_baseline *baseline)
{
    qn_put_varint(out, (uint64_t)baseline->forwards);
    put_f64(out, baseline->metric);
    qn_put_varint(out, baseline->n_inputs);
    qn_put_varint(out, baseline->n_outputs);
    qn_put_varint(out, (uint64_t)baseline->n_samples);
    for (size_t i = 0; i < (size_t)baseline->n_samples * baseline->n_inputs; i++)
        qn_put_tensor(out, &baseline->samples[i]);
    qn_put_varint(out, (uint64_t)baseline->n_pieces);
    for (int64_t i = 0; i < baseline->n_pieces; i++)
        put_piece(out, baseline, &baseline->pieces[i]);
}

qn_status qn_float_pass_save(qn_context *ctx, const qn_float_pass *pass, const qn_pass_key *key,
                             const char *path)
{
    qn_text text;
    qn_text_init(&text, ctx);
    qn_text_add(&text, magic, QN_MAGIC);
    for (size_t i = 0; i < QN_PASS_PARTS; i++)
        qn_put_fingerprint(&text, key->print[i]);
    qn_put_varint(&text, pass->n_after);
    for (size_t i = 0; i < pass->n_after; i++)
        qn_put_varint(&text, (uint64_t)pass->after[i]);
    for (size_t i = 0; i < pass->n_after; i++)
        qn_put_stats(&text, pass->stats[i]);
    put_baseline(&text, &pass->baseline);
    return qn_write_checked(ctx, &text, path);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static double get_f64(qn_byte_reader *in)
{
    const uint64_t bits = qn_get_u64(in);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t left(const qn_byte_reader *in)
{
    return (uint64_t)(in->end - in->at);
}

static qn_status get_samples(qn_baseline *baseline, qn_byte_reader *in)
{
    const uint64_t count = qn_get_count(in, left(in));
    if (in->wrong || count == 0)
        return QN_OK;
    baseline->samples = qn_alloc_zero(baseline->ctx, (size_t)count * baseline->n_inputs + 1,
                                      sizeof *baseline->samples);
    QN_TRY_ALLOC(baseline->ctx, baseline->samples);
    baseline->room = baseline->most_samples = (int64_t)count;
    for (; baseline->n_samples < (int64_t)count && !in->wrong; baseline->n_samples++) {
        qn_tensor *to = baseline->samples + (size_t)baseline->n_samples * baseline->n_inputs;
        for (size_t i = 0; i < baseline->n_inputs && !in->wrong; i++)
            QN_TRY(qn_get_tensor(&to[i], baseline->ctx, in));
    }
    return QN_OK;
}

static qn_status get_piece(qn_baseline_piece *piece, const qn_baseline *baseline,
                           qn_byte_reader *in)
{
    uint64_t all = 0;
    piece->print = qn_get_fingerprint(in);
    piece->rows = (int64_t)qn_get_count(in, (uint64_t)INT64_MAX);
    piece->counts = qn_alloc_zero(baseline->ctx, baseline->n_outputs + 1, sizeof *piece->counts);
    QN_TRY_ALLOC(baseline->ctx, piece->counts);
    for (size_t k = 0; k < baseline->n_outputs; k++) {
        piece->counts[k] = (int64_t)qn_get_count(in, left(in));
        all += (uint64_t)piece->counts[k];
    }
    in->wrong = in->wrong || all > left(in) / sizeof(float);
    if (in->wrong)
        return QN_OK;
    piece->values = qn_alloc(baseline->ctx, ((size_t)all + 1) * sizeof *piece->values);
    QN_TRY_ALLOC(baseline->ctx, piece->values);
    for (uint64_t i = 0; i < all; i++)
        piece->values[i] = qn_get_f32(in);
    return QN_OK;
}

static qn_status get_baseline(qn_baseline *baseline, qn_byte_reader *in)
{
    baseline->forwards = (int64_t)qn_get_count(in, (uint64_t)INT64_MAX);
    baseline->metric = get_f64(in);
    in->wrong = in->wrong || qn_get_varint(in) != baseline->n_inputs ||
                qn_get_varint(in) != baseline->n_outputs;
    if (!in->wrong)
        QN_TRY(get_samples(baseline, in));
    const uint64_t count = qn_get_count(in, left(in));
    if (in->wrong || count == 0)
        return QN_OK;
    baseline->most_pieces = (int64_t)count;
    baseline->pieces = qn_alloc_zero(baseline->ctx, (size_t)count, sizeof *baseline->pieces);
    QN_TRY_ALLOC(baseline->ctx, baseline->pieces);
    for (uint64_t i = 0; i < count && !in->wrong; i++)
        QN_TRY(get_piece(&baseline->pieces[i], baseline, in));
    return QN_OK;
}

static qn_status check_key(qn_context *ctx, const qn_pass_key *key, qn_byte_reader *in)
{
    qn_pass_key found;
    for (size_t i = 0; i < QN_PASS_PARTS; i++)
        found.print[i] = qn_get_fingerprint(in);
    for (size_t i = 0; i < QN_PASS_PARTS && !in->wrong; i++) {
        if (!qn_fingerprint_same(found.print[i], key->print[i]))
            return qn_fail(ctx, QN_E_INVALID,
                           "the cache is stale: it was made with %s; remove it, or name "
                           "another (`cache`)",
                           part_names[i]);
    }
    return QN_OK;
}

static qn_status get_all(qn_float_pass *pass, qn_context *ctx, const qn_pass_key *key,
                         qn_byte_reader *in)
{
    QN_TRY(check_key(ctx, key, in));
    bool same = qn_get_varint(in) == pass->n_after;
    for (size_t i = 0; i < pass->n_after && same; i++)
        same = (int64_t)qn_get_varint(in) == pass->after[i];
    if (!same && !in->wrong)
        return qn_fail(
            ctx, QN_E_INVALID,
            "the cache is stale: it was made with other numbers of iterations; remove it, "
            "or name another (`cache`)");
    for (size_t i = 0; i < pass->n_after && !in->wrong; i++)
        QN_TRY(qn_get_stats(&pass->stats[i], ctx, in));
    if (!in->wrong)
        QN_TRY(get_baseline(&pass->baseline, in));
    if (in->wrong || in->at != in->end)
        return qn_fail(ctx, QN_E_FORMAT, "the cache contradicts itself");
    qn_baseline_finish(&pass->baseline);
    return QN_OK;
}

qn_status qn_float_pass_load(bool *found, qn_float_pass *pass, qn_context *ctx,
                             const qn_pass_key *key, const char *path)
{
    qn_map map;
    qn_byte_reader in = {NULL, NULL, false};
    *found = access(path, F_OK) == 0;
    if (!*found)
        return QN_OK;
    QN_TRY(qn_map_open(&map, ctx, path));
    qn_status status = qn_get_checked(&in, ctx, map.data, map.size, magic);
    if (status == QN_OK)
        status = get_all(pass, ctx, key, &in);
    qn_map_close(&map);
    return status == QN_OK ? QN_OK : qn_fail_within(ctx, status, "%s", path);
}
