/* Any bytes as a model's file: every importer is asked whether it knows them, and a zip archive is
 * unpacked. */
#include <stdlib.h>
#include <string.h>

#include "base/zip.h"
#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static qn_status unpack(qn_context *ctx, const uint8_t *data, size_t size)
{
    qn_zip zip;
    qn_zip_entry entry;
    qn_zip_contents contents;
    qn_zip_cursor cursor = {0, 0};
    bool more;
    QN_TRY(qn_zip_open(&zip, ctx, data, size));
    for (;;) {
        QN_TRY(qn_zip_next(&entry, &more, &cursor, &zip));
        if (!more)
            return QN_OK;
        QN_TRY(qn_zip_read(&contents, &zip, &entry));
        volatile uint8_t sum = 0;
        for (size_t i = 0; i < contents.size; i++)
            sum = (uint8_t)(sum + contents.data[i]);
        qn_free_aligned(&ctx->allocator, contents.block);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qn_context *ctx;
    if (size == 0 || qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    /* A copy of its own: nothing may be read past the end. */
    uint8_t *copy = malloc(size);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    const qn_model_source source = {.ctx = ctx, .path = "x", .map = {.data = copy, .size = size}};
    for (size_t i = 0; i < qn_importers_count; i++) {
        const char *kind = qn_importers[i]->detect(&source);
        if (kind && !kind[0])
            abort();
    }
    if (unpack(ctx, copy, size) != QN_OK && qn_context_error(ctx)[0] == 0)
        abort(); /* a failure without a message */
    qn_context_free(ctx);
    free(copy);
    return 0;
}
