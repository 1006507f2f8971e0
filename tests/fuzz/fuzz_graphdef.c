/* Any bytes as a GraphDef of TensorFlow: the importer makes a graph of them, or says why not. */
#include <stdlib.h>
#include <string.h>

#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The model would unmap its file. Bytes that do not begin a page are never mapped ones. */
enum { OFFSET = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const qn_model_load_options options = QN_MODEL_LOAD_OPTIONS_INIT;
    qn_context *ctx;
    qn_model *model = NULL;
    if (size == 0 || qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    /* A copy of its own: nothing may be read past the end. */
    uint8_t *copy = malloc(size + OFFSET);
    if (!copy)
        abort();
    memcpy(copy + OFFSET, data, size);
    qn_model_source source = {
        .ctx = ctx, .path = "x", .options = &options, .map = {.data = copy + OFFSET, .size = size}};
    if (qn_importer_tensorflow.load(&model, &source) != QN_OK && qn_context_error(ctx)[0] == 0)
        abort(); /* a failure without a message */
    qn_model_free(model);
    qn_context_free(ctx);
    free(copy);
    return 0;
}
