/* Any bytes as a mean image of Caffe. */
#include <stdlib.h>
#include <string.h>

#include "import/caffe/caffe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char means[QN_CAFFE_MEAN_TEXT];
    qn_context *ctx;
    if (qn_context_create(&ctx, NULL) != QN_OK)
        return 0;
    /* A copy of its own: nothing may be read past the end. */
    uint8_t *copy = malloc(size + 1);
    if (!copy)
        abort();
    if (size)
        memcpy(copy, data, size);
    if (qn_caffe_read_mean(means, ctx, copy, size) != QN_OK && qn_context_error(ctx)[0] == 0)
        abort(); /* a failure without a message */
    free(copy);
    qn_context_free(ctx);
    return 0;
}
