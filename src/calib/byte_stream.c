/* Numbers as little-endian bytes, and files with a checksum. */
#include "calib/byte_stream.h"

#include <string.h>

void qn_put_u64(qn_text *out, uint64_t x)
{
    char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(x >> (8 * i));
    qn_text_add(out, bytes, sizeof bytes);
}

void qn_put_f32(qn_text *out, float x)
{
    uint32_t bits;
    char bytes[4];
    memcpy(&bits, &x, sizeof bits);
    for (int i = 0; i < 4; i++)
        bytes[i] = (char)(bits >> (8 * i));
    qn_text_add(out, bytes, sizeof bytes);
}

void qn_put_varint(qn_text *out, uint64_t x)
{
    char bytes[10];
    size_t n = 0;
    for (; x >= 128; x >>= 7)
        bytes[n++] = (char)(x | 128);
    bytes[n++] = (char)x;
    qn_text_add(out, bytes, n);
}

void qn_put_sum128(qn_text *out, qn_sum128 x)
{
    qn_put_u64(out, x.low);
    qn_put_u64(out, (uint64_t)x.high);
}

void qn_put_fingerprint(qn_text *out, qn_fingerprint x)
{
    qn_put_u64(out, x.word[0]);
    qn_put_u64(out, x.word[1]);
}

void qn_put_name(qn_text *out, const char *name)
{
    const size_t length = strlen(name);
    qn_put_varint(out, length);
    qn_text_add(out, name, length);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static uint64_t get_little(qn_byte_reader *in, size_t size)
{
    uint64_t x = 0;
    if (in->wrong || (size_t)(in->end - in->at) < size) {
        in->wrong = true;
        return 0;
    }
    for (size_t i = 0; i < size; i++)
        x |= (uint64_t)*in->at++ << (8 * i);
    return x;
}

uint64_t qn_get_u64(qn_byte_reader *in)
{
    return get_little(in, 8);
}

float qn_get_f32(qn_byte_reader *in)
{
    const uint32_t bits = (uint32_t)get_little(in, 4);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

uint64_t qn_get_varint(qn_byte_reader *in)
{
    uint64_t x = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        const uint64_t byte = get_little(in, 1);
        if (in->wrong || (shift == 63 && byte > 1))
            break;
        x |= (byte & 127) << shift;
        if (byte < 128) {
            in->wrong = byte == 0 && shift > 0; /* longer than it must be */
            return in->wrong ? 0 : x;
        }
    }
    in->wrong = true;
    return 0;
}

uint64_t qn_get_count(qn_byte_reader *in, uint64_t most)
{
    const uint64_t x = qn_get_varint(in);
    in->wrong = in->wrong || x > most;
    return in->wrong ? 0 : x;
}

qn_sum128 qn_get_sum128(qn_byte_reader *in)
{
    const uint64_t low = qn_get_u64(in);
    return (qn_sum128){low, (int64_t)qn_get_u64(in)};
}

qn_fingerprint qn_get_fingerprint(qn_byte_reader *in)
{
    const uint64_t low = qn_get_u64(in);
    return (qn_fingerprint){{low, qn_get_u64(in)}};
}

const char *qn_get_name(qn_byte_reader *in, qn_arena *arena)
{
    const size_t length = (size_t)qn_get_count(in, (uint64_t)(in->end - in->at));
    in->wrong = in->wrong || length > (size_t)(in->end - in->at) ||
                (length > 0 && memchr(in->at, 0, length));
    if (in->wrong)
        return NULL;
    in->at += length;
    return qn_arena_text(arena, (const char *)in->at - length, length);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static qn_fingerprint checksum_of(const void *data, size_t size)
{
    qn_fingerprint print = {{0, 0}};
    qn_fingerprint_bytes(&print, data, size);
    return print;
}

void qn_put_checksum(qn_text *out)
{
    if (!out->failed)
        qn_put_fingerprint(out, checksum_of(out->at, out->length));
}

qn_status qn_get_checked(qn_byte_reader *out, qn_context *ctx, const void *data, size_t size,
                         const char *magic)
{
    enum { SEAL = 16 };
    const uint8_t *bytes = data;
    if (size < QN_MAGIC || memcmp(bytes, magic, QN_MAGIC - 1) != 0)
        return qn_fail(ctx, QN_E_FORMAT, "not a file of statistics, as 'quench calibrate' writes");
    if (bytes[QN_MAGIC - 1] != (uint8_t)magic[QN_MAGIC - 1])
        return qn_fail(ctx, QN_E_FORMAT, "statistics of another version: calibrate again");
    if (size < QN_MAGIC + SEAL)
        return qn_fail(ctx, QN_E_FORMAT, "the file is cut short");
    qn_byte_reader seal = {bytes + size - SEAL, bytes + size, false};
    if (!qn_fingerprint_same(qn_get_fingerprint(&seal), checksum_of(bytes, size - SEAL)))
        return qn_fail(ctx, QN_E_FORMAT, "the file is cut short or damaged");
    *out = (qn_byte_reader){bytes + QN_MAGIC, bytes + size - SEAL, false};
    return QN_OK;
}

qn_status qn_write_checked(qn_context *ctx, qn_text *text, const char *path)
{
    char *bytes;
    qn_put_checksum(text);
    const size_t size = text->length;
    QN_TRY(qn_text_take(&bytes, text));
    const qn_status status = qn_output_save(ctx, path, bytes, size);
    qn_text_free(ctx, bytes);
    return status;
}
