/* A statistics file. Its seal is put right first, or nothing behind it would ever be reached; two
 * bytes in its place choose what is asked of one entry: searches for ranges are slow, and all of
 * them for every input would leave few inputs. What reads back must answer, merge, and be written
 * as the bytes that it was read from. */
#include <stdlib.h>
#include <string.h>

#include "calib/byte_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SEAL = 16 };

/* One method, of 2 to 9 bits, on one of the entries. */
static void ask(qn_context *ctx, const qn_stats *stats, unsigned choice)
{
    qn_range_options options = QN_RANGE_OPTIONS_INIT;
    qn_range range;
    if (stats->n_entries == 0)
        return;
    const qn_method *method = qn_methods[choice % qn_methods_count];
    choice /= (unsigned)qn_methods_count;
    options.symmetric = choice & 1;
    options.bits = 2 + (int)(choice >> 1 & 7);
    const qn_stats_entry *entry = stats->entries[(choice >> 4) % stats->n_entries];
    if (qn_stats_range(&range, ctx, entry, method, &options) != QN_OK ||
        !(range.min <= 0 && range.max >= 0))
        abort();
}

static void check(qn_context *ctx, const qn_stats *stats, const uint8_t *bytes, size_t size)
{
    qn_stats *twice;
    qn_text text;
    qn_text_init(&text, ctx);
    qn_text_add(&text, "qnstats2", QN_MAGIC);
    qn_put_stats(&text, stats);
    qn_put_checksum(&text);
    if (text.failed || text.length != size || memcmp(text.at, bytes, size) != 0)
        abort();
    qn_free(ctx, text.at);
    const qn_stats *parts[] = {stats, stats};
    if (qn_stats_merge(&twice, ctx, parts, 2) != QN_OK)
        abort();
    qn_stats_free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qn_context *ctx;
    qn_stats *stats;
    qn_text text;
    if (qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    qn_text_init(&text, ctx);
    qn_text_add(&text, (const char *)data, size < SEAL ? 0 : size - SEAL);
    qn_put_checksum(&text);
    if (text.failed)
        abort();
    const qn_status status = qn_stats_read(&stats, ctx, text.at, text.length, "input");
    if (status == QN_OK) {
        check(ctx, stats, (const uint8_t *)text.at, text.length);
        if (size >= SEAL)
            ask(ctx, stats, data[size - SEAL] | (unsigned)data[size - SEAL + 1] << 8);
    } else if (qn_context_error(ctx)[0] == 0) {
        abort(); /* a failure without a message */
    }
    if (status == QN_OK)
        qn_stats_free(stats);
    qn_free(ctx, text.at);
    qn_context_free(ctx);
    return 0;
}
