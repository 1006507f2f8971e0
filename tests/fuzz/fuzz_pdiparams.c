/* A file of PaddlePaddle's parameters, read for a program that has a few of them. */
#include <stdlib.h>
#include <string.h>

#include "import/paddle/paddle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t dims[] = {2, 3};
    static const char *const names[] = {"a", "b", "c"};
    static const qn_dtype types[] = {QN_FLOAT32, QN_INT64, QN_FLOAT16};
    qn_paddle_program program;
    qn_paddle_parameter parameters[3];
    qn_context *ctx;
    qn_arena arena;
    if (qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    qn_arena_init(&arena, &ctx->allocator);
    qn_paddle_program_init(&program, ctx, &arena);
    for (int i = 0; i < 3; i++)
        parameters[i] =
            (qn_paddle_parameter){.name = names[i], .type = qn_type_tensor(types[i], i, dims)};
    program.parameters = parameters;
    program.n_parameters = 3;
    uint8_t *copy = malloc(size + 1);
    if (!copy)
        abort();
    if (size)
        memcpy(copy, data, size);
    if (qn_paddle_read_parameters(&program, copy, size) != QN_OK && qn_context_error(ctx)[0] == 0)
        abort(); /* a failure without a message */
    free(copy);
    qn_arena_free(&arena);
    qn_context_free(ctx);
    return 0;
}
