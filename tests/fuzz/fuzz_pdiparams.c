/* A file of PaddlePaddle's parameters, read for a program that has a few of them, and as the files
 * of a folder that has one for each. */
#include <string.h>

#include "fuzz/file.h"
#include "import/paddle/paddle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void begin(qn_paddle_program *program, qn_paddle_parameter parameters[3], qn_context *ctx,
                  qn_arena *arena)
{
    static const int64_t dims[] = {2, 3};
    static const char *const names[] = {"a", "b", "c"};
    static const qn_dtype types[] = {QN_FLOAT32, QN_INT64, QN_FLOAT16};
    qn_arena_init(arena, &ctx->allocator);
    qn_paddle_program_init(program, ctx, arena);
    for (int i = 0; i < 3; i++)
        parameters[i] =
            (qn_paddle_parameter){.name = names[i], .type = qn_type_tensor(types[i], i, dims)};
    program->parameters = parameters;
    program->n_parameters = 3;
}

static void must_say_why(qn_status status, qn_context *ctx)
{
    if (status != QN_OK && qn_context_error(ctx)[0] == 0)
        abort(); /* a failure without a message */
}

static void read_memory(qn_context *ctx, const uint8_t *data, size_t size)
{
    qn_paddle_program program;
    qn_paddle_parameter parameters[3];
    qn_arena arena;
    begin(&program, parameters, ctx, &arena);
    must_say_why(qn_paddle_read_parameters(&program, data, size), ctx);
    qn_arena_free(&arena);
}

/* The file is called as one parameter is; the folder has no other. */
static void read_folder(qn_context *ctx, const uint8_t *data, size_t size)
{
    qn_paddle_program program;
    qn_paddle_parameter parameters[3];
    qn_arena arena;
    qn_model *model;
    if (qn_model_create(&model, ctx) != QN_OK)
        return;
    begin(&program, parameters, ctx, &arena);
    const char *path = fuzz_file(data, size), *name = strrchr(path, '/') + 1;
    for (int i = 0; i < 3; i++)
        parameters[i].name = name;
    must_say_why(qn_paddle_load_parameters(&program, model, "/tmp"), ctx);
    qn_arena_free(&arena);
    qn_model_free(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qn_context *ctx;
    if (qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    /* A copy of its own: nothing may be read past the end. */
    uint8_t *copy = malloc(size + 1);
    if (!copy)
        abort();
    if (size)
        memcpy(copy, data, size);
    read_memory(ctx, copy, size);
    read_folder(ctx, copy, size);
    free(copy);
    qn_context_free(ctx);
    return 0;
}
