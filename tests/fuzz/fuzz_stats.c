/* A statistics file. Its seal is put right first, or nothing behind it would ever be reached. What reads back
 * must answer every method, merge, and be written as the bytes that it was read from. */
#include <stdlib.h>
#include <string.h>

#include "calib/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SEAL = 16 };

static void check(qn_context *ctx, const qn_stats *stats, const uint8_t *bytes, size_t size)
{
    qn_stats *twice;
    qn_text text;
    qn_range range;
    qn_text_init(&text, ctx);
    qn_text_add(&text, "qnstats1", QN_MAGIC);
    qn_put_stats(&text, stats);
    qn_put_seal(&text);
    if (text.failed || text.length != size || memcmp(text.at, bytes, size) != 0)
        abort();
    qn_free(ctx, text.at);
    for (size_t i = 0; i < stats->n_entries && i < 4; i++) {
        for (size_t m = 0; m < qn_methods_count; m++) {
            if (qn_stats_range(&range, ctx, stats->entries[i], qn_methods[m], NULL) != QN_OK ||
                !(range.min <= 0 && range.max >= 0))
                abort();
        }
    }
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
    qn_put_seal(&text);
    if (text.failed)
        abort();
    const qn_status status = qn_stats_read(&stats, ctx, text.at, text.length, "input");
    if (status == QN_OK)
        check(ctx, stats, (const uint8_t *)text.at, text.length);
    else if (qn_context_error(ctx)[0] == 0)
        abort(); /* a failure without a message */
    if (status == QN_OK)
        qn_stats_free(stats);
    qn_free(ctx, text.at);
    qn_context_free(ctx);
    return 0;
}
