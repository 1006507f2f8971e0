/* Any bytes as a GraphDef of TensorFlow: the importer makes a graph of them, or says why not. */
#include <stdlib.h>
#include <string.h>

#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The model would unmap its file. Bytes that do not begin a page are never mapped ones. */
enum { OFFSET = 8 };

/* What several ends would leave open, as cases end. */
static const char *const end[] = {"Identity"};

static qn_status load(qn_context *ctx, const uint8_t *copy, size_t size, bool to_end)
{
    qn_model_load_options options = QN_MODEL_LOAD_OPTIONS_INIT;
    qn_model *model = NULL;
    options.last_nodes = end;
    options.n_last_nodes = to_end;
    qn_model_source source = {
        .ctx = ctx, .path = "x", .options = &options, .map = {.data = copy, .size = size}};
    const qn_status status = qn_importer_tensorflow.load(&model, &source);
    if (status != QN_OK && qn_context_error(ctx)[0] == 0)
        abort(); /* a failure without a message */
    qn_model_free(model);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qn_context *ctx;
    if (size == 0 || qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    /* A copy of its own: nothing may be read past the end. */
    uint8_t *copy = malloc(size + OFFSET);
    if (!copy)
        abort();
    memcpy(copy + OFFSET, data, size);
    if (load(ctx, copy + OFFSET, size, false) != QN_OK)
        (void)!load(ctx, copy + OFFSET, size, true);
    qn_context_free(ctx);
    free(copy);
    return 0;
}
