/* A model of PaddlePaddle, ProgramDesc or PIR: four bytes that say how long the program is, the
 * program, and what follows it are the parameters. It becomes a graph, or a message says why
 * not. */
#include <stdlib.h>
#include <string.h>

#include "import/paddle/paddle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qn_context *ctx;
    qn_model *model;
    uint32_t length = 0;
    if (size < sizeof length || qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    memcpy(&length, data, sizeof length);
    size -= sizeof length;
    length = length > size ? (uint32_t)size : length;
    /* Copies of their own: nothing may be read past either end. */
    char *program = malloc(length + 1U), *parameters = malloc(size - length + 1);
    if (!program || !parameters)
        abort();
    memcpy(program, data + sizeof length, length);
    memcpy(parameters, data + sizeof length + length, size - length);
    const qn_paddle_bytes bytes = {{program, length}, {parameters, size - length}};
    if (qn_paddle_load_bytes(&model, ctx, &bytes) != QN_OK && qn_context_error(ctx)[0] == 0)
        abort(); /* a failure without a message */
    qn_model_free(model);
    qn_context_free(ctx);
    free(program);
    free(parameters);
    return 0;
}
