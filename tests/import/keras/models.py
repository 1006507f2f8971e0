"""models.py: the models of Keras among those of QUENCH_DATA; what a row says, ../reference.py explains."""

import numpy as np

from samples import cifar


def pictures():
    return np.ascontiguousarray(cifar(16).transpose(0, 2, 3, 1))


MODELS = [
    ("tensorflow/mlperf_resnet8/pretrainedResnet.h5", {"ref": "h5", "make": lambda: {"input_1": pictures()}}),
    ("tensorflow/fer_xception_h5/emotion_model.hdf5", {}),
    ("tensorflow/cifar10_cnn_keras3/cifar10_cnn.keras",
     {"make": lambda: {"input_layer": pictures() / np.float32(255)}, "rename": {"output": "output"}}),
]
