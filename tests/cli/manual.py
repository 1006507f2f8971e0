"""The command lines of the Knight tool's manual, in its order, run under the name Knight.

Paths are exchanged: its example folder is `tool`, its model a small network of the same inputs and outputs, its data
random. Four misprints are corrected: an en dash for the hyphen of -m (PyTorch, example one), a bar behind two commands
(the run configuration for classification, QAT), /result for result (accuracy of the quantized model), and the first line of
the function that makes a model of PyTorch, which is not indented. QUENCH_TORCH_PYTHON names a Python with torch; without
one the commands that need it must say so."""
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from scripts import SAMPLE
from torch_python import torch_python

KNIGHT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "knight")
sys.path.insert(0, KNIGHT)
import make_caffe  # noqa: E402
import make_paddle  # noqa: E402
import make_pytorch  # noqa: E402

QUENCH = os.environ["QUENCH"]
HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = "/opt/Quantize/onnx_examples"
NO_TORCH = "need PyTorch"
# The manual's function as it is printed there, with the imports that it lacks.
TORCH_SAMPLE = '''
import torchvision
from onnx_quantize_tool.common.register import pytorch_model  # 导入Pytorch模型注册函数
import torch
@pytorch_model.register("resnet18")  # 使用装饰器装饰模型定义函数
def resnet18(weight_path=None):  # 函数名必须与args.model一致
    model = torchvision.models.resnet18() # 模型定义
    if weight_path:# 模型加载
        model.load_state_dict(torch.load(weight_path, map_location='cpu') , strict=True)
    return {"model":model,"inputs": [torch.randn(10,3,224,224)]}
'''
# In the place of torchvision: a small ResNet-18 with the names of its weights.
TORCHVISION = """
class models:
    def resnet18():
        from resnet18 import ResNet18
        return ResNet18(channels=3)
"""

