/* Any bytes as a pickle of PyTorch. */
#include <stdlib.h>
#include <string.h>

#include "import/pytorch/pickle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qn_context *ctx;
    qn_arena arena;
    qn_names storages;
    qn_torch_value value;
    size_t used;
    if (size == 0 || qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    /* A copy of its own: nothing may be read past the end. */
    char *copy = malloc(size);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    qn_arena_init(&arena, &ctx->allocator);
    qn_names_init(&storages, ctx);
    const qn_pickle_text text = {
        .bytes = {copy, size}, .name = "x", .folder = "data/", .storages = &storages};
    const qn_status status = qn_pickle_read(&value, &used, ctx, &arena, &text);
    if (used > size || (status != QN_OK && qn_context_error(ctx)[0] == 0))
        abort(); /* it went past the end, or failed without a message */
    qn_names_free(&storages);
    qn_arena_free(&arena);
    qn_context_free(ctx);
    free(copy);
    return 0;
}
