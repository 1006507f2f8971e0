/* Any bytes as weights of Caffe, of a small network: the importer makes a graph of them, or says
 * why not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The model would unmap its file. Bytes that do not begin a page are never mapped ones. */
enum { OFFSET = 8 };

static const char text[] =
    "input: 'x' input_dim: 2 input_dim: 2 input_dim: 6 input_dim: 6\n"
    "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c'"
    " convolution_param { num_output: 4 kernel_size: 3 } }\n"
    "layer { name: 'b' type: 'BatchNorm' bottom: 'c' top: 'b' }\n"
    "layer { type: 'PReLU' bottom: 'b' top: 'p' }\n"
    "layer { name: 'y' type: 'InnerProduct' bottom: 'p' top: 'y' param { name: 'w' }"
    " inner_product_param { num_output: 3 } }\n";

static char weights[64];

static void remove_weights(void)
{
    remove(weights);
}

/* The importer opens weights itself. */
static void write_weights(const uint8_t *data, size_t size)
{
    if (!weights[0]) {
        snprintf(weights, sizeof weights, "/tmp/fuzz_caffemodel.%ld", (long)getpid());
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
    write_weights(data, size);
    options.weights = weights;
    uint8_t *copy = malloc(sizeof text + OFFSET);
    if (!copy)
        abort();
    memcpy(copy + OFFSET, text, sizeof text);
    qn_model_source source = {.ctx = ctx,
                              .path = "x",
                              .options = &options,
                              .map = {.data = copy + OFFSET, .size = sizeof text - 1}};
    if (qn_importer_caffe.load(&model, &source) != QN_OK && qn_context_error(ctx)[0] == 0)
        abort(); /* a failure without a message */
    qn_model_free(model);
    qn_context_free(ctx);
    free(copy);
    return 0;
}
