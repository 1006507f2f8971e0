"""models.py: the models of TensorFlow Lite among those of QUENCH_DATA; what a row says, ../reference.py explains.

LiteRT has three sets of kernels for integers, whose sums of products come to the scale of the result by different
roundings: the reference kernels of ref.npz round twice, and so does quench; XNNPACK, which LiteRT takes by itself, rounds
once, and so does ONNX Runtime, which has no other way. Where the sets are further apart than the test allows (29 steps
behind the softmax of ResNet-8) ONNX Runtime's outputs are compared with XNNPACK's, which make.py wrote into xnnpack.npz."""

import os

import numpy as np

from samples import DATA, cifar


def pictures(kind):
    """The 16 pictures of CIFAR-10 that ResNet-8 was given, channels last."""
    array = cifar(16).transpose(0, 2, 3, 1)
    return array if kind == "f4" else (array - 128).astype(np.int8)


def xnnpack(name):
    """LiteRT's outputs with its default kernels."""
    with np.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "xnnpack.npz")) as arrays:
        return {key.removeprefix(name + "/"): arrays[key] for key in arrays.files if key.startswith(name + "/")}


def features():
    """What the hybrid model was given stands beside the SavedModel that it was made of."""
    with np.load(os.path.join(DATA, "tensorflow", "mlperf_kws", "ref.npz")) as arrays:
        return {"input_1": arrays["saved_model/in:input_1"]}


MODELS = [
    ("tflite/blazeface_front/face_detection_front.tflite", {}),
    # The two sets of LiteRT's kernels differ in 0.6 % of these labels, each step of whose scores moves edges.
    ("tflite/deeplabv3_mnv2_dm05_quant/deeplabv3_mnv2_dm05_pascal_quant.tflite", {"labels": 0.01}),
    ("tflite/keras_lstm_mnist_ptq/keras_lstm_mnist_ptq.tflite", {}),
    ("tflite/micro_speech_int8/micro_speech_quantized.tflite", {}),
    ("tflite/mobilenet_v1_0.25_128_quant/mobilenet_v1_0.25_128_quant.tflite",
     {"one_by_one": True, "give_once": lambda: xnnpack("mobilenet_v1_0.25_128_quant")}),
    ("tflite/person_detect_int8/person_detect.tflite", {}),
    ("tflite/selfie_segmentation/selfie_segmentation.tflite", {"change": lambda x: (x / 255).astype(np.float32)}),
    ("tensorflow/mlperf_resnet8/pretrainedResnet.tflite",
     {"ref": "tflite", "make": lambda: {"input_1": pictures("f4")}, "one_by_one": True}),
    ("tensorflow/mlperf_resnet8/pretrainedResnet_quant.tflite",
     {"ref": "quant", "make": lambda: {"input_1_int8": pictures("i1")}, "one_by_one": True,
      "give_once": lambda: xnnpack("pretrainedResnet_quant")}),
    ("tensorflow/mlperf_kws/kws_ref_model.tflite", {"ref": "int8_tflite", "one_by_one": True}),
    ("tensorflow/mlperf_kws/kws_ref_model_float32.tflite",
     {"ref": "float32_tflite", "make": features, "one_by_one": True}),
] + [(f"tflite/opencv_ops/{name}.tflite", {"ref": name}) for name in (
    "fully_connected", "global_max_pooling_2d", "maximum", "permutation_3d", "permutation_4d_0213", "replicate_by_pack",
    "strided_slice")]
