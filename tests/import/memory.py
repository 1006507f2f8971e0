"""memory.py: converting a model of 100 MB takes at most 1.5 times the file in memory, and less than two seconds of processor time.
The files are made here, in the frameworks' forms, layer by layer: Caffe's and PyTorch's weights are written as they are, and
TensorFlow's are transposed, tensor by tensor. A process begins with the memory that its parent had at most, so that this one must
stay small."""

import json
import os
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "caffe"))
from write import field, number, varint

QUENCH = os.environ["QUENCH"]
LAYERS, CHANNELS = 11, 512
MOST_MEMORY, MOST_SECONDS = 1.5, 2.0


def kernel(seed, shape):
    return np.random.default_rng(seed).standard_normal(shape, "f4") / 64


# ---- TensorFlow: a GraphDef ----------------------------------------------------------------------

def attr(key, value):
    return field(5, field(1, key) + field(2, value))


def node(name, op, inputs, *attrs):
    return field(1, field(1, name) + field(2, op) + b"".join(field(3, one) for one in inputs) + b"".join(attrs))


def shape_of(dims):
    return b"".join(field(2, number(1, dim)) for dim in dims)


def tensorflow(folder):
    path = os.path.join(folder, "net.pb")
    dtype = attr("dtype", number(6, 1))
    with open(path, "wb") as out:
        out.write(node("x", "Placeholder", [], dtype, attr("shape", field(7, shape_of((1, 16, 16, CHANNELS))))))
        for i in range(LAYERS):
            shape = (3, 3, CHANNELS, CHANNELS)
            tensor = number(1, 1) + field(2, shape_of(shape)) + field(4, kernel(i, shape).tobytes())
            out.write(node(f"w{i}", "Const", [], dtype, attr("value", field(8, tensor))))
            out.write(node(f"y{i}", "Conv2D", [f"y{i - 1}" if i else "x", f"w{i}"], attr("T", number(6, 1)),
                           attr("strides", field(1, field(3, b"".join(varint(1) for _ in range(4))))),
                           attr("padding", field(2, "SAME"))))
    return path, [path]


# ---- Caffe: a prototxt and its weights -----------------------------------------------------------

def caffe(folder):
    path, weights = os.path.join(folder, "net.prototxt"), os.path.join(folder, "net.caffemodel")
    with open(path, "w", encoding="utf-8") as text, open(weights, "wb") as out:
        text.write(f'name: "net" input: "y" input_shape {{ dim: 1 dim: {CHANNELS} dim: 16 dim: 16 }}\n')
        for i in range(LAYERS):
            text.write(f'layer {{ name: "c{i}" type: "Convolution" bottom: "y" top: "y" convolution_param {{ '
                       f'num_output: {CHANNELS} kernel_size: 3 pad: 1 bias_term: false }} }}\n')
            shape = (CHANNELS, CHANNELS, 3, 3)
            blob = field(7, field(1, b"".join(varint(n) for n in shape))) + field(5, kernel(i, shape).tobytes())
            out.write(field(100, field(1, f"c{i}") + field(2, "Convolution") + field(7, blob)))
    return path, [path, weights]


# ---- PyTorch: an archive of torch.export ---------------------------------------------------------

def sized(dims):
    return [{"as_int": dim} for dim in dims]


def named(name):
    return {"as_tensor": {"name": name}}


def pytorch(folder):
    path = os.path.join(folder, "net.pt2")
    shape, config, nodes, specs = (CHANNELS, CHANNELS, 3, 3), {}, [], []
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(LAYERS):
            archive.writestr(f"net/data/weights/weight_{i}", kernel(i, shape).tobytes())
            meta = {"dtype": 7, "sizes": sized(shape), "strides": sized((CHANNELS * 9, 9, 3, 1)), "storage_offset": {"as_int": 0}}
            config[f"w{i}"] = {"path_name": f"weight_{i}", "use_pickle": False, "tensor_meta": meta}
            specs.append({"parameter": {"arg": {"name": f"p{i}"}, "parameter_name": f"w{i}"}})
            arguments = {"input": named(f"y{i - 1}" if i else "x"), "weight": named(f"p{i}"), "padding": {"as_ints": [1, 1]}}
            nodes.append({"target": "torch.ops.aten.conv2d.default", "outputs": [named(f"y{i}")],
                          "inputs": [{"name": key, "arg": value} for key, value in arguments.items()]})
        specs.append({"user_input": {"arg": named("x")}})
        signature = {"input_specs": specs, "output_specs": [{"user_output": {"arg": named(f"y{LAYERS - 1}")}}]}
        graph = {"nodes": nodes, "tensor_values": {"x": {"dtype": 7, "sizes": sized((1, CHANNELS, 16, 16))}}}
        archive.writestr("net/models/model.json", json.dumps({"graph_module": {"graph": graph, "signature": signature}}))
        archive.writestr("net/data/weights/model_weights_config.json", json.dumps({"config": config}))
        archive.writestr("net/archive_format", "pt2")
    return path, [path]


def measure(make):
    """(memory in parts of the files, seconds)"""
    with tempfile.TemporaryDirectory() as folder:
        path, files = make(folder)
        size = sum(os.path.getsize(file) for file in files)
        with subprocess.Popen([QUENCH, "convert", path, os.path.join(folder, "out.onnx"), "--no-compare"],
                              stdout=subprocess.DEVNULL) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{make.__name__}: exit code {process.returncode}")
        return used.ru_maxrss * 1024 / size, used.ru_utime + used.ru_stime


def main():
    wrong = 0
    for make in (tensorflow, caffe, pytorch):
        memory, seconds = measure(make)
        good = memory <= MOST_MEMORY and seconds < MOST_SECONDS
        wrong += not good
        print(f"{make.__name__}: {memory:.2f} times the file (at most {MOST_MEMORY}), {seconds:.2f} s (less than {MOST_SECONDS})"
              f"{'' if good else ': wrong'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
