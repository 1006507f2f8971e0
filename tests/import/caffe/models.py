"""models.py: the models of Caffe among those of QUENCH_DATA; what a row says, ../reference.py explains."""

import os

import numpy as np

from samples import DATA, cifar


def caffe_mean():
    """The mean image of a binaryproto, whose data are the last 3 * 32 * 32 floats but for nothing."""
    with open(os.path.join(DATA, "caffe", "cifar10_quick", "mean.binaryproto"), "rb") as file:
        content = file.read()
    at = content.index(b"\x2a\x80\x60") + 3  # field 5, 12288 bytes
    return np.frombuffer(content[at:at + 12288], "<f4").reshape(3, 32, 32)


MODELS = [
    ("caffe/cifar10_full_v1/cifar10_full.prototxt",
     {"make": lambda: {"data": cifar(32) - caffe_mean()}, "flags": ["-is", "32", "3", "32", "32"],
      "rename": {"ip1": None}}),
    ("caffe/hyperlpr_finemapping/HorizonalFinemapping.prototxt", {"rename": {"relu4": "dense"}}),
    ("caffe/hyperlpr_ssd/mininet_ssd_v1.prototxt",
     {"repeat": 4, "height_axis": 2, "change": lambda x: ((x - np.float32(127.5)) * np.float32(0.017)),
      "rename": {"ssd0_concat1": None, "flatten0": None, "concat0": None}}),
    ("caffe/mtcnn/det1.prototxt", {"ref": "det1", "flags": ["-is", "1", "3", "37", "50"]}),
    ("caffe/mtcnn/det2.prototxt", {"ref": "det2", "flags": ["-is", "2", "3", "24", "24"]}),
] + [(f"caffe/opencv_layers/{name}.prototxt", {"ref": name, "rename": rename}) for name, rename in (
    ("layer_convolution", {}), ("layer_batch_norm", {}), ("layer_concat", {}), ("layer_concat_optim", {}),
    ("layer_dropout", {}), ("layer_eltwise", {}), ("layer_lrn_channels", {}), ("layer_pooling_max", {}),
    ("layer_prelu_fc", {}), ("layer_softmax", {}), ("shared_weights", {"concat": "sum"}),
    ("channel_norm", {"reshape_back": "out"}), ("layer_interp", {}))]