# What is typed, and what must be there afterwards.
ONNX = [
    # Examples one to four.
    ("""Knight --chip TX5368AV200 quant --save-dir /tmp/resnet18
        -m /opt/Quantize/onnx_examples/model/resnet18_onnx/resnet18.onnx
        -if infer_cls_model -qm kl -bs 10 -r quant -i 1 -uds /opt/Quantize/onnx_examples/infer_demo.py""",
     "/tmp/resnet18/resnet18_quantize.onnx"),
    ("""Knight --chip TX5368AV200 quant --save-dir /tmp/resnet18
        -m /opt/Quantize/onnx_examples/model/resnet18_onnx/resnet18.onnx
        -if infer_cls_model -qm kl -bs 10 -r quant -i 1 -uds
        /opt/Quantize/onnx_examples/infer_demo.py --std 1.2 1.1 1.3 --mean 0.1 0.2 0.3""",
     "/tmp/resnet18/resnet18_quantize.onnx"),
    ("""Knight --chip TX5368AV200 quant --save-dir /tmp/resnet18
        -m /opt/Quantize/onnx_examples/model/resnet18_qdq/resnet18_qdq.onnx
        -if infer_cls_model -qm kl -bs 10 -r quant -i 1 -uds /opt/Quantize/onnx_examples/infer_demo.py""",
     "/tmp/resnet18/resnet18_qdq_quantize.onnx"),
    ("""Knight --chip TX5368AV200 quant --save-dir /tmp/resnet18
        -m /opt/Quantize/onnx_examples/model/resnet18_onnx/resnet18.onnx
        -if infer_cls_model -qm kl min_max -bs 10 -r quant -i 5 10
        -uds /opt/Quantize/onnx_examples/infer_demo.py""",
     "/tmp/resnet18/resnet18_quantize.onnx"),
    # Example five: run configurations; the last one draws boxes.
    ("Knight quant --run-config /opt/Quantize/onnx_examples/config/run_config_cls.json",
     "cls/resnet18_quantize.onnx"),
    ("Knight quant --run-config /opt/Quantize/onnx_examples/config/run_config_detect.json",
     "detect/detect_quantize.onnx"),
    ("Knight quant --run-config /opt/Quantize/onnx_examples/config/run_config_draw.json", "tool/label_imgs/0.png"),
    # A mix of widths.
    ("""Knight --chip TX5368AV200 quant --save-dir /tmp/resnet18
        -m /opt/Quantize/onnx_examples/model/resnet18_onnx/resnet18.onnx -gt""",
     "/tmp/resnet18/resnet18_mix.json"),
    ("""Knight --chip TX5368AV200 quant --save-dir /tmp/resnet18
        -m /opt/Quantize/onnx_examples/model/resnet18_onnx/resnet18.onnx
        -if infer_cls_model -bs 10 -mc /opt/Quantize/onnx_examples/model/resnet18_mix/resnet18_mix.json
        -r quant -i 1 -uds /opt/Quantize/onnx_examples/infer_demo.py""",
     "/tmp/resnet18/resnet18_quantize.onnx"),
    ("""Knight --chip TX5368AV200 quant --save-dir /tmp/resnet18
        -m /opt/Quantize/onnx_examples/model/resnet18_onnx/resnet18.onnx
        -if infer_cls_model -bs 10 -mc /opt/Quantize/onnx_examples/model/resnet18_mix/resnet18_mix.json
        -r quant -i 1 -uds /opt/Quantize/onnx_examples/infer_demo.py
        --auto-mix-ratio 0.5 --auto-mix-strategy IOhigh -gt""",
     "/tmp/resnet18/resnet18_mix.json"),
]
OTHERS = [
    # PyTorch.
    ("""Knight --chip TX5368AV200 quant -m resnet18 -f pytorch
        --save-dir /tmp/result -bs 10 -w /opt/Quantize/onnx_examples/model/resnet18_pytorch/resnet18-5c106cde.pth
        -if infer_cls_model -bs 10 -uds /opt/Quantize/onnx_examples/infer_demo.py""", "/tmp/result/resnet18_quantize.onnx"),
    ("""Knight --chip TX5368AV200 quant -m /opt/Quantize/onnx_examples/model/resnet18_qdq/resnet18_qdq.onnx
        -if infer_cls_model -bs 10 --save-dir result -uds /opt/Quantize/onnx_examples/infer_demo.py""",
     "result/resnet18_qdq_quantize.onnx"),
    ("""Knight --chip TX5368AV200 quant -m resnet18 -f pytorch -r convert
        -w /opt/Quantize/onnx_examples/model/resnet18_pytorch/resnet18-5c106cde.pth
        --save-dir result -uds /opt/Quantize/onnx_examples/infer_demo.py""", "result/resnet18.onnx"),
    ("""Knight --chip TX5368AV200 quant -m resnet18 -f pytorch -if infer_cls_model
        --save-dir result -bs 10 -w /opt/Quantize/onnx_examples/model/resnet18_pytorch/resnet18-5c106cde.pth
        -uds /opt/Quantize/onnx_examples/infer_demo.py""", "result/resnet18_quantize.onnx"),
    # Caffe.
    ("""Knight -ch TX5368AV200 quant -f caffe -if infer_cls_model
        -m /opt/Quantize/onnx_examples/model/resnet18_caffe/resnet-18.prototxt
        -w /opt/Quantize/onnx_examples/model/resnet18_caffe/resnet-18.caffemodel
        --save-dir result -uds /opt/Quantize/onnx_examples/infer_demo.py""", "result/resnet-18_quantize.onnx"),
    ("""Knight -ch TX5368AV200 quant -f caffe -if infer_cls_model
        -m /opt/Quantize/onnx_examples/model/resnet18_caffe/resnet-18.prototxt
        -w /opt/Quantize/onnx_examples/model/resnet18_caffe/resnet-18.caffemodel
        --save-dir result -uds /opt/Quantize/onnx_examples/infer_demo.py -r convert""", "result/resnet-18.onnx"),
    # PaddlePaddle.
    ("""Knight --chip TX5368AV200 quant -f paddle -if infer_cls_model
        --save-dir result -bs 10 -w /opt/Quantize/onnx_examples/model/resnet18_paddle/resnet18.pdiparams
        -m /opt/Quantize/onnx_examples/model/resnet18_paddle/resnet18.pdmodel
        -is 10 3 224 224 -uds /opt/Quantize/onnx_examples/infer_demo.py""", "result/resnet18_quantize.onnx"),
    ("""Knight --chip TX5368AV200 quant -f paddle -if infer_cls_model -r convert
        --save-dir result -w /opt/Quantize/onnx_examples/model/resnet18_paddle/resnet18.pdiparams
        -m /opt/Quantize/onnx_examples/model/resnet18_paddle/resnet18.pdmodel
        -uds /opt/Quantize/onnx_examples/infer_demo.py""", "result/resnet18.onnx"),
    # TensorFlow.
    ("""Knight --chip TX5368AV200 quant -m /opt/Quantize/onnx_examples/model/resnet18_tf/resnet18.pb
        -if infer_cls_model -f tensorflow -snn data_input:0 -enn output:0
        --save-dir result -uds /opt/Quantize/onnx_examples/infer_demo.py""", "result/resnet18_quantize.onnx"),
    ("""Knight --chip TX5368AV200 quant -m /opt/Quantize/onnx_examples/model/resnet18_tf/resnet18.pb
        -if infer_test_float -f tensorflow -snn data_input:0 -enn output:0
        --save-dir result -r convert -uds /opt/Quantize/onnx_examples/infer_demo.py""", "result/resnet18.onnx"),
    # Accuracy of the quantized model.
    ("""Knight --chip TX5368AV200 quant --save-dir result -m
        result/resnet18_quantize.onnx -if infer_cls_model -qm kl -bs 10 -r
        infer -i 100 -uds /opt/Quantize/onnx_examples/infer_demo.py""", "accuracy"),
]


