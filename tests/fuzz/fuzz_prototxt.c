/* Any bytes as a network of Caffe: text, and behind a zero byte its weights. */
#include "fuzz/caffe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    const size_t length = zero ? (size_t)(zero - data) : size;
    const size_t weights = length + (zero != NULL);
    if (size)
        fuzz_caffe(data, length, data + weights, size - weights);
    return 0;
}
