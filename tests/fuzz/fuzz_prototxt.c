/* Any bytes as a network of Caffe: text, and behind a zero byte its weights. The importer makes a
 * graph of them, or says why not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The model would unmap its file. Bytes that do not begin a page are never mapped ones. */
enum { OFFSET = 8 };

static char weights[64];

static void remove_weights(void)
{
    remove(weights);
}

/* The importer opens weights itself. */
static void write_weights(const uint8_t *data, size_t size)
{
    if (!weights[0]) {
        snprintf(weights, sizeof weights, "/tmp/fuzz_prototxt.%ld", (long)getpid());
        atexit(remove_weights);
    }
    FILE *file = fopen(weights, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qn_model_load_options options = QN_MODEL_LOAD_OPTIONS_INIT;
    qn_context *ctx;
    qn_model *model = NULL;
    if (size == 0 || qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    const uint8_t *zero = memchr(data, 0, size);
    const size_t length = zero ? (size_t)(zero - data) : size;
    write_weights(data + length + (zero != NULL), size - length - (zero != NULL));
    options.weights = weights;
    /* A copy of its own: nothing may be read past the end. */
    uint8_t *copy = malloc(length + OFFSET + 1);
    if (!copy)
        abort();
    memcpy(copy + OFFSET, data, length);
    qn_model_source source = {.ctx = ctx,
                              .path = "x",
                              .options = &options,
                              .map = {.data = copy + OFFSET, .size = length}};
    if (qn_importer_caffe.load(&model, &source) != QN_OK && qn_context_error(ctx)[0] == 0)
        abort(); /* a failure without a message */
    qn_model_free(model);
    qn_context_free(ctx);
    free(copy);
    return 0;
}
