"""models.py: the models of TensorFlow among those of QUENCH_DATA; what a row says, ../reference.py explains."""

import os

import numpy as np

from samples import DATA

# Names of the graphs of opencv_ops; each is NAME_net.pb.
OPS = """argmax atrous_conv2d_same ave_pool3d batch_matmul batch_norm channel_broadcast concat_3d
    conv2d_asymmetric_pads_nchw conv2d_backprop_input_asymmetric_pads_nchw conv3d crop2d deconvolution_adj_pad_valid
    deconvolution_same depthwise_conv2d eltwise_add_vec eltwise_sub expand_dims_2 fp16_max_pool_odd_same
    fused_batch_norm_no_gamma global_pool_by_axis keras_batch_norm_training keras_deconv_same_v2 keras_learning_phase
    keras_pad_concat keras_softmax l2_normalize_3d leaky_relu leaky_relu_order2 lstm matmul
    max_pool2d_asymmetric_pads_nhwc max_pool_by_axis max_pool_grad max_pool_odd_valid mvn_batch_norm_1x1
    nhwc_reshape_matmul pad_and_concat padding_valid reduce_max_channel reduce_mean reduce_sum_0_True
    reduce_sum_1_2_True reduce_sum_1_True reduce_sum_2_True reduce_sum_3_True reduce_sum_channel reshape_as_shape
    reshape_layer reshape_no_reorder resize_bilinear resize_bilinear_align_corners resize_bilinear_factor
    resize_bilinear_factor_align_corners resize_nearest_neighbor resize_nearest_neighbor_align_corners single_conv
    slim_softmax spatial_padding split strided_slice sum_pool_by_axis tf2_dense tf2_prelu two_inputs_matmul
    unfused_batch_norm unfused_flatten""".split()



def shapes():
    """The shapes of their inputs, which most of them do not say."""
    path = os.path.join(DATA, "tensorflow", "opencv_ops", "ref.npz")
    if not os.path.exists(path):
        return {}
    with np.load(path) as arrays:
        return {key.split("/")[0]: arrays[key].shape for key in arrays.files if "/in:" in key}


SHAPES = shapes()
MODELS = [(f"tensorflow/opencv_ops/{name}_net.pb",
           {"ref": name, "flags": ["-is"] + [str(size) for size in SHAPES.get(name, ())]}) for name in OPS] + [
    (f"tensorflow/{folder}/{name}.pb", {"flags": ["-snn", "Mfcc", "-enn", "labels_softmax", "-is", "1", "49", "10"]})
    for folder, name in (("arm_kws_ds_cnn", "DS_CNN_S"), ("arm_kws_basic_lstm", "Basic_LSTM_S"))] + [
    ("tensorflow/mlperf_kws/kws_ref_model", {"ref": "saved_model"})]
