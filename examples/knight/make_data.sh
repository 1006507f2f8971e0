#!/bin/sh
# Makes what the examples need, here: model/ and data/. Needs Python 3 with numpy and nothing else.
cd "$(dirname "$0")" || exit 1
"${QUENCH_PYTHON:-python3}" make_data.py && "${QUENCH_PYTHON:-python3}" make_tensorflow.py model/resnet18_tf/resnet18.pb &&
    "${QUENCH_PYTHON:-python3}" make_paddle.py model/resnet18_paddle &&
    "${QUENCH_PYTHON:-python3}" make_caffe.py model/resnet18_caffe/resnet-18 &&
    "${QUENCH_PYTHON:-python3}" make_pytorch.py model/resnet18_pytorch/resnet18-5c106cde.pth
