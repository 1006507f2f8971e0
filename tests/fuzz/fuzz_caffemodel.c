/* Any bytes as weights of Caffe, .caffemodel or .caffemodel.h5, of a small network. */
#include "fuzz/caffe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] =
        "input: 'x' input_dim: 2 input_dim: 2 input_dim: 6 input_dim: 6\n"
        "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c'"
        " convolution_param { num_output: 4 kernel_size: 3 } }\n"
        "layer { name: 'b' type: 'BatchNorm' bottom: 'c' top: 'b' }\n"
        "layer { type: 'PReLU' bottom: 'b' top: 'p' }\n"
        "layer { name: 'y' type: 'InnerProduct' bottom: 'p' top: 'y' param { name: 'w' }"
        " inner_product_param { num_output: 3 } }\n";
    if (size)
        fuzz_caffe(text, sizeof text - 1, data, size);
    return 0;
}
