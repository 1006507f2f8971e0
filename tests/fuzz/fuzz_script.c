/* Any bytes as source of TorchScript. */
#include <stdlib.h>
#include <string.h>

#include "import/pytorch/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qn_context *ctx;
    qn_arena arena;
    qn_script_block block;
    if (size == 0 || qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    /* A copy of its own: nothing may be read past the end. */
    char *copy = malloc(size);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    qn_arena_init(&arena, &ctx->allocator);
    const qn_status status = qn_script_parse(&block, ctx, &arena, (qn_string){copy, size}, "x");
    if (status != QN_OK && qn_context_error(ctx)[0] == 0)
        abort(); /* a failure without a message */
    qn_arena_free(&arena);
    qn_context_free(ctx);
    free(copy);
    return 0;
}
