/* A network of Caffe and its weights: the importer makes a graph of them, or says why not. */
#ifndef QN_FUZZ_CAFFE_H
#define QN_FUZZ_CAFFE_H

#include <string.h>

#include "fuzz/file.h"
#include "import/import.h"

/* libhdf5 does not give all memory back that damaged files make it take. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

static inline void fuzz_caffe(const void *text, size_t length, const uint8_t *weights, size_t size)
{
    /* The model would unmap its file. Bytes that do not begin a page are never mapped ones. */
    enum { OFFSET = 8 };
    qn_model_load_options options = QN_MODEL_LOAD_OPTIONS_INIT;
    qn_context *ctx;
    qn_model *model = NULL;
    if (qn_context_create(&ctx, NULL) != QN_OK)
        return;
    options.weights = fuzz_file(weights, size);
    /* A copy of its own: nothing may be read past the end. */
    uint8_t *copy = malloc(length + OFFSET);
    if (!copy)
        abort();
    memcpy(copy + OFFSET, text, length);
    qn_model_source source = {.ctx = ctx,
                              .path = "x",
                              .options = &options,
                              .map = {.data = copy + OFFSET, .size = length}};
    if (qn_importer_caffe.load(&model, &source) != QN_OK && qn_context_error(ctx)[0] == 0)
        abort(); /* a failure without a message */
    qn_model_free(model);
    qn_context_free(ctx);
    free(copy);
}

#endif
