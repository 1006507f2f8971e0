/* Windows of Caffe's layers, whose parameters are given once, for each axis, or as _h and _w. */
#ifndef QN_CAFFE_WINDOW_H
#define QN_CAFFE_WINDOW_H

#include "import/caffe/caffe.h"

typedef struct qn_caffe_window {
    /* Axes behind the channels. */
    int32_t count;
    int64_t kernel[QN_MAX_RANK], stride[QN_MAX_RANK], pad[QN_MAX_RANK], dilation[QN_MAX_RANK];
} qn_caffe_window;

/* The numbers of fields. */
typedef struct qn_caffe_window_fields {
    uint32_t kernel[3], stride[3], pad[3], dilation;
} qn_caffe_window_fields;

extern const qn_caffe_window_fields qn_caffe_convolution_fields, qn_caffe_pooling_fields;

/* Reads the window for a blob with `count` axes behind its channels; its kernel is 0 where there is
 * none. */
QN_MUST_CHECK qn_status qn_caffe_read_window(qn_caffe_window *out, qn_caffe_net *net,
                                             const qn_proto_message *param,
                                             const qn_caffe_window_fields *fields, int32_t count);

#endif
