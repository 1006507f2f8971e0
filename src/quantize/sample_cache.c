/* Samples kept in memory. */
#include "quantize/sample_cache.h"

#include <string.h>

static const size_t most_bytes = (size_t)256 << 20;

/* The bytes of the tensors and their contents, each at a multiple of 64; 0: they cannot be
 * copied. */
static size_t room_for(const qn_tensor *inputs, size_t count)
{
    size_t all = (count * sizeof *inputs + 63) / 64 * 64, bytes;
    for (size_t i = 0; i < count; i++) {
        if (inputs[i].dtype == QN_STRING || inputs[i].dtype >= QN_SEQUENCE ||
            !qn_tensor_bytes(&bytes, inputs[i].dtype, inputs[i].rank, inputs[i].dims) ||
            bytes > most_bytes)
            return 0;
        all += (bytes + 63) / 64 * 64;
    }
    return all;
}

static void copy(qn_tensor *to, const qn_tensor *inputs, size_t count)
{
    char *at = (char *)to + (count * sizeof *inputs + 63) / 64 * 64;
    for (size_t i = 0; i < count; i++) {
        const size_t bytes = (size_t)qn_tensor_count(&inputs[i]) * qn_dtype_size(inputs[i].dtype);
        to[i] = inputs[i];
        to[i].data = at;
        memcpy(at, inputs[i].data, bytes);
        at += (bytes + 63) / 64 * 64;
    }
}

/* Nothing is kept where there is no memory for it; of two threads that read the same sample one
 * keeps it. */
static void keep(qn_sample_cache *r, int64_t index, const qn_tensor *inputs)
{
    const size_t room = room_for(inputs, r->n_inputs);
    if (room == 0 || atomic_fetch_add(&r->bytes, room) + room > most_bytes)
        return;
    qn_tensor *made = qn_alloc_aligned(&r->ctx->allocator, room), *none = NULL;
    if (!made)
        return;
    copy(made, inputs, r->n_inputs);
    if (!atomic_compare_exchange_strong(&r->samples[index], &none, made))
        qn_free_aligned(&r->ctx->allocator, made);
}

static qn_status read_sample(void *user, qn_context *ctx, int slot, int64_t index,
                             const qn_tensor **inputs)
{
    qn_sample_cache *r = user;
    *inputs = atomic_load(&r->samples[index]);
    if (*inputs)
        return QN_OK;
    QN_TRY(r->inner->read(r->inner->user, ctx, slot, index, inputs));
    if (index < r->most)
        keep(r, index, *inputs);
    return QN_OK;
}

static void name_sample(void *user, int64_t index, char *out, size_t size)
{
    const qn_sample_cache *r = user;
    r->inner->name(r->inner->user, index, out, size);
}

qn_status qn_sample_cache_open(qn_sample_cache *out, qn_context *ctx, const qn_sample_source *inner,
                               size_t n_inputs)
{
    out->ctx = ctx;
    out->inner = inner;
    out->n_inputs = n_inputs;
    out->most = inner->count;
    out->source = *inner;
    out->source.user = out;
    out->source.read = read_sample;
    out->source.name = name_sample;
    atomic_init(&out->bytes, 0);
    out->samples = qn_alloc_zero(ctx, (size_t)inner->count + 1, sizeof *out->samples);
    QN_TRY_ALLOC(ctx, out->samples);
    return QN_OK;
}

void qn_sample_cache_close(qn_sample_cache *r)
{
    for (int64_t i = 0; r->samples && i < r->source.count; i++)
        qn_free_aligned(&r->ctx->allocator, atomic_load(&r->samples[i]));
    if (r->ctx)
        qn_free(r->ctx, r->samples);
}