# ---- The example folder -----------------------------------------------------------------------------------


class Network:
    """A small graph, node by node; weights are random."""

    def __init__(self, shape):
        self.numbers, self.nodes, self.weights = np.random.default_rng(7), [], []
        self.shape, self.channels = shape, shape[1]

    def add(self, kind, inputs, **attributes):
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name + "_out"], name=name, **attributes))
        return name + "_out"

    def constant(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def conv(self, value, inputs, filters, stride=1):
        weight = self.numbers.normal(size=(filters, inputs, 3, 3)) / (3 * inputs ** 0.5)
        return self.add("Conv", [value, self.constant(weight.astype(np.float32))], pads=[1, 1, 1, 1],
                        strides=[stride, stride], kernel_shape=[3, 3])

    def save(self, path, value, shape):
        graph = helper.make_graph(
            self.nodes, "net", [helper.make_tensor_value_info("input", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(value, TensorProto.FLOAT, shape)], self.weights)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def make_classifier(path):
    net = Network(["N", 3, 32, 32])
    x = net.add("Relu", [net.conv("input", 3, 16, 2)])
    y = net.conv(net.add("Relu", [net.conv(x, 16, 16)]), 16, 16)
    x = net.add("Flatten", [net.add("GlobalAveragePool", [net.add("Relu", [net.add("Add", [x, y])])])])
    w = net.constant(net.numbers.normal(size=(16, 10)).astype(np.float32))
    net.save(path, net.add("Gemm", [x, w]), ["N", 10])


def make_detector(path):
    """4 numbers of a box and 2 classes for each of 64 cells: [1,6,64]."""
    net = Network([1, 3, 32, 32])
    x = net.conv(net.add("Relu", [net.conv("input", 3, 8, 2)]), 8, 6, 2)
    x = net.add("Reshape", [net.add("Sigmoid", [x]), net.constant(np.array([1, 6, 64], np.int64))])
    size = net.constant(np.array([32, 32, 16, 16, 1, 1], np.float32).reshape(1, 6, 1))
    net.save(path, net.add("Mul", [x, size]), [1, 6, 64])


def make_pictures():
    subprocess.run([os.path.join(HERE, "make-pictures"), "tool/pictures", "32x32", "3"], check=True)
    with open("tool/labels.txt", "w", encoding="utf-8") as file:
        file.writelines(f"{name} {i}\n" for i, name in enumerate(sorted(os.listdir("tool/pictures"))))


def write_config(name, model, save, inputs, **more):
    quant = {"model": model, "infer-func": "infer_default", "save-dir": save, "iteration": 3,
             "user-defined-script": "infer_common.py", "quant-mode": "min_max", "run-mode": "quant"}
    os.makedirs("tool/config", exist_ok=True)
    with open(f"tool/config/run_config_{name}.json", "w", encoding="utf-8") as file:
        json.dump({"chip": "TX5368AV200", "quant": {**quant, **more}, "input-configs": [inputs]}, file)


def make_configs():
    pictures = {"data_dir": "tool/pictures", "color_space": "RGB"}
    boxes = {**pictures, "is_yolo": True, "label_dir": "tool/labels", "calculate_acc": True, "nc": 2,
             "conf_thres": 0.001, "iou_thres": 0.6, "max_det": 300}
    write_config("cls", "tool/model/resnet18_onnx/resnet18.onnx", "cls",
                 {**pictures, "is_yolo": False, "label_dir": "tool", "calculate_acc": True})
    write_config("detect", "tool/detect.onnx", "detect", boxes)
    write_config("draw", "tool/detect.onnx", "draw", {**boxes, "draw_box": True, "names": ["cat", "dog"]},
                 **{"run-mode": "infer"})


def make_data(count, size):
    numbers = np.random.default_rng(1)
    os.makedirs("data", exist_ok=True)
    np.save("data/imagenet_input_b10_s1.npy", numbers.random((count, 10, 3, size, size), np.float32))
    np.save("data/imagenet_label_b10_s1.npy", numbers.integers(0, 10, (count, 10)))


def make_tool():
    make_data(10, 32)
    make_paddle.write("tool/model/resnet18_paddle")
    model = "tool/model/resnet18_onnx/resnet18.onnx"
    make_classifier(model)
    make_detector("tool/detect.onnx")
    make_caffe.write("tool/model/resnet18_caffe/resnet-18")
    make_pytorch.write("tool/model/resnet18_pytorch/resnet18-5c106cde.pth", 3)
    shutil.copy(os.path.join(KNIGHT, "resnet18.py"), "tool")
    with open("tool/torchvision.py", "w", encoding="utf-8") as file:
        file.write(TORCHVISION)
    subprocess.run([QUENCH, "quant", "-q", model, "--save-dir", "made"], check=True, capture_output=True)
    os.makedirs("tool/model/resnet18_qdq")
    shutil.copy("made/resnet18_quantize.onnx", "tool/model/resnet18_qdq/resnet18_qdq.onnx")
    subprocess.run([QUENCH, "quant", "-q", model, "-gt", "--save-dir", "made"], check=True, capture_output=True)
    os.makedirs("tool/model/resnet18_mix")
    shutil.copy("made/resnet18_mix.json", "tool/model/resnet18_mix/resnet18_mix.json")
    script = os.path.join(KNIGHT, "make_tensorflow.py")
    subprocess.run([sys.executable, script, "tool/model/resnet18_tf/resnet18.pb"], check=True)
    make_pictures()
    make_configs()


# ---- Running ----------------------------------------------------------------------------------------------


def here(text):
    return text.replace(TOOL, "tool").replace("/tmp/", "tmp/")


def check(command, wanted, torch):
    words = shlex.split(here(command))
    needs_torch = "-f pytorch" in command
    with open("tool/infer_demo.py", "w", encoding="utf-8") as file:
        file.write(SAMPLE + TORCH_SAMPLE if needs_torch else SAMPLE)
    shutil.rmtree("tmp", ignore_errors=True)
    done = subprocess.run(["./" + words[0], *words[1:]], capture_output=True, text=True,
                          env={**os.environ, "QUENCH_PYTHON": needs_torch and torch or sys.executable})
    print(done.returncode, " ".join(words), flush=True)
    assert "has no effect" not in done.stderr and "batch is fixed" not in done.stderr, done.stderr
    if needs_torch and not torch:
        assert done.returncode == 3 and NO_TORCH in done.stderr, done
    elif wanted == "accuracy":
        assert done.returncode == 0 and "\naccuracy" in "\n" + done.stdout, done
    else:
        assert done.returncode == 0 and os.path.exists(here(wanted)), done


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.symlink(QUENCH, "Knight")
        make_tool()
        torch = torch_python()
        for command, wanted in ONNX:
            check(command, wanted, torch)
        for command, wanted in OTHERS:
            if wanted == "accuracy":
                shutil.copytree("cls", "result", dirs_exist_ok=True)
            is_large = "-is 10 3 224 224" in command or "-f pytorch" in command
            make_data(1 if is_large else 10, 224 if is_large else 32)
            check(command, wanted, torch)


if __name__ == "__main__":
    main()
