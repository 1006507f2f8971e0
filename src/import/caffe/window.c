/* Windows of Caffe's layers. */
#include "import/caffe/window.h"

#define FIELDS(layer)                                                                              \
    {                                                                                              \
        {QN_CAFFE_##layer##_KERNEL_SIZE, QN_CAFFE_##layer##_KERNEL_H,                              \
         QN_CAFFE_##layer##_KERNEL_W},                                                             \
            {QN_CAFFE_##layer##_STRIDE, QN_CAFFE_##layer##_STRIDE_H, QN_CAFFE_##layer##_STRIDE_W}, \
            {QN_CAFFE_##layer##_PAD, QN_CAFFE_##layer##_PAD_H, QN_CAFFE_##layer##_PAD_W},          \
            QN_CAFFE_##layer##_DILATION                                                            \
    }

const qn_caffe_window_fields qn_caffe_convolution_fields = FIELDS(CONVOLUTION);
const qn_caffe_window_fields qn_caffe_pooling_fields = FIELDS(POOLING);

static qn_status read_list(int64_t *out, qn_caffe_net *net, const qn_proto_message *param,
                           uint32_t number, int32_t count)
{
    qn_proto_numbers list = qn_proto_numbers_of(param, number);
    const size_t given = qn_proto_count(param, number);
    if (given > 1 && given != (size_t)count)
        return QN_CAFFE_FAIL(net, "%zu sizes for %d axes", given, count);
    for (int32_t i = 0; i < count && qn_proto_next_int(&out[i], &list); i++)
        continue;
    for (int32_t i = 1; i < count && given == 1; i++)
        out[i] = out[0];
    return QN_OK;
}

static qn_status read_sizes(int64_t *out, qn_caffe_net *net, const qn_proto_message *param,
                            const uint32_t numbers[3], int32_t count)
{
    QN_TRY(read_list(out, net, param, numbers[0], count));
    for (int32_t i = 0; i < 2; i++) {
        if (!qn_proto_has(param, numbers[1 + i]))
            continue;
        if (count != 2)
            return QN_CAFFE_FAIL(net, "sizes _h and _w for %d axes", count);
        out[i] = qn_proto_int(param, numbers[1 + i], 0);
    }
    return QN_OK;
}

qn_status qn_caffe_read_window(qn_caffe_window *out, qn_caffe_net *net,
                               const qn_proto_message *param, const qn_caffe_window_fields *fields,
                               int32_t count)
{
    *out = (qn_caffe_window){.count = count};
    for (int32_t i = 0; i < count; i++)
        out->stride[i] = out->dilation[i] = 1;
    QN_TRY(read_sizes(out->kernel, net, param, fields->kernel, count));
    QN_TRY(read_sizes(out->stride, net, param, fields->stride, count));
    QN_TRY(read_sizes(out->pad, net, param, fields->pad, count));
    QN_TRY(read_list(out->dilation, net, param, fields->dilation, count));
    for (int32_t i = 0; i < count; i++) {
        QN_TRY(qn_caffe_check(net, "kernel_size", out->kernel[i], 0, QN_CAFFE_MOST));
        QN_TRY(qn_caffe_check(net, "stride", out->stride[i], 1, QN_CAFFE_MOST));
        QN_TRY(qn_caffe_check(net, "pad", out->pad[i], 0, QN_CAFFE_MOST));
        QN_TRY(qn_caffe_check(net, "dilation", out->dilation[i], 1, QN_CAFFE_MOST));
    }
    return QN_OK;
}
